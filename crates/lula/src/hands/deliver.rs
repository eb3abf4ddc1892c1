//! Bringing a change into the user's repository, and taking it back. To a branch: objects are added
//! and one reference is moved from a known value to another; checkout, index and stash are never
//! touched. Into the checkout: files are exchanged in one journaled step, where each is as the change
//! found it.

use std::path::Path;

use lula_agents::HandsError;
use lula_agents::hands::{Consignment, Delivered};
use lula_agents::task::Deliver;
use lula_protocol::WorkspaceId;
use lula_workspace::{Git, Store, WorkspaceError};

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

/// The state that was judged, by git's name.
fn judged(room: &Room, order: &Consignment) -> Result<String, HandsError> {
    let (digest, tree) = room.snapshot()?;
    if digest != order.tree {
        return Err(failed(
            "the workspace is not what was judged any more; run the task again",
        ));
    }
    Ok(tree)
}

/// The commit of an order. Making it again makes the same.
fn commit_of(room: &Room, order: &Consignment) -> Result<String, HandsError> {
    let tree = judged(room, order)?;
    room.commit_tree(&tree, &order.message, order.at)
}

/// What a delivery into the checkout is called among the workspaces.
fn title(order: &Consignment) -> String {
    let name = order.branch.rsplit('/').next().unwrap_or(&order.branch);
    format!("lula run {name}")
}

/// Room for what was delivered is never refused.
fn workspaces(state: &Path) -> Store {
    Store::at(state, u64::MAX)
}

fn at_branch(order: &Consignment, commit: String) -> Delivered {
    Delivered {
        branch: Some(order.branch.clone()),
        commit: Some(commit),
        directory: None,
        workspace: None,
    }
}

fn in_checkout(order: &Consignment, workspace: WorkspaceId) -> Delivered {
    Delivered {
        branch: None,
        commit: None,
        directory: Some(order.repository.clone()),
        workspace: Some(workspace),
    }
}

/// Makes the branch, or changes the files of the checkout.
pub(super) fn deliver(
    room: &Room,
    order: &Consignment,
    state: &Path,
) -> Result<Delivered, HandsError> {
    match order.deliver {
        Deliver::Branch => to_branch(room, order),
        Deliver::Worktree => to_checkout(room, order, state),
        Deliver::Patch | Deliver::None => Ok(Delivered {
            branch: None,
            commit: None,
            directory: None,
            workspace: None,
        }),
    }
}

fn to_branch(room: &Room, order: &Consignment) -> Result<Delivered, HandsError> {
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
    Ok(at_branch(order, commit))
}

fn to_checkout(room: &Room, order: &Consignment, state: &Path) -> Result<Delivered, HandsError> {
    let tree = judged(room, order)?;
    let pieces = room.pieces(&tree)?;
    let put = workspaces(state).put(Path::new(&order.repository), &title(order), &pieces);
    let (workspace, _) = put.map_err(|error| match error {
        WorkspaceError::Conflicts(paths) => {
            let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
            failed(format!(
                "your checkout has other content in {}, and nothing in it was changed; the change \
                 is in the record: `lula diff RUN | git apply --3way` merges it",
                paths.join(", ")
            ))
        }
        other => failed(other),
    })?;
    Ok(in_checkout(order, workspace))
}

/// Whether the change arrived already.
pub(super) fn delivered(
    room: &Room,
    order: &Consignment,
    state: &Path,
) -> Result<Option<Delivered>, HandsError> {
    let repository = Path::new(&order.repository);
    if order.deliver == Deliver::Worktree {
        let there = workspaces(state).was_put(repository, &title(order));
        return Ok(there
            .map_err(failed)?
            .map(|workspace| in_checkout(order, workspace)));
    }
    let commit = commit_of(room, order)?;
    let there = resolve(room.inert(), repository, &reference(&order.branch));
    Ok((there.as_ref() == Some(&commit)).then(|| at_branch(order, commit)))
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
