//! The audit log of the state directory, as commands use it.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lula_audit::{
    AuditCheckReport, AuditDecision, AuditEnding, AuditEntry, AuditError, AuditHead, AuditLog,
    AuditOptions, AuditPublicKey, AuditVerdict,
};
use lula_config::keys;
use lula_gate::redact;
use lula_protocol::digest::DigestDomain;
use lula_protocol::units::distance;
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
    pub tool: &'a str,
    /// What it was about, for people.
    pub about: String,
    /// Everything that defines it.
    pub call: &'a C,
    pub outcome: AuditEnding,
    /// What stood around it.
    pub receipt: Option<&'a SandboxReceipt>,
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
    entry_by(local_principal()?, act)
}

/// What a person of a verified identity had done, as it is written down.
pub fn entry_by<C: Serialize>(
    principal: Principal,
    act: OperatorAct<'_, C>,
) -> Result<AuditEntry, HostError> {
    let encode = |error| HostError::from(AuditError::Canonical(error));
    let receipt = act
        .receipt
        .map(|receipt| Digest::of(DigestDomain::Receipt, receipt))
        .transpose()
        .map_err(encode)?;
    Ok(AuditEntry {
        time_ms: now_ms(),
        principal,
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
    distance(Duration::from_millis(now_ms().saturating_sub(unix_ms)))
}
