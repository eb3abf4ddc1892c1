//! The one way to an effect: is it known, may it happen, its intent, the act, its result, the record.
//!
//! What is done is an [`Effect`]; everything that keeps it to once is here, and nothing else writes
//! intents and results into the ledger.
//!
//! The order: what the ledger knows of the id, what the effect would change (`proposal.rs`), what
//! the rules say and people approved, how to take it back (`before.rs`), its intent (in one
//! transaction with the spent approval), the act, its result, its audit entry, the answer. One id
//! is one act, and an older epoch is refused. What a crash interrupted (`recovery.rs`) is taken
//! back (files from their images, commands from a copy of the layer, commits by the journal of
//! `lula-workspace`) or reported as unknown. Layers above 64 MiB are not copied before every
//! command: a crash there leaves an effect whose outcome is unknown, and the caller is told so. A
//! stopped effect never runs, however late its request arrives (`halt.rs`); if more were stopped
//! than can be remembered, nothing new begins.

#[cfg(test)]
mod kills;
mod ledger;
mod steps;
mod terms;
#[cfg(test)]
mod tests;

use lula_audit::{AuditDecision, AuditEnding, AuditEntry as Recorded, AuditVerdict};
use lula_protocol::{Digest, EffectClass, EffectId, Principal, RunId, ToolOutcome, WorkspaceId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::RunnerService;
use super::before::EffectRollback;
use super::clock::now_ms;
use super::gate::{ActPermission, GateAnswer, JudgedAct, decide};
use super::refusal::RequestRefusal;
use super::room::RunnerWorkspace;
use ledger::KnownEffect;
pub(super) use ledger::{EffectLedger, EffectLedgerEntry, EffectLedgerError, UnfinishedEffect};
use steps::{EffectStep, reached};
pub use terms::GatedAct;
pub(super) use terms::{
    EffectCallerRequest, EffectFailure, EffectPermission, EffectPreparation, EffectSubject,
    PerformedEffect, PreparedEffect,
};

/// Something that is done once, however often a caller asks for it.
///
/// The caller has the turn of the workspace or integration branch that it is about, from before
/// [`RunnerService::run_effect`] until after it.
pub(super) trait RunnerEffect {
    /// What the caller is told of it, now and whenever it asks again.
    type Output: Serialize + DeserializeOwned;
    /// What was found out before it, for the act.
    type Plan;

    /// What the ledger knows it by.
    fn request(&self) -> &EffectCallerRequest;

    /// The workspace that a crash has to be taken back in.
    fn room(&self) -> Option<&RunnerWorkspace>;

    /// Finds out what it would do, for the rules to judge and for a crash to be taken back. Changes
    /// nothing that lasts, but for a copy that [`EffectRollback`] names.
    fn prepare(
        &self,
        service: &RunnerService,
    ) -> Result<EffectPreparation<Self::Plan, Self::Output>, RequestRefusal>;

    /// Does it, and may say better what it was about.
    fn perform(
        &mut self,
        service: &RunnerService,
        plan: Self::Plan,
        subject: &mut EffectSubject,
    ) -> Result<PerformedEffect<Self::Output>, EffectFailure>;
}

/// An effect whose intent is in the ledger.
struct IntendedEffect<E: RunnerEffect> {
    before: EffectRollback,
    decided: AuditDecision,
    subject: EffectSubject,
    remaining: RemainingWork<E>,
}

/// What remains to be done of an effect.
enum RemainingWork<E: RunnerEffect> {
    /// All of it: it is to be performed.
    Perform(E::Plan),
    /// Nothing but to write down what came of it.
    Tell(PerformedEffect<E::Output>),
}

/// What becomes of an intent that has no result of its own.
pub(super) enum UnfinishedEffectFate {
    /// Nothing is left of the act: it may be tried again.
    Undone,
    /// Whether it happened cannot be told, and it is not tried again.
    Unknown,
    /// It turned out to be done.
    Done {
        result: Vec<u8>,
        recorded: Box<Recorded>,
    },
}

impl RunnerService {
    /// Does an effect, once.
    pub(super) fn run_effect<E: RunnerEffect>(
        &self,
        effect: &mut E,
    ) -> Result<GatedAct<E::Output>, RequestRefusal> {
        let _span = {
            let request = effect.request();
            let EffectLedgerEntry { effect, run, .. } = &request.entry;
            tracing::error_span!("effect", id = %effect, %run, tool = request.tool).entered()
        };
        let done = self.run_once(effect);
        match &done {
            Ok(GatedAct::Done(_)) => tracing::debug!("effect done"),
            Ok(GatedAct::Held(_)) => tracing::info!("effect held or denied by a rule"),
            Err(refusal) => tracing::info!(code = %refusal.problem().code, "effect refused"),
        }
        done
    }

    fn run_once<E: RunnerEffect>(
        &self,
        effect: &mut E,
    ) -> Result<GatedAct<E::Output>, RequestRefusal> {
        let agreed = match self.known(effect.room(), &effect.request().entry)? {
            KnownEffect::Done(bytes) => {
                let reused = |_| RequestRefusal::Reused(effect.request().entry.effect.clone());
                let stored = serde_json::from_slice(&bytes).map_err(reused)?;
                tracing::debug!("effect known: its stored result is returned");
                return Ok(GatedAct::Done(stored));
            }
            KnownEffect::Again { subject } => Some(subject),
            _ => None,
        };
        reached(EffectStep::Known);
        let (permission, before, subject, remaining) = match effect.prepare(self)? {
            EffectPreparation::Ready(PreparedEffect {
                permission,
                before,
                subject,
                plan,
            }) => (permission, before, subject, RemainingWork::Perform(plan)),
            EffectPreparation::Settled(performed, subject) => {
                let (permission, before) = (EffectPermission::Free, EffectRollback::Nothing);
                (permission, before, subject, RemainingWork::Tell(performed))
            }
            EffectPreparation::Unjudged(outcome) => {
                return Ok(GatedAct::held(&effect.request().entry.effect, outcome));
            }
        };
        reached(EffectStep::Prepared);
        let said = self.begin(effect.request(), permission, &before, agreed)?;
        let (outcome, decided) = match said {
            GateAnswer::Go(ActPermission { decided, .. }) => {
                reached(EffectStep::Intended);
                tracing::debug!(class = ?effect.request().entry.class, "effect begins");
                let begun = IntendedEffect {
                    before,
                    decided,
                    subject,
                    remaining,
                };
                return self.act(effect, begun).map(GatedAct::Done);
            }
            GateAnswer::Ask(challenge, decided) => {
                (ToolOutcome::NeedsApproval { challenge }, decided)
            }
            GateAnswer::No(denials, decided) => (ToolOutcome::Denied { denials }, decided),
        };
        if let Some(room) = effect.room() {
            before.forget_copy(room);
        }
        reached(EffectStep::Refused);
        // A no is on record before it is said.
        let request = effect.request();
        let recorded = recorded(request, decided, subject, AuditEnding::NotDone, None);
        self.gate.record(&recorded)?;
        reached(EffectStep::RefusalRecorded);
        Ok(GatedAct::held(&request.entry.effect, outcome))
    }

    /// Does what has its intent in the ledger, and writes down what came of it.
    fn act<E: RunnerEffect>(
        &self,
        effect: &mut E,
        mut begun: IntendedEffect<E>,
    ) -> Result<E::Output, RequestRefusal> {
        let performed = match begun.remaining {
            RemainingWork::Tell(settled) => Ok(settled),
            RemainingWork::Perform(plan) => effect.perform(self, plan, &mut begun.subject),
        };
        let performed = match performed {
            Ok(performed) => performed,
            Err(EffectFailure::Untold(refusal)) => return Err(refusal),
            Err(EffectFailure::Undone(refusal)) => {
                self.abandon(effect, &begun.before)?;
                return Err(refusal);
            }
        };
        reached(EffectStep::Performed);
        let PerformedEffect {
            output,
            outcome,
            receipt,
        } = performed;
        let request = effect.request();
        let recorded = recorded(request, begun.decided, begun.subject, outcome, receipt);
        self.store_result(&request.entry.effect, &in_bytes(&output)?, &recorded)?;
        if let Some(room) = effect.room() {
            begun.before.forget_copy(room);
        }
        reached(EffectStep::Closed);
        Ok(output)
    }

    /// Takes back what an act that broke has left; it may be tried again.
    fn abandon<E: RunnerEffect>(
        &self,
        effect: &E,
        before: &EffectRollback,
    ) -> Result<(), RequestRefusal> {
        let fate = match before {
            EffectRollback::Lost => UnfinishedEffectFate::Unknown,
            // Those that were made are gone already; others that name the same commits were there
            // before, and stay.
            EffectRollback::Branches(_) => UnfinishedEffectFate::Undone,
            before => {
                self.take_back(effect.room(), before)?;
                UnfinishedEffectFate::Undone
            }
        };
        reached(EffectStep::TakenBack);
        self.close_intent(&effect.request().entry.effect, &fate)
    }

    /// Judges an act and writes down that it begins, in one transaction.
    fn begin(
        &self,
        request: &EffectCallerRequest,
        permission: EffectPermission,
        before: &EffectRollback,
        agreed: Option<Digest>,
    ) -> Result<GateAnswer, RequestRefusal> {
        let mut ledger = self.ledger();
        let tx = ledger.transaction()?;
        let said = match permission {
            EffectPermission::Free => GateAnswer::Go(ActPermission {
                decided: by_rule(AuditVerdict::Allowed, None),
                subject: None,
            }),
            EffectPermission::Denied { rule, denials } => {
                GateAnswer::No(denials, by_rule(AuditVerdict::Denied, Some(rule)))
            }
            EffectPermission::Judged {
                rules,
                verdict,
                shown,
                class,
            } => {
                let question = JudgedAct {
                    rules,
                    verdict: &verdict,
                    tool: request.tool,
                    call: request.entry.request,
                    shown: &shown,
                    who: &request.who,
                    agreed,
                    class,
                    beforehand: self.setup.beforehand,
                };
                decide(&tx, &question)?
            }
        };
        if let GateAnswer::Go(ActPermission { subject, .. }) = &said {
            intend(&tx, &request.entry, before, subject.as_ref())?;
        }
        reached(EffectStep::Judged);
        tx.commit()?;
        Ok(said)
    }

    /// What is known of an effect: nothing, what people agreed to, or what came of it. What a runner
    /// that ended has left of it is settled first, just as the start of a runner settles it.
    fn known(
        &self,
        room: Option<&RunnerWorkspace>,
        entry: &EffectLedgerEntry,
    ) -> Result<KnownEffect, RequestRefusal> {
        loop {
            let known = self.ledger().look(entry)?;
            match known {
                KnownEffect::Fresh | KnownEffect::Again { .. } => return Ok(known),
                KnownEffect::Done(_) => {
                    if self.audit_of_done(&entry.effect)? {
                        return Ok(known);
                    }
                }
                KnownEffect::Reused => return Err(RequestRefusal::Reused(entry.effect.clone())),
                KnownEffect::Fenced { newest } => {
                    return Err(RequestRefusal::Fenced {
                        given: entry.epoch,
                        newest,
                    });
                }
                KnownEffect::Unknown => return Err(RequestRefusal::Unknown(entry.effect.clone())),
                KnownEffect::Begun { before, runner } => {
                    // A runner that lives may still be at it; it may also be about to end.
                    if self.runner.waits_for(&runner) {
                        continue;
                    }
                    if self.runner.is_another(&runner) {
                        return Err(RequestRefusal::Busy(format!(
                            "another runner is at {}: send it again later",
                            entry.effect
                        )));
                    }
                    // Its runner ended. What became of it is not for a caller's impatience to say.
                    let left = UnfinishedEffect {
                        effect: entry.effect.clone(),
                        runner,
                        workspace: entry.workspace.clone(),
                        before,
                        request: entry.request,
                    };
                    self.recover_known(&left, room)?;
                }
            }
        }
    }

    /// Sees to it that the audit has the entry of an effect that is done, before its result is told:
    /// the runner that did it may have ended in between. Whether it has; if not, look again.
    fn audit_of_done(&self, effect: &EffectId) -> Result<bool, RequestRefusal> {
        let Some((entry, runner)) = self.ledger().unaudited_entry(effect)? else {
            return Ok(true);
        };
        if self.runner.waits_for(&runner) {
            return Ok(false);
        }
        if self.runner.is_another(&runner) {
            return Err(RequestRefusal::Busy(format!(
                "another runner has not yet recorded {effect}: send it again later"
            )));
        }
        if self
            .ledger()
            .claim_entry(effect, &runner, self.runner.name())?
        {
            self.catch_up(effect, &entry)?;
        }
        Ok(true)
    }

    /// For effects on the workspace as a whole: who asks through which tool, for whose effect.
    pub(super) fn caller_request(
        &self,
        (who, tool): (&Principal, &'static str),
        workspace: &WorkspaceId,
        (effect, run, epoch): (&EffectId, &RunId, u64),
        request: Digest,
    ) -> EffectCallerRequest {
        EffectCallerRequest {
            who: who.clone(),
            tool,
            entry: EffectLedgerEntry {
                effect: effect.clone(),
                run: run.clone(),
                epoch,
                workspace: workspace.clone(),
                class: EffectClass::Cas,
                runner: self.runner.name().to_owned(),
                request,
            },
        }
    }

    /// The result is on disk before the audit has its entry, and both before the caller is told.
    fn store_result(
        &self,
        effect: &EffectId,
        result: &[u8],
        recorded: &Recorded,
    ) -> Result<(), RequestRefusal> {
        let written =
            |error| RequestRefusal::Internal(format!("a result cannot be written: {error}"));
        let entry = serde_json::to_string(recorded).map_err(written)?;
        self.ledger().finish(effect, result, &entry)?;
        reached(EffectStep::Stored);
        self.gate.record(recorded)?;
        reached(EffectStep::Audited);
        Ok(self.ledger().audited(effect)?)
    }

    /// Makes an intent that a runner which ended has left this runner's own: others that live wait for
    /// it then. Tells whether it still was that runner's.
    pub(super) fn claim_intent(
        &self,
        effect: &EffectId,
        from: &str,
    ) -> Result<bool, RequestRefusal> {
        Ok(self.ledger().claim(effect, from, self.runner.name())?)
    }

    /// Writes down what became of an intent that a failure or a crash left.
    pub(super) fn close_intent(
        &self,
        effect: &EffectId,
        fate: &UnfinishedEffectFate,
    ) -> Result<(), RequestRefusal> {
        match fate {
            UnfinishedEffectFate::Undone => Ok(self.ledger().forget(effect)?),
            UnfinishedEffectFate::Unknown => Ok(self.ledger().give_up(effect)?),
            UnfinishedEffectFate::Done { result, recorded } => {
                self.store_result(effect, result, recorded)
            }
        }
    }

    /// Gives the audit an entry that a crash kept from it.
    pub(super) fn catch_up(&self, effect: &EffectId, entry: &str) -> Result<(), RequestRefusal> {
        if let Ok(recorded) = serde_json::from_str(entry) {
            self.gate.record(&recorded)?;
        }
        Ok(self.ledger().audited(effect)?)
    }
}

/// A result as the ledger keeps it.
pub(super) fn in_bytes(result: &impl Serialize) -> Result<Vec<u8>, RequestRefusal> {
    serde_json::to_vec(result)
        .map_err(|error| RequestRefusal::Internal(format!("a result cannot be written: {error}")))
}

/// A decision that no person has a part in.
fn by_rule(verdict: AuditVerdict, rule: Option<&str>) -> AuditDecision {
    AuditDecision {
        verdict,
        rule: rule.map(str::to_owned),
        approval: None,
    }
}

fn recorded(
    request: &EffectCallerRequest,
    decision: AuditDecision,
    subject: EffectSubject,
    outcome: AuditEnding,
    receipt: Option<Digest>,
) -> Recorded {
    Recorded {
        time_ms: now_ms(),
        principal: request.who.clone(),
        run: Some(request.entry.run.clone()),
        effect: Some(request.entry.effect.clone()),
        tool: request.tool.to_owned(),
        about: subject.about,
        call: request.entry.request,
        decision,
        outcome,
        receipt,
        diff: subject.diff,
    }
}

fn intend(
    tx: &rusqlite::Transaction<'_>,
    entry: &EffectLedgerEntry,
    before: &EffectRollback,
    subject: Option<&Digest>,
) -> Result<(), RequestRefusal> {
    let text = serde_json::to_string(before).map_err(|error| {
        RequestRefusal::Internal(format!("an intent cannot be written: {error}"))
    })?;
    // Looked at again inside: the same id may have been begun on another workspace meanwhile.
    match ledger::look(tx, entry)? {
        KnownEffect::Fresh | KnownEffect::Again { .. } => {
            Ok(ledger::begin(tx, entry, Some(&text), subject, now_ms())?)
        }
        KnownEffect::Fenced { newest } => Err(RequestRefusal::Fenced {
            given: entry.epoch,
            newest,
        }),
        _ => Err(RequestRefusal::Reused(entry.effect.clone())),
    }
}
