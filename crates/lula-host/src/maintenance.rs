//! Looking after the store of runs: copies of it, checks, and the space it takes.

use std::path::Path;
use std::time::Duration;

use lula_config::keys;
use lula_store::{
    CompactionReport, RunStore, SecretGuard, StoreCheckReport, check_store, compact_store,
    copy_store,
};
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;
use crate::record::now_ms;
use crate::store::{self, StoreOpenOptions};

/// What a look through a whole store showed.
#[derive(Debug, Serialize)]
pub struct StoreExamination {
    pub checked: StoreCheckReport,
    pub broken: Vec<String>,
}

fn options(installation: &Installation) -> StoreOpenOptions {
    StoreOpenOptions::of(installation, SecretGuard::default())
}

async fn examine(store: &dyn RunStore) -> Result<StoreExamination, HostError> {
    let (checked, broken) = check_store(store).await?;
    let broken = broken.iter().map(ToString::to_string).collect();
    Ok(StoreExamination { checked, broken })
}

/// Looks through the store.
pub async fn check(installation: &Installation) -> Result<StoreExamination, HostError> {
    examine(&*store::open(installation, SecretGuard::default()).await?).await
}

/// Drops values of runs that ended so long ago.
pub async fn compact(
    older_than: Duration,
    installation: &Installation,
) -> Result<CompactionReport, HostError> {
    let here = store::open(installation, SecretGuard::default()).await?;
    let older_than = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
    Ok(compact_store(&*here, now_ms().saturating_sub(older_than)).await?)
}

/// Copies the store into a file that is not there yet, and looks through the copy.
pub async fn backup(
    file: &Path,
    installation: &Installation,
) -> Result<StoreExamination, HostError> {
    if file.exists() {
        return Err(HostError::BackupFile {
            why: format!("{} exists already", file.display()),
            remedy: "name a file that does not exist",
        });
    }
    let url = installation.config.get(&keys::STORE_URL);
    if url.is_empty() {
        let here = options(installation).file(store::default_file(installation)?)?;
        here.backup(file).await?;
    } else {
        let from = options(installation).at(&url).await?;
        let to = options(installation).file(file)?;
        copy_store(&*from, &to).await?;
    }
    examine(&options(installation).file(file)?).await
}

/// Copies the runs of a backup into the store, once all of it was found whole.
pub async fn restore(
    file: &Path,
    installation: &Installation,
) -> Result<StoreCheckReport, HostError> {
    if !file.is_file() {
        return Err(HostError::BackupFile {
            why: format!("{} is no backup", file.display()),
            remedy: "name a file that `lula store backup` wrote",
        });
    }
    let from = options(installation).file(file)?;
    let (_, broken) = check_store(&from).await?;
    if let Some(error) = broken.into_iter().next() {
        return Err(error.into());
    }
    let to = store::open(installation, SecretGuard::default()).await?;
    Ok(copy_store(&from, &*to).await?)
}

/// Copies the runs of one store into another.
pub async fn migrate(
    from: &str,
    to: &str,
    installation: &Installation,
) -> Result<StoreCheckReport, HostError> {
    let source = options(installation).at(from).await?;
    let target = options(installation).at(to).await?;
    Ok(copy_store(&*source, &*target).await?)
}
