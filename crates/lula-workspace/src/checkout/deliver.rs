//! Bringing a change into the user's repository, and taking it back.

use std::path::Path;

use super::{Checkout, CheckoutError, Result, Taken, feed, succeeded};
use lula_protocol::WorkspaceId;

use crate::error::WorkspaceError;
use crate::git::Git;
use crate::path::RelPath;
use crate::put::{Content, Piece};
use crate::store::Store;

/// A change on its way into a repository. The same order always makes the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// The branch to make.
    pub branch: &'a str,
    /// The commit's message, trailers included.
    pub message: &'a str,
    /// The commit's time, Unix time in seconds.
    pub at: u64,
}

/// A change that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The commit that the branch names.
    pub commit: String,
}

/// What was taken back.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Undone {
    /// The branch that is gone.
    pub branch: String,
    /// The commit it named, which is kept.
    pub commit: String,
    /// The reference that keeps it.
    pub kept_as: String,
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// What a reference names; `None` where there is none.
fn resolve(git: &Git, repository: &Path, name: &str) -> Option<String> {
    let found = git.run(repository, &["rev-parse", "--verify", "--quiet", name]);
    found.ok().map(|text| text.trim().to_owned())
}

/// Makes the branch of a change. Doing it again changes nothing more.
pub fn delivered(checkout: &Checkout, taken: &Taken, order: &Delivery<'_>) -> Result<Delivered> {
    let (git, repository) = (&checkout.git, checkout.origin.repository.as_path());
    let commit = checkout.commit(taken, order)?;
    let name = reference(order.branch);
    git.run(repository, &["check-ref-format", &name])?;
    match resolve(git, repository, &name) {
        Some(found) if found == commit => {}
        Some(_) => {
            return Err(CheckoutError::Refused(format!(
                "the branch {} exists already; rename it, then resume the run",
                order.branch
            )));
        }
        None => {
            let pack = checkout.pack(&commit)?;
            let mut unpack = git.command(repository)?;
            let arguments = ["unpack-objects", "-q"];
            succeeded(feed(unpack.args(arguments), &pack)?, &arguments)?;
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
    Ok(Delivered { commit })
}

/// Puts a change into the files of the user's checkout, in one journaled step, where each is as the
/// change found it. Doing it again changes nothing more.
pub fn put(checkout: &Checkout, taken: &Taken, title: &str, store: &Store) -> Result<WorkspaceId> {
    let repository = checkout.origin.repository.as_path();
    if let Some(done) = store.was_put(repository, title)? {
        return Ok(done);
    }
    let pieces = checkout.pieces(taken)?;
    match store.put(repository, title, &pieces) {
        Ok((workspace, _)) => Ok(workspace),
        Err(WorkspaceError::Conflicts(paths)) => {
            let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
            Err(CheckoutError::Refused(format!(
                "your checkout has other content in {}, and nothing in it was changed; the change \
                 is in the record: `lula diff RUN | git apply --3way` merges it",
                paths.join(", ")
            )))
        }
        Err(error) => Err(error.into()),
    }
}

impl Checkout {
    /// A change path by path, as a checkout holds it.
    fn pieces(&self, taken: &Taken) -> Result<Vec<Piece>> {
        let index = self.directory.join("no-index");
        let list = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-abbrev",
            "--no-renames",
            &self.origin.commit,
            &taken.tree,
        ];
        let raw = self.private(&list, &index, &[])?;
        let refused = |message: &str| CheckoutError::Refused(message.to_owned());
        let content = |mode: &str, id: &str| -> Result<Option<Content>> {
            let bytes = || self.private(&["cat-file", "blob", id], &index, &[]);
            Ok(match mode {
                "000000" => None,
                "100644" | "100664" | "100755" => Some(Content::File {
                    bytes: bytes()?,
                    executable: mode == "100755",
                }),
                "120000" => Some(Content::Link(bytes()?)),
                _ => return Err(refused("the change touches a submodule, which is no file")),
            })
        };
        let mut pieces = Vec::new();
        let mut fields = raw.split(|byte| *byte == 0);
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about);
            let about: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old, new, _] = about[..] else {
                return Err(refused("git described a change in an unknown form"));
            };
            pieces.push(Piece {
                path: RelPath::from_bytes(path).map_err(WorkspaceError::from)?,
                before: content(old_mode, old)?,
                after: content(new_mode, new)?,
            });
        }
        Ok(pieces)
    }

    /// Makes the commit of a tree. The same message and time make the same commit.
    fn commit(&self, taken: &Taken, order: &Delivery<'_>) -> Result<String> {
        // With the sign git takes any number for seconds.
        let date = format!("@{} +0000", order.at);
        let mut command = self.command(&self.directory.join("no-index"))?;
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "Lula")
                .env(format!("GIT_{who}_EMAIL"), "lula@localhost")
                .env(format!("GIT_{who}_DATE"), &date);
        }
        let arguments = ["commit-tree", &taken.tree, "-p", &self.origin.commit];
        let output = feed(command.args(arguments), order.message.as_bytes())?;
        let made = succeeded(output, &arguments)?;
        Ok(String::from_utf8_lossy(&made).trim().to_owned())
    }

    /// The objects of a commit that the repository lacks, as a pack.
    fn pack(&self, commit: &str) -> Result<Vec<u8>> {
        let wanted = format!("{commit}\n^{}\n", self.origin.commit);
        let arguments = ["pack-objects", "--revs", "--stdout", "--quiet"];
        let index = self.directory.join("no-index");
        self.private(&arguments, &index, wanted.as_bytes())
    }
}

/// Takes a delivery back, if nobody has built on it. The commit stays under a reference of ours, so
/// that this too can be undone.
pub fn undo(git: &Git, repository: &Path, branch: &str, commit: &str) -> Result<Undone> {
    let refused = |message: String| Err(CheckoutError::Refused(message));
    let name = reference(branch);
    match resolve(git, repository, &name) {
        None => return refused(format!("the branch {branch} is gone already")),
        Some(found) if found != commit => {
            return refused(format!(
                "the branch {branch} has moved since it was delivered: it is yours now, nothing \
                 was changed"
            ));
        }
        Some(_) => {}
    }
    let used = git.run(repository, &["worktree", "list", "--porcelain"])?;
    if used.lines().any(|line| line == format!("branch {name}")) {
        return refused(format!(
            "the branch {branch} is checked out: change to another one first"
        ));
    }
    let short = branch.rsplit('/').next().unwrap_or(branch);
    let kept_as = format!("refs/lula/undone/{short}");
    git.run(repository, &["update-ref", &kept_as, commit])?;
    git.run(
        repository,
        &["update-ref", "--no-deref", "-d", &name, commit],
    )?;
    Ok(Undone {
        branch: branch.to_owned(),
        commit: commit.to_owned(),
        kept_as,
    })
}
