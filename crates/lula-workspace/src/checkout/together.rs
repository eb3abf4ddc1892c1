//! Changes of several repositories delivered together: branches in all of them, or in none.
//!
//! Objects come first, which nothing names. Then every repository's branch is locked and checked
//! (a transaction of `git update-ref`, prepared), and only when all of them are ready is each made.
//! What happens in between is decided by the caller, which wrote the branches down beforehand: after a crash
//! [`all_there`] tells whether it is done, and [`take_back`] makes it undone.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::deliver::{reference, resolve};
use super::{BranchDelivery, Checkout, CheckoutError, CheckoutResult, GitChange};
use crate::git::GitProgram;

/// How long a branch's lock is waited for.
const LETTING_GO: Duration = Duration::from_secs(5);

/// A change of one repository.
#[derive(Debug)]
pub struct RepositoryDelivery<'a> {
    /// Where it was made.
    pub checkout: &'a Checkout,
    pub taken: &'a GitChange,
    /// How it is delivered.
    pub order: BranchDelivery<'a>,
}

/// A branch to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchUpdate {
    pub repository: PathBuf,
    pub name: String,
    /// The commit it names.
    pub commit: String,
}

/// The branch of a change. Refused where it is there and names another commit. Nothing is put into
/// the repository.
pub fn prepare(part: &RepositoryDelivery<'_>) -> CheckoutResult<BranchUpdate> {
    let commit = part.checkout.commit(part.taken, &part.order)?;
    prepare_commit(part.checkout, part.order.branch, commit)
}

/// The same of a commit that is made already.
pub fn prepare_commit(
    checkout: &Checkout,
    branch: &str,
    commit: String,
) -> CheckoutResult<BranchUpdate> {
    let (git, repository) = (&checkout.git, &checkout.origin.repository);
    let name = reference(branch);
    git.run(repository, &["check-ref-format", &name])?;
    if resolve(git, repository, &name).is_some_and(|found| found != commit) {
        return Err(CheckoutError::Refused(format!(
            "the branch {branch} exists already in {}: nothing was delivered; rename it, then resume \
             the run",
            repository.display()
        )));
    }
    Ok(BranchUpdate {
        repository: repository.clone(),
        name,
        commit,
    })
}

/// Whether every branch is there and names its commit.
pub fn all_there(git: &GitProgram, branches: &[BranchUpdate]) -> bool {
    for branch in branches {
        settle(git, branch);
    }
    branches.iter().all(|branch| is_there(git, branch))
}

/// Waits for a git that outlived the process that started it: what it was told to make it still makes, and
/// holds the branch's lock until then.
pub(super) fn settle(git: &GitProgram, branch: &BranchUpdate) {
    let lock = format!("{}.lock", branch.name);
    let arguments = ["rev-parse", "--path-format=absolute", "--git-path", &lock];
    let Ok(path) = git.run(&branch.repository, &arguments) else {
        return;
    };
    let begun = Instant::now();
    while Path::new(path.trim()).exists() && begun.elapsed() < LETTING_GO {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_there(git: &GitProgram, branch: &BranchUpdate) -> bool {
    resolve(git, &branch.repository, &branch.name).as_ref() == Some(&branch.commit)
}

/// Makes all branches, or none.
pub fn create_all(git: &GitProgram, branches: &[BranchUpdate]) -> CheckoutResult<()> {
    let missing: Vec<&BranchUpdate> = branches
        .iter()
        .filter(|branch| !is_there(git, branch))
        .collect();
    let mut ready = Vec::new();
    for branch in &missing {
        // Those that are ready let go of their locks when they are dropped.
        let create = format!("create {} {}", branch.name, branch.commit);
        ready.push(LockedBranchUpdate::prepare(git, branch, &create)?);
    }
    for (number, pending) in ready.into_iter().enumerate() {
        if let Err(error) = pending.commit() {
            let made: Vec<BranchUpdate> = missing[..=number].iter().copied().cloned().collect();
            take_back(git, &made)?;
            return Err(error);
        }
    }
    Ok(())
}

/// Removes the branches that are there and still name our commit, the last one first. One that
/// a person has moved since is theirs.
pub fn take_back(git: &GitProgram, branches: &[BranchUpdate]) -> CheckoutResult<()> {
    for branch in branches {
        settle(git, branch);
    }
    for branch in branches.iter().rev().filter(|branch| is_there(git, branch)) {
        let delete = [
            "update-ref",
            "--no-deref",
            "-d",
            &branch.name,
            &branch.commit,
        ];
        git.run(&branch.repository, &delete)?;
    }
    Ok(())
}

/// Orders about a branch whose lock is held, and which have been checked.
pub(super) struct LockedBranchUpdate {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    about: String,
}

impl LockedBranchUpdate {
    pub(super) fn prepare(
        git: &GitProgram,
        branch: &BranchUpdate,
        orders: &str,
    ) -> CheckoutResult<Self> {
        let mut command = git.command(&branch.repository)?;
        command
            .args(["update-ref", "--no-deref", "-m", "lula run", "--stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let about = format!("{} in {}", branch.name, branch.repository.display());
        let failed = |source| CheckoutError::Io {
            path: about.clone(),
            source,
        };
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CheckoutError::Refused("git has no streams".to_owned()));
        };
        let mut pending = Self {
            child,
            input: Some(input),
            output: BufReader::new(output),
            about,
        };
        pending.say("start", "start: ok")?;
        pending.say(&format!("{orders}\nprepare"), "prepare: ok")?;
        Ok(pending)
    }

    fn say(&mut self, order: &str, expected: &str) -> CheckoutResult<()> {
        let sent = match &mut self.input {
            Some(input) => writeln!(input, "{order}").and_then(|()| input.flush()),
            None => Ok(()),
        };
        let mut answer = String::new();
        let heard = sent.and_then(|()| self.output.read_line(&mut answer));
        if heard.is_ok() && answer.trim_end() == expected {
            return Ok(());
        }
        self.input = None;
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut errors, &mut said);
        }
        Err(CheckoutError::Refused(format!(
            "git cannot change {}: {}",
            self.about,
            said.trim()
        )))
    }

    pub(super) fn commit(mut self) -> CheckoutResult<()> {
        self.say("commit", "commit: ok")
    }
}

impl Drop for LockedBranchUpdate {
    fn drop(&mut self) {
        // The end of its input makes git let go of what is not committed.
        self.input = None;
        let _ = self.child.wait();
    }
}
