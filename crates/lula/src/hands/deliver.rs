//! Bringing a change into the user's repository, and taking it back. Objects are added and one
//! reference is moved from a known value to another; checkout, index and stash are never touched.

use std::path::{Path, PathBuf};

use lula_agents::HandsError;
use lula_agents::hands::{Consignment, Delivered};
use lula_agents::task::Deliver;
use lula_workspace::Git;

use super::failed;
use super::room::{Room, feed};

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// What a reference names; `None` where there is none.
fn resolve(git: &Git, repository: &Path, name: &str) -> Option<String> {
    let found = git.run(repository, &["rev-parse", "--verify", "--quiet", name]);
    found.ok().map(|text| text.trim().to_owned())
}

/// The commit of an order. Making it again makes the same.
fn commit_of(room: &Room, order: &Consignment) -> Result<String, HandsError> {
    let (digest, tree) = room.snapshot()?;
    if digest != order.tree {
        return Err(failed(
            "the workspace is not what was judged any more; run the task again",
        ));
    }
    room.commit_tree(&tree, &order.message, order.at)
}

fn worktree(state: &Path, order: &Consignment) -> PathBuf {
    let name = order.branch.rsplit('/').next().unwrap_or(&order.branch);
    state.join("worktrees").join(name)
}

/// Makes the branch, and the worktree where one is wanted.
pub(super) fn deliver(
    room: &Room,
    order: &Consignment,
    state: &Path,
) -> Result<Delivered, HandsError> {
    if !matches!(order.deliver, Deliver::Branch | Deliver::Worktree) {
        return Ok(Delivered {
            branch: None,
            commit: None,
            directory: None,
        });
    }
    let (git, repository) = (room.inert(), Path::new(&order.repository));
    let commit = commit_of(room, order)?;
    let name = reference(&order.branch);
    match resolve(git, repository, &name) {
        Some(found) if found == commit => {}
        Some(_) => {
            return Err(failed(format!(
                "the branch {} exists already; rename it, then resume the run",
                order.branch
            )));
        }
        None => {
            let pack = room.pack(&commit)?;
            let mut unpack = git.command(repository).map_err(failed)?;
            unpack.args(["unpack-objects", "-q"]);
            feed(&mut unpack, &pack, "unpack-objects")?;
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
            git.run(repository, &update).map_err(failed)?;
        }
    }
    let mut directory = None;
    if order.deliver == Deliver::Worktree {
        let path = worktree(state, order);
        if !path.join(".git").exists() {
            let text = path.to_string_lossy().into_owned();
            let add = ["worktree", "add", "--quiet", &text, &order.branch];
            git.run(repository, &add).map_err(failed)?;
        }
        directory = Some(path.to_string_lossy().into_owned());
    }
    Ok(Delivered {
        branch: Some(order.branch.clone()),
        commit: Some(commit),
        directory,
    })
}

/// Whether the change arrived already.
pub(super) fn delivered(
    room: &Room,
    order: &Consignment,
    state: &Path,
) -> Result<Option<Delivered>, HandsError> {
    let commit = commit_of(room, order)?;
    let repository = Path::new(&order.repository);
    let there = resolve(room.inert(), repository, &reference(&order.branch));
    let path = worktree(state, order);
    let whole = order.deliver != Deliver::Worktree || path.join(".git").exists();
    if there.as_deref() != Some(commit.as_str()) || !whole {
        return Ok(None);
    }
    Ok(Some(Delivered {
        branch: Some(order.branch.clone()),
        commit: Some(commit),
        directory: (order.deliver == Deliver::Worktree)
            .then(|| path.to_string_lossy().into_owned()),
    }))
}

/// What was taken back.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Undone {
    /// The branch that is gone.
    pub(crate) branch: String,
    /// The commit it named, which is kept.
    pub(crate) commit: String,
    /// The reference that keeps it.
    pub(crate) kept_as: String,
}

/// Takes a delivery back, if nobody has built on it. The commit stays under a reference of ours, so
/// that this too can be undone.
pub(crate) fn undo(
    git: &Git,
    repository: &Path,
    delivered: &Delivered,
) -> Result<Undone, HandsError> {
    let (Some(branch), Some(commit)) = (&delivered.branch, &delivered.commit) else {
        return Err(failed("the run delivered nothing that could be taken back"));
    };
    let name = reference(branch);
    match resolve(git, repository, &name) {
        None => return Err(failed(format!("the branch {branch} is gone already"))),
        Some(found) if found != *commit => {
            return Err(failed(format!(
                "the branch {branch} has moved since it was delivered: it is yours now, nothing \
                 was changed"
            )));
        }
        Some(_) => {}
    }
    if let Some(directory) = &delivered.directory
        && Path::new(directory).exists()
    {
        // Without --force git refuses where something in it is not committed.
        git.run(repository, &["worktree", "remove", directory])
            .map_err(failed)?;
    }
    let used = git
        .run(repository, &["worktree", "list", "--porcelain"])
        .map_err(failed)?;
    if used.lines().any(|line| line == format!("branch {name}")) {
        return Err(failed(format!(
            "the branch {branch} is checked out: change to another one first"
        )));
    }
    let short = branch.rsplit('/').next().unwrap_or(branch);
    let kept_as = format!("refs/lula/undone/{short}");
    git.run(repository, &["update-ref", &kept_as, commit])
        .map_err(failed)?;
    git.run(
        repository,
        &["update-ref", "--no-deref", "-d", &name, commit],
    )
    .map_err(failed)?;
    Ok(Undone {
        branch: branch.clone(),
        commit: commit.clone(),
        kept_as,
    })
}
