//! Where it is remembered what a repository broke with: one file for each, beside the runs.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lula_agents::heal::RepositoryHealHistory;
use lula_protocol::Digest;

use crate::error::HostError;
use crate::installation::Installation;
use crate::store::RUNS;

/// In the driver's own part of the state directory.
const DIRECTORY: &str = "heal";
/// Larger than any history that this program writes.
const LARGEST: u64 = 16 << 20;

/// The history of one repository.
pub struct HealHistoryFile {
    file: PathBuf,
    repository: String,
    /// Held until this value ends.
    _lock: Option<File>,
}

fn refused(path: &Path, error: &dyn std::fmt::Display) -> HostError {
    HostError::HealHistory {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

impl HealHistoryFile {
    /// The history of a repository, to read it without a lock.
    pub fn of(repository: &str, installation: &Installation) -> Result<Self, HostError> {
        let digest = Digest::of_bytes(repository.as_bytes());
        let mut name = [0; 8];
        name.copy_from_slice(&digest.as_bytes()[..8]);
        let name = u64::from_be_bytes(name);
        let directory = installation.state_directory()?.join(RUNS).join(DIRECTORY);
        Ok(Self {
            file: directory.join(format!("{name:016x}.json")),
            repository: repository.to_owned(),
            _lock: None,
        })
    }

    /// For the healer of the repository, of which there is one at a time.
    pub fn hold(repository: &str, installation: &Installation) -> Result<Self, HostError> {
        let memory = Self::of(repository, installation)?;
        let path = memory.file.with_extension("lock");
        let failed = |error: std::io::Error| refused(&path, &error);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        let file = File::options()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(HostError::HealerBusy(repository.to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(Self {
            _lock: Some(file),
            ..memory
        })
    }

    /// What is remembered. A file that cannot be read is an error, never an empty history: that
    /// would begin every run again.
    pub fn read(&self) -> Result<RepositoryHealHistory, HostError> {
        let empty = RepositoryHealHistory {
            repository: self.repository.clone(),
            ..RepositoryHealHistory::default()
        };
        let size = match std::fs::metadata(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(empty),
            found => found.map_err(|error| refused(&self.file, &error))?.len(),
        };
        if size > LARGEST {
            return Err(refused(&self.file, &"it is too large"));
        }
        let text = std::fs::read(&self.file).map_err(|error| refused(&self.file, &error))?;
        serde_json::from_slice(&text).map_err(|error| refused(&self.file, &error))
    }

    /// Returns when it is on disk, whole.
    pub fn write(&self, history: &RepositoryHealHistory) -> Result<(), HostError> {
        let failed = |error: std::io::Error| refused(&self.file, &error);
        let fresh = self.file.with_extension("new");
        let mut file = File::options()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)
            .map_err(failed)?;
        let text =
            serde_json::to_vec_pretty(history).map_err(|error| refused(&self.file, &error))?;
        file.write_all(&text).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&fresh, &self.file).map_err(failed)?;
        match self.file.parent() {
            Some(directory) => File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(failed),
            None => Ok(()),
        }
    }
}
