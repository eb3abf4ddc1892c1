//! The log on disk: appended under a lock, made durable, rotated, recovered.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lula_protocol::Digest;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::entry::AuditEntry;
use crate::error::AuditError;
use crate::key::{AuditPublicKey, AuditSealKey};
use crate::line::{self, AuditHead, AuditLineBody, UncheckedAuditLine};

const CURRENT: &str = "audit.jsonl";
const HEAD: &str = "head.json";
const LOCK: &str = "lock";
/// A log in which more acts than this stand without a signature was not written by us.
pub(crate) const MOST_UNSEALED: u64 = 1024;

/// How the log is kept.
#[derive(Debug, Clone, Copy)]
pub struct AuditOptions {
    /// What every free text goes through before it is written.
    pub redact: fn(&str) -> String,
    /// At most this many entries stand without a signature behind them; never more than 1024.
    pub seal_every: u64,
    /// A file larger than this is put aside and the next one begun.
    pub rotate_bytes: u64,
}

impl AuditOptions {
    /// The usual numbers with this redaction.
    pub const fn redacting(redact: fn(&str) -> String) -> Self {
        Self {
            redact,
            seal_every: 64,
            rotate_bytes: 16 << 20,
        }
    }
}

/// A log that can be appended to.
#[derive(Debug)]
pub struct AuditLog {
    directory: PathBuf,
    key: AuditSealKey,
    options: AuditOptions,
}

/// What is remembered of the end, beside the log: a log that ends earlier was cut.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogEndNote {
    head: AuditHead,
    sealed: Option<u64>,
}

impl AuditLog {
    /// Opens the log of a directory; both are made on first use.
    pub fn open(directory: &Path, options: AuditOptions) -> Result<Self, AuditError> {
        fs::DirBuilder::new()
            .recursive(true)
            .create(directory)
            .map_err(AuditError::io(directory))?;
        let log = Self {
            key: AuditSealKey::open(directory)?,
            directory: directory.to_owned(),
            options,
        };
        // Fails here rather than after an act that could not be recorded.
        drop(log.lock()?);
        drop(log.current()?);
        Ok(log)
    }

    /// The public key, with which every reader can check the log.
    pub fn public_key(&self) -> AuditPublicKey {
        self.key.public()
    }

    /// Does what the first entry needs and does not depend on it, so that a program that writes one
    /// when it is in a hurry finds that done. Changes nothing.
    pub fn rehearse(&self) {
        let _ = self.remembered();
        // What is wrong is met again, and reported, by the first entry.
        if let Ok(file) = self.current() {
            let _ = self.found_head(&file);
        }
        let _ = self.key.sign(0, &line::GENESIS);
    }

    /// Appends entries, all or none, and returns when they are on disk.
    pub fn append(&mut self, entries: &[AuditEntry]) -> Result<AuditHead, AuditError> {
        self.write(&self.bodies(entries), false)
    }

    /// Appends entries with a signature behind them.
    pub fn append_sealed(&mut self, entries: &[AuditEntry]) -> Result<AuditHead, AuditError> {
        self.write(&self.bodies(entries), true)
    }

    fn bodies(&self, entries: &[AuditEntry]) -> Vec<AuditLineBody> {
        let clean = |entry: &AuditEntry| Box::new(entry.clone().clean(self.options.redact));
        entries
            .iter()
            .map(|entry| AuditLineBody::Act {
                entry: clean(entry),
            })
            .collect()
    }

    /// Signs what is there, unless the last line is a signature already.
    pub fn seal(&mut self) -> Result<AuditHead, AuditError> {
        self.write(&[], true)
    }

    fn write(&mut self, bodies: &[AuditLineBody], seal: bool) -> Result<AuditHead, AuditError> {
        let lock = self.lock()?;
        let mut file = self.current()?;
        let remembered = self.remembered();
        let torn = self.put_aside_torn_end(&file)?;
        let found = self.found_head(&file)?;
        // Where the log ends before what is remembered it was cut: the chain goes on from what is
        // remembered, and the hole stays visible.
        let mut head = match (found, remembered) {
            (Some(found), Some(remembered)) if found.seq <= remembered.head.seq => {
                Some(remembered.head)
            }
            (None, remembered) => remembered.map(|remembered| remembered.head),
            (found, _) => found,
        };
        let mut sealed = remembered.and_then(|remembered| remembered.sealed);
        let mut bytes = Vec::new();
        let mut push =
            |body: &AuditLineBody, head: &mut Option<AuditHead>| -> Result<(), AuditError> {
                let (line, next) = line::write(*head, body)?;
                bytes.extend_from_slice(&line);
                *head = Some(next);
                Ok(())
            };
        for body in torn.iter().chain(bodies) {
            push(body, &mut head)?;
            let due = head.is_some_and(|head| {
                head.seq + 1 - sealed.map_or(0, |sealed| sealed + 1)
                    >= self.options.seal_every.min(MOST_UNSEALED)
            });
            if due {
                sealed = Some(self.push_seal(&mut head, &mut push)?);
            }
        }
        let unsealed = head.is_some_and(|head| sealed != Some(head.seq));
        if seal && (unsealed || head.is_none()) {
            sealed = Some(self.push_seal(&mut head, &mut push)?);
        }
        file.write_all(&bytes)
            .and_then(|()| file.sync_data())
            .map_err(AuditError::io(&self.path()))?;
        let head = head.unwrap_or(AuditHead {
            seq: 0,
            hash: line::GENESIS,
        });
        self.remember(LogEndNote { head, sealed })?;
        self.rotate_if_large(&file)?;
        drop(lock);
        Ok(head)
    }

    fn push_seal(
        &self,
        head: &mut Option<AuditHead>,
        push: &mut impl FnMut(&AuditLineBody, &mut Option<AuditHead>) -> Result<(), AuditError>,
    ) -> Result<u64, AuditError> {
        let (seq, prev) = line::next(*head);
        let body = AuditLineBody::Seal {
            key: self.key.public().to_string(),
            signature: self.key.sign(seq, &prev),
        };
        push(&body, head)?;
        Ok(seq)
    }

    fn path(&self) -> PathBuf {
        self.directory.join(CURRENT)
    }

    /// One writer at a time, whichever process it is in.
    fn lock(&self) -> Result<File, AuditError> {
        let path = self.directory.join(LOCK);
        let unusable = AuditError::io(&path);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(&unusable)?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| unusable(io::Error::from(error)))?;
        Ok(file)
    }

    fn current(&self) -> Result<File, AuditError> {
        let path = self.path();
        OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .mode(0o600)
            .open(&path)
            .map_err(AuditError::io(&path))
    }

    fn remembered(&self) -> Option<LogEndNote> {
        let text = fs::read(self.directory.join(HEAD)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Written over what was there, in one write of one sector: whole or not at all, and for the
    /// lock's holder alone to read. It is not waited for: the log itself is.
    fn remember(&self, remembered: LogEndNote) -> Result<(), AuditError> {
        const SECTOR: usize = 512;
        let path = self.directory.join(HEAD);
        let mut text = serde_json::to_vec(&remembered)
            .map_err(lula_protocol::canonical::CanonicalError::from)?;
        text.resize(SECTOR.max(text.len()) - 1, b' ');
        text.push(b'\n');
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .and_then(|file| file.write_all_at(&text, 0))
            .map_err(AuditError::io(&path))
    }

    /// The head of the log as it lies there: of the current file, or of the newest one put aside.
    fn found_head(&self, file: &File) -> Result<Option<AuditHead>, AuditError> {
        let path = self.path();
        if let Some(last) = last_line(file).map_err(AuditError::io(&path))? {
            let line = UncheckedAuditLine::read(&last).ok_or(AuditError::Damaged { path })?;
            return Ok(Some(line.head()));
        }
        let Some(path) = rotated(&self.directory)?.pop() else {
            return Ok(None);
        };
        let file = File::open(&path).map_err(AuditError::io(&path))?;
        let last = last_line(&file).map_err(AuditError::io(&path))?;
        last.map(|last| {
            UncheckedAuditLine::read(&last)
                .map(|line| line.head())
                .ok_or(AuditError::Damaged { path })
        })
        .transpose()
    }

    /// A crash can leave half a line. It is kept in a file of its own and recorded.
    fn put_aside_torn_end(&self, file: &File) -> Result<Option<AuditLineBody>, AuditError> {
        let path = self.path();
        let unusable = AuditError::io(&path);
        let torn = torn_end(file).map_err(&unusable)?;
        if torn.is_empty() {
            return Ok(None);
        }
        let digest = Digest::of_bytes(&torn);
        let kept_in = format!("torn-{}", digest.short());
        let aside = self.directory.join(&kept_in);
        fs::write(&aside, &torn)
            .and_then(|()| File::open(&aside)?.sync_all())
            .map_err(AuditError::io(&aside))?;
        let length = file.metadata().map_err(&unusable)?.len();
        file.set_len(length - torn.len() as u64)
            .map_err(&unusable)?;
        Ok(Some(AuditLineBody::Recovered {
            time_ms: now_ms(),
            bytes: torn.len() as u64,
            digest,
            kept_in,
        }))
    }

    fn rotate_if_large(&self, file: &File) -> Result<(), AuditError> {
        let path = self.path();
        let unusable = AuditError::io(&path);
        if file.metadata().map_err(&unusable)?.len() < self.options.rotate_bytes {
            return Ok(());
        }
        let mut first = vec![0; 64 * 1024];
        let mut reader = File::open(&path).map_err(&unusable)?;
        let count = reader.read(&mut first).map_err(&unusable)?;
        let line = first[..count].split(|byte| *byte == b'\n').next();
        let seq = line
            .and_then(UncheckedAuditLine::read)
            .map_or(0, |line| line.seq);
        let aside = self.directory.join(format!("audit-{seq:016}.jsonl"));
        fs::hard_link(&path, &aside)
            .and_then(|()| fs::remove_file(&path))
            .map_err(AuditError::io(&aside))
    }
}

/// Files put aside, oldest first.
fn rotated(directory: &Path) -> Result<Vec<PathBuf>, AuditError> {
    let unusable = AuditError::io(directory);
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(&unusable)? {
        let path = entry.map_err(&unusable)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| {
            name.strip_prefix("audit-")
                .and_then(|rest| rest.strip_suffix(".jsonl"))
                .is_some_and(|digits| {
                    digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit())
                })
        }) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Keeps writers away while a log is read. A log that cannot be locked, because it is only a copy
/// or another user's, is read as it lies there.
pub(crate) fn hold_still(directory: &Path) -> Option<File> {
    let file = File::open(directory.join(LOCK)).ok()?;
    flock(&file, FlockOperation::LockShared).ok()?;
    Some(file)
}

/// Every file of a log, in order.
pub(crate) fn files(directory: &Path) -> Result<Vec<PathBuf>, AuditError> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut paths = rotated(directory)?;
    let current = directory.join(CURRENT);
    if current.exists() {
        paths.push(current);
    }
    Ok(paths)
}

/// The head that is remembered beside a log.
pub(crate) fn remembered_head(directory: &Path) -> Option<AuditHead> {
    let text = fs::read(directory.join(HEAD)).ok()?;
    let remembered: LogEndNote = serde_json::from_slice(&text).ok()?;
    (remembered.head.hash != line::GENESIS).then_some(remembered.head)
}

/// The end of a log: what was read of it lies in `bytes`, from `start` to the end of the file.
struct End {
    bytes: Vec<u8>,
    start: u64,
}

impl End {
    /// Enough for the last lines of nearly every log.
    const USUAL: u64 = 8 * 1024;

    /// Reads from the end until a line break is found beyond the last `skip` bytes, or the beginning
    /// of the file.
    fn read(file: &File, skip: usize) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut wanted = Self::USUAL.max(skip as u64);
        loop {
            let start = length.saturating_sub(wanted);
            let mut bytes = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
            file.read_exact_at(&mut bytes, start)?;
            let end = Self { bytes, start };
            if start == 0 || end.last_break(skip).is_some() {
                return Ok(end);
            }
            wanted = wanted.saturating_mul(8);
        }
    }

    /// Where the last line break before the last `skip` bytes is.
    fn last_break(&self, skip: usize) -> Option<usize> {
        let before = self.bytes.len().checked_sub(skip)?;
        self.bytes[..before].iter().rposition(|byte| *byte == b'\n')
    }
}

/// Bytes behind the last line break.
fn torn_end(file: &File) -> io::Result<Vec<u8>> {
    let mut end = End::read(file, 0)?;
    let torn = end.last_break(0).map_or(0, |at| at + 1);
    Ok(end.bytes.split_off(torn))
}

/// The last whole line, without its line break.
fn last_line(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut end = End::read(file, 1)?;
    if end.bytes.pop().is_none() {
        return Ok(None);
    }
    let begin = end.last_break(0).map_or(0, |at| at + 1);
    debug_assert!(begin > 0 || end.start == 0);
    Ok(Some(end.bytes.split_off(begin)))
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
