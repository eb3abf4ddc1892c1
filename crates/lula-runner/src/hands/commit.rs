//! What becomes of a workspace's changes.

use lula_audit::{Decided, Ended, Entry as Recorded};
use lula_gate::rules::Act;
use lula_protocol::digest::Domain;
use lula_protocol::{
    Digest, EffectId, Outcome, Principal, ProtocolVersion, ToolResult, WorkspaceId,
};
use lula_workspace::{Change, Diff, HeldBack, RelPath, Selection};
use serde::Serialize;

use super::before::Before;
use super::clock::now_ms;
use super::effect::Stored;
use super::gate::{self, Asked, Said, Shown};
use super::ledger::Entry;
use super::refusal::Refusal;
use super::room::Room;
use super::snapshots::{is_ours, label_problem};
use super::{Hands, scope, views};
use crate::api::{
    CommitWorkspace, Committed, DiffView, RestoreSnapshot, TakeSnapshot, UndoCommit, WorkspaceView,
};

/// What a commit is called in the audit.
const TOOL: &str = "commit_workspace";

/// Something that rules can hold back.
#[derive(Debug)]
pub enum Gated<T> {
    /// It was done.
    Done(T),
    /// It was not: a rule forbids it, or people are asked first.
    Held(Box<ToolResult>),
}

impl<T> Gated<T> {
    /// It was not done, for this reason.
    pub(super) fn held(effect: &EffectId, outcome: Outcome) -> Self {
        Self::Held(Box::new(ToolResult {
            protocol: ProtocolVersion,
            effect: effect.clone(),
            outcome,
            receipt: None,
        }))
    }
}

impl Hands {
    /// Lets something happen that leaves the workspace, or says why not. A no is on record before
    /// it is said.
    pub(super) fn admit(
        &self,
        entry: &Entry,
        before: &Before,
        question: &Asked<'_>,
        recorded: &dyn Fn(Decided, Ended) -> Recorded,
    ) -> Result<Result<Decided, Outcome>, Refusal> {
        let (outcome, decided) = match self.pass(entry, before, question)? {
            Said::Go(leave) => return Ok(Ok(leave.decided)),
            Said::Ask(challenge, decided) => (Outcome::NeedsApproval { challenge }, decided),
            Said::No(denials, decided) => (Outcome::Denied { denials }, decided),
        };
        self.gate.record(&recorded(decided, Ended::NotDone))?;
        Ok(Err(outcome))
    }

    /// What it changed.
    pub fn diff(&self, id: &WorkspaceId) -> Result<DiffView, Refusal> {
        let room = self.room(id)?;
        let workspace = room.workspace();
        let diff = workspace.diff()?;
        Ok(views::diff(&workspace, &diff))
    }

    /// Puts exactly the reviewed change into the user's tree, if the rules for what it changes say
    /// so: commands in the sandbox write files without asking anybody.
    pub fn commit(
        &self,
        who: &Principal,
        id: &WorkspaceId,
        asked: &CommitWorkspace,
    ) -> Result<Gated<Committed>, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let request = request(
            id,
            &CommitWorkspace {
                epoch: 0,
                ..asked.clone()
            },
        )?;
        let entry = self.entry_of(id, &asked.effect, (&asked.run, asked.epoch), request);
        let agreed = match self.known(&*room, &entry)? {
            Stored::Result(stored) => return Ok(Gated::Done(stored)),
            Stored::Agreed(subject) => Some(subject),
            Stored::Nothing => None,
        };
        let selection = selection(asked)?;
        let diff = room.workspace().diff()?;
        let paths = chosen(&diff, &selection);
        let added =
            settled(&diff, &selection).map(|change| views::added(&room.workspace(), change));
        let act = Act::commit(paths.clone(), added);
        let strays = scope::denials(&room.invariants, settled(&diff, &selection));
        let verdict = gate::judge(&room.rules, &act);
        let shown = Shown {
            rendered: views::diff(&room.workspace(), &diff).text,
            base_tree: diff.digest,
        };
        let question = Asked {
            rules: gate::version(&room.rules)?,
            verdict: &verdict,
            tool: TOOL,
            call: request,
            shown: &shown,
            who,
            agreed,
            class: entry.class,
            beforehand: self.setup.beforehand,
        };
        let before = Before::Commit(paths.clone());
        let recorded = |decided, outcome| Recorded {
            time_ms: now_ms(),
            principal: who.clone(),
            run: Some(asked.run.clone()),
            effect: Some(asked.effect.clone()),
            tool: TOOL.to_owned(),
            about: paths.join(" "),
            call: request,
            decision: decided,
            outcome,
            receipt: None,
            diff: Some(diff.digest),
        };
        if !strays.is_empty() {
            let decided = Decided {
                verdict: lula_audit::Verdict::Denied,
                rule: Some("scope".to_owned()),
                approval: None,
            };
            self.gate.record(&recorded(decided, Ended::NotDone))?;
            let outcome = Outcome::Denied { denials: strays };
            return Ok(Gated::held(&asked.effect, outcome));
        }
        let decided = match self.admit(&entry, &before, &question, &recorded)? {
            Ok(decided) => decided,
            Err(outcome) => return Ok(Gated::held(&asked.effect, outcome)),
        };
        let done = room.workspace().commit(&selection, Some(&asked.digest));
        match done {
            Ok(done) => {
                let committed = Committed {
                    digest: done.digest,
                    paths: done.paths.iter().map(ToString::to_string).collect(),
                    held_back: done.held_back.iter().map(ToString::to_string).collect(),
                };
                let recorded = recorded(decided, Ended::Done { status: None });
                self.store_result(&asked.effect, &committed, &recorded)?;
                Ok(Gated::Done(committed))
            }
            // Whole or not at all, and it says not at all.
            Err(error) => {
                self.ledger().forget(&asked.effect)?;
                Err(error.into())
            }
        }
    }

    /// Takes the last commit back, in the user's tree.
    pub fn undo_commit(
        &self,
        who: &Principal,
        id: &WorkspaceId,
        asked: &UndoCommit,
    ) -> Result<Committed, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
        let request = request(
            id,
            &UndoCommit {
                epoch: 0,
                ..asked.clone()
            },
        )?;
        let entry = self.entry_of(id, &asked.effect, (&asked.run, asked.epoch), request);
        if let Stored::Result(stored) = self.known(&*room, &entry)? {
            return Ok(stored);
        }
        let before = room.workspace().diff()?.digest;
        self.begin(&entry, &Before::Undo(before), None)?;
        let undone = room.workspace().undo();
        match undone {
            Ok(paths) => {
                let digest = room.workspace().diff()?.digest;
                let committed = Committed {
                    digest,
                    paths: paths.iter().map(ToString::to_string).collect(),
                    held_back: Vec::new(),
                };
                let recorded = Recorded {
                    time_ms: now_ms(),
                    principal: who.clone(),
                    run: Some(asked.run.clone()),
                    effect: Some(asked.effect.clone()),
                    tool: "undo_commit".to_owned(),
                    about: committed.paths.join(" "),
                    call: request,
                    decision: Decided {
                        verdict: lula_audit::Verdict::Allowed,
                        rule: None,
                        approval: None,
                    },
                    outcome: Ended::Done { status: None },
                    receipt: None,
                    diff: Some(digest),
                };
                self.store_result(&asked.effect, &committed, &recorded)?;
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
    ) -> Result<WorkspaceView, Refusal> {
        let room = self.room(id)?;
        let _turn = room.turn()?;
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
pub(super) fn request(id: &WorkspaceId, asked: &impl Serialize) -> Result<Digest, Refusal> {
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

/// The paths a commit would settle.
fn chosen(diff: &Diff, selection: &Selection) -> Vec<String> {
    settled(diff, selection)
        .map(|change| change.path.to_string())
        .collect()
}

/// The changes a commit would settle.
fn settled<'a>(diff: &'a Diff, selection: &'a Selection) -> impl Iterator<Item = &'a Change> {
    diff.changes.iter().filter(|change| {
        let named = selection.paths.is_empty()
            || selection
                .paths
                .iter()
                .any(|path| change.path.is_within(path));
        let taken = match change.held_back {
            None => true,
            Some(HeldBack::GitInternals) => selection.git_internals,
            Some(_) => false,
        };
        named && taken
    })
}

/// What a commit that a crash cut off came to: it is there if none of its paths is a change any
/// more.
pub(super) fn after_all(room: &Room, paths: &[String]) -> Result<Option<Committed>, Refusal> {
    let diff = room.workspace().diff()?;
    let mut changes = diff.changes.iter();
    let left = changes.any(|change| paths.contains(&change.path.to_string()));
    Ok((!left).then(|| Committed {
        digest: diff.digest,
        paths: paths.to_vec(),
        held_back: Vec::new(),
    }))
}
