//! Checking a log: what was changed in it, and where.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;

use crate::error::AuditError;
use crate::key::AuditPublicKey;
use crate::line::{AuditHead, AuditLineBody, GENESIS, UncheckedAuditLine};
use crate::log;

/// Longer lines are not taken for entries.
const MAX_LINE: u64 = 1 << 20;

/// What is wrong at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditFault {
    /// The line is no entry at all.
    NotAnEntry,
    /// The last line is only half there: a crash, or it was cut.
    Torn,
    /// The line says something else than its hash.
    Edited,
    /// The line does not follow the one before it: one of them was replaced or put in.
    Unlinked,
    /// Lines are missing before this one.
    Missing,
    /// The line stands here a second time.
    Repeated,
    /// The line belongs further up.
    OutOfOrder,
    /// The signature is not the key's over what stands before it.
    BadSeal,
    /// The signature is by another key.
    ForeignSeal,
    /// More entries than ever go without a signature.
    Unsealed,
    /// The log ends before the end that is known.
    CutOff,
    /// The end that is known is not in the log.
    OtherHead,
}

impl AuditFault {
    /// The fault as a sentence for the operator.
    pub const fn spoken(self) -> &'static str {
        match self {
            Self::NotAnEntry => "the line is not an entry",
            Self::Torn => "the last line is only half there",
            Self::Edited => "the line was edited: its hash is of something else",
            Self::Unlinked => {
                "the line does not follow the one before it: one was replaced or inserted"
            }
            Self::Missing => "entries before this one are missing",
            Self::Repeated => "the entry stands here a second time",
            Self::OutOfOrder => "the entry was moved: it belongs further up",
            Self::BadSeal => "the signature does not fit what stands before it",
            Self::ForeignSeal => "the signature is by another key",
            Self::Unsealed => "too many entries stand without a signature",
            Self::CutOff => "the log was cut: it ends before its known end",
            Self::OtherHead => "the known end is not in the log: entries were replaced",
        }
    }
}

/// One place in a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditProblem {
    pub trouble: AuditFault,
    /// The file of the log that holds the place.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The number of the entry, where it has one.
    pub seq: Option<u64>,
}

/// What checking a log showed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct AuditCheckReport {
    pub entries: u64,
    pub seals: u64,
    /// The last line; none in an empty log.
    pub head: Option<AuditHead>,
    /// The last line up to which everything is as it was signed.
    pub sealed_through: Option<u64>,
    /// Acts after the last seal, which no signature covers.
    pub unsealed: u64,
    /// Torn ends that were put aside and recorded.
    pub recovered: u64,
    /// The key the signatures were checked with.
    pub key: Option<String>,
    /// Everything wrong with it, in order.
    pub problems: Vec<AuditProblem>,
}

impl AuditCheckReport {
    /// Whether nothing is wrong.
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Checks the log of a directory against a key and, where one is known, an end. Without them the
/// directory's own public key and remembered end are taken.
pub fn verify(
    directory: &Path,
    key: Option<&AuditPublicKey>,
    expected: Option<AuditHead>,
) -> Result<AuditCheckReport, AuditError> {
    let _still = log::hold_still(directory);
    let own = AuditPublicKey::of(directory)?;
    let mut check = AuditCheckState::new(key.cloned().or(own));
    for path in log::files(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = File::open(&path).map_err(AuditError::io(&path))?;
        check
            .read(&name, BufReader::new(file))
            .map_err(AuditError::io(&path))?;
    }
    Ok(check.finish(&[expected, log::remembered_head(directory)]))
}

/// The state of a check.
pub(crate) struct AuditCheckState {
    key: Option<AuditPublicKey>,
    report: AuditCheckReport,
    next: u64,
    previous: lula_protocol::Digest,
    seen: BTreeSet<[u8; 32]>,
    since_seal: u64,
    place: (String, usize),
}

impl AuditCheckState {
    pub(crate) fn new(key: Option<AuditPublicKey>) -> Self {
        let report = AuditCheckReport {
            key: key.as_ref().map(ToString::to_string),
            ..AuditCheckReport::default()
        };
        Self {
            key,
            report,
            next: 0,
            previous: GENESIS,
            seen: BTreeSet::new(),
            since_seal: 0,
            place: (String::new(), 0),
        }
    }

    /// Counts the lines of a file from behind those already read.
    pub(crate) fn begin_behind(&mut self, name: &str, lines: usize) {
        self.place = (name.to_owned(), lines);
    }

    fn trouble(&mut self, trouble: AuditFault, seq: Option<u64>) {
        self.report.problems.push(AuditProblem {
            trouble,
            file: self.place.0.clone(),
            line: self.place.1,
            seq,
        });
    }

    pub(crate) fn read(&mut self, name: &str, mut reader: impl BufRead) -> std::io::Result<()> {
        if self.place.0 != name {
            self.place = (name.to_owned(), 0);
        }
        loop {
            let mut bytes = Vec::new();
            let count = std::io::Read::take(&mut reader, MAX_LINE).read_until(b'\n', &mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            self.place.1 += 1;
            if bytes.pop_if(|last| *last == b'\n').is_none() {
                self.trouble(AuditFault::Torn, None);
                continue;
            }
            match UncheckedAuditLine::read(&bytes) {
                Some(line) => self.line(&line),
                None => self.trouble(AuditFault::NotAnEntry, None),
            }
        }
    }

    fn line(&mut self, line: &UncheckedAuditLine) {
        let seq = Some(line.seq);
        let whole = line.is_whole();
        if !whole {
            self.trouble(AuditFault::Edited, seq);
        }
        if line.seq < self.next {
            let repeated = self.seen.contains(line.hash.as_bytes());
            let trouble = if repeated {
                AuditFault::Repeated
            } else {
                AuditFault::OutOfOrder
            };
            self.trouble(trouble, seq);
            return;
        }
        if line.seq > self.next {
            self.trouble(AuditFault::Missing, seq);
        } else if line.prev != self.previous {
            self.trouble(AuditFault::Unlinked, seq);
        }
        self.seen.insert(*line.hash.as_bytes());
        self.next = line.seq + 1;
        self.previous = line.hash;
        self.report.head = Some(line.head());
        match line.body() {
            Some(AuditLineBody::Seal { key, signature }) => self.seal(line, &key, &signature),
            Some(AuditLineBody::Act { .. }) => {
                self.report.entries += 1;
                self.since_seal += 1;
                if self.since_seal == log::MOST_UNSEALED + 1 {
                    self.trouble(AuditFault::Unsealed, seq);
                }
            }
            Some(AuditLineBody::Recovered { .. }) => self.report.recovered += 1,
            None if whole => self.trouble(AuditFault::NotAnEntry, seq),
            None => {}
        }
    }

    fn seal(&mut self, line: &UncheckedAuditLine, key: &str, signature: &str) {
        self.report.seals += 1;
        let Ok(signer) = key.parse::<AuditPublicKey>() else {
            return self.trouble(AuditFault::BadSeal, Some(line.seq));
        };
        if self.key.as_ref().is_some_and(|known| *known != signer) {
            return self.trouble(AuditFault::ForeignSeal, Some(line.seq));
        }
        if !signer.verifies(signature, line.seq, &line.prev) {
            return self.trouble(AuditFault::BadSeal, Some(line.seq));
        }
        self.since_seal = 0;
        // Behind the first change a signature vouches for hashes, not for what stands there.
        if self.report.problems.is_empty() {
            self.report.sealed_through = Some(line.seq);
        }
    }

    pub(crate) fn finish(mut self, expected: &[Option<AuditHead>]) -> AuditCheckReport {
        for head in expected.iter().flatten() {
            if self.seen.contains(head.hash.as_bytes()) {
                continue;
            }
            let trouble = if head.seq >= self.next {
                AuditFault::CutOff
            } else {
                AuditFault::OtherHead
            };
            let known = |problem: &AuditProblem| {
                problem.trouble == trouble && problem.seq == Some(head.seq)
            };
            if !self.report.problems.iter().any(known) {
                self.trouble(trouble, Some(head.seq));
            }
        }
        self.report.unsealed = self.since_seal;
        self.report
    }
}
