//! What was asked for and reached over the network, a line each, kept in the state directory.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lula_egress::{ConnectionRecord, ConnectionSide, EgressStage};
use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::installation::Installation;
use crate::record::now_ms;

/// A file longer than this becomes the older one, of which there is one.
const LONGEST: u64 = 16 << 20;

/// One thing that happened on the way out of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkLogEntry {
    /// When, in Unix milliseconds.
    pub time_ms: u64,
    /// The door, as `lula grant` takes it.
    pub door: String,
    /// What its caller calls the sandbox: the workspace of a run, for one.
    pub subject: Option<String>,
    pub record: ConnectionRecord,
}

impl NetworkLogEntry {
    /// What came of it, in a word.
    pub fn verdict(&self) -> &'static str {
        match (&self.record.denial, &self.record.failure) {
            (Some(_), _) => "denied",
            (None, Some(_)) => "failed",
            (None, None) => "allowed",
        }
    }

    /// The name or address, with the port.
    pub fn place(&self) -> String {
        let record = &self.record;
        let dialled = record.dialled.map(|address| address.to_string());
        let inside = || "inside".to_owned();
        let published = record.stage == EgressStage::Published;
        let host = record.name.clone().or(dialled);
        let host = host.or_else(|| published.then(inside)).unwrap_or_default();
        format!("{host}:{}", record.port)
    }

    /// Why it was denied or failed, else the request, else how much was sent.
    pub fn detail(&self) -> String {
        let record = &self.record;
        let why = record.denial.as_ref().map(|denial| denial.text.clone());
        why.or_else(|| record.failure.clone())
            .or_else(|| record.request.clone())
            .unwrap_or_else(|| {
                let by = match record.dropped_by {
                    Some(ConnectionSide::Inside) => ", dropped by the program inside",
                    Some(ConnectionSide::Outside) => ", dropped by its client",
                    None => "",
                };
                let published = match record.stage {
                    EgressStage::Published => "published, ",
                    _ => "",
                };
                format!(
                    "{published}{} up, {} down{by}",
                    record.bytes_up, record.bytes_down
                )
            })
    }
}

/// What of the log is asked for.
#[derive(Debug, Clone, Copy)]
pub struct NetworkLogFilter<'a> {
    /// Only this sandbox, or those of this run.
    pub door: Option<&'a str>,
    /// Whether only what was denied is.
    pub denied: bool,
    /// The most entries, the latest.
    pub lines: usize,
}

impl NetworkLogFilter<'_> {
    /// What is asked for, the oldest first.
    pub fn read(&self, installation: &Installation) -> Result<Vec<NetworkLogEntry>, HostError> {
        let mut entries = read(installation)?;
        if let Some(word) = self.door {
            let subject = super::subject(word, installation)?;
            entries.retain(|entry| {
                let mut names = entry.subject.iter().chain([&entry.door]);
                names.any(|name| name.starts_with(&subject))
            });
        }
        entries.retain(|entry| !self.denied || entry.record.denial.is_some());
        let first = entries.len().saturating_sub(self.lines);
        Ok(entries.split_off(first))
    }
}

/// Where everything about networks is kept.
pub(super) fn directory(installation: &Installation) -> Result<PathBuf, HostError> {
    let path = installation.state_directory()?.join("network");
    std::fs::create_dir_all(&path).map_err(|error| HostError::NoDirectory {
        path: path.clone(),
        error,
    })?;
    Ok(path)
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl Journal {
    pub(super) fn open(directory: &Path) -> Result<Self, HostError> {
        let path = directory.join("connections.jsonl");
        let too_long = std::fs::metadata(&path).is_ok_and(|file| file.len() > LONGEST);
        if too_long {
            // Another process may have been quicker.
            let _ = std::fs::rename(&path, older(&path));
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| HostError::File {
                path: path.clone(),
                error,
            })?;
        Ok(Self {
            path,
            file: Mutex::new(Some(file)),
        })
    }

    /// Writes an entry. What cannot be written is said once, in the diagnostic log.
    pub(super) fn write(&self, door: &str, subject: Option<&str>, record: &ConnectionRecord) {
        let entry = NetworkLogEntry {
            time_ms: now_ms(),
            door: door.to_owned(),
            subject: subject.map(str::to_owned),
            record: record.clone(),
        };
        let Ok(mut line) = serde_json::to_vec(&entry) else {
            return;
        };
        line.push(b'\n');
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write for a line: those of several processes do not mix.
        if let Some(file) = &mut *slot
            && let Err(error) = file.write_all(&line)
        {
            tracing::warn!(path = %self.path.display(), %error, "the network journal cannot be written");
            *slot = None;
        }
    }
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("1.jsonl")
}

/// Everything that is kept, the oldest first. A line that was cut off is left out.
pub fn read(installation: &Installation) -> Result<Vec<NetworkLogEntry>, HostError> {
    let path = directory(installation)?.join("connections.jsonl");
    let mut entries = Vec::new();
    for path in [older(&path), path] {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(HostError::File { path, error }),
        };
        let lines = BufReader::new(file).lines().map_while(Result::ok);
        entries.extend(lines.filter_map(|line| serde_json::from_str(&line).ok()));
    }
    Ok(entries)
}
