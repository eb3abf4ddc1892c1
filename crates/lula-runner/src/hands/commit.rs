//! What becomes of a workspace's changes.

use lula_protocol::digest::Domain;
use lula_protocol::{Digest, WorkspaceId};
use lula_workspace::{RelPath, Selection};
use serde::Serialize;

use super::effect::{Before, entry_of, is_ours, label_problem};
use super::refusal::Refusal;
use super::room::Room;
use super::{Hands, views};
use crate::api::{
    CommitWorkspace, Committed, DiffView, RestoreSnapshot, TakeSnapshot, UndoCommit, WorkspaceView,
};

impl Hands {
    /// What it changed.
    pub fn diff(&self, id: &WorkspaceId) -> Result<DiffView, Refusal> {
        let room = self.room(id)?;
        let workspace = room.workspace();
        let diff = workspace.diff()?;
        Ok(views::diff(&workspace, &diff))
    }

    /// Puts exactly the reviewed change into the user's tree.
    pub fn commit(&self, id: &WorkspaceId, asked: &CommitWorkspace) -> Result<Committed, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn();
        let request = request(id, asked)?;
        let entry = entry_of(id, &asked.effect, &asked.run, asked.epoch, request);
        if let Some(stored) = self.known(&room, &entry)? {
            return Ok(stored);
        }
        let selection = selection(asked)?;
        let before = Before::Commit(chosen(&room, asked)?);
        self.begin(&entry, &before)?;
        let done = room.workspace().commit(&selection, Some(&asked.digest));
        match done {
            Ok(done) => {
                let committed = Committed {
                    digest: done.digest,
                    paths: done.paths.iter().map(ToString::to_string).collect(),
                    held_back: done.held_back.iter().map(ToString::to_string).collect(),
                };
                self.store_result(&asked.effect, &committed)?;
                Ok(committed)
            }
            // Whole or not at all, and it says not at all.
            Err(error) => {
                self.ledger().forget(&asked.effect)?;
                Err(error.into())
            }
        }
    }

    /// Takes the last commit back, in the user's tree.
    pub fn undo_commit(&self, id: &WorkspaceId, asked: &UndoCommit) -> Result<Committed, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn();
        let request = request(id, asked)?;
        let entry = entry_of(id, &asked.effect, &asked.run, asked.epoch, request);
        if let Some(stored) = self.known(&room, &entry)? {
            return Ok(stored);
        }
        let before = room.workspace().diff()?.digest;
        self.begin(&entry, &Before::Undo(before))?;
        let undone = room.workspace().undo();
        match undone {
            Ok(paths) => {
                let digest = room.workspace().diff()?.digest;
                let committed = Committed {
                    digest,
                    paths: paths.iter().map(ToString::to_string).collect(),
                    held_back: Vec::new(),
                };
                self.store_result(&asked.effect, &committed)?;
                Ok(committed)
            }
            Err(error) => {
                self.ledger().forget(&asked.effect)?;
                Err(error.into())
            }
        }
    }

    /// Turns the change down. With `now` nothing is kept of it.
    pub fn discard(&self, id: &WorkspaceId, now: bool) -> Result<WorkspaceView, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn();
        room.close();
        let view = views::workspace(room.workspace().record());
        self.store.open(id)?.discard(now)?;
        self.rooms().remove(id);
        Ok(WorkspaceView {
            state: crate::api::WorkspaceState::Discarded,
            ..view
        })
    }

    /// Remembers the workspace as it is.
    pub fn snapshot(
        &self,
        id: &WorkspaceId,
        asked: &TakeSnapshot,
    ) -> Result<WorkspaceView, Refusal> {
        if let Some(problem) = label_problem(&asked.label) {
            return Err(Refusal::BadRequest(problem.to_owned()));
        }
        let room = self.room(id)?;
        let _turn = room.turn();
        let mut workspace = room.workspace();
        workspace.snapshot(&asked.label)?;
        Ok(views::workspace(workspace.record()))
    }

    /// Returns the workspace to a remembered state. Commands that run in it end.
    pub fn restore(
        &self,
        id: &WorkspaceId,
        asked: &RestoreSnapshot,
    ) -> Result<WorkspaceView, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn();
        let known = |room: &Room| {
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
    pub fn fork(&self, id: &WorkspaceId) -> Result<WorkspaceView, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn();
        let workspace = room.workspace();
        let fork = workspace.fork(&workspace.record().title)?;
        Ok(views::workspace(fork.record()))
    }
}

fn request(id: &WorkspaceId, asked: &impl Serialize) -> Result<Digest, Refusal> {
    Digest::of(Domain::Effect, &(id, asked))
        .map_err(|error| Refusal::BadRequest(format!("the request has no digest: {error}")))
}

fn selection(asked: &CommitWorkspace) -> Result<Selection, Refusal> {
    let paths = asked.paths.iter().map(|path| {
        RelPath::from_path(path.as_ref()).map_err(lula_workspace::WorkspaceError::from)
    });
    Ok(Selection {
        paths: paths.collect::<Result<_, _>>()?,
        git_internals: asked.include_git,
    })
}

/// The paths a commit would settle, to tell after a crash whether it did.
fn chosen(room: &Room, asked: &CommitWorkspace) -> Result<Vec<String>, Refusal> {
    let selection = selection(asked)?;
    let diff = room.workspace().diff()?;
    let chosen = diff.changes.iter().filter(|change| {
        let named = selection.paths.is_empty()
            || selection
                .paths
                .iter()
                .any(|path| change.path.is_within(path));
        named && change.held_back.is_none()
    });
    Ok(chosen.map(|change| change.path.to_string()).collect())
}
