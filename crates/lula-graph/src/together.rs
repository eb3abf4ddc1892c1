//! Several effects at once: looks and model calls, which do not get in each other's way. Everything
//! else is done one after another, in the order it was asked for.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lula_protocol::digest::DigestDomain;
use lula_protocol::event::{EffectResult, ResultSource};
use lula_protocol::{Digest, EffectClass, EffectId, EventBody};
use lula_store::LeaseAfterAppend;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ctx::NodeContext;
use crate::stop::{EffectError, VisitStop};
use crate::traced;
use crate::world::{EffectOrder, EffectOutput, EffectRequest, EffectTrouble};

/// An effect that is to be started with others.
struct NewEffect {
    ordinal: u32,
    request: Digest,
    order: EffectOrder,
}

impl NodeContext<'_> {
    /// Has several things done and reads the answers, in the order they were asked for. A failure
    /// of one is its own; the others go on.
    pub async fn effects<T: DeserializeOwned>(
        &mut self,
        effects: Vec<EffectRequest>,
    ) -> Result<Vec<Result<T, EffectError>>, VisitStop> {
        let begin = self.ordinal;
        self.start_together(&effects).await?;
        // Every answer is in the journal now, or has to be found out; both is what a single call
        // does.
        self.ordinal = begin;
        let mut answers = Vec::with_capacity(effects.len());
        for effect in effects {
            answers.push(match self.effect(effect).await {
                Ok(answer) => Ok(answer),
                Err(VisitStop::Effect(error)) => Err(error),
                Err(stop) => return Err(stop),
            });
        }
        Ok(answers)
    }

    /// Starts what can be started together, and journals what comes of it.
    async fn start_together(&mut self, effects: &[EffectRequest]) -> Result<(), VisitStop> {
        let mut fresh = Vec::new();
        let mut reserved = self.desk.progress.ledger.clone();
        for (ordinal, effect) in (self.ordinal..).zip(effects) {
            let together = matches!(effect.class, EffectClass::Read | EffectClass::Model);
            // From the first one that is alone in its kind, each waits for its turn.
            if !together || effect.approval.is_some() {
                break;
            }
            let Ok(value) = effect.request.clone() else {
                break;
            };
            let (ms, random) = self.name_of("effect", ordinal);
            let id = EffectId::from_parts(ms, random);
            if self.desk.progress.journal.contains_key(&ordinal) {
                continue;
            }
            if reserved.reserve(id.as_str(), &effect.reserve).is_err() {
                break;
            }
            let request = Digest::of(DigestDomain::Effect, &(effect.class, &effect.name, &value));
            let Ok(request) = request else { break };
            let order = EffectOrder {
                run: self.desk.progress.run.clone(),
                effect: id,
                epoch: self.desk.scribe.lease.epoch,
                attempt: 0,
                class: effect.class,
                name: effect.name.clone(),
                request: value,
            };
            fresh.push((
                effect,
                NewEffect {
                    ordinal,
                    request,
                    order,
                },
            ));
        }
        if fresh.len() < 2 || self.desk.replay {
            return Ok(());
        }
        self.enter()?;
        for (effect, one) in &fresh {
            if effect.class == EffectClass::Model {
                self.desk.note(EventBody::EffectIntended {
                    ordinal: one.ordinal,
                    effect: one.order.effect.clone(),
                    class: effect.class,
                    name: effect.name.clone(),
                    request: one.request,
                    pre_tree: None,
                    reserve: effect.reserve.clone(),
                    approval: None,
                })?;
            }
        }
        self.desk.commit(LeaseAfterAppend::Keep, None).await?;
        self.perform_together(fresh.into_iter().map(|(_, one)| one).collect())
            .await
    }

    async fn perform_together(&mut self, fresh: Vec<NewEffect>) -> Result<(), VisitStop> {
        let world = self.desk.world.clone();
        let cancel = self.desk.scribe.live.cancel.clone();
        let orders: Vec<EffectOrder> = fresh.iter().map(|one| one.order.clone()).collect();
        let mut running: FuturesUnordered<_> = fresh
            .into_iter()
            .map(|one| {
                let world = world.clone();
                let clock = self.desk.scribe.clock.clone();
                async move {
                    let begun_ms = clock.now_ms();
                    let done = traced::perform(&*world, &one.order).await;
                    let took_ms = clock.now_ms().saturating_sub(begun_ms);
                    (one, took_ms, done)
                }
            })
            .collect();
        loop {
            let next = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    drop(running);
                    for order in &orders {
                        world.abort(order).await;
                    }
                    return Err(VisitStop::Cancelled);
                }
                next = running.next() => next,
            };
            match next {
                None => return Ok(()),
                Some((one, took_ms, done)) => self.journal_answer(one, took_ms, done).await?,
            }
        }
    }

    async fn journal_answer(
        &mut self,
        one: NewEffect,
        took_ms: u64,
        done: Result<EffectOutput, EffectTrouble>,
    ) -> Result<(), VisitStop> {
        let (result, spent) = match done {
            Ok(done) => (self.pack_answer(&done.value), done.spent),
            Err(EffectTrouble::Failed { message, spent }) => (EffectResult::Failed(message), spent),
            // What became of it is found out when its turn comes.
            Err(
                EffectTrouble::Lost(_) | EffectTrouble::Unreachable(_) | EffectTrouble::Held { .. },
            ) => {
                return Ok(());
            }
        };
        if one.order.class == EffectClass::Read {
            return self.desk.note(EventBody::ReadDone {
                ordinal: one.ordinal,
                name: one.order.name,
                request: one.request,
                result,
                took_ms,
            });
        }
        // The others may take long. Answers that come at nearly the same time are committed
        // together, and none waits for those that take long.
        let body = EventBody::EffectSettled {
            effect: one.order.effect,
            via: ResultSource::Executed,
            spent,
            result,
        };
        self.desk.answered(one.order.class, body).await
    }

    fn pack_answer(&mut self, value: &Value) -> EffectResult {
        match self.desk.pack(value) {
            Ok(payload) => EffectResult::Done(payload),
            Err(error) => EffectResult::Failed(error.to_string()),
        }
    }
}
