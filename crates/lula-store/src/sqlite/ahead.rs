//! Room in the write-ahead log before it is needed.
//!
//! A flush of a file that has grown must also write down how long it is now, which on most file
//! systems costs as much as the data does, or a whole transaction of the file system's own journal.
//! So the log grows in large steps, filled with zeros, and the many small commits in between only
//! overwrite them. SQLite takes zeros for what they are: a frame without the log's salt and a right
//! checksum ends the log.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The first step. Most processes write little.
const FIRST: u64 = 64 << 10;
/// The largest step.
const LARGEST: u64 = 1 << 20;
const ZEROS: [u8; 4096] = [0; 4096];

/// Makes room in the log of one database.
pub(super) struct Ahead {
    log: PathBuf,
    /// How long the log was after the last step.
    seen: u64,
    step: u64,
}

impl Ahead {
    pub(super) fn of(database: &Path) -> Self {
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        Self {
            log: log.into(),
            seen: 0,
            step: FIRST,
        }
    }

    /// Makes room where the log has grown past what was made before.
    ///
    /// Only to be called while this process may write to the database and has written nothing yet:
    /// then nobody else writes to the log, and nothing of it lies past its end.
    pub(super) fn look(&mut self) {
        let Ok(found) = std::fs::metadata(&self.log) else {
            return;
        };
        // A log that is shorter than before was begun anew.
        if found.len() == self.seen || found.len() == 0 {
            return;
        }
        // Without room, as on a full disk, a commit only takes longer; it says so where it fails.
        self.seen = self.extend(found.len()).unwrap_or(found.len());
        self.step = (self.step * 2).min(LARGEST);
    }

    fn extend(&self, length: u64) -> std::io::Result<u64> {
        let mut file = OpenOptions::new().write(true).open(&self.log)?;
        let end = length + self.step;
        file.seek(SeekFrom::Start(length))?;
        let zeros = ZEROS.repeat(usize::try_from(self.step / 4096).unwrap_or(0));
        file.write_all(&zeros)?;
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_grew_gets_room_and_one_that_did_not_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let log = folder.path().join("a.db-wal");
        let length = || std::fs::metadata(&log).map_or(0, |found| found.len());
        let mut ahead = Ahead::of(&database);
        ahead.look();
        assert!(!log.exists(), "a log is SQLite's to make");

        std::fs::write(&log, [7; 100]).unwrap();
        ahead.look();
        assert_eq!(length(), 100 + FIRST);
        assert_eq!(std::fs::read(&log).unwrap()[..100], [7; 100]);
        ahead.look();
        assert_eq!(length(), 100 + FIRST);

        std::fs::write(&log, vec![7; 200_000]).unwrap();
        ahead.look();
        assert_eq!(length(), 200_000 + 2 * FIRST);
    }
}
