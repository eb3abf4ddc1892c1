//! Bringing a change into the user's repository.

use std::path::Path;
use std::process::Command;

use super::{Checkout, CheckoutError, CheckoutResult, GitChange, feed, succeeded};
use crate::git::GitProgram;

/// A change on its way into a repository. The same order always makes the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchDelivery<'a> {
    /// The branch to make.
    pub branch: &'a str,
    /// The commit's message, trailers included.
    pub message: &'a str,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
}

/// A change that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredCommit {
    /// The commit that the branch names.
    pub commit: String,
}

pub(super) fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// What a reference names; `None` where there is none.
pub(crate) fn resolve(git: &GitProgram, repository: &Path, name: &str) -> Option<String> {
    let found = git.run(repository, &["rev-parse", "--verify", "--quiet", name]);
    found.ok().map(|text| text.trim().to_owned())
}

/// Makes the branch of a change. Doing it again changes nothing more.
pub fn delivered(
    checkout: &Checkout,
    taken: &GitChange,
    order: &BranchDelivery<'_>,
) -> CheckoutResult<DeliveredCommit> {
    let commit = checkout.commit(taken, order)?;
    name_commit(checkout, order.branch, commit, &|commit| {
        checkout.bring(commit)
    })
}

/// Makes the branch of a commit that is made already; `bring` puts its objects into the repository.
/// Doing it again changes nothing more.
pub fn name_commit(
    checkout: &Checkout,
    branch: &str,
    commit: String,
    bring: &dyn Fn(&str) -> CheckoutResult<()>,
) -> CheckoutResult<DeliveredCommit> {
    let (git, repository) = (&checkout.git, checkout.origin.repository.as_path());
    let name = reference(branch);
    git.run(repository, &["check-ref-format", &name])?;
    match resolve(git, repository, &name) {
        Some(found) if found == commit => {}
        Some(_) => {
            return Err(CheckoutError::Refused(format!(
                "the branch {branch} exists already; rename it, then resume the run"
            )));
        }
        None => {
            bring(&commit)?;
            // An empty old value: only where there is no such branch.
            let update = [
                "update-ref",
                "--no-deref",
                "-m",
                "lula run",
                &name,
                &commit,
                "",
            ];
            git.run(repository, &update)?;
        }
    }
    Ok(DeliveredCommit { commit })
}

impl Checkout {
    /// Makes the commit of a tree. The same message and time make the same commit.
    pub(super) fn commit(
        &self,
        taken: &GitChange,
        order: &BranchDelivery<'_>,
    ) -> CheckoutResult<String> {
        let command = self.command(&self.directory.join("no-index"))?;
        let parents = [self.origin.commit.as_str()];
        commit_tree(command, &taken.tree, &parents, order.message, order.at)
    }

    /// Puts the objects of a commit into the repository; nothing there names them yet.
    pub fn bring(&self, commit: &str) -> CheckoutResult<()> {
        let pack = self.pack(commit)?;
        unpack(self.git.command(&self.origin.repository)?, &pack)
    }

    /// The objects of a change that its commit lacks, as a pack.
    pub(crate) fn pack_of(&self, taken: &GitChange) -> CheckoutResult<Vec<u8>> {
        self.pack(&taken.tree)
    }

    /// The objects of a commit or tree that the repository lacks, as a pack.
    fn pack(&self, commit: &str) -> CheckoutResult<Vec<u8>> {
        let wanted = format!("{commit}\n^{}\n", self.origin.commit);
        let arguments = ["pack-objects", "--revs", "--stdout", "--quiet"];
        let index = self.directory.join("no-index");
        self.private(&arguments, &index, wanted.as_bytes())
    }
}

/// Adds the objects of a pack.
pub(crate) fn unpack(mut command: Command, pack: &[u8]) -> CheckoutResult<()> {
    let arguments = ["unpack-objects", "-q"];
    succeeded(feed(command.args(arguments), pack)?, &arguments).map(drop)
}

/// Makes a commit in our name. The same words make the same commit.
pub(crate) fn commit_tree(
    mut command: Command,
    tree: &str,
    parents: &[&str],
    message: &str,
    at: u64,
) -> CheckoutResult<String> {
    // With the sign git takes any number for seconds.
    let date = format!("@{at} +0000");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "Lula")
            .env(format!("GIT_{who}_EMAIL"), "lula@localhost")
            .env(format!("GIT_{who}_DATE"), &date);
    }
    let mut arguments = vec!["commit-tree", tree];
    for parent in parents {
        arguments.extend(["-p", parent]);
    }
    let output = feed(command.args(&arguments), message.as_bytes())?;
    let made = succeeded(output, &arguments)?;
    Ok(String::from_utf8_lossy(&made).trim().to_owned())
}
