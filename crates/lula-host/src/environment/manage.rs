//! What is kept: listed, removed, and cut down by size and age.

use std::path::Path;
use std::time::{Duration, SystemTime};

use lula_config::keys;
use lula_runner::environments::{EnvironmentError, StoredEnvironment, parcel};
use serde::Serialize;

use super::source;
use crate::error::HostError;
use crate::installation::Installation;

/// An environment, for a list.
#[derive(Debug, Serialize)]
pub struct EnvironmentListing {
    pub name: String,
    pub digest: String,
    pub place: String,
    pub bytes: u64,
    pub made_ms: u64,
    /// When it was shown to a command last, in Unix milliseconds.
    pub used_ms: u64,
    /// Whether the repository that it was made for is still there.
    pub place_exists: bool,
    pub passed: Option<usize>,
    pub failing: Option<usize>,
    pub flaky: Option<usize>,
}

impl EnvironmentListing {
    fn of(one: &StoredEnvironment) -> Self {
        let check = one.check();
        let used = one.used.duration_since(SystemTime::UNIX_EPOCH);
        let used = used.unwrap_or_default();
        Self {
            name: one.record.name(),
            digest: one.record.digest.to_string(),
            place: one.record.inputs.place.clone(),
            bytes: one.record.bytes,
            made_ms: one.record.made_ms,
            used_ms: u64::try_from(used.as_millis()).unwrap_or(u64::MAX),
            place_exists: Path::new(&one.record.inputs.place).is_dir(),
            passed: check.as_ref().map(|check| check.passed),
            failing: check.as_ref().map(|check| check.failing.len()),
            flaky: check.as_ref().map(|check| check.flaky.len()),
        }
    }
}

/// Every environment, the one that was used last first.
pub fn list(installation: &Installation) -> Result<Vec<EnvironmentListing>, HostError> {
    let source = source(installation)?;
    Ok(source
        .store()
        .list()
        .iter()
        .map(EnvironmentListing::of)
        .collect())
}

/// Removes one by its name.
pub fn remove(name: &str, installation: &Installation) -> Result<EnvironmentListing, HostError> {
    let source = source(installation)?;
    let found = source.store().find(name)?;
    source.store().remove(&found)?;
    Ok(EnvironmentListing::of(&found))
}

/// Writes an environment into one file; without a name, that of the repository.
pub fn export(
    name: Option<&str>,
    top: &Path,
    file: &Path,
    installation: &Installation,
) -> Result<(EnvironmentListing, u64), HostError> {
    let source = source(installation)?;
    let found = match name {
        Some(name) => source.store().find(name)?,
        None => source
            .find(top, top)?
            .ok_or_else(|| EnvironmentError::Unknown(format!("for {}", top.display())))?,
    };
    let bytes = parcel::export(&found, file)?;
    Ok((EnvironmentListing::of(&found), bytes))
}

/// Takes an environment in from such a file.
pub fn import(file: &Path, installation: &Installation) -> Result<EnvironmentListing, HostError> {
    let source = source(installation)?;
    let taken = parcel::import(source.store(), file)?;
    Ok(EnvironmentListing::of(&taken))
}

/// What was removed, and what is left.
#[derive(Debug, Serialize)]
pub struct PrunedEnvironments {
    pub removed: Vec<EnvironmentListing>,
    pub kept: usize,
    pub kept_bytes: u64,
}

/// Removes what was not used for so long, what was made for repositories that are gone, and then the ones
/// used longest ago until the rest fits into what all may take.
pub fn prune(
    older: Option<Duration>,
    most: Option<u64>,
    installation: &Installation,
) -> Result<PrunedEnvironments, HostError> {
    let source = source(installation)?;
    source.store().sweep();
    let most = most.unwrap_or_else(|| installation.config.get(&keys::ENVIRONMENT_MAX_BYTES));
    let mut left = 0_u64;
    let (mut removed, mut kept) = (Vec::new(), 0);
    for one in source.store().list() {
        let age = SystemTime::now()
            .duration_since(one.used)
            .unwrap_or_default();
        let is_old = older.is_some_and(|older| age > older);
        let is_gone = !Path::new(&one.record.inputs.place).is_dir();
        if is_old || is_gone || left + one.record.bytes > most {
            source.store().remove(&one)?;
            removed.push(EnvironmentListing::of(&one));
        } else {
            left += one.record.bytes;
            kept += 1;
        }
    }
    Ok(PrunedEnvironments {
        removed,
        kept,
        kept_bytes: left,
    })
}
