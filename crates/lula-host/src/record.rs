//! The audit log of the state directory, as commands use it.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use lula_audit::{
    AuditDecision, AuditEnding, AuditEntry, AuditError, AuditLog, AuditOptions, AuditVerdict,
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
