//! Effects: written down, done, written down. And what becomes of one that a crash cut off.

use lula_protocol::{
    Action, Details, Digest, EffectClass, EffectId, Origin, Outcome, Output, Principal, Receipt,
    ToolCall, ToolResult, WorkspaceId,
};
use serde::{Deserialize, Serialize};

use super::clock::now_ms;
use super::exec::{self, failed};
use super::ledger::{self, Entry, Known, Unfinished};
use super::refusal::Refusal;
use super::room::Room;
use super::{Hands, git, result};
use crate::toolbox::frame::{Answer, Ask, Image, Plan};

/// Largest layer that is copied before a command, so that a crash in its middle can be taken back.
const COPIED: u64 = 64 << 20;

/// How a cut-off effect is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Before {
    /// By putting these files back.
    Files(Vec<Image>),
    /// By returning to this snapshot, which was taken for it.
    Snapshot(String),
    /// By going through with it: it returns to this snapshot itself.
    Restoring(String),
    /// It leaves nothing that doing it again would not.
    Nothing,
    /// Not at all.
    Lost,
    /// A commit of these paths is there whole or not at all.
    Commit(Vec<String>),
    /// An undo is there if the diff is no longer this one.
    Undo(Digest),
}

/// Whether a call goes on to its act.
pub(super) enum Gone {
    /// It does; this takes it back.
    On(Before),
    /// This came of it already.
    Over(ToolResult),
}

/// Whether a call is written down. Reading is not: doing it again changes nothing.
pub(super) const fn is_effect(action: &Action) -> bool {
    action.mutates() || matches!(action, Action::Snapshot(_))
}

impl Hands {
    /// Does what a call asks, once. The caller has the workspace's turn.
    pub(super) fn effect(
        &self,
        room: &Room,
        who: &Principal,
        call: &ToolCall,
    ) -> Result<ToolResult, Refusal> {
        let before = match self.begin_call(room, who, call)? {
            Gone::Over(result) => return Ok(result),
            Gone::On(before) => before,
        };
        match perform(room, call) {
            Ok((outcome, receipt)) => self.finish_call(room, call, outcome, receipt, before),
            Err(refusal) => {
                self.abandon_call(room, call, &before)?;
                Err(refusal)
            }
        }
    }

    /// Everything that comes before an act: what is known of it, whether it may happen, and its
    /// intent.
    pub(super) fn begin_call(
        &self,
        room: &Room,
        who: &Principal,
        call: &ToolCall,
    ) -> Result<Gone, Refusal> {
        let _ = who;
        let entry = Entry {
            effect: call.effect.clone(),
            run: call.run.clone(),
            epoch: call.epoch,
            workspace: call.workspace.clone(),
            class: EffectClass::Tree,
            request: digest(call)?,
        };
        if let Some(stored) = self.known(room, &entry)? {
            return Ok(Gone::Over(stored));
        }
        match prepare(room, call)? {
            Prepared::Ready(before, _plan) => {
                self.begin(&entry, &before)?;
                Ok(Gone::On(before))
            }
            Prepared::Over(outcome) => {
                // Nothing was tried; the same id gets the same answer.
                self.begin(&entry, &Before::Nothing)?;
                let result = self.finish_call(room, call, outcome, None, Before::Nothing)?;
                Ok(Gone::Over(result))
            }
        }
    }

    /// Takes back what an act that broke has left; it may be tried again.
    pub(super) fn abandon_call(
        &self,
        room: &Room,
        call: &ToolCall,
        before: &Before,
    ) -> Result<(), Refusal> {
        if *before == Before::Lost {
            return Ok(self.ledger().give_up(&call.effect)?);
        }
        self.take_back(room, before)?;
        Ok(self.ledger().forget(&call.effect)?)
    }

    /// The stored result of an effect, where there is one. What was cut off is taken back.
    pub(super) fn known<T: for<'de> Deserialize<'de>>(
        &self,
        room: &Room,
        entry: &Entry,
    ) -> Result<Option<T>, Refusal> {
        let known = self.ledger().look(entry)?;
        match known {
            Known::Fresh => Ok(None),
            Known::Done(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|_| Refusal::Reused(entry.effect.clone())),
            Known::Reused => Err(Refusal::Reused(entry.effect.clone())),
            Known::Fenced { newest } => Err(Refusal::Fenced {
                given: entry.epoch,
                newest,
            }),
            Known::Unknown => Err(Refusal::Unknown(entry.effect.clone())),
            Known::Begun { before } => {
                self.take_back(room, &stored(before.as_deref()))?;
                self.ledger().forget(&entry.effect)?;
                Ok(None)
            }
        }
    }

    pub(super) fn begin(&self, entry: &Entry, before: &Before) -> Result<(), Refusal> {
        let text = serde_json::to_string(before)
            .map_err(|error| Refusal::Internal(format!("an intent cannot be written: {error}")))?;
        let mut ledger = self.ledger();
        let tx = ledger.transaction()?;
        // Looked at again inside: the same id may have been begun on another workspace meanwhile.
        match ledger::look(&tx, entry)? {
            Known::Fresh => ledger::begin(&tx, entry, Some(&text), now_ms())?,
            Known::Fenced { newest } => {
                return Err(Refusal::Fenced {
                    given: entry.epoch,
                    newest,
                });
            }
            _ => return Err(Refusal::Reused(entry.effect.clone())),
        }
        tx.commit()?;
        Ok(())
    }

    /// Writes down what came of an act.
    pub(super) fn finish_call(
        &self,
        room: &Room,
        call: &ToolCall,
        outcome: Outcome,
        receipt: Option<Receipt>,
        before: Before,
    ) -> Result<ToolResult, Refusal> {
        let result = result(call, outcome, receipt);
        self.store_result(&call.effect, &result)?;
        if let Before::Snapshot(label) = before {
            // It served its purpose; one that stays takes space and nothing else.
            let _ = room.workspace().forget_snapshot(&label);
        }
        Ok(result)
    }

    pub(super) fn store_result(
        &self,
        effect: &EffectId,
        result: &impl Serialize,
    ) -> Result<(), Refusal> {
        let bytes = serde_json::to_vec(result)
            .map_err(|error| Refusal::Internal(format!("a result cannot be written: {error}")))?;
        Ok(self.ledger().finish(effect, &bytes)?)
    }

    /// Makes the workspace what it was before an effect.
    pub(super) fn take_back(&self, room: &Room, before: &Before) -> Result<(), Refusal> {
        match before {
            Before::Files(images) => match room.ask(Ask::PutBack(images.clone()))? {
                Ok(Answer::PutBack) => Ok(()),
                Ok(_) => Err(Refusal::ToolBroke("an answer of another kind".to_owned())),
                Err(failure) => Err(Refusal::ToolBroke(failure.message)),
            },
            Before::Snapshot(label) => {
                room.restore(label)?;
                Ok(room.workspace().forget_snapshot(label)?)
            }
            Before::Restoring(label) => room.restore(label),
            Before::Nothing | Before::Lost | Before::Commit(_) | Before::Undo(_) => Ok(()),
        }
    }

    /// After a start: what an earlier runner left half done is taken back, so that it can be done
    /// again, or admitted to be unknown.
    pub(super) fn recover(&self) -> Result<(), Refusal> {
        let unfinished = self.ledger().unfinished()?;
        for left in unfinished {
            match self.recover_one(&left) {
                Ok(()) => {}
                // A workspace that is gone has nothing to be taken back.
                Err(Refusal::NoWorkspace(_)) => self.ledger().forget(&left.effect)?,
                // What cannot be put right now is not guessed at later either.
                Err(_) => self.ledger().give_up(&left.effect)?,
            }
        }
        Ok(())
    }

    fn recover_one(&self, left: &Unfinished) -> Result<(), Refusal> {
        let room = self.room(&left.workspace)?;
        let _turn = room.turn();
        let before = stored(left.before.as_deref());
        match &before {
            Before::Lost => return Ok(self.ledger().give_up(&left.effect)?),
            Before::Commit(paths) => {
                if let Some(done) = committed_after_all(&room, paths)? {
                    return self.store_result(&left.effect, &done);
                }
            }
            Before::Undo(digest) => {
                let now = room.workspace().diff()?.digest;
                if now != *digest {
                    let done = crate::api::Committed {
                        digest: now,
                        paths: Vec::new(),
                        held_back: Vec::new(),
                    };
                    return self.store_result(&left.effect, &done);
                }
            }
            _ => self.take_back(&room, &before)?,
        }
        Ok(self.ledger().forget(&left.effect)?)
    }
}

/// A commit is there if none of its paths is a change any more.
fn committed_after_all(
    room: &Room,
    paths: &[String],
) -> Result<Option<crate::api::Committed>, Refusal> {
    let diff = room.workspace().diff()?;
    let left = diff
        .changes
        .iter()
        .any(|change| paths.contains(&change.path.to_string()));
    Ok((!left).then(|| crate::api::Committed {
        digest: diff.digest,
        paths: paths.to_vec(),
        held_back: Vec::new(),
    }))
}

fn stored(before: Option<&str>) -> Before {
    before
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Before::Lost)
}

/// The digest of a call. A number that JSON readers could round has none.
pub(super) fn digest(call: &ToolCall) -> Result<Digest, Refusal> {
    call.digest()
        .map_err(|error| Refusal::BadRequest(format!("the call has no digest: {error}")))
}

enum Prepared {
    /// It can be tried, and taken back like this.
    Ready(Before, Option<Plan>),
    /// It cannot be tried.
    Over(Outcome),
}

fn prepare(room: &Room, call: &ToolCall) -> Result<Prepared, Refusal> {
    match &call.action {
        Action::WriteFile(_) | Action::ApplyPatch(_) => {
            match room.ask(Ask::Plan(call.action.clone()))? {
                Ok(Answer::Plan(plan)) => {
                    let before = Before::Files(plan.images.clone());
                    Ok(Prepared::Ready(before, Some(plan)))
                }
                Ok(_) => Err(Refusal::ToolBroke("an answer of another kind".to_owned())),
                Err(failure) => Ok(Prepared::Over(failed(failure.code, failure.message))),
            }
        }
        Action::Undo(undo) => {
            let workspace = room.workspace();
            let snapshots = &workspace.record().snapshots;
            let mut own = snapshots.iter().filter(|one| !is_ours(&one.label)).rev();
            let found = match &undo.to {
                Some(label) => own.find(|one| one.label == *label),
                None => own.next(),
            };
            Ok(match found {
                Some(found) => Prepared::Ready(Before::Restoring(found.label.clone()), None),
                None => Prepared::Over(failed(
                    lula_protocol::Code::NothingThere,
                    "there is no such snapshot in the workspace: take one first",
                )),
            })
        }
        Action::Snapshot(snapshot) => Ok(match label_problem(&snapshot.label) {
            Some(problem) => Prepared::Over(failed(lula_protocol::Code::BadRequest, problem)),
            None => Prepared::Ready(Before::Nothing, None),
        }),
        Action::Exec(_) | Action::Git(_) => {
            let label = format!("{OURS}{}", call.effect);
            let before = match room.workspace().snapshot_within(&label, COPIED) {
                Ok(()) => Before::Snapshot(label),
                // Too large to be copied before every command, or never still: then a crash in the
                // middle of this one is told as what it is.
                Err(_) => Before::Lost,
            };
            Ok(Prepared::Ready(before, None))
        }
        Action::ReadFile(_) | Action::ListFiles(_) | Action::Search(_) | Action::Outline(_) => {
            Err(Refusal::Internal("reading is no effect".to_owned()))
        }
    }
}

/// Labels of snapshots that are taken for the ledger's own use.
const OURS: &str = "lula:before:";

pub(super) fn is_ours(label: &str) -> bool {
    label.starts_with(OURS)
}

/// Why a text cannot be a snapshot's name.
pub(super) fn label_problem(label: &str) -> Option<&'static str> {
    if label.is_empty() || label.len() > 100 || label.chars().any(char::is_control) {
        return Some("a label has 1 to 100 bytes and no control characters");
    }
    is_ours(label).then_some("a label does not begin with lula:before:")
}

fn perform(room: &Room, call: &ToolCall) -> Result<(Outcome, Option<Receipt>), Refusal> {
    match &call.action {
        Action::Exec(asked) => exec::run(asked, &*room.live()?),
        Action::Git(asked) => git::run(asked, &*room.live()?),
        Action::Snapshot(asked) => {
            room.workspace().snapshot(&asked.label)?;
            Ok((remembered("remembered as", &asked.label), None))
        }
        Action::Undo(asked) => {
            let label = match &asked.to {
                Some(label) => label.clone(),
                None => {
                    let workspace = room.workspace();
                    let snapshots = &workspace.record().snapshots;
                    let own = snapshots.iter().rev().find(|one| !is_ours(&one.label));
                    own.map(|one| one.label.clone()).unwrap_or_default()
                }
            };
            room.restore(&label)?;
            Ok((remembered("returned to", &label), None))
        }
        action => Ok((super::read(room, action)?, None)),
    }
}

fn remembered(what: &str, label: &str) -> Outcome {
    let details = Details::Snapshot {
        id: label.to_owned(),
    };
    Outcome::Done {
        output: Output::new(format!("{what} {label}\n"), Origin::Lula).with(details),
    }
}

/// For effects on the workspace as a whole.
pub(super) fn entry_of(
    workspace: &WorkspaceId,
    effect: &EffectId,
    run: &lula_protocol::RunId,
    epoch: u64,
    request: Digest,
) -> Entry {
    Entry {
        effect: effect.clone(),
        run: run.clone(),
        epoch,
        workspace: workspace.clone(),
        class: EffectClass::Cas,
        request,
    }
}
