//! Where a run is written: events are taken into account at once, kept together, and committed in
//! one append. After any error of the store the desk is thrown away: what is true stands in the
//! log, and somebody reads it from there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lula_protocol::event::EffectResult;
use lula_protocol::payload::PayloadError;
use lula_protocol::{Answer, Digest, Dimension, EffectId, EventBody, Interrupt, Payload};
use lula_store::{
    Append, ApprovalChange, ApprovalRow, ApprovalState, Blob, EffectRow, EffectState, Head, Lease,
    NewRun, Record, Rest, Snapshot, Store, StoreError,
};
use serde::Serialize;
use serde_json::Value;

use crate::clock::Clock;
use crate::engine::Live;
use crate::options::Options;
use crate::progress::{EffectEntry, Pending, Progress};
use crate::replay::Drift;
use crate::seal;
use crate::signals;
use crate::stop::Stop;
use crate::world::World;

/// Makes a snapshot of the state a log adds up to.
pub(crate) type Snap<'a> = &'a (dyn Fn(&Progress) -> Option<Vec<u8>> + Sync);

pub(crate) struct Desk {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) live: Arc<Live>,
    pub(crate) lease: Lease,
    pub(crate) progress: Progress,
    /// Only looks at what was recorded; nothing is done or written.
    pub(crate) replay: bool,
    /// A world in which recorded looks and edits are done again, and what came out otherwise.
    pub(crate) rerun: Option<Arc<dyn World>>,
    pub(crate) drift: Vec<Drift>,
    pub(crate) head: Head,
    pub(crate) last_at: u64,
    pub(crate) takes: Vec<u64>,
    /// Whether the run itself, or the end of a visit that acted, waits to be committed: then the
    /// world is asked nothing before it is.
    pub(crate) owes: bool,
    /// A run that is created with its first commit.
    newborn: Option<NewRun>,
    bodies: Vec<EventBody>,
    blobs: Vec<Blob>,
    effects: Vec<EffectRow>,
    approvals: Vec<ApprovalChange>,
    touched: Vec<Dimension>,
    since_seal: u64,
    since_snapshot: u64,
}

pub(crate) struct Tools {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) live: Arc<Live>,
}

impl Desk {
    pub(crate) fn new(
        tools: Tools,
        lease: Lease,
        progress: Progress,
        head: Head,
        last_at: u64,
    ) -> Self {
        let options = tools.options;
        Self {
            store: tools.store,
            world: tools.world,
            clock: tools.clock,
            options: Arc::clone(&options),
            live: tools.live,
            lease,
            progress,
            replay: false,
            rerun: None,
            drift: Vec::new(),
            head,
            last_at,
            takes: Vec::new(),
            owes: false,
            newborn: None,
            bodies: Vec::new(),
            blobs: Vec::new(),
            effects: Vec::new(),
            approvals: Vec::new(),
            touched: Vec::new(),
            since_seal: head.next % options.seal_every.max(1),
            since_snapshot: head.next % options.snapshot_every.max(1),
        }
    }

    /// Has the run created with the first commit.
    pub(crate) fn give_birth_to(&mut self, run: NewRun) {
        self.newborn = Some(run);
        self.owes = true;
    }

    /// Whether the next commit should bring a snapshot.
    pub(crate) fn snapshot_is_due(&self) -> bool {
        let every = self.options.snapshot_every;
        every > 0 && self.since_snapshot + self.bodies.len() as u64 >= every
    }

    /// Commits what the world must not be asked before.
    pub(crate) async fn settle_up(&mut self) -> Result<(), Stop> {
        if self.owes {
            self.commit(Rest::Keep, None).await?;
        }
        Ok(())
    }

    /// The time, which never goes back within a run.
    pub(crate) fn now(&mut self) -> u64 {
        self.last_at = self.last_at.max(self.clock.now_ms());
        self.last_at
    }

    /// How many events wait to be committed.
    pub(crate) const fn waiting(&self) -> usize {
        self.bodies.len()
    }

    /// Packs a value; what is too large for an event is committed beside it.
    pub(crate) fn pack<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<Payload, PayloadError> {
        let packed = Payload::pack(value)?;
        if let Some((digest, bytes)) = packed.blob {
            self.blobs.push(Blob { digest, bytes });
        }
        Ok(packed.payload)
    }

    /// The value of a payload.
    pub(crate) async fn fetch(&self, payload: &Payload) -> Result<Value, Stop> {
        match payload {
            Payload::Inline(value) => Ok(value.clone()),
            Payload::Blob(reference) => {
                let waiting = self
                    .blobs
                    .iter()
                    .find(|blob| blob.digest == reference.digest);
                let bytes = match waiting {
                    Some(blob) => blob.bytes.clone(),
                    None => self.store.blob(&reference.digest).await?,
                };
                serde_json::from_slice(&bytes)
                    .map_err(|_| StoreError::CorruptBlob(reference.digest).into())
            }
        }
    }

    /// Takes an event into account. It is committed with the next commit.
    pub(crate) fn note(&mut self, body: EventBody) -> Result<(), Stop> {
        if self.replay {
            return Err(Stop::EndOfJournal);
        }
        let waited = self.progress.pending.clone();
        self.progress
            .apply(&body)
            .map_err(|broken| Stop::Halt(broken.to_string()))?;
        self.project(waited.as_ref(), &body);
        self.bodies.push(body);
        Ok(())
    }

    /// What changes beside the log.
    fn project(&mut self, waited: Option<&Pending>, body: &EventBody) {
        match body {
            EventBody::EffectIntended {
                effect,
                reserve,
                approval,
                ..
            } => {
                self.touch(reserve.iter().map(|(dimension, _)| dimension).collect());
                self.effect_row(effect, EffectState::Intended, None);
                if let Some(approval) = approval
                    && let Some(asked) = self.progress.approvals.get(approval)
                {
                    self.approvals.push(ApprovalChange::Use {
                        approval: approval.clone(),
                        digest: asked.digest,
                    });
                }
            }
            EventBody::EffectRetried {
                effect, reserve, ..
            } => {
                self.touch(reserve.iter().map(|(dimension, _)| dimension).collect());
                self.effect_row(effect, EffectState::Intended, None);
            }
            EventBody::EffectSettled {
                effect,
                spent,
                result,
                ..
            } => {
                let mut touched: Vec<_> = spent.iter().map(|(dimension, _)| dimension).collect();
                if let Some(entry) = self.progress.effect(effect) {
                    touched.extend(entry.reserve.iter().map(|(dimension, _)| dimension));
                }
                self.touch(touched);
                self.effect_row(effect, EffectState::Settled, Some(result));
            }
            EventBody::LimitRaised { dimension, .. } => self.touch(vec![*dimension]),
            EventBody::Suspended { interrupt, .. } => match interrupt {
                Interrupt::Approval {
                    approval,
                    digest,
                    nonce,
                    rule,
                    ..
                } => self.approvals.push(ApprovalChange::Open(ApprovalRow {
                    approval: approval.clone(),
                    run: self.progress.run.clone(),
                    digest: *digest,
                    state: ApprovalState::Open,
                    nonce: nonce.clone(),
                    expires_ms: rule.expires_ms,
                })),
                Interrupt::UnknownEffect { effect, .. } => {
                    self.effect_row(effect, EffectState::Unknown, None);
                }
                _ => {}
            },
            EventBody::Resolved { answer, .. } => {
                let asked = waited.map(|pending| &pending.interrupt);
                if let Some(Interrupt::Approval { approval, .. }) = asked {
                    self.approvals.push(ApprovalChange::Decide {
                        approval: approval.clone(),
                        approved: *answer == Answer::Approved,
                    });
                }
            }
            _ => {}
        }
    }

    /// Takes note of what was sent, if anything was. It is committed with whatever the run does
    /// next.
    pub(crate) async fn take_signals(&mut self) -> Result<(), Stop> {
        if !self.live.signalled.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let waiting = self.store.signals(&self.lease.run).await?;
        let now_ms = self.now();
        for (id, signal) in waiting {
            if self.takes.contains(&id) {
                continue;
            }
            let body = signals::respond(&self.progress, &signal, now_ms);
            self.note(body)?;
            self.takes.push(id);
        }
        match signals::wait_over(&self.progress, now_ms) {
            Some(body) => self.note(body),
            None => Ok(()),
        }
    }

    fn touch(&mut self, dimensions: Vec<Dimension>) {
        for dimension in dimensions {
            if !self.touched.contains(&dimension) {
                self.touched.push(dimension);
            }
        }
    }

    fn effect_row(&mut self, effect: &EffectId, state: EffectState, result: Option<&EffectResult>) {
        let Some(entry) = self.progress.effect(effect) else {
            return;
        };
        let row = row_of(entry, state, self.lease.epoch, result);
        self.effects.retain(|old| old.effect != row.effect);
        self.effects.push(row);
    }

    /// Commits everything that waits. `snap` is asked for a snapshot when one is due.
    pub(crate) async fn commit(&mut self, rest: Rest, snap: Option<Snap<'_>>) -> Result<(), Stop> {
        if self.replay {
            return Err(Stop::EndOfJournal);
        }
        let nothing = self.bodies.is_empty() && self.takes.is_empty() && self.newborn.is_none();
        if nothing && rest == Rest::Keep {
            return Ok(());
        }
        if Instant::now() >= self.live.deadline() {
            return Err(StoreError::Fenced {
                run: self.lease.run.clone(),
                epoch: self.lease.epoch,
            }
            .into());
        }
        let at_ms = self.now();
        let bodies = std::mem::take(&mut self.bodies);
        let (run, epoch) = (self.lease.run.clone(), self.lease.epoch);
        let (mut records, mut head) = Record::continue_log(&run, self.head, epoch, at_ms, &bodies)?;
        let count = bodies.len() as u64;
        self.since_seal += count;
        self.since_snapshot += count;
        if let Some(key) = &self.options.seal
            && (rest == Rest::Done || self.since_seal >= self.options.seal_every)
        {
            let body = seal::seal(key, &head.hash);
            self.progress
                .apply(&body)
                .map_err(|broken| Stop::Halt(broken.to_string()))?;
            let (sealed, after) = Record::continue_log(&run, head, epoch, at_ms, &[body])?;
            records.extend(sealed);
            head = after;
            self.since_seal = 0;
        }
        let mut append = Append::new(run, epoch, self.head);
        let due = self.options.snapshot_every > 0
            && self.since_snapshot >= self.options.snapshot_every
            && rest != Rest::Done;
        if due && let Some(bytes) = snap.and_then(|snap| snap(&self.progress)) {
            append.snapshot = Some(Snapshot { head, bytes });
            self.since_snapshot = 0;
        }
        append.records = records;
        append.blobs = std::mem::take(&mut self.blobs);
        append.effects = std::mem::take(&mut self.effects);
        append.approvals = std::mem::take(&mut self.approvals);
        let touched = std::mem::take(&mut self.touched);
        append.ledger = self.progress.ledger.rows(touched.into_iter());
        append.takes = std::mem::take(&mut self.takes);
        append.rest = rest;
        self.head = match self.newborn.take() {
            None => self.store.append(append).await?,
            Some(mut run) => {
                let lease = u64::try_from(self.options.lease.as_millis()).unwrap_or(u64::MAX);
                if let Some(claim) = &mut run.claim {
                    claim.now_ms = self.clock.now_ms();
                    claim.ttl_ms = lease;
                }
                let head = self.store.create_and_append(run, append).await?;
                self.live.born.store(true, Ordering::Release);
                head
            }
        };
        self.owes = false;
        Ok(())
    }

    /// Commits that the run waits for this.
    pub(crate) async fn suspend(&mut self, ordinal: u32, interrupt: Interrupt) -> Stop {
        let wake_ms = interrupt.wake_ms();
        let noted = self.note(EventBody::Suspended { ordinal, interrupt });
        if let Err(stop) = noted {
            return stop;
        }
        match self.commit(Rest::Suspend { wake_ms }, None).await {
            Ok(()) => Stop::Suspended,
            Err(stop) => stop,
        }
    }
}

fn row_of(
    entry: &EffectEntry,
    state: EffectState,
    epoch: u64,
    result: Option<&EffectResult>,
) -> EffectRow {
    let result = result.map(|result| match result {
        EffectResult::Done(Payload::Blob(reference)) => reference.digest,
        other => Digest::of_bytes(&serde_json::to_vec(other).unwrap_or_default()),
    });
    EffectRow {
        effect: entry.effect.clone(),
        intent_seq: entry.intent_seq,
        class: entry.class,
        state,
        attempt: entry.attempt,
        epoch,
        request: entry.request,
        result,
    }
}
