//! Room in the write-ahead log before it is needed.
//!
//! A flush of a file that has grown must also write down how long it is now, which on most file
//! systems costs as much as the data does, or a whole transaction of the file system's own journal.
//! So the log grows in large steps, filled with zeros, and the many small commits in between only
//! overwrite them. SQLite takes zeros for what they are: a frame without the log's salt and a right
//! checksum ends the log.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The first step. Most processes write little.
const FIRST: u64 = 64 << 10;
/// Room is made in steps of at most so many bytes.
const LARGEST: u64 = 1 << 20;
const ZEROS: [u8; 4096] = [0; 4096];

/// Makes room in the log of one database.
pub(super) struct WalPreallocator {
    path: PathBuf,
    /// Open for as long as the database is, like SQLite's own: while one process has a database
    /// open, its log stays the same file. How long it is is asked by seeking: to ask for its status
    /// would make the next write note the exact time, and the next flush write that down too.
    log: Option<File>,
    /// How long the log was after the last step.
    seen: u64,
    step: u64,
}

impl WalPreallocator {
    pub(super) fn of(database: &Path) -> Self {
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        Self {
            path: log.into(),
            log: None,
            seen: 0,
            step: FIRST,
        }
    }

    /// Makes room where the log has grown past what was made before.
    ///
    /// Only to be called while this process may write to the database and has written nothing yet:
    /// then no other process writes to the log, and nothing of it lies past its end.
    pub(super) fn look(&mut self) {
        let Some(log) = &mut self.log else {
            self.log = OpenOptions::new().write(true).open(&self.path).ok();
            return;
        };
        let Ok(length) = log.seek(SeekFrom::End(0)) else {
            return;
        };
        // A log that is shorter than before was begun anew.
        if length == self.seen || length == 0 {
            return;
        }
        // Without room, as on a full disk, a commit only takes longer; it says so where it fails.
        let zeros = ZEROS.repeat(usize::try_from(self.step / 4096).unwrap_or(0));
        let made = log.write_all(&zeros).is_ok();
        self.seen = if made { length + self.step } else { length };
        self.step = (self.step * 2).min(LARGEST);
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
        let mut ahead = WalPreallocator::of(&database);
        ahead.look();
        assert!(!log.exists(), "a log is SQLite's to make");

        std::fs::write(&log, [7; 100]).unwrap();
        ahead.look();
        assert_eq!(length(), 100, "it is opened first");
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
