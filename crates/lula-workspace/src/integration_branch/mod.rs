//! The integration branch of a run: what its agents have agreed on so far, as commits that are ours alone.
//!
//! It is a bare git directory below the state directory that borrows the objects of the user's
//! repository. Agents work in checkouts of its commit; what they produce is kept under references of
//! its own and merged into it one after the other. Nothing in the user's repository names any of it
//! before a delivery, and nothing that was ever committed goes away before the branch is archived.

mod advance;
mod archive;
mod commit;
mod history;
mod merge;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use lula_protocol::{Digest, RunId};
use serde::{Deserialize, Serialize};

pub use advance::{BranchAdvance, ExtractedTree};
pub use archive::{quarantine, quarantined, space};
pub use commit::{AgentCommit, StepName};
pub use history::{MergedTask, TaskChange};
pub use merge::{Merge, MergeConflict, MergeConflictHunk};

use crate::checkout::deliver::resolve;
use crate::checkout::{CheckoutError, CheckoutResult, feed, io_failed, succeeded, take};
use crate::git::GitProgram;
use crate::put::PathReplacement;

const RECORD: &str = "line.json";
const PRIVATE: &str = "git";
const BUNDLE: &str = "archive.bundle";
/// Prefix of one that is being made.
const DRAFT: &str = ".new-";

/// The name of an integration branch: its run, and a digest of its repository's path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IntegrationBranchName(String);

/// A text that is no name of an integration branch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no integration branch")]
pub struct InvalidIntegrationBranchName(String);

impl IntegrationBranchName {
    /// The integration branch of a run in a repository.
    pub fn of(run: &RunId, repository: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let digest = Digest::of_bytes(repository.as_os_str().as_bytes()).to_string();
        let hex = digest.rsplit(':').next().unwrap_or(&digest);
        Self(format!("{run}.{}", hex.get(..16).unwrap_or(hex)))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for IntegrationBranchName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for IntegrationBranchName {
    type Err = InvalidIntegrationBranchName;
    fn from_str(text: &str) -> std::result::Result<Self, InvalidIntegrationBranchName> {
        let no = || InvalidIntegrationBranchName(text.chars().take(80).collect());
        let (run, digest) = text.split_once('.').ok_or_else(no)?;
        let hex = digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let _: RunId = run.parse().map_err(|_| no())?;
        if hex {
            Ok(Self(text.to_owned()))
        } else {
            Err(no())
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    run: RunId,
    repository: PathBuf,
    base: String,
}

/// The integration branch of a run in one repository.
#[derive(Debug, Clone)]
pub struct IntegrationBranch {
    name: IntegrationBranchName,
    directory: PathBuf,
    record: Record,
    git: GitProgram,
}

/// Held by the runner that merges into an integration branch: one after the other, whichever process it is.
#[derive(Debug)]
pub struct MergeLock(#[expect(dead_code, reason = "held, not used")] std::fs::File);

/// Whether a text is the whole name of a commit, and nothing that git could take for more.
pub fn is_commit_name(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn named(commit: &str) -> CheckoutResult<&str> {
    if is_commit_name(commit) {
        return Ok(commit);
    }
    let message = "a commit is named by its whole hexadecimal name".to_owned();
    Err(CheckoutError::Refused(message))
}

impl IntegrationBranch {
    /// Where integration branches lie in a state directory.
    pub fn home(state: &Path) -> PathBuf {
        state.join("lines")
    }

    /// One that was begun before, also one that was archived.
    pub fn find(
        state: &Path,
        name: &IntegrationBranchName,
        git: &GitProgram,
    ) -> CheckoutResult<Option<Self>> {
        let directory = Self::home(state).join(name.as_str());
        let bytes = match std::fs::read(directory.join(RECORD)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_failed(&directory)(error)),
        };
        let damaged = |why: &dyn std::fmt::Display| {
            CheckoutError::Refused(format!("{RECORD} of {name} is damaged: {why}"))
        };
        let record: Record = serde_json::from_slice(&bytes).map_err(|error| damaged(&error))?;
        if IntegrationBranchName::of(&record.run, &record.repository) != *name {
            return Err(damaged(&"it is that of another integration branch"));
        }
        Ok(Some(Self {
            name: name.clone(),
            directory,
            record,
            git: git.clone(),
        }))
    }

    /// Every integration branch, by name. What cannot be read is left out.
    pub fn list(state: &Path, git: &GitProgram) -> Vec<Self> {
        let entries = std::fs::read_dir(Self::home(state));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<IntegrationBranchName> =
            names.filter_map(|name| name.parse().ok()).collect();
        names.sort();
        let found = |name: &IntegrationBranchName| Self::find(state, name, git).ok().flatten();
        names.iter().filter_map(found).collect()
    }

    /// Begins the integration branch of a run at a commit, that of `HEAD` where none is named, or finds it again.
    pub fn begin(
        state: &Path,
        run: &RunId,
        repository: &Path,
        commit: Option<&str>,
        git: &GitProgram,
    ) -> CheckoutResult<Self> {
        let name = IntegrationBranchName::of(run, repository);
        if let Some(found) = Self::find(state, &name, git)? {
            return Ok(found);
        }
        let ask = |arguments: &[&str]| git.run(repository, arguments);
        let wanted = commit.map(named).transpose()?.unwrap_or("HEAD");
        let wanted = format!("{wanted}^{{commit}}");
        let base = ask(&["rev-parse", "--verify", "--end-of-options", &wanted])?;
        let objects = ask(&[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ])?;
        let format = ask(&["rev-parse", "--show-object-format"])?;
        let home = Self::home(state);
        std::fs::create_dir_all(&home).map_err(io_failed(&home))?;
        // Under its name only when it is whole.
        let draft = tempfile::Builder::new()
            .prefix(DRAFT)
            .tempdir_in(&home)
            .map_err(io_failed(&home))?;
        let made = Self {
            directory: draft.path().to_owned(),
            name: name.clone(),
            record: Record {
                run: run.clone(),
                repository: repository.to_owned(),
                base: base.trim().to_owned(),
            },
            git: git.clone(),
        };
        made.furnish(&objects, format.trim())?;
        let place = home.join(name.as_str());
        match std::fs::rename(draft.path(), &place) {
            Ok(()) => drop(draft.keep()),
            // Another process was quicker.
            Err(_) if place.exists() => {}
            Err(error) => return Err(io_failed(&place)(error)),
        }
        let gone = || {
            CheckoutError::Refused(format!(
                "the integration branch {name} is gone: begin it again"
            ))
        };
        Self::find(state, &name, git)?.ok_or_else(gone)
    }

    fn furnish(&self, objects: &str, format: &str) -> CheckoutResult<()> {
        let private = self.directory.join(PRIVATE);
        std::fs::create_dir_all(&private).map_err(io_failed(&private))?;
        let init = format!("--object-format={format}");
        self.git.run(
            &private,
            &["init", "--quiet", "--bare", "--template=", &init],
        )?;
        let write = |path: PathBuf, bytes: &[u8]| -> CheckoutResult<()> {
            let above = path.parent().unwrap_or(&private);
            std::fs::create_dir_all(above).map_err(io_failed(above))?;
            std::fs::write(&path, bytes).map_err(io_failed(&path))
        };
        write(private.join("objects/info/alternates"), objects.as_bytes())?;
        for (key, value) in [
            // What was produced must survive a power cut.
            ("core.fsync", "objects,reference"),
            // The common ground is shown too.
            ("merge.conflictStyle", "diff3"),
            // Names are bytes here.
            ("core.quotePath", "false"),
        ] {
            self.git.run(&private, &["config", key, value])?;
        }
        for name in ["base", "integ"] {
            let reference = self.reference(name);
            let update = [
                "update-ref",
                "--no-deref",
                &reference,
                &self.record.base,
                "",
            ];
            self.ask(&update, &[])?;
        }
        let record = serde_json::to_vec(&self.record)
            .map_err(|error| CheckoutError::Refused(error.to_string()))?;
        write(self.directory.join(RECORD), &record)
    }

    pub const fn name(&self) -> &IntegrationBranchName {
        &self.name
    }

    /// The run that the branch belongs to.
    pub const fn run(&self) -> &RunId {
        &self.record.run
    }

    pub fn repository(&self) -> &Path {
        &self.record.repository
    }

    /// The commit it began with.
    pub fn base(&self) -> &str {
        &self.record.base
    }

    pub(crate) fn private(&self) -> PathBuf {
        self.directory.join(PRIVATE)
    }

    fn reference(&self, name: &str) -> String {
        format!("refs/lula/{}/{name}", self.record.run)
    }

    /// The commit it is at.
    pub fn commit(&self) -> CheckoutResult<String> {
        let gone =
            || CheckoutError::Refused(format!("the integration branch {} was archived", self.name));
        if self.is_archived() {
            return Err(gone());
        }
        resolve(&self.git, &self.private(), &self.reference("integ")).ok_or_else(gone)
    }

    /// Whether its commit has that one among its ancestors, or is it.
    pub fn contains(&self, commit: &str) -> CheckoutResult<bool> {
        let now = self.commit()?;
        self.is_ancestor(commit, &now)
    }

    fn is_ancestor(&self, old: &str, new: &str) -> CheckoutResult<bool> {
        let arguments = ["merge-base", "--is-ancestor", named(old)?, new];
        let output = feed(self.command()?.args(arguments), &[])?;
        if output.status.code() == Some(1) {
            return Ok(false);
        }
        succeeded(output, &arguments).map(|_| true)
    }

    /// What lies between two of its trees, path by path.
    pub fn pieces(&self, from: &str, to: &str) -> CheckoutResult<Vec<PathReplacement>> {
        take::pieces(named(from)?, named(to)?, &|arguments, input| {
            self.ask(arguments, input)
        })
    }

    /// Waits until no other process merges into it.
    pub fn turn(&self) -> CheckoutResult<MergeLock> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.directory.join("lock");
        let file = std::fs::File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(io_failed(&path))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| io_failed(&path)(error.into()))?;
        Ok(MergeLock(file))
    }

    /// Our git on it. There is no work tree and no index.
    fn command(&self) -> CheckoutResult<Command> {
        let private = self.private();
        let mut command = self.git.command(&private)?;
        command.env("GIT_DIR", &private);
        Ok(command)
    }

    /// Asks our git, and returns the bytes it printed.
    fn ask(&self, arguments: &[&str], input: &[u8]) -> CheckoutResult<Vec<u8>> {
        let mut command = self.command()?;
        command.args(arguments);
        succeeded(feed(&mut command, input)?, arguments)
    }

    fn text(&self, arguments: &[&str]) -> CheckoutResult<String> {
        let bytes = self.ask(arguments, &[])?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }
}

#[cfg(test)]
mod tests;
