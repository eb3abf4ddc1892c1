//! What a node's body may use: the only door to the world, the clock, randomness and people.
//!
//! Every call has a place in the visit's journal. What the journal holds is answered from it; what
//! it does not hold is done and journaled.

use lula_protocol::digest::Domain;
use lula_protocol::event::{EffectResult, Via};
use lula_protocol::interrupt::{ApprovalRule, unknown_effect};
use lula_protocol::{
    Amounts, Answer, ApprovalId, Digest, EffectClass, EffectId, EventBody, Interrupt, Principal,
};
use lula_store::Rest;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::ledger::{Ledger, OverBudget};
use crate::options::OnBudget;
use crate::progress::{EffectEntry, Entry};
use crate::stop::{EffectError, Stop};
use crate::world::{Effect, Evidence, Order, Performed, Recovery, Trouble, recovery};

/// So often an effect is tried before a person is asked about it.
const MAX_ATTEMPTS: u32 = 100;

/// A question to people whether exactly this may be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Digest of everything the approver sees and the executor will use.
    pub digest: Digest,
    /// Who has to agree, and until when.
    pub rule: ApprovalRule,
    /// Why they are asked, in one sentence.
    pub reason: String,
}

/// What people said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Enough agreed. Good for one effect with the same digest.
    Approved(ApprovalId),
    /// They did not.
    Rejected(String),
}

/// What a person chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// One of the options.
    pub choice: String,
    /// Who.
    pub by: Principal,
    /// What else they said.
    pub note: String,
}

/// The door of a node's body.
pub struct Ctx<'a> {
    desk: &'a mut Desk,
    node: &'static str,
    visit: u32,
    ordinal: u32,
}

impl<'a> Ctx<'a> {
    pub(crate) const fn new(desk: &'a mut Desk, node: &'static str, visit: u32) -> Self {
        Self {
            desk,
            node,
            visit,
            ordinal: 0,
        }
    }

    /// How often this node was left before.
    pub const fn visit(&self) -> u32 {
        self.visit
    }

    /// How often the run was found stuck. A body that sees this rise should try something else.
    pub fn strikes(&self) -> u32 {
        self.desk.progress.strikes
    }

    /// The budget as it stands.
    pub fn budget(&self) -> &Ledger {
        &self.desk.progress.ledger
    }

    /// Unix time in milliseconds, journaled.
    pub async fn now(&mut self) -> Result<u64, Stop> {
        let ordinal = self.take_ordinal();
        let found = kind_digest("clock");
        match self.desk.progress.journal.get(&ordinal) {
            Some(Entry::Clock(now_ms)) => Ok(*now_ms),
            Some(other) => {
                let recorded = entry_digest(other);
                Err(self.stray(ordinal, recorded, found).await)
            }
            None => {
                self.enter()?;
                let now_ms = self.desk.now();
                self.desk.note(EventBody::ClockRead { ordinal, now_ms })?;
                Ok(now_ms)
            }
        }
    }

    /// Random numbers that are the same whenever this visit is run again.
    pub fn rng(&self) -> ChaCha20Rng {
        let seed = format!("{}/{}/{}", self.desk.progress.seed, self.node, self.visit);
        ChaCha20Rng::from_seed(*blake3::hash(seed.as_bytes()).as_bytes())
    }

    /// Has something done and reads the answer.
    pub async fn effect<T: DeserializeOwned>(&mut self, effect: Effect) -> Result<T, Stop> {
        let name = effect.name.clone();
        let value = self.effect_value(effect).await?;
        serde_json::from_value(value).map_err(|error| {
            let message = error.to_string();
            EffectError::Shape { name, message }.into()
        })
    }

    /// Waits until people agreed to exactly this, or did not.
    pub async fn approval(&mut self, ask: Ask) -> Result<Verdict, Stop> {
        let ordinal = self.ordinal;
        let (ms, random) = self.name_of("approval", ordinal);
        let approval = ApprovalId::from_parts(ms, random);
        let nonce = Digest::of_bytes(format!("{}/{approval}", self.desk.progress.seed).as_bytes());
        let interrupt = Interrupt::Approval {
            approval: approval.clone(),
            digest: ask.digest,
            nonce: nonce.short(),
            rule: ask.rule,
            reason: ask.reason,
        };
        match self.wait(interrupt).await? {
            Answer::Approved => Ok(Verdict::Approved(approval)),
            Answer::Rejected { reason } => Ok(Verdict::Rejected(reason)),
            other => Ok(Verdict::Rejected(format!("{other:?}"))),
        }
    }

    /// Waits until a person chose.
    pub async fn ask(&mut self, question: &str, options: &[&str]) -> Result<Choice, Stop> {
        let interrupt = Interrupt::Operator {
            question: question.to_owned(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
        };
        match self.wait(interrupt).await? {
            Answer::Chose { choice, by, note } => Ok(Choice { choice, by, note }),
            other => Err(Stop::Halt(format!("a question was answered with {other:?}"))),
        }
    }

    /// Waits until a time has come. The run takes no memory meanwhile.
    pub async fn sleep_until(&mut self, at_ms: u64) -> Result<(), Stop> {
        self.wait(Interrupt::Timer { at_ms }).await.map(drop)
    }

    fn take_ordinal(&mut self) -> u32 {
        let ordinal = self.ordinal;
        self.ordinal += 1;
        ordinal
    }

    /// Puts the entry into the visit before the first thing it journals.
    fn enter(&mut self) -> Result<(), Stop> {
        if self.desk.replay {
            return Err(Stop::EndOfJournal);
        }
        if self.desk.live.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        if !self.desk.progress.entered {
            self.desk.note(EventBody::NodeEntered {
                node: self.node.to_owned(),
                visit: self.visit,
            })?;
        }
        Ok(())
    }

    /// Identity of a call: the run, the node, the visit and the place in its journal.
    fn name_of(&self, kind: &str, ordinal: u32) -> (u64, [u8; 10]) {
        let run = &self.desk.progress.run;
        let text = format!("lula/{kind}/{run}/{}/{}/{ordinal}", self.node, self.visit);
        let hash = blake3::hash(text.as_bytes());
        let mut ms = [0; 8];
        ms[2..].copy_from_slice(&hash.as_bytes()[..6]);
        let mut random = [0; 10];
        random.copy_from_slice(&hash.as_bytes()[6..16]);
        (u64::from_be_bytes(ms), random)
    }

    /// Called when the body has left: everything in the journal must have been asked for.
    pub(crate) async fn finish(&mut self) -> Result<(), Stop> {
        let journaled = u32::try_from(self.desk.progress.journal.len()).unwrap_or(u32::MAX);
        if self.ordinal == journaled {
            return Ok(());
        }
        let ordinal = self.ordinal;
        let recorded = self.desk.progress.journal.get(&ordinal).map(entry_digest);
        let recorded = recorded.unwrap_or_else(|| kind_digest("nothing"));
        Err(self.stray(ordinal, recorded, kind_digest("the end")).await)
    }

    /// The body does not ask for what the journal holds.
    async fn stray(&mut self, ordinal: u32, recorded: Digest, found: Digest) -> Stop {
        if self.desk.replay {
            return Stop::NonDeterminism {
                ordinal,
                recorded,
                found,
            };
        }
        let interrupt = Interrupt::NonDeterminism {
            ordinal,
            recorded,
            found,
        };
        self.desk.suspend(ordinal, interrupt).await
    }

    async fn wait(&mut self, interrupt: Interrupt) -> Result<Answer, Stop> {
        let ordinal = self.take_ordinal();
        match self.desk.progress.journal.get(&ordinal).cloned() {
            Some(Entry::Wait {
                interrupt: recorded,
                answer,
            }) => {
                if recorded != interrupt {
                    let recorded = Digest::of(Domain::Effect, &recorded);
                    let found = Digest::of(Domain::Effect, &interrupt);
                    let unknown = kind_digest("unreadable");
                    let (recorded, found) = (recorded.unwrap_or(unknown), found.unwrap_or(unknown));
                    return Err(self.stray(ordinal, recorded, found).await);
                }
                answer.ok_or(Stop::Suspended)
            }
            Some(other) => {
                let recorded = entry_digest(&other);
                Err(self.stray(ordinal, recorded, kind_digest("wait")).await)
            }
            None => {
                self.enter()?;
                Err(self.desk.suspend(ordinal, interrupt).await)
            }
        }
    }

    async fn effect_value(&mut self, effect: Effect) -> Result<Value, Stop> {
        let ordinal = self.take_ordinal();
        let shape = |message: String| EffectError::Shape {
            name: effect.name.clone(),
            message,
        };
        let value = effect.request.clone().map_err(shape)?;
        let request = Digest::of(Domain::Effect, &(effect.class, &effect.name, &value))
            .map_err(|error| shape(error.to_string()))?;
        if self.is_void(ordinal, &effect) {
            // Takes no place in the journal: it follows from the state alone.
            self.ordinal = ordinal;
            return Err(EffectError::ApprovalVoid { name: effect.name }.into());
        }
        match self.desk.progress.journal.get(&ordinal).cloned() {
            None => self.fresh(ordinal, effect, value, request).await,
            Some(Entry::Read {
                name,
                request: recorded,
                result,
            }) if recorded == request => self.reply(name, result).await,
            Some(Entry::Refused {
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
            Some(Entry::Effect(entry)) if self.is_same(&entry, &effect, request, ordinal) => {
                match entry.result.clone() {
                    Some(result) => self.reply(entry.name, result).await,
                    None if self.desk.replay => Err(Stop::EndOfJournal),
                    None => self.recover(*entry, value).await,
                }
            }
            Some(other) => {
                let recorded = entry_digest(&other);
                Err(self.stray(ordinal, recorded, request).await)
            }
        }
    }

    /// Whether an effect names an approval that is not for it.
    fn is_void(&self, ordinal: u32, effect: &Effect) -> bool {
        let Some((approval, digest)) = &effect.approval else {
            return false;
        };
        let used_here = matches!(
            self.desk.progress.journal.get(&ordinal),
            Some(Entry::Effect(entry)) if entry.approval.as_ref() == Some(approval)
        );
        !self.desk.progress.approvals.get(approval).is_some_and(|asked| {
            asked.digest == *digest
                && asked.answer == Some(Answer::Approved)
                && (used_here || !asked.used)
        })
    }

    fn is_same(&self, entry: &EffectEntry, effect: &Effect, request: Digest, ordinal: u32) -> bool {
        let (ms, random) = self.name_of("effect", ordinal);
        // A fork carries effects of its parent, which have the parent's names.
        let forked = self.desk.progress.parent.is_some();
        entry.request == request
            && entry.reserve == effect.reserve
            && entry.approval.as_ref() == effect.approval.as_ref().map(|(id, _)| id)
            && (forked || entry.effect == EffectId::from_parts(ms, random))
    }

    async fn reply(&self, name: String, result: EffectResult) -> Result<Value, Stop> {
        match result {
            EffectResult::Done(payload) => self.desk.fetch(&payload).await,
            EffectResult::Failed(message) => Err(EffectError::Failed { name, message }.into()),
        }
    }

    async fn fresh(
        &mut self,
        ordinal: u32,
        effect: Effect,
        value: Value,
        request: Digest,
    ) -> Result<Value, Stop> {
        self.enter()?;
        let (ms, random) = self.name_of("effect", ordinal);
        let order = Order {
            run: self.desk.progress.run.clone(),
            effect: EffectId::from_parts(ms, random),
            epoch: self.desk.lease.epoch,
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
        self.desk.commit(Rest::Keep, None).await?;
        self.dispatch(order).await
    }

    /// Looks at the world. The result is committed with whatever comes next: losing it costs
    /// another look.
    async fn look(&mut self, ordinal: u32, order: Order, request: Digest) -> Result<Value, Stop> {
        let (result, value) = match self.perform(&order).await? {
            Ok(performed) => {
                let payload = self.desk.pack(&performed.value).map_err(|e| shape(&order, &e))?;
                (EffectResult::Done(payload), Ok(performed.value))
            }
            Err(Trouble::Failed { message, .. }) => {
                let name = order.name.clone();
                let failed = EffectError::Failed {
                    name,
                    message: message.clone(),
                };
                (EffectResult::Failed(message), Err(failed.into()))
            }
            Err(trouble) => return Err(unreachable(trouble)),
        };
        self.desk.note(EventBody::ReadDone {
            ordinal,
            name: order.name,
            request,
            result,
        })?;
        value
    }

    async fn over_budget(
        &mut self,
        ordinal: u32,
        name: String,
        request: Digest,
        over: OverBudget,
    ) -> Stop {
        let OverBudget {
            dimension,
            asked,
            free,
        } = over;
        let refuse = self.desk.options.on_budget == OnBudget::Refuse
            || self.desk.progress.refused.contains(&ordinal);
        if !refuse {
            let interrupt = Interrupt::Budget {
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
    async fn perform(&self, order: &Order) -> Result<Result<Performed, Trouble>, Stop> {
        tokio::select! {
            biased;
            () = self.desk.live.cancel.cancelled() => {
                self.desk.world.abort(order).await;
                Err(Stop::Cancelled)
            }
            done = self.desk.world.perform(order) => Ok(done),
        }
    }

    /// Orders an announced effect and journals what came of it.
    async fn dispatch(&mut self, order: Order) -> Result<Value, Stop> {
        let mut order = order;
        loop {
            match self.perform(&order).await? {
                Ok(performed) => return self.settle(&order, Via::Executed, performed).await,
                Err(Trouble::Failed { message, spent }) => {
                    return self.fail(&order, message, spent).await;
                }
                Err(Trouble::Unreachable(message)) => return Err(Stop::Trouble(message)),
                Err(Trouble::Lost(_)) => match self.reconcile(&order.effect, &order.request).await? {
                    Reconciled::Answer(value) => return Ok(value),
                    Reconciled::Again(again) => order = again,
                },
            }
        }
    }

    /// Goes on with an effect that was announced and has no result.
    async fn recover(&mut self, entry: EffectEntry, value: Value) -> Result<Value, Stop> {
        self.enter()?;
        match self.reconcile(&entry.effect, &value).await? {
            Reconciled::Answer(value) => Ok(value),
            Reconciled::Again(order) => self.dispatch(order).await,
        }
    }

    async fn reconcile(&mut self, effect: &EffectId, value: &Value) -> Result<Reconciled, Stop> {
        let Some(entry) = self.desk.progress.effect(effect).cloned() else {
            return Err(Stop::Halt(format!("{effect} is not in the journal")));
        };
        let order = Order {
            run: self.desk.progress.run.clone(),
            effect: effect.clone(),
            epoch: self.desk.lease.epoch,
            attempt: entry.attempt,
            class: entry.class,
            name: entry.name.clone(),
            request: value.clone(),
        };
        match entry.verdict.as_deref() {
            Some(unknown_effect::MARK_DONE) => {
                let said = Performed::free(json!({"operator": unknown_effect::MARK_DONE}));
                let value = self.settle(&order, Via::Operator, said).await?;
                return Ok(Reconciled::Answer(value));
            }
            Some(unknown_effect::RETRY) => return self.again(order, &entry).await,
            Some(_) => return Err(Stop::Halt(format!("an operator gave up on {}", entry.name))),
            None => {}
        }
        match recovery(entry.class, entry.attempt) {
            Recovery::Redo => self.again(order, &entry).await,
            Recovery::ChargeAndRedo => {
                let mut after = self.desk.progress.ledger.clone();
                after.lose(effect.as_str());
                if after.allows(&entry.reserve).is_ok() {
                    return self.again(order, &entry).await;
                }
                let message = "the call was lost and there is no budget to ask again".to_owned();
                self.fail(&order, message, entry.reserve).await.map(Reconciled::Answer)
            }
            Recovery::Fail => {
                let message = "the call was lost twice".to_owned();
                self.fail(&order, message, entry.reserve).await.map(Reconciled::Answer)
            }
            Recovery::RestoreAndRedo => {
                self.desk
                    .world
                    .restore(&order, entry.pre_tree)
                    .await
                    .map_err(unreachable)?;
                self.again(order, &entry).await
            }
            Recovery::Probe => match self.desk.world.probe(&order).await {
                Evidence::Done(performed) => {
                    let value = self.settle(&order, Via::Found, performed).await?;
                    Ok(Reconciled::Answer(value))
                }
                Evidence::NotDone if entry.attempt < MAX_ATTEMPTS => self.again(order, &entry).await,
                Evidence::NotDone => {
                    let detail = format!("it was tried {MAX_ATTEMPTS} times");
                    Err(self.unknown(&entry, detail).await)
                }
                Evidence::Unknown(detail) => Err(self.unknown(&entry, detail).await),
            },
        }
    }

    async fn unknown(&mut self, entry: &EffectEntry, detail: String) -> Stop {
        let ordinal = self.ordinal.saturating_sub(1);
        let interrupt = Interrupt::UnknownEffect {
            effect: entry.effect.clone(),
            name: entry.name.clone(),
            detail,
        };
        self.desk.suspend(ordinal, interrupt).await
    }

    /// Announces another try.
    async fn again(&mut self, order: Order, entry: &EffectEntry) -> Result<Reconciled, Stop> {
        let attempt = entry.attempt + 1;
        self.desk.note(EventBody::EffectRetried {
            effect: entry.effect.clone(),
            attempt,
            reserve: entry.reserve.clone(),
        })?;
        self.desk.commit(Rest::Keep, None).await?;
        Ok(Reconciled::Again(Order { attempt, ..order }))
    }

    async fn settle(&mut self, order: &Order, via: Via, done: Performed) -> Result<Value, Stop> {
        let payload = match self.desk.pack(&done.value) {
            Ok(payload) => payload,
            // The effect happened; that its answer cannot be kept must not hide it.
            Err(error) => return self.fail(order, error.to_string(), done.spent).await,
        };
        self.desk.note(EventBody::EffectSettled {
            effect: order.effect.clone(),
            via,
            spent: done.spent,
            result: EffectResult::Done(payload),
        })?;
        self.desk.commit(Rest::Keep, None).await?;
        Ok(done.value)
    }

    async fn fail(&mut self, order: &Order, message: String, spent: Amounts) -> Result<Value, Stop> {
        self.desk.note(EventBody::EffectSettled {
            effect: order.effect.clone(),
            via: Via::Executed,
            spent,
            result: EffectResult::Failed(message.clone()),
        })?;
        self.desk.commit(Rest::Keep, None).await?;
        let name = order.name.clone();
        Err(EffectError::Failed { name, message }.into())
    }
}

enum Reconciled {
    Answer(Value),
    Again(Order),
}

fn unreachable(trouble: Trouble) -> Stop {
    Stop::Trouble(trouble.to_string())
}

fn shape(order: &Order, error: &dyn std::fmt::Display) -> Stop {
    EffectError::Shape {
        name: order.name.clone(),
        message: error.to_string(),
    }
    .into()
}

fn kind_digest(kind: &str) -> Digest {
    Digest::of_bytes(kind.as_bytes())
}

/// What a journaled call was, for comparing.
fn entry_digest(entry: &Entry) -> Digest {
    match entry {
        Entry::Clock(_) => kind_digest("clock"),
        Entry::Read { request, .. } | Entry::Refused { request, .. } => *request,
        Entry::Effect(effect) => effect.request,
        Entry::Wait { interrupt, .. } => {
            Digest::of(Domain::Effect, interrupt).unwrap_or_else(|_| kind_digest("wait"))
        }
    }
}
