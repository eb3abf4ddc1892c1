//! Reading a log.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use lula_protocol::{EffectId, RunId};
use serde::Serialize;

use crate::entry::AuditEntry;
use crate::error::AuditError;
use crate::line::{AuditLineBody, UncheckedAuditLine};
use crate::log;

/// Which entries to show.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only entries of this tool.
    pub tool: Option<String>,
    /// Only entries of this run.
    pub run: Option<RunId>,
    /// Only entries of this effect.
    pub effect: Option<EffectId>,
    /// Not before this time, in Unix milliseconds.
    pub since_ms: Option<u64>,
    /// Only this many, the newest.
    pub last: Option<usize>,
}

impl AuditFilter {
    fn lets(&self, entry: &AuditEntry) -> bool {
        self.tool.as_ref().is_none_or(|tool| entry.tool == *tool)
            && self
                .run
                .as_ref()
                .is_none_or(|run| entry.run.as_ref() == Some(run))
            && self
                .effect
                .as_ref()
                .is_none_or(|effect| entry.effect.as_ref() == Some(effect))
            && self.since_ms.is_none_or(|since| entry.time_ms >= since)
    }
}

/// An entry with its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumberedAuditEntry {
    /// Its number in the log.
    pub seq: u64,
    #[serde(flatten)]
    pub entry: AuditEntry,
}

/// The entries of a log, oldest first. Showing checks nothing: [`verify()`](crate::verify()) does.
pub fn show(directory: &Path, filter: &AuditFilter) -> Result<Vec<NumberedAuditEntry>, AuditError> {
    let mut shown = Vec::new();
    for path in log::files(directory)? {
        let file = File::open(&path).map_err(AuditError::io(&path))?;
        for bytes in BufReader::new(file).split(b'\n') {
            let bytes = bytes.map_err(AuditError::io(&path))?;
            if let Some(line) = UncheckedAuditLine::read(&bytes)
                && let Some(AuditLineBody::Act { entry }) = line.body()
                && filter.lets(&entry)
            {
                shown.push(NumberedAuditEntry {
                    seq: line.seq,
                    entry: *entry,
                });
            }
        }
    }
    if let Some(last) = filter.last {
        shown.drain(..shown.len().saturating_sub(last));
    }
    Ok(shown)
}
