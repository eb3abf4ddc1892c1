//! The audit log of the state directory, as commands use it.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lula_audit::{
    AuditCheckReport, AuditDecision, AuditEnding, AuditEntry, AuditError, AuditHead, AuditLog,
    AuditOptions, AuditPublicKey, AuditVerdict,
};
use lula_config::keys;
use lula_gate::redact;
use lula_protocol::digest::DigestDomain;
use lula_protocol::{Digest, Principal, SandboxReceipt};
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;

/// Where the log lies.
pub fn directory(installation: &Installation) -> Result<PathBuf, HostError> {
    Ok(installation.state_directory()?.join("audit"))
}

/// The log, ready for writing.
pub fn open(installation: &Installation) -> Result<AuditLog, HostError> {
    let options = AuditOptions::redacting(|text| redact::redact(text).into_owned());
    Ok(AuditLog::open(&directory(installation)?, options)?)
}

/// The log, where one is kept: opened before an act, so that nothing happens that cannot be
/// recorded.
pub fn begin(installation: &Installation) -> Result<Option<AuditLog>, HostError> {
    if installation.config.get(&keys::AUDIT_MODE) == "off" {
        return Ok(None);
    }
    open(installation).map(Some)
}

/// Looks through the log, or through a bundle of it, by this key where one is given.
pub fn verify(
    bundle: Option<&Path>,
    key: Option<&AuditPublicKey>,
    head: Option<AuditHead>,
    installation: &Installation,
) -> Result<AuditCheckReport, HostError> {
    let Some(path) = bundle else {
        return Ok(lula_audit::verify(&directory(installation)?, key, head)?);
    };
    let file = File::open(path).map_err(|source| AuditError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(lula_audit::verify_bundle(BufReader::new(file), key)?)
}

/// A bundle that was written.
#[derive(Debug, Serialize)]
pub struct ExportedAudit {
    /// Where it is.
    pub file: PathBuf,
    head: AuditHead,
    /// The key to check it with.
    pub key: String,
}

/// Writes the log into a bundle: into a file, or to standard output, which the caller gives.
pub fn export(
    output: Option<&Path>,
    otherwise: impl Write,
    installation: &Installation,
) -> Result<ExportedAudit, HostError> {
    let directory = directory(installation)?;
    let mut log = open(installation)?;
    let head = match output {
        Some(path) => {
            let file = File::create(path).map_err(|source| AuditError::Io {
                path: path.to_owned(),
                source,
            })?;
            lula_audit::export(&mut log, &directory, file)?
        }
        None => lula_audit::export(&mut log, &directory, otherwise)?,
    };
    Ok(ExportedAudit {
        file: output.unwrap_or(Path::new("standard output")).to_owned(),
        head,
        key: log.public_key().to_string(),
    })
}

/// Something a person ran.
pub struct OperatorAct<'a, C: Serialize> {
    /// Which command.
    pub tool: &'a str,
    /// What it was about, for people.
    pub about: String,
    /// Everything that defines it.
    pub call: &'a C,
    /// How it ended.
    pub outcome: AuditEnding,
    /// What stood around it.
    pub receipt: Option<&'a SandboxReceipt>,
    /// What it changed.
    pub diff: Option<Digest>,
}

/// Writes down what a person ran, where a log is kept.
pub fn act<C: Serialize>(
    log: Option<&mut AuditLog>,
    act: OperatorAct<'_, C>,
) -> Result<(), HostError> {
    match log {
        Some(log) => append(log, entry(act)?),
        None => Ok(()),
    }
}

/// Returns when it is on disk.
pub fn append(log: &mut AuditLog, entry: AuditEntry) -> Result<(), HostError> {
    log.append_sealed(&[entry])?;
    Ok(())
}

/// What a person ran, as it is written down.
pub fn entry<C: Serialize>(act: OperatorAct<'_, C>) -> Result<AuditEntry, HostError> {
    let encode = |error| HostError::from(AuditError::Canonical(error));
    let receipt = act
        .receipt
        .map(|receipt| Digest::of(DigestDomain::Receipt, receipt))
        .transpose()
        .map_err(encode)?;
    Ok(AuditEntry {
        time_ms: now_ms(),
        principal: local_principal()?,
        run: None,
        effect: None,
        tool: act.tool.to_owned(),
        about: act.about,
        call: Digest::of(DigestDomain::Call, act.call).map_err(encode)?,
        decision: AuditDecision {
            verdict: AuditVerdict::Direct,
            rule: None,
            approval: None,
        },
        outcome: act.outcome,
        receipt,
        diff: act.diff,
    })
}

/// The user of this process, as the kernel knows them.
pub fn local_principal() -> Result<Principal, HostError> {
    let uid = rustix::process::getuid().as_raw();
    format!("local:{uid}")
        .parse()
        .map_err(|error| HostError::Internal(format!("{error}")))
}

/// The time, in Unix milliseconds.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// How long ago a time was, roughly.
pub fn age(unix_ms: u64) -> String {
    let seconds = now_ms().saturating_sub(unix_ms) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A time as people write it: `2026-11-16 02:30:00Z`.
pub fn spoken_time(unix_ms: u64) -> String {
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
