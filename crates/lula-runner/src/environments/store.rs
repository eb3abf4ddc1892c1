//! The directory of environments: what is there, what is used, and what goes first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lula_protocol::Digest;
use rustix::fs::{FlockOperation, flock};

use super::check::EnvironmentCheck;
use super::error::EnvironmentError;
use super::record::{EnvironmentRecord, name_of};

/// What the directories of builds begin with; the number of the process that builds follows.
const BUILDING: &str = "building-";
/// What was taken out of use begins with this, until it is removed.
const GONE: &str = "gone-";
const RECORD: &str = "environment.json";
const CHECK: &str = "check.json";
const USED: &str = "used";
const LONGEST: u64 = 4 << 20;

/// Where environments are kept.
#[derive(Debug, Clone)]
pub struct EnvironmentStore {
    directory: PathBuf,
}

/// An environment that is there.
#[derive(Debug, Clone)]
pub struct StoredEnvironment {
    pub record: EnvironmentRecord,
    pub directory: PathBuf,
    /// When it was shown to a command last.
    pub used: SystemTime,
}

impl StoredEnvironment {
    /// What its tests said, where they were tried.
    pub fn check(&self) -> Option<EnvironmentCheck> {
        let text = fs::read(self.directory.join(CHECK)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps what its tests said.
    pub fn remember(&self, check: &EnvironmentCheck) -> Result<(), EnvironmentError> {
        let path = self.directory.join(CHECK);
        let text = serde_json::to_vec_pretty(check).unwrap_or_default();
        replace(&path, &text).map_err(EnvironmentError::io(&path))
    }

    /// Where everything that its build printed is.
    pub fn log(&self) -> PathBuf {
        self.directory.join("build.log")
    }

    pub(super) fn touch(&self) {
        // Only the order in which environments are removed depends on it.
        let _ = fs::write(self.directory.join(USED), b"");
    }
}

impl EnvironmentStore {
    /// The one of a state directory.
    pub fn at(state: &Path) -> Self {
        Self {
            directory: state.join("environments"),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn open(&self) -> Result<(), EnvironmentError> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(EnvironmentError::io(&self.directory))?;
        self.sweep();
        Ok(())
    }

    /// Every environment that is whole, the one that was used last first.
    pub fn list(&self) -> Vec<StoredEnvironment> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        let mut found: Vec<StoredEnvironment> = entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("env-"))
            .filter_map(|entry| Self::read(&entry.path()))
            .collect();
        found.sort_by_key(|one| std::cmp::Reverse(one.used));
        found
    }

    fn read(directory: &Path) -> Option<StoredEnvironment> {
        let path = directory.join(RECORD);
        let length = fs::metadata(&path).ok()?.len();
        let text = fs::read(&path).ok().filter(|_| length <= LONGEST)?;
        let record: EnvironmentRecord = serde_json::from_slice(&text).ok()?;
        // The name is the digest, and the digest that of the inputs: nothing else is shown.
        let named = directory.file_name()?.to_str()? == record.name();
        if !named || record.inputs.digest().ok()? != record.digest {
            return None;
        }
        let used = fs::metadata(directory.join(USED)).and_then(|data| data.modified());
        let made = || SystemTime::UNIX_EPOCH + Duration::from_millis(record.made_ms);
        Some(StoredEnvironment {
            used: used.unwrap_or_else(|_| made()),
            directory: directory.to_owned(),
            record,
        })
    }

    /// The one with that digest.
    pub fn of(&self, digest: &Digest) -> Option<StoredEnvironment> {
        Self::read(&self.directory.join(name_of(digest)))
            .filter(|found| found.record.digest == *digest)
    }

    /// The one of that name, or of a name that only it begins with.
    pub fn find(&self, name: &str) -> Result<StoredEnvironment, EnvironmentError> {
        let wanted = name.strip_prefix("env-").unwrap_or(name);
        let short = wanted.strip_prefix("b3:").unwrap_or(wanted);
        let mut fitting = self.list().into_iter().filter(|one| {
            let digest = one.record.digest.to_string();
            !short.is_empty() && digest["b3:".len()..].starts_with(short)
        });
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => Ok(found),
            _ => Err(EnvironmentError::Unknown(name.to_owned())),
        }
    }

    /// Holds the right to build one environment. Another process that wants to build the same one waits.
    pub(super) fn lock(&self, digest: &Digest) -> Result<fs::File, EnvironmentError> {
        let path = self.directory.join(format!("{}.lock", name_of(digest)));
        let failed = || EnvironmentError::io(&path);
        let file = fs::File::create(&path).map_err(failed())?;
        flock(&file, FlockOperation::LockExclusive).map_err(|error| failed()(error.into()))?;
        Ok(file)
    }

    /// A directory for a build.
    pub(super) fn begin(&self) -> Result<PathBuf, EnvironmentError> {
        let process = std::process::id();
        let free = (0..1000).map(|n| self.directory.join(format!("{BUILDING}{process}-{n}")));
        for path in free {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(EnvironmentError::io(&path)(error)),
            }
        }
        let full = std::io::ErrorKind::AlreadyExists.into();
        Err(EnvironmentError::io(&self.directory)(full))
    }

    /// Gives a build its name, once everything of it is on disk. From then on it is used.
    pub(super) fn finish(
        &self,
        building: &Path,
        record: &EnvironmentRecord,
    ) -> Result<StoredEnvironment, EnvironmentError> {
        let failed = || EnvironmentError::io(building);
        let text = serde_json::to_vec_pretty(record)
            .map_err(|error| failed()(std::io::Error::other(error)))?;
        fs::write(building.join(RECORD), text).map_err(failed())?;
        let home = fs::File::open(&self.directory).map_err(failed())?;
        rustix::fs::syncfs(&home).map_err(|error| failed()(error.into()))?;
        let target = self.directory.join(record.name());
        if target.exists() {
            // One that was damaged: what is whole was found before it was built again.
            self.retire(&target)?;
        }
        fs::rename(building, &target).map_err(failed())?;
        home.sync_all().map_err(failed())?;
        self.of(&record.digest)
            .ok_or_else(|| EnvironmentError::Unknown(record.name()))
    }

    /// Removes an environment. Sandboxes that show it keep what they have open.
    pub fn remove(&self, one: &StoredEnvironment) -> Result<(), EnvironmentError> {
        self.retire(&one.directory)
    }

    fn retire(&self, directory: &Path) -> Result<(), EnvironmentError> {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let process = std::process::id();
        let gone = self.directory.join(format!("{GONE}{process}-{name}"));
        fs::rename(directory, &gone).map_err(EnvironmentError::io(directory))?;
        clear(&gone);
        Ok(())
    }

    /// Removes what processes that are no more have left.
    pub fn sweep(&self) {
        for entry in fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let rest = name.strip_prefix(BUILDING).or(name.strip_prefix(GONE));
            let process = rest.and_then(|rest| rest.split('-').next());
            if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
                clear(&entry.path());
            }
        }
    }
}

/// Removes a tree in which directories may be read-only, as Go's modules are.
pub(super) fn clear(directory: &Path) {
    if !directory.exists() {
        return;
    }
    if fs::remove_dir_all(directory).is_ok() {
        return;
    }
    open_up(directory, 0);
    if let Err(error) = fs::remove_dir_all(directory) {
        tracing::warn!(%error, directory = %directory.display(), "what is left of an environment stays");
    }
}

fn open_up(directory: &Path, depth: usize) {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::Permissions::from_mode(0o700);
    if depth > 64 || fs::set_permissions(directory, mode).is_err() {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // A link is no directory here, wherever it leads.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path(), depth + 1);
        }
    }
}

/// Replaces a small file in one step.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    fs::write(&beside, bytes)?;
    fs::File::open(&beside)?.sync_all()?;
    fs::rename(&beside, path)
}
