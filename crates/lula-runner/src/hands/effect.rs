//! Effects: judged, written down, done, written down. And what becomes of one that a crash cut off.

use lula_audit::{Decided, Entry as Recorded};
use lula_gate::approvals;
use lula_gate::rules::{Act, Ruling};
use lula_protocol::{
    Action, Code, Details, Digest, EffectClass, EffectId, Origin, Outcome, Output, Principal,
    Receipt, RunId, ToolCall, ToolResult, WorkspaceId,
};
use lula_sandbox::policy::{Network, Policy};
use lula_workspace::checkout;
use serde::{Deserialize, Serialize};

use super::clock::now_ms;
use super::exec::{self, failed};
use super::gate::{self, Asked, Leave, Said, Shown};
use super::ledger::{self, Entry, Known, Unfinished};
use super::refusal::Refusal;
use super::room::Room;
use super::{Hands, git, result, scope};
use crate::halt::Halt;
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
    /// Branches of several repositories are all there, or are taken back.
    Branches(Vec<checkout::Branch>),
}

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
            before(room, call, plan.as_ref())
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
                forget_copy(room, &before);
                let outcome = Outcome::NeedsApproval { challenge };
                self.record_refusal(who, call, &entry, decided, &outcome)?;
                Ok(Gone::Over(result(call, outcome, None)))
            }
            Said::No(denials, decided) => {
                forget_copy(room, &before);
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
                self.take_back(room, &read_before(before.as_deref()))?;
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
        forget_copy(room, &begun.before);
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

    /// After a start: what an earlier runner left half done is taken back, so that it can be done
    /// again, or admitted to be unknown; and the audit gets what it missed.
    pub(super) fn recover(&self) -> Result<(), Refusal> {
        let waiting = self.ledger().unaudited()?;
        for (effect, text, runner) in waiting {
            if self.runner.is_another(&runner) {
                continue;
            }
            if let Ok(entry) = serde_json::from_str(&text) {
                self.gate.record(&entry)?;
            }
            self.ledger().audited(&effect)?;
        }
        let unfinished = self.ledger().unfinished()?;
        for left in unfinished {
            // Not half done: somebody else is at it.
            if self.runner.is_another(&left.runner) {
                continue;
            }
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
        let before = read_before(left.before.as_deref());
        // Before any workspace is looked for: the branches are there with it or without it.
        if let Before::Branches(branches) = &before {
            if checkout::all_there(self.git()?, branches) {
                let done = super::together::delivered(branches);
                return self.store_recovered(left, (super::together::TOOL, None), &done);
            }
            checkout::take_back(self.git()?, branches)?;
            return Ok(self.ledger().forget(&left.effect)?);
        }
        let room = self.room(&left.workspace)?;
        let _turn = room.turn()?;
        match &before {
            Before::Lost => return Ok(self.ledger().give_up(&left.effect)?),
            Before::Commit(paths) => {
                if let Some(done) = super::commit::after_all(&room, paths)? {
                    let about = ("commit_workspace", Some(done.digest));
                    return self.store_recovered(left, about, &done);
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
                    return self.store_recovered(left, ("commit_workspace", Some(now)), &done);
                }
            }
            _ => self.take_back(Some(&room), &before)?,
        }
        Ok(self.ledger().forget(&left.effect)?)
    }

    /// Makes the world what it was before an effect.
    fn take_back(&self, room: Option<&Room>, before: &Before) -> Result<(), Refusal> {
        let room =
            || room.ok_or_else(|| Refusal::Internal("an effect has no workspace".to_owned()));
        match before {
            Before::Files(images) => match room()?.ask(Ask::PutBack(images.clone()))? {
                Ok(Answer::PutBack) => Ok(()),
                Ok(_) => Err(Refusal::ToolBroke("an answer of another kind".to_owned())),
                Err(failure) => Err(Refusal::ToolBroke(failure.message)),
            },
            Before::Snapshot(label) => {
                room()?.restore(label)?;
                Ok(room()?.workspace().forget_snapshot(label)?)
            }
            Before::Restoring(label) => room()?.restore(label),
            Before::Branches(branches) => Ok(checkout::take_back(self.git()?, branches)?),
            Before::Nothing | Before::Lost | Before::Commit(_) | Before::Undo(_) => Ok(()),
        }
    }

    fn store_recovered(
        &self,
        left: &Unfinished,
        (tool, diff): (&str, Option<Digest>),
        done: &impl Serialize,
    ) -> Result<(), Refusal> {
        let nobody = || Refusal::Internal("the runner's own name is none".to_owned());
        let recorded = Recorded {
            time_ms: now_ms(),
            principal: "lula:recovery".parse().map_err(|_| nobody())?,
            run: None,
            effect: Some(left.effect.clone()),
            tool: tool.to_owned(),
            about: "found done after a crash".to_owned(),
            call: left.request,
            decision: Decided {
                verdict: lula_audit::Verdict::Allowed,
                rule: None,
                approval: None,
            },
            outcome: lula_audit::Ended::Done { status: None },
            receipt: None,
            diff,
        };
        self.store_result(&left.effect, done, &recorded)
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

fn read_before(before: Option<&str>) -> Before {
    before
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(Before::Lost)
}

/// A copy that served its purpose; one that stays takes space and nothing else.
fn forget_copy(room: &Room, before: &Before) {
    if let Before::Snapshot(label) = before {
        let _ = room.workspace().forget_snapshot(label);
    }
}

/// The digest of a call. A number that JSON readers could round has none.
fn digest(call: &ToolCall) -> Result<Digest, Refusal> {
    call.digest()
        .map_err(|error| Refusal::BadRequest(format!("the call has no digest: {error}")))
}

/// What a call would change, or why it cannot be tried.
fn plan(room: &Room, call: &ToolCall) -> Result<Result<Option<Plan>, Outcome>, Refusal> {
    match &call.action {
        Action::WriteFile(_) | Action::ApplyPatch(_) => {
            match room.ask(Ask::Plan(call.action.clone()))? {
                Ok(Answer::Plan(plan)) => Ok(Ok(Some(plan))),
                Ok(_) => Err(Refusal::ToolBroke("an answer of another kind".to_owned())),
                Err(failure) => Ok(Err(failed(failure.code, failure.message))),
            }
        }
        Action::Undo(undo) => Ok(match snapshot_named(room, undo.to.as_deref()) {
            Some(_) => Ok(None),
            None => Err(failed(
                Code::NothingThere,
                "there is no such snapshot in the workspace: take one first",
            )),
        }),
        Action::Snapshot(snapshot) => Ok(match label_problem(&snapshot.label) {
            Some(problem) => Err(failed(Code::BadRequest, problem)),
            None => Ok(None),
        }),
        _ => Ok(Ok(None)),
    }
}

fn before(room: &Room, call: &ToolCall, plan: Option<&Plan>) -> Before {
    match &call.action {
        Action::WriteFile(_) | Action::ApplyPatch(_) => {
            Before::Files(plan.map(|plan| plan.images.clone()).unwrap_or_default())
        }
        Action::Undo(undo) => {
            let label = snapshot_named(room, undo.to.as_deref());
            Before::Restoring(label.unwrap_or_default())
        }
        Action::Exec(_) | Action::Git(_) if call.action.mutates() => {
            let label = format!("{OURS}{}", call.effect);
            let copied = room.workspace().snapshot_within(&label, COPIED);
            match copied {
                Ok(()) => Before::Snapshot(label),
                // Too large to be copied before every command, or never still: then a crash in the
                // middle of this one is told as what it is.
                Err(_) => Before::Lost,
            }
        }
        _ => Before::Nothing,
    }
}

/// What people see before they agree.
fn shown(
    room: &Room,
    call: &ToolCall,
    plan: Option<&Plan>,
) -> Result<Result<Shown, Outcome>, Refusal> {
    if let Some(plan) = plan {
        if plan.truncated {
            let message = "the change is too long to be shown to people, who have to agree to it";
            return Ok(Err(failed(Code::OverLimit, message)));
        }
        let images = serde_json::to_vec(&plan.images)
            .map_err(|error| Refusal::Internal(error.to_string()))?;
        return Ok(Ok(Shown {
            rendered: format!("{}{}", labels(plan), plan.diff),
            base_tree: Digest::of_bytes(&images),
        }));
    }
    let rendered = serde_json::to_string_pretty(&call.action)
        .map_err(|error| Refusal::Internal(error.to_string()))?;
    Ok(Ok(Shown {
        rendered,
        base_tree: room.workspace().diff()?.digest,
    }))
}

/// What a reviewer should look at twice, one line for each file.
fn labels(plan: &Plan) -> String {
    let mut text = String::new();
    for image in &plan.images {
        text.push_str(&super::views::labels(&image.path));
    }
    text
}

/// The snapshot of that name, or the last one, that somebody asked for.
fn snapshot_named(room: &Room, label: Option<&str>) -> Option<String> {
    let workspace = room.workspace();
    let snapshots = &workspace.record().snapshots;
    let mut own = snapshots.iter().filter(|one| !is_ours(&one.label)).rev();
    let found = match label {
        Some(label) => own.find(|one| one.label == label),
        None => own.next(),
    };
    found.map(|one| one.label.clone())
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
