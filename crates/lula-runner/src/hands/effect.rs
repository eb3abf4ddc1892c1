//! Effects: judged, written down, done, written down.

use lula_audit::{Decided, Entry as Recorded};
use lula_gate::approvals;
use lula_gate::rules::{Act, Ruling};
use lula_protocol::{
    Action, Details, Digest, EffectClass, EffectId, Origin, Outcome, Output, Principal, Receipt,
    RunId, ToolCall, ToolResult, WorkspaceId,
};
use lula_sandbox::policy::{Network, Policy};
use serde::{Deserialize, Serialize};

use super::before::Before;
use super::clock::now_ms;
use super::exec;
use super::gate::{self, Asked, Leave, Said, Shown};
use super::ledger::{self, Entry, Known};
use super::proposal::{plan, shown};
use super::refusal::Refusal;
use super::room::Room;
use super::snapshots::snapshot_named;
use super::{Hands, git, result, scope};
use crate::halt::Halt;

/// An effect that was begun.
pub(super) struct Begun {
    pub(super) before: Before,
    decided: Decided,
    who: Principal,
    request: Digest,
    diff: Option<Digest>,
}

/// Whether a call goes on to its act.
pub(super) enum Gone {
    /// It does.
    On(Begun),
    /// This came of it already.
    Over(ToolResult),
}

/// How far an act can reach: a command that may use the network is not held by its workspace.
fn reach(action: &Action, policy: &Policy) -> EffectClass {
    match action {
        Action::Exec(_) if policy.network != Network::None => EffectClass::External,
        _ => EffectClass::Tree,
    }
}

/// Whether a call is written down. Reading is not: doing it again changes nothing.
const fn is_effect(action: &Action) -> bool {
    action.mutates() || matches!(action, Action::Snapshot(_))
}

impl Hands {
    /// Does what a call asks, once.
    pub fn execute(&self, who: &Principal, call: &ToolCall) -> Result<ToolResult, Refusal> {
        digest(call)?;
        let room = self.room(&call.workspace)?;
        if !is_effect(&call.action) {
            let act = scope::within(Act::of(&call.action), &room.invariants);
            let verdict = gate::judge(&room.rules, &act);
            if verdict.ruling == Ruling::Allow {
                let mut outcome = super::read(&room, &call.action)?;
                if let Outcome::Done { output } = &mut outcome {
                    gate::label(output);
                }
                return Ok(result(call, outcome, None));
            }
        }
        let _turn = room.turn()?;
        let begun = match self.begin_call(&room, who, call)? {
            Gone::Over(result) => return Ok(result),
            Gone::On(begun) => begun,
        };
        let under_way = self.halts.begin(&call.effect);
        match perform(&room, call, &under_way.halt) {
            Ok((outcome, receipt)) => self.finish_call(&room, call, outcome, receipt, &begun),
            Err(refusal) => {
                self.abandon_call(&room, call, &begun)?;
                Err(refusal)
            }
        }
    }

    /// Everything that comes before an act: what is known of it, whether it may happen, and its
    /// intent. The caller has the workspace's turn.
    pub(super) fn begin_call(
        &self,
        room: &Room,
        who: &Principal,
        call: &ToolCall,
    ) -> Result<Gone, Refusal> {
        let entry = Entry {
            effect: call.effect.clone(),
            run: call.run.clone(),
            epoch: call.epoch,
            workspace: call.workspace.clone(),
            class: EffectClass::Tree,
            runner: self.runner.name().to_owned(),
            request: digest(call)?,
        };
        let agreed = match self.known(room, &entry)? {
            Stored::Result(stored) => return Ok(Gone::Over(stored)),
            Stored::Nothing => None,
            Stored::Agreed(subject) => Some(subject),
        };
        let plan = match plan(room, call)? {
            Ok(plan) => plan,
            // It cannot even be tried; the same id gets the same answer.
            Err(outcome) => {
                let nobody = Decided {
                    verdict: lula_audit::Verdict::Allowed,
                    rule: None,
                    approval: None,
                };
                let begun = Begun {
                    before: Before::Nothing,
                    decided: nobody,
                    who: who.clone(),
                    request: entry.request,
                    diff: None,
                };
                self.begin(&entry, &Before::Nothing, None)?;
                let result = self.finish_call(room, call, outcome, None, &begun)?;
                return Ok(Gone::Over(result));
            }
        };
        let mut act = scope::within(Act::of(&call.action), &room.invariants);
        if let Some(plan) = &plan {
            act = act.writing(plan.images.iter().map(|image| image.path.clone()));
        }
        let verdict = gate::judge(&room.rules, &act);
        let shown = match verdict.ruling {
            Ruling::Ask => match shown(room, call, plan.as_ref())? {
                Ok(shown) => shown,
                Err(outcome) => return Ok(Gone::Over(result(call, outcome, None))),
            },
            Ruling::Allow | Ruling::Deny => Shown {
                rendered: String::new(),
                base_tree: Digest::of_bytes(b""),
            },
        };
        let asked = Asked {
            rules: gate::version(&room.rules)?,
            verdict: &verdict,
            tool: call.action.tool(),
            call: entry.request,
            shown: &shown,
            who,
            agreed,
            class: reach(&call.action, &self.setup.policy),
            beforehand: self.setup.beforehand,
        };
        // A copy before a command is taken only for one that may happen.
        let before = if verdict.ruling == Ruling::Deny {
            Before::Nothing
        } else {
            Before::of(room, call, plan.as_ref())
        };
        let diff = plan
            .as_ref()
            .map(|plan| Digest::of_bytes(plan.diff.as_bytes()));
        let said = self.pass(&entry, &before, &asked)?;
        match said {
            Said::Go(leave) => Ok(Gone::On(Begun {
                before,
                decided: leave.decided,
                who: who.clone(),
                request: entry.request,
                diff,
            })),
            Said::Ask(challenge, decided) => {
                before.forget_copy(room);
                let outcome = Outcome::NeedsApproval { challenge };
                self.record_refusal(who, call, &entry, decided, &outcome)?;
                Ok(Gone::Over(result(call, outcome, None)))
            }
            Said::No(denials, decided) => {
                before.forget_copy(room);
                let outcome = Outcome::Denied { denials };
                self.record_refusal(who, call, &entry, decided, &outcome)?;
                Ok(Gone::Over(result(call, outcome, None)))
            }
        }
    }

    /// Judges an act and writes down that it begins, in one transaction.
    pub(super) fn pass(
        &self,
        entry: &Entry,
        before: &Before,
        asked: &Asked<'_>,
    ) -> Result<Said, Refusal> {
        let mut ledger = self.ledger();
        let tx = ledger.transaction()?;
        let said = gate::decide(&tx, asked)?;
        if let Said::Go(Leave { subject, .. }) = &said {
            intend(&tx, entry, before, subject.as_ref())?;
        }
        tx.commit()?;
        Ok(said)
    }

    fn record_refusal(
        &self,
        who: &Principal,
        call: &ToolCall,
        entry: &Entry,
        decided: Decided,
        outcome: &Outcome,
    ) -> Result<(), Refusal> {
        self.gate.record(&Recorded {
            time_ms: now_ms(),
            principal: who.clone(),
            run: Some(call.run.clone()),
            effect: Some(call.effect.clone()),
            tool: call.action.tool().to_owned(),
            about: about(&call.action),
            call: entry.request,
            decision: decided,
            outcome: gate::ended(outcome),
            receipt: None,
            diff: None,
        })
    }

    /// Takes back what an act that broke has left; it may be tried again.
    pub(super) fn abandon_call(
        &self,
        room: &Room,
        call: &ToolCall,
        begun: &Begun,
    ) -> Result<(), Refusal> {
        if begun.before == Before::Lost {
            return Ok(self.ledger().give_up(&call.effect)?);
        }
        self.take_back(Some(room), &begun.before)?;
        Ok(self.ledger().forget(&call.effect)?)
    }

    /// What is known of an effect. What was cut off is taken back.
    pub(super) fn known<'r, T: for<'de> Deserialize<'de>>(
        &self,
        room: impl Into<Option<&'r Room>>,
        entry: &Entry,
    ) -> Result<Stored<T>, Refusal> {
        let room = room.into();
        let known = self.ledger().look(entry)?;
        match known {
            Known::Fresh => Ok(Stored::Nothing),
            Known::Again { subject } => Ok(Stored::Agreed(subject)),
            Known::Done(bytes) => serde_json::from_slice(&bytes)
                .map(Stored::Result)
                .map_err(|_| Refusal::Reused(entry.effect.clone())),
            Known::Reused => Err(Refusal::Reused(entry.effect.clone())),
            Known::Fenced { newest } => Err(Refusal::Fenced {
                given: entry.epoch,
                newest,
            }),
            Known::Unknown => Err(Refusal::Unknown(entry.effect.clone())),
            Known::Begun { before, runner } => {
                // A runner that lives may still be at it; it may also be about to end.
                if self.runner.waits_for(&runner) {
                    return self.known(room, entry);
                }
                if self.runner.is_another(&runner) {
                    return Err(Refusal::Busy(format!(
                        "another runner is at {}: send it again later",
                        entry.effect
                    )));
                }
                self.take_back(room, &Before::read(before.as_deref()))?;
                self.ledger().forget(&entry.effect)?;
                self.known(room, entry)
            }
        }
    }

    /// For effects on the workspace as a whole.
    pub(super) fn entry_of(
        &self,
        workspace: &WorkspaceId,
        effect: &EffectId,
        (run, epoch): (&RunId, u64),
        request: Digest,
    ) -> Entry {
        Entry {
            effect: effect.clone(),
            run: run.clone(),
            epoch,
            workspace: workspace.clone(),
            class: EffectClass::Cas,
            runner: self.runner.name().to_owned(),
            request,
        }
    }

    pub(super) fn begin(
        &self,
        entry: &Entry,
        before: &Before,
        subject: Option<&Digest>,
    ) -> Result<(), Refusal> {
        let mut ledger = self.ledger();
        let tx = ledger.transaction()?;
        intend(&tx, entry, before, subject)?;
        Ok(tx.commit()?)
    }

    /// Writes down what came of an act.
    pub(super) fn finish_call(
        &self,
        room: &Room,
        call: &ToolCall,
        mut outcome: Outcome,
        receipt: Option<Receipt>,
        begun: &Begun,
    ) -> Result<ToolResult, Refusal> {
        if let Outcome::Done { output } = &mut outcome {
            gate::label(output);
        }
        let recorded = Recorded {
            time_ms: now_ms(),
            principal: begun.who.clone(),
            run: Some(call.run.clone()),
            effect: Some(call.effect.clone()),
            tool: call.action.tool().to_owned(),
            about: about(&call.action),
            call: begun.request,
            decision: begun.decided.clone(),
            outcome: gate::ended(&outcome),
            receipt: gate::receipt_digest(receipt.as_ref()),
            diff: begun.diff,
        };
        let result = result(call, outcome, receipt);
        self.store_result(&call.effect, &result, &recorded)?;
        begun.before.forget_copy(room);
        Ok(result)
    }

    /// The result is on disk before the audit has its entry, and both before anybody is told.
    pub(super) fn store_result(
        &self,
        effect: &EffectId,
        result: &impl Serialize,
        recorded: &Recorded,
    ) -> Result<(), Refusal> {
        let written = |error| Refusal::Internal(format!("a result cannot be written: {error}"));
        let bytes = serde_json::to_vec(result).map_err(written)?;
        let entry = serde_json::to_string(recorded).map_err(written)?;
        self.ledger().finish(effect, &bytes, &entry)?;
        self.gate.record(recorded)?;
        Ok(self.ledger().audited(effect)?)
    }
}

/// What the ledger has of an effect.
pub(super) enum Stored<T> {
    Nothing,
    Result(T),
    /// People agreed to what has this digest.
    Agreed(Digest),
}

fn intend(
    tx: &rusqlite::Transaction<'_>,
    entry: &Entry,
    before: &Before,
    subject: Option<&Digest>,
) -> Result<(), Refusal> {
    let text = serde_json::to_string(before)
        .map_err(|error| Refusal::Internal(format!("an intent cannot be written: {error}")))?;
    // Looked at again inside: the same id may have been begun on another workspace meanwhile.
    match ledger::look(tx, entry)? {
        Known::Fresh | Known::Again { .. } => {
            Ok(ledger::begin(tx, entry, Some(&text), subject, now_ms())?)
        }
        Known::Fenced { newest } => Err(Refusal::Fenced {
            given: entry.epoch,
            newest,
        }),
        _ => Err(Refusal::Reused(entry.effect.clone())),
    }
}

/// The digest of a call. A number that JSON readers could round has none.
fn digest(call: &ToolCall) -> Result<Digest, Refusal> {
    call.digest()
        .map_err(|error| Refusal::BadRequest(format!("the call has no digest: {error}")))
}

/// What an act is about, for the record.
fn about(action: &Action) -> String {
    match action {
        Action::Exec(exec) => lula_gate::redact::redact_words(&exec.argv).join(" "),
        Action::WriteFile(write) => write.path.clone(),
        Action::ApplyPatch(_) => Act::of(action).writes().join(" "),
        Action::Snapshot(snapshot) => snapshot.label.clone(),
        Action::Undo(undo) => undo.to.clone().unwrap_or_default(),
        _ => String::new(),
    }
}

fn perform(
    room: &Room,
    call: &ToolCall,
    halt: &Halt,
) -> Result<(Outcome, Option<Receipt>), Refusal> {
    match &call.action {
        Action::Exec(asked) => exec::run(asked, &*room.live()?, halt),
        Action::Git(asked) => git::run(asked, &*room.live()?),
        Action::Snapshot(asked) => {
            room.workspace().snapshot(&asked.label)?;
            Ok((remembered("remembered as", &asked.label), None))
        }
        Action::Undo(asked) => {
            let label = snapshot_named(room, asked.to.as_deref()).unwrap_or_default();
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

impl From<approvals::ApprovalsError> for Refusal {
    fn from(error: approvals::ApprovalsError) -> Self {
        Self::Approval(error)
    }
}
