//! What integration branches take, how they are archived, and what becomes of things that belong to nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lula_protocol::WorkspaceId;

use super::{BUNDLE, DRAFT, IntegrationBranch, IntegrationBranchName, RECORD};
use crate::checkout::{Checkout, CheckoutError, CheckoutResult, io_failed};
use crate::git::GitProgram;
use crate::tree::{RootedTree, disk_usage};

/// How long one that is being made may take.
const MAKING: Duration = Duration::from_mins(10);

impl IntegrationBranch {
    /// Whether only a bundle of it is left.
    pub fn is_archived(&self) -> bool {
        !self.private().exists()
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> u64 {
        RootedTree::open(self.directory()).map_or(0, |tree| disk_usage(&tree.top))
    }

    /// Puts everything that was produced into one file, `archive.bundle`, and gives the rest of its
    /// space back. `git fetch FILE 'refs/lula/*:refs/lula/*'` in the repository brings it back.
    pub fn archive(&self) -> CheckoutResult<()> {
        if self.is_archived() {
            return Ok(());
        }
        let (draft, bundle) = (
            self.directory().join("archive.draft"),
            self.directory().join(BUNDLE),
        );
        // A bundle of nothing is an error to git; base and integ are the same where nothing was done.
        let references = self.text(&["for-each-ref", "--format=%(objectname)"])?;
        if references.lines().any(|name| name != self.base()) {
            let file = draft.display().to_string();
            let not = format!("^{}", self.base());
            self.ask(&["bundle", "create", "--quiet", &file, "--all", &not], &[])?;
            std::fs::rename(&draft, &bundle).map_err(io_failed(&bundle))?;
        }
        self.sweep();
        let private = self.private();
        // Without its name it is no git directory any more, whatever happens next.
        let gone = self.directory().join("git.archived");
        std::fs::rename(&private, &gone).map_err(io_failed(&private))?;
        std::fs::remove_dir_all(&gone).map_err(io_failed(&gone))
    }

    /// Removes an archived branch with its bundle.
    fn drop_archived(&self) -> CheckoutResult<()> {
        let directory = self.directory();
        // Without its record it is nothing any more.
        let record = directory.join(RECORD);
        std::fs::remove_file(&record).map_err(io_failed(&record))?;
        std::fs::remove_dir_all(directory).map_err(io_failed(directory))
    }
}

/// How many bytes integration branches and checkouts take together. Where that is more than `most`, archived branches
/// go, the oldest first.
pub fn space(state: &Path, git: &GitProgram, most: u64) -> CheckoutResult<u64> {
    let checkouts: u64 = names(&Checkout::home(state))
        .iter()
        .filter_map(|name| name.parse::<WorkspaceId>().ok())
        .filter_map(|id| Checkout::find(state, &id, git).ok())
        .filter(|checkout| !checkout.is_cleared())
        .map(|checkout| checkout.origin().bytes)
        .sum();
    // Names of runs sort by age.
    let branches = IntegrationBranch::list(state, git);
    let mut used = checkouts + branches.iter().map(IntegrationBranch::bytes).sum::<u64>();
    for branch in branches.iter().filter(|branch| branch.is_archived()) {
        if used <= most {
            break;
        }
        used = used.saturating_sub(branch.bytes());
        branch.drop_archived()?;
    }
    Ok(used)
}

fn quarantine_home(state: &Path) -> PathBuf {
    state.join("quarantine")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Names of what was set aside.
pub fn quarantined(state: &Path) -> Vec<String> {
    names(&quarantine_home(state))
}

/// Sets aside what lies among integration branches and checkouts and belongs to nothing. It is moved, never
/// removed: it may be work worth keeping. Tells what it moved.
pub fn quarantine(state: &Path, git: &GitProgram) -> CheckoutResult<Vec<String>> {
    let mut moved = Vec::new();
    for name in names(&IntegrationBranch::home(state)) {
        let path = IntegrationBranch::home(state).join(&name);
        if name.starts_with(DRAFT) {
            // Nothing was ever in one that a crash cut off in its making.
            if is_older(&path, MAKING) {
                let _ = std::fs::remove_dir_all(&path);
            }
            continue;
        }
        let known = name.parse::<IntegrationBranchName>().ok().and_then(|name| {
            let branch = IntegrationBranch::find(state, &name, git).ok().flatten()?;
            let whole = branch.is_archived() || branch.commit().is_ok();
            whole.then_some(branch)
        });
        match known {
            Some(branch) => {
                let _ = std::fs::remove_dir_all(branch.directory().join("git.archived"));
            }
            None => moved.extend(set_aside(state, &path, &name)?),
        }
    }
    for name in names(&Checkout::home(state)) {
        let Ok(id) = name.parse::<WorkspaceId>() else {
            let path = Checkout::home(state).join(&name);
            moved.extend(set_aside(state, &path, &name)?);
            continue;
        };
        // One without a record was cut off in its making: opening it again makes it anew.
        let Ok(checkout) = Checkout::find(state, &id, git) else {
            continue;
        };
        let Some(branch) = &checkout.origin().line else {
            continue;
        };
        if !checkout.is_cleared()
            && !IntegrationBranch::home(state)
                .join(branch)
                .join(RECORD)
                .exists()
        {
            let path = Checkout::home(state).join(&name);
            moved.extend(set_aside(state, &path, &name)?);
        }
    }
    Ok(moved)
}

fn is_older(path: &Path, than: Duration) -> bool {
    let stamped = path.symlink_metadata().and_then(|about| about.modified());
    let age = stamped
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age > than)
}

fn set_aside(state: &Path, path: &Path, name: &str) -> CheckoutResult<Option<String>> {
    let home = quarantine_home(state);
    std::fs::create_dir_all(&home).map_err(io_failed(&home))?;
    for number in 0..1000_u32 {
        let as_name = format!("{name}.{number}");
        let to = home.join(&as_name);
        if to.symlink_metadata().is_ok() {
            continue;
        }
        return match std::fs::rename(path, &to) {
            Ok(()) => Ok(Some(as_name)),
            // Another runner was quicker.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_failed(path)(error)),
        };
    }
    Err(CheckoutError::Refused(format!(
        "{} holds too much: look at it and clear it",
        home.display()
    )))
}
