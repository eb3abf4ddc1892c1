//! The audit log of the state directory, as commands use it.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use lula_audit::{AuditError, Decided, Ended, Entry, Log, Options, Verdict};
use lula_config::keys;
use lula_gate::redact;
use lula_protocol::digest::Domain;
use lula_protocol::{Code, Digest, Exit, Principal, Receipt};
use serde::Serialize;

use crate::failure::Failure;
use crate::session::Session;

/// Where the log lies.
pub(crate) fn directory(session: &Session) -> Result<PathBuf, Failure> {
    Ok(session.state_directory()?.join("audit"))
}

/// The log, ready for writing.
pub(crate) fn open(session: &Session) -> Result<Log, Failure> {
    let options = Options::redacting(|text| redact::redact(text).into_owned());
    Ok(Log::open(&directory(session)?, options)?)
}

/// The log, where one is kept: opened before an act, so that nothing happens that cannot be
/// recorded.
pub(crate) fn begin(session: &Session) -> Result<Option<Log>, Failure> {
    if session.config.get(&keys::AUDIT_MODE) == "off" {
        return Ok(None);
    }
    open(session).map(Some)
}

/// Something a person ran.
pub(crate) struct Act<'a, C: Serialize> {
    pub(crate) tool: &'a str,
    /// What it was about, for people.
    pub(crate) about: String,
    /// Everything that defines it.
    pub(crate) call: &'a C,
    pub(crate) outcome: Ended,
    pub(crate) receipt: Option<&'a Receipt>,
    pub(crate) diff: Option<Digest>,
}

/// Writes down what a person ran, where a log is kept.
pub(crate) fn act<C: Serialize>(log: Option<&mut Log>, act: Act<'_, C>) -> Result<(), Failure> {
    match log {
        Some(log) => append(log, entry(act)?),
        None => Ok(()),
    }
}

/// Returns when it is on disk.
pub(crate) fn append(log: &mut Log, entry: Entry) -> Result<(), Failure> {
    log.append_sealed(&[entry])?;
    Ok(())
}

/// What a person ran, as it is written down.
pub(crate) fn entry<C: Serialize>(act: Act<'_, C>) -> Result<Entry, Failure> {
    let encode = |error| Failure::from(AuditError::Canonical(error));
    let receipt = act
        .receipt
        .map(|receipt| Digest::of(Domain::Receipt, receipt))
        .transpose()
        .map_err(encode)?;
    Ok(Entry {
        time_ms: now_ms(),
        principal: local_principal()?,
        run: None,
        effect: None,
        tool: act.tool.to_owned(),
        about: act.about,
        call: Digest::of(Domain::Call, act.call).map_err(encode)?,
        decision: Decided {
            verdict: Verdict::Direct,
            rule: None,
            approval: None,
        },
        outcome: act.outcome,
        receipt,
        diff: act.diff,
    })
}

/// Whoever runs this process, as the kernel knows them.
pub(crate) fn local_principal() -> Result<Principal, Failure> {
    let uid = rustix::process::getuid().as_raw();
    format!("local:{uid}")
        .parse()
        .map_err(|error| Failure::new(Code::Internal, Exit::Failed, format!("{error}")))
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// A time as people write it: `2026-11-16 02:30:00Z`.
pub(crate) fn spoken_time(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days are counted in eras of 400 years that start on the first of March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        let (code, remedy) = match &error {
            AuditError::NotPrivate { .. } => (
                Code::KeysUnusable,
                "make the key readable by you alone, or remove it",
            ),
            AuditError::Damaged { .. } => (Code::AuditBroken, "run `lula audit verify`"),
            AuditError::NotAKey(_) | AuditError::NotABundle(_) => {
                return Self::new(Code::AuditUnusable, Exit::Usage, error.to_string())
                    .remedy("name a key or a file that `lula audit export` made");
            }
            _ => (
                Code::AuditUnusable,
                "check the space and the rights of the state directory, or set audit.mode to off",
            ),
        };
        Self::new(code, Exit::Environment, error.to_string()).remedy(remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (1_709_251_199_999, "2024-02-29 23:59:59Z"),
            (1_735_689_600_000, "2025-01-01 00:00:00Z"),
            (4_102_444_800_000, "2100-01-01 00:00:00Z"),
        ] {
            assert_eq!(spoken_time(ms), text);
        }
    }
}
