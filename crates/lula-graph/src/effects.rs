//! Having something done: announced, ordered, journaled; and reconciled when its end is not known.

use lula_protocol::digest::DigestDomain;
use lula_protocol::event::{EffectResult, ResultSource};
use lula_protocol::interrupt::unknown_effect;
use lula_protocol::{
    ApprovalId, BudgetAmounts, Digest, EffectClass, EffectId, EventBody, InterruptAnswer,
    RunInterrupt,
};
use lula_store::LeaseAfterAppend;
use serde_json::{Value, json};

use crate::ctx::{NodeContext, entry_digest, kind_digest};
use crate::ledger::BudgetExcess;
use crate::options::BudgetPolicy;
use crate::progress::{JournalEffect, JournalEntry};
use crate::replay::ReplayDrift;
use crate::stop::{EffectError, VisitStop};
use crate::traced;
use crate::world::{
    CrashEvidence, EffectOrder, EffectOutput, EffectRecovery, EffectRequest, EffectTrouble,
    recovery,
};

/// So often an effect is tried before a person is asked about it.
const MAX_ATTEMPTS: u32 = 100;

impl NodeContext<'_> {
    pub(crate) async fn effect_value(&mut self, effect: EffectRequest) -> Result<Value, VisitStop> {
        let ordinal = self.take_ordinal();
        let shape = |message: String| EffectError::Shape {
            name: effect.name.clone(),
            message,
        };
        let value = effect.request.clone().map_err(shape)?;
        let request = Digest::of(DigestDomain::Effect, &(effect.class, &effect.name, &value))
            .map_err(|error| shape(error.to_string()))?;
        if self.is_void(ordinal, &effect) {
            // Takes no place in the journal: it follows from the state alone.
            self.ordinal = ordinal;
            return Err(EffectError::ApprovalVoid { name: effect.name }.into());
        }
        match self.desk.progress.journal.get(&ordinal).cloned() {
            None => self.fresh(ordinal, effect, value, request).await,
            Some(JournalEntry::Read {
                name,
                request: recorded,
                result,
            }) if recorded == request => {
                self.rerun(ordinal, &effect, value, &result).await;
                self.reply(name, result).await
            }
            Some(JournalEntry::Refused {
                name,
                request: recorded,
                over: (dimension, asked, free),
            }) if recorded == request => Err(EffectError::OverBudget {
                name,
                dimension,
                asked,
                free,
            }
            .into()),
            Some(JournalEntry::Effect(entry))
                if self.is_same(&entry, &effect, request, ordinal) =>
            {
                match entry.result.clone() {
                    Some(result) => {
                        self.rerun(ordinal, &effect, value, &result).await;
                        self.reply(entry.name, result).await
                    }
                    None if self.desk.replay => Err(VisitStop::EndOfJournal),
                    None => self.recover(*entry, value).await,
                }
            }
            Some(other) => {
                let recorded = entry_digest(&other);
                Err(self.stray(ordinal, recorded, request).await)
            }
        }
    }

    /// Goes on where these amounts could be held back now. Otherwise the run waits for more budget
    /// here, before anything is begun that would need them, as it would at the effect that does.
    pub async fn afford(&mut self, what: &str, amounts: &BudgetAmounts) -> Result<(), VisitStop> {
        let ordinal = self.ordinal;
        let request = kind_digest("afford");
        match self.desk.progress.journal.get(&ordinal) {
            Some(JournalEntry::Refused {
                name,
                request: recorded,
                over: (dimension, asked, free),
            }) if *recorded == request => {
                let over = EffectError::OverBudget {
                    name: name.clone(),
                    dimension: *dimension,
                    asked: *asked,
                    free: *free,
                };
                self.take_ordinal();
                Err(over.into())
            }
            // The visit went on from here: it could be afforded.
            Some(_) => Ok(()),
            // Takes no place in the journal where it fits: that follows from the state alone.
            None => match self.desk.progress.ledger.allows(amounts) {
                Ok(()) => Ok(()),
                Err(over) => {
                    self.enter()?;
                    self.take_ordinal();
                    let what = what.to_owned();
                    Err(self.over_budget(ordinal, what, request, over).await)
                }
            },
        }
    }

    /// Whether an effect names an approval that is not for it.
    fn is_void(&self, ordinal: u32, effect: &EffectRequest) -> bool {
        let Some((approval, digest)) = &effect.approval else {
            return false;
        };
        let used_here = matches!(
            self.desk.progress.journal.get(&ordinal),
            Some(JournalEntry::Effect(entry)) if entry.approval.as_ref() == Some(approval)
        );
        !self
            .desk
            .progress
            .approvals
            .get(approval)
            .is_some_and(|asked| {
                asked.digest == *digest
                    && asked.answer == Some(InterruptAnswer::Approved)
                    && (used_here || !asked.used)
            })
    }

    fn is_same(
        &self,
        entry: &JournalEffect,
        effect: &EffectRequest,
        request: Digest,
        ordinal: u32,
    ) -> bool {
        let (ms, random) = self.name_of("effect", ordinal);
        // A fork carries effects of its parent, which have the parent's names.
        let forked = self.desk.progress.parent.is_some();
        entry.request == request
            && entry.reserve == effect.reserve
            && entry.approval.as_ref() == effect.approval.as_ref().map(|(id, _)| id)
            && (forked || entry.effect == EffectId::from_parts(ms, random))
    }

    /// In a replay with a world, does a look or an edit again and compares.
    async fn rerun(
        &mut self,
        ordinal: u32,
        effect: &EffectRequest,
        value: Value,
        result: &EffectResult,
    ) {
        let again = matches!(effect.class, EffectClass::Read | EffectClass::Tree);
        let (Some(world), true) = (self.desk.rerun.clone(), again) else {
            return;
        };
        let (ms, random) = self.name_of("effect", ordinal);
        let order = EffectOrder {
            run: self.desk.progress.run.clone(),
            effect: EffectId::from_parts(ms, random),
            epoch: self.desk.scribe.lease.epoch,
            attempt: 0,
            class: effect.class,
            name: effect.name.clone(),
            request: value,
        };
        let now = match traced::perform(&*world, &order).await {
            Ok(done) => self.desk.pack(&done.value).map(EffectResult::Done),
            Err(trouble) => Ok(EffectResult::Failed(trouble.to_string())),
        };
        let now = now.unwrap_or_else(|error| EffectResult::Failed(error.to_string()));
        if now != *result {
            let name = effect.name.clone();
            self.desk.drift.push(ReplayDrift { name, ordinal });
        }
    }

    async fn reply(&self, name: String, result: EffectResult) -> Result<Value, VisitStop> {
        match result {
            EffectResult::Done(payload) => self.desk.fetch(&payload).await,
            EffectResult::Failed(message) => Err(EffectError::Failed { name, message }.into()),
        }
    }

    async fn fresh(
        &mut self,
        ordinal: u32,
        effect: EffectRequest,
        value: Value,
        request: Digest,
    ) -> Result<Value, VisitStop> {
        self.enter()?;
        if matches!(effect.class, EffectClass::Read | EffectClass::Tree) {
            // These look at the world before anything is committed for them.
            self.desk.settle_up().await?;
        }
        let (ms, random) = self.name_of("effect", ordinal);
        let order = EffectOrder {
            run: self.desk.progress.run.clone(),
            effect: EffectId::from_parts(ms, random),
            epoch: self.desk.scribe.lease.epoch,
            attempt: 0,
            class: effect.class,
            name: effect.name.clone(),
            request: value,
        };
        if effect.class == EffectClass::Read {
            return self.look(ordinal, order, request).await;
        }
        if let Err(over) = self.desk.progress.ledger.allows(&effect.reserve) {
            return Err(self.over_budget(ordinal, effect.name, request, over).await);
        }
        let pre_tree = match effect.class {
            EffectClass::Tree => self.desk.world.tree(&order).await.map_err(unreachable)?,
            _ => None,
        };
        self.desk.note(EventBody::EffectIntended {
            ordinal,
            effect: order.effect.clone(),
            class: effect.class,
            name: effect.name,
            request,
            pre_tree,
            reserve: effect.reserve,
            approval: effect.approval.map(|(approval, _)| approval),
        })?;
        self.desk.commit(LeaseAfterAppend::Keep, None).await?;
        self.dispatch(order).await
    }

    /// Looks at the world. The result is committed with whatever comes next: losing it costs
    /// another look.
    async fn look(
        &mut self,
        ordinal: u32,
        order: EffectOrder,
        request: Digest,
    ) -> Result<Value, VisitStop> {
        let begun_ms = self.desk.scribe.clock.now_ms();
        let performed = self.perform(&order).await?;
        let took_ms = self.desk.scribe.clock.now_ms().saturating_sub(begun_ms);
        let (result, value) = match performed {
            Ok(performed) => {
                let payload = self
                    .desk
                    .pack(&performed.value)
                    .map_err(|e| shape(&order, &e))?;
                (EffectResult::Done(payload), Ok(performed.value))
            }
            Err(EffectTrouble::Failed { message, .. }) => {
                let name = order.name.clone();
                let failed = EffectError::Failed {
                    name,
                    message: message.clone(),
                };
                (EffectResult::Failed(message), Err(failed.into()))
            }
            Err(EffectTrouble::Held { approval, reason }) => {
                return Err(self.held(ordinal, &order, approval, reason).await);
            }
            Err(trouble) => return Err(unreachable(trouble)),
        };
        self.desk.note(EventBody::ReadDone {
            ordinal,
            name: order.name,
            request,
            result,
            took_ms,
        })?;
        value
    }

    async fn over_budget(
        &mut self,
        ordinal: u32,
        name: String,
        request: Digest,
        over: BudgetExcess,
    ) -> VisitStop {
        let BudgetExcess {
            dimension,
            asked,
            free,
        } = over;
        let refuse = self.desk.scribe.options.on_budget == BudgetPolicy::Refuse
            || self.desk.progress.refused.contains(&ordinal);
        if !refuse {
            let interrupt = RunInterrupt::Budget {
                dimension,
                asked,
                free,
            };
            return self.desk.suspend(ordinal, interrupt).await;
        }
        let noted = self.desk.note(EventBody::EffectRefused {
            ordinal,
            name: name.clone(),
            request,
            dimension,
            asked,
            free,
        });
        match noted {
            Err(stop) => stop,
            Ok(()) => EffectError::OverBudget {
                name,
                dimension,
                asked,
                free,
            }
            .into(),
        }
    }

    /// Performs an order unless the run is cancelled meanwhile.
    async fn perform(
        &self,
        order: &EffectOrder,
    ) -> Result<Result<EffectOutput, EffectTrouble>, VisitStop> {
        tokio::select! {
            biased;
            () = self.desk.scribe.live.cancel.cancelled() => {
                self.desk.world.abort(order).await;
                Err(VisitStop::Cancelled)
            }
            done = traced::perform(&*self.desk.world, order) => Ok(done),
        }
    }

    /// Orders an announced effect and journals what came of it.
    async fn dispatch(&mut self, order: EffectOrder) -> Result<Value, VisitStop> {
        let mut order = order;
        loop {
            match self.perform(&order).await? {
                Ok(performed) => {
                    return self.settle(&order, ResultSource::Executed, performed).await;
                }
                Err(EffectTrouble::Failed { message, spent }) => {
                    return self.fail(&order, message, spent).await;
                }
                Err(EffectTrouble::Unreachable(message)) => {
                    return Err(VisitStop::Trouble(message));
                }
                Err(EffectTrouble::Held { approval, reason }) => {
                    let ordinal = self.ordinal.saturating_sub(1);
                    return Err(self.held(ordinal, &order, approval, reason).await);
                }
                Err(EffectTrouble::Lost(_)) => {
                    match self.reconcile(&order.effect, &order.request).await? {
                        ReconciliationResult::Answer(value) => return Ok(value),
                        ReconciliationResult::Again(again) => order = again,
                    }
                }
            }
        }
    }

    /// Goes on with an effect that was announced and has no result.
    async fn recover(&mut self, entry: JournalEffect, value: Value) -> Result<Value, VisitStop> {
        self.enter()?;
        match self.reconcile(&entry.effect, &value).await? {
            ReconciliationResult::Answer(value) => Ok(value),
            ReconciliationResult::Again(order) => self.dispatch(order).await,
        }
    }

    async fn reconcile(
        &mut self,
        effect: &EffectId,
        value: &Value,
    ) -> Result<ReconciliationResult, VisitStop> {
        self.desk.settle_up().await?;
        let Some(entry) = self.desk.progress.effect(effect).cloned() else {
            return Err(VisitStop::Halt(format!("{effect} is not in the journal")));
        };
        let order = EffectOrder {
            run: self.desk.progress.run.clone(),
            effect: effect.clone(),
            epoch: self.desk.scribe.lease.epoch,
            attempt: entry.attempt,
            class: entry.class,
            name: entry.name.clone(),
            request: value.clone(),
        };
        match entry.verdict.as_deref() {
            Some(unknown_effect::MARK_DONE) => {
                let said = EffectOutput::free(json!({"operator": unknown_effect::MARK_DONE}));
                let value = self.settle(&order, ResultSource::Operator, said).await?;
                return Ok(ReconciliationResult::Answer(value));
            }
            Some(unknown_effect::RETRY) => return self.again(order, &entry).await,
            Some(_) => {
                return Err(VisitStop::Halt(format!(
                    "an operator gave up on {}",
                    entry.name
                )));
            }
            None => {}
        }
        match recovery(entry.class, entry.attempt) {
            EffectRecovery::Redo => self.again(order, &entry).await,
            EffectRecovery::ChargeAndRedo => {
                let mut after = self.desk.progress.ledger.clone();
                after.lose(effect.as_str());
                if after.allows(&entry.reserve).is_ok() {
                    return self.again(order, &entry).await;
                }
                let message = "the call was lost and there is no budget to ask again".to_owned();
                self.fail(&order, message, entry.reserve)
                    .await
                    .map(ReconciliationResult::Answer)
            }
            EffectRecovery::Fail => {
                let message = "the call was lost twice".to_owned();
                self.fail(&order, message, entry.reserve)
                    .await
                    .map(ReconciliationResult::Answer)
            }
            EffectRecovery::RestoreAndRedo => {
                self.desk
                    .world
                    .restore(&order, entry.pre_tree)
                    .await
                    .map_err(unreachable)?;
                self.again(order, &entry).await
            }
            EffectRecovery::Probe => match self.desk.world.probe(&order).await {
                CrashEvidence::Done(performed) => {
                    let value = self.settle(&order, ResultSource::Found, performed).await?;
                    Ok(ReconciliationResult::Answer(value))
                }
                CrashEvidence::NotDone if entry.attempt < MAX_ATTEMPTS => {
                    self.again(order, &entry).await
                }
                CrashEvidence::NotDone => {
                    let detail = format!("it was tried {MAX_ATTEMPTS} times");
                    Err(self.unknown(&entry, detail).await)
                }
                CrashEvidence::Unknown(detail) => Err(self.unknown(&entry, detail).await),
            },
        }
    }

    async fn unknown(&mut self, entry: &JournalEffect, detail: String) -> VisitStop {
        let ordinal = self.ordinal.saturating_sub(1);
        let interrupt = RunInterrupt::UnknownEffect {
            effect: entry.effect.clone(),
            name: entry.name.clone(),
            detail,
        };
        self.desk.suspend(ordinal, interrupt).await
    }

    /// Waits until people have answered the world, which would do it.
    async fn held(
        &mut self,
        ordinal: u32,
        order: &EffectOrder,
        approval: ApprovalId,
        reason: String,
    ) -> VisitStop {
        let interrupt = RunInterrupt::Held {
            effect: order.effect.clone(),
            name: order.name.clone(),
            approval,
            reason,
        };
        self.desk.suspend(ordinal, interrupt).await
    }

    async fn again(
        &mut self,
        order: EffectOrder,
        entry: &JournalEffect,
    ) -> Result<ReconciliationResult, VisitStop> {
        let attempt = entry.attempt + 1;
        self.desk.note(EventBody::EffectRetried {
            effect: entry.effect.clone(),
            attempt,
            reserve: entry.reserve.clone(),
        })?;
        self.desk.commit(LeaseAfterAppend::Keep, None).await?;
        Ok(ReconciliationResult::Again(EffectOrder {
            attempt,
            ..order
        }))
    }

    async fn settle(
        &mut self,
        order: &EffectOrder,
        via: ResultSource,
        done: EffectOutput,
    ) -> Result<Value, VisitStop> {
        let payload = match self.desk.pack(&done.value) {
            Ok(payload) => payload,
            // The effect happened; that its answer cannot be kept must not hide it.
            Err(error) => return self.fail(order, error.to_string(), done.spent).await,
        };
        let body = EventBody::EffectSettled {
            effect: order.effect.clone(),
            via,
            spent: done.spent,
            result: EffectResult::Done(payload),
        };
        self.desk.answered(order.class, body).await?;
        Ok(done.value)
    }

    async fn fail(
        &mut self,
        order: &EffectOrder,
        message: String,
        spent: BudgetAmounts,
    ) -> Result<Value, VisitStop> {
        let body = EventBody::EffectSettled {
            effect: order.effect.clone(),
            via: ResultSource::Executed,
            spent,
            result: EffectResult::Failed(message.clone()),
        };
        self.desk.answered(order.class, body).await?;
        let name = order.name.clone();
        Err(EffectError::Failed { name, message }.into())
    }
}

enum ReconciliationResult {
    Answer(Value),
    Again(EffectOrder),
}

#[allow(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn unreachable(trouble: EffectTrouble) -> VisitStop {
    VisitStop::Trouble(trouble.to_string())
}

fn shape(order: &EffectOrder, error: &dyn std::fmt::Display) -> VisitStop {
    EffectError::Shape {
        name: order.name.clone(),
        message: error.to_string(),
    }
    .into()
}
