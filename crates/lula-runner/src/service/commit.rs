//! What becomes of a workspace's changes.

use lula_gate::rules::GateAct;
use lula_protocol::digest::DigestDomain;
use lula_protocol::{Digest, Principal, WorkspaceId};
use lula_workspace::{
    ChangeSelection, PathChange, UncommittableReason, WorkspaceDiff, WorkspacePath,
};
use serde::Serialize;

use super::before::EffectRollback;
use super::effect::{
    EffectCallerRequest, EffectFailure, EffectPermission, EffectPreparation, EffectSubject,
    GatedAct, PerformedEffect, PreparedEffect, RunnerEffect,
};
use super::gate::{self, ShownApproval};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use super::snapshots::{is_ours, label_problem};
use super::{RunnerService, scope, views};
use lula_runner_api::{
    CommitWorkspace, CommittedWorkspace, DiffView, RestoreSnapshot, TakeSnapshot, UndoCommit,
    WorkspaceView,
};

/// What a commit is called in the audit.
pub(super) const COMMIT: &str = "commit_workspace";

/// A commit of a workspace's change into the user's tree.
struct Commit<'a> {
    room: &'a RunnerWorkspace,
    asked: &'a CommitWorkspace,
    request: EffectCallerRequest,
}

impl RunnerEffect for Commit<'_> {
    type Output = CommittedWorkspace;
    type Plan = ChangeSelection;

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        Some(self.room)
    }

    fn prepare(
        &self,
        _: &RunnerService,
    ) -> Result<EffectPreparation<ChangeSelection, CommittedWorkspace>, RequestRefusal> {
        let room = self.room;
        let selection = selection(self.asked)?;
        let diff = room.workspace().diff()?;
        let paths = chosen(&diff, &selection);
        let added =
            settled(&diff, &selection).map(|change| views::added(&room.workspace(), change));
        let act = GateAct::commit(paths.clone(), added);
        let strays = scope::denials(&room.invariants(), settled(&diff, &selection));
        let permission = if strays.is_empty() {
            EffectPermission::Judged {
                rules: gate::version(&room.rules)?,
                verdict: gate::judge(&room.rules, &act),
                shown: ShownApproval {
                    rendered: views::diff(&room.workspace(), &diff).text,
                    base_tree: diff.digest,
                },
                class: self.request.entry.class,
            }
        } else {
            EffectPermission::Denied {
                rule: "scope",
                denials: strays,
            }
        };
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission,
            subject: EffectSubject {
                about: paths.join(" "),
                diff: Some(diff.digest),
            },
            before: EffectRollback::Commit(paths),
            plan: selection,
        }))
    }

    /// Whole or not at all, and it says which.
    fn perform(
        &mut self,
        _: &RunnerService,
        selection: ChangeSelection,
        _: &mut EffectSubject,
    ) -> Result<PerformedEffect<CommittedWorkspace>, EffectFailure> {
        let mut workspace = self.room.workspace();
        let done = workspace.commit(&selection, Some(&self.asked.digest))?;
        Ok(PerformedEffect::done(CommittedWorkspace {
            digest: done.digest,
            paths: done.paths.iter().map(ToString::to_string).collect(),
            held_back: done.held_back.iter().map(ToString::to_string).collect(),
        }))
    }
}

/// The last commit taken back, in the user's tree.
struct Undo<'a> {
    room: &'a RunnerWorkspace,
    request: EffectCallerRequest,
}

impl RunnerEffect for Undo<'_> {
    type Output = CommittedWorkspace;
    type Plan = ();

    fn request(&self) -> &EffectCallerRequest {
        &self.request
    }

    fn room(&self) -> Option<&RunnerWorkspace> {
        Some(self.room)
    }

    fn prepare(
        &self,
        _: &RunnerService,
    ) -> Result<EffectPreparation<(), CommittedWorkspace>, RequestRefusal> {
        Ok(EffectPreparation::Ready(PreparedEffect {
            permission: EffectPermission::Free,
            before: EffectRollback::Undo(self.room.workspace().diff()?.digest),
            subject: EffectSubject::default(),
            plan: (),
        }))
    }

    fn perform(
        &mut self,
        _: &RunnerService,
        (): (),
        subject: &mut EffectSubject,
    ) -> Result<PerformedEffect<CommittedWorkspace>, EffectFailure> {
        let mut workspace = self.room.workspace();
        let paths = workspace.undo()?;
        let diff = workspace.diff();
        // Taken for not done, it would be done again, to the commit before it.
        let diff = diff.map_err(|error| EffectFailure::Untold(error.into()))?;
        let committed = CommittedWorkspace {
            digest: diff.digest,
            paths: paths.iter().map(ToString::to_string).collect(),
            held_back: Vec::new(),
        };
        subject.about = committed.paths.join(" ");
        subject.diff = Some(committed.digest);
        Ok(PerformedEffect::done(committed))
    }
}

impl RunnerService {
    /// What a workspace changed so far.
    pub fn diff(&self, id: &WorkspaceId) -> Result<DiffView, RequestRefusal> {
        let room = self.room(id)?;
        let workspace = room.workspace();
        let diff = workspace.diff()?;
        Ok(views::diff(&workspace, &diff))
    }

    /// Puts exactly the reviewed change into the user's tree, if the rules for what it changes say
    /// so: commands in the sandbox write files without asking the gate.
    pub fn commit(
        &self,
        who: &Principal,
        id: &WorkspaceId,
        asked: &CommitWorkspace,
    ) -> Result<GatedAct<CommittedWorkspace>, RequestRefusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let plain = CommitWorkspace {
            epoch: 0,
            ..asked.clone()
        };
        let of_run = (&asked.effect, &asked.run, asked.epoch);
        let request = self.caller_request((who, COMMIT), id, of_run, request(id, &plain)?);
        self.run_effect(&mut Commit {
            room: &room,
            asked,
            request,
        })
    }

    /// Takes the last commit back, in the user's tree.
    pub fn undo_commit(
        &self,
        who: &Principal,
        id: &WorkspaceId,
        asked: &UndoCommit,
    ) -> Result<CommittedWorkspace, RequestRefusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let plain = UndoCommit {
            epoch: 0,
            ..asked.clone()
        };
        let of_run = (&asked.effect, &asked.run, asked.epoch);
        let request = self.caller_request((who, "undo_commit"), id, of_run, request(id, &plain)?);
        let room = &*room;
        self.run_effect(&mut Undo { room, request })?.free()
    }

    /// Turns the change down. With `now` nothing is kept of it.
    pub fn discard(&self, id: &WorkspaceId, now: bool) -> Result<WorkspaceView, RequestRefusal> {
        let room = self.room(id)?;
        let mut turn = room.turn()?;
        room.close();
        let view = views::workspace(room.workspace().record());
        self.store.open(id)?.discard(now)?;
        if now {
            self.clear_checkout(id)?;
        }
        self.rooms().remove(id);
        *turn = true;
        Ok(WorkspaceView {
            state: lula_runner_api::WorkspaceState::Discarded,
            ..view
        })
    }

    /// Remembers the workspace as it is.
    pub fn snapshot(
        &self,
        id: &WorkspaceId,
        asked: &TakeSnapshot,
    ) -> Result<WorkspaceView, RequestRefusal> {
        if let Some(problem) = label_problem(&asked.label) {
            return Err(RequestRefusal::BadRequest(problem.to_owned()));
        }
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let mut workspace = room.workspace();
        workspace.snapshot(&asked.label)?;
        Ok(views::workspace(workspace.record()))
    }

    /// Returns the workspace to a remembered state. Commands that run in it end.
    pub fn restore(
        &self,
        id: &WorkspaceId,
        asked: &RestoreSnapshot,
    ) -> Result<WorkspaceView, RequestRefusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let known = |room: &RunnerWorkspace| {
            let workspace = room.workspace();
            let snapshots = &workspace.record().snapshots;
            snapshots.iter().any(|one| one.label == asked.label)
        };
        if is_ours(&asked.label) || !known(&room) {
            return Err(lula_workspace::WorkspaceError::NoSuchSnapshot {
                id: id.clone(),
                label: asked.label.chars().take(100).collect(),
            }
            .into());
        }
        room.restore(&asked.label)?;
        Ok(views::workspace(room.workspace().record()))
    }

    /// A second workspace that starts with this one's changes.
    pub fn fork(&self, id: &WorkspaceId) -> Result<WorkspaceView, RequestRefusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let workspace = room.workspace();
        let fork = workspace.fork(&workspace.record().title)?;
        // An agent's scope goes with its changes.
        let declared = self.ledger().declared(id)?;
        self.ledger().declare(fork.id(), &declared)?;
        Ok(views::workspace(fork.record()))
    }
}

/// The digest of what is asked for. The epoch says who asks, and is no part of it.
pub(super) fn request(id: &WorkspaceId, asked: &impl Serialize) -> Result<Digest, RequestRefusal> {
    Digest::of(DigestDomain::Effect, &(id, asked))
        .map_err(|error| RequestRefusal::BadRequest(format!("the request has no digest: {error}")))
}

fn selection(asked: &CommitWorkspace) -> Result<ChangeSelection, RequestRefusal> {
    let paths = asked.paths.iter().map(|path| {
        WorkspacePath::from_path(path.as_ref()).map_err(lula_workspace::WorkspaceError::from)
    });
    Ok(ChangeSelection {
        paths: paths.collect::<Result<_, _>>()?,
        git_internals: asked.include_git,
    })
}

/// The paths a commit would settle.
fn chosen(diff: &WorkspaceDiff, selection: &ChangeSelection) -> Vec<String> {
    settled(diff, selection)
        .map(|change| change.path.to_string())
        .collect()
}

/// The changes a commit would settle.
fn settled<'a>(
    diff: &'a WorkspaceDiff,
    selection: &'a ChangeSelection,
) -> impl Iterator<Item = &'a PathChange> {
    diff.changes.iter().filter(|change| {
        let named = selection.paths.is_empty()
            || selection
                .paths
                .iter()
                .any(|path| change.path.is_within(path));
        let taken = match change.held_back {
            None => true,
            Some(UncommittableReason::GitInternals) => selection.git_internals,
            Some(_) => false,
        };
        named && taken
    })
}

/// What a commit that a crash cut off came to: it is there if none of its paths is a change any
/// more.
pub(super) fn after_all(
    room: &RunnerWorkspace,
    paths: &[String],
) -> Result<Option<CommittedWorkspace>, RequestRefusal> {
    let diff = room.workspace().diff()?;
    let mut changes = diff.changes.iter();
    let left = changes.any(|change| paths.contains(&change.path.to_string()));
    Ok((!left).then(|| CommittedWorkspace {
        digest: diff.digest,
        paths: paths.to_vec(),
        held_back: Vec::new(),
    }))
}
