//! Where a run is written: events are taken into account at once, kept together, and committed in
//! one append. After any error of the store the desk is thrown away: what is true stands in the
//! log, and the next owner reads it from there.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lula_protocol::event::EffectResult;
use lula_protocol::payload::PayloadError;
use lula_protocol::{
    BudgetDimension, Digest, EffectClass, EffectId, EventBody, EventPayload, InterruptAnswer,
    RunInterrupt,
};
use lula_store::{
    ApprovalChange, ApprovalRow, ApprovalState, Blob, EffectRow, EffectState, LeaseAfterAppend,
    LogAppend, LogRecord, NewRun, StateSnapshot, StoreError,
};
use serde::Serialize;
use serde_json::Value;

use crate::progress::{JournalEffect, PendingWait, RunProgress};
use crate::replay::ReplayDrift;
use crate::scribe::RunLogWriter;
use crate::seal;
use crate::signals;
use crate::stop::VisitStop;
use crate::world::EffectWorld;

/// So many events wait at most before they are committed.
const MAX_WAITING: usize = 32;

/// Makes a snapshot of the state a log adds up to.
pub(crate) type SnapshotMaker<'a> = &'a (dyn Fn(&RunProgress) -> Option<Vec<u8>> + Sync);

pub(crate) struct EngineDesk {
    pub(crate) scribe: Arc<RunLogWriter>,
    pub(crate) world: Arc<dyn EffectWorld>,
    pub(crate) progress: RunProgress,
    /// Only looks at what was recorded; nothing is done or written.
    pub(crate) replay: bool,
    /// A world in which recorded looks and edits are done again, and what came out otherwise.
    pub(crate) rerun: Option<Arc<dyn EffectWorld>>,
    pub(crate) drift: Vec<ReplayDrift>,
}

impl EngineDesk {
    pub(crate) const fn new(
        scribe: Arc<RunLogWriter>,
        world: Arc<dyn EffectWorld>,
        progress: RunProgress,
    ) -> Self {
        Self {
            scribe,
            world,
            progress,
            replay: false,
            rerun: None,
            drift: Vec::new(),
        }
    }

    /// Has the run created with the first commit.
    pub(crate) fn give_birth_to(&mut self, run: NewRun) {
        let mut sheet = self.scribe.sheet();
        sheet.newborn = Some(run);
        sheet.owes = true;
    }

    /// Takes the end of a visit into account: whether it acted. True where it should be committed
    /// now.
    pub(crate) fn close_visit(&mut self, acted: bool) -> bool {
        let every = self.scribe.options.snapshot_every;
        let mut sheet = self.scribe.sheet();
        sheet.owes |= acted;
        let waiting = sheet.bodies.len();
        let snapshot = every > 0 && sheet.since_snapshot + waiting as u64 >= every;
        waiting >= MAX_WAITING || snapshot || sheet.is_overdue()
    }

    /// Commits what the world must not be asked before.
    pub(crate) async fn settle_up(&mut self) -> Result<(), VisitStop> {
        let owes = self.scribe.sheet().owes;
        if owes {
            self.commit(LeaseAfterAppend::Keep, None).await?;
        }
        Ok(())
    }

    /// The time, which never goes back within a run.
    pub(crate) fn now(&mut self) -> u64 {
        self.scribe.sheet().now(&*self.scribe.clock)
    }

    /// Packs a value; what is too large for an event is committed beside it.
    pub(crate) fn pack<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
    ) -> Result<EventPayload, PayloadError> {
        let packed = EventPayload::pack(value)?;
        if let Some((digest, bytes)) = packed.blob {
            self.scribe.sheet().blobs.push(Blob { digest, bytes });
        }
        Ok(packed.payload)
    }

    /// The value of a payload.
    pub(crate) async fn fetch(&self, payload: &EventPayload) -> Result<Value, VisitStop> {
        match payload {
            EventPayload::Inline(value) => Ok(value.clone()),
            EventPayload::Blob(reference) => {
                let waiting = {
                    let sheet = self.scribe.sheet();
                    let mut blobs = sheet.blobs.iter();
                    let found = blobs.find(|blob| blob.digest == reference.digest);
                    found.map(|blob| blob.bytes.clone())
                };
                let bytes = match waiting {
                    Some(bytes) => bytes,
                    None => self.scribe.store.blob(&reference.digest).await?,
                };
                serde_json::from_slice(&bytes)
                    .map_err(|_| StoreError::CorruptBlob(reference.digest).into())
            }
        }
    }

    /// Takes an event into account. It is committed with the next commit.
    pub(crate) fn note(&mut self, body: EventBody) -> Result<(), VisitStop> {
        if self.replay {
            return Err(VisitStop::EndOfJournal);
        }
        let waited = self.progress.pending.clone();
        self.progress
            .apply(&body)
            .map_err(|broken| VisitStop::Halt(broken.to_string()))?;
        self.project(waited.as_ref(), &body);
        self.scribe.sheet().bodies.push(body);
        Ok(())
    }

    /// Takes an answer of the world into account. It is committed with the next thing that needs a
    /// commit, or when it has waited long enough; nothing that follows from it is seen outside
    /// before. Of what may have changed something outside the answer is committed at once: without
    /// it a person may have to say what became of it.
    pub(crate) async fn answered(
        &mut self,
        class: EffectClass,
        body: EventBody,
    ) -> Result<(), VisitStop> {
        self.note(body)?;
        let linger = self.scribe.options.linger;
        if class == EffectClass::External || linger.is_zero() {
            return self.commit(LeaseAfterAppend::Keep, None).await;
        }
        let mut sheet = self.scribe.sheet();
        sheet.owes = true;
        sheet.due.get_or_insert_with(|| Instant::now() + linger);
        Ok(())
    }

    /// What changes beside the log.
    fn project(&self, waited: Option<&PendingWait>, body: &EventBody) {
        match body {
            EventBody::EffectIntended {
                effect,
                reserve,
                approval,
                ..
            } => {
                self.touch(reserve.iter().map(|(dimension, _)| dimension));
                self.effect_row(effect, EffectState::Intended, None);
                if let Some(approval) = approval
                    && let Some(asked) = self.progress.approvals.get(approval)
                {
                    self.scribe.sheet().approvals.push(ApprovalChange::Use {
                        approval: approval.clone(),
                        digest: asked.digest,
                    });
                }
            }
            EventBody::EffectRetried {
                effect, reserve, ..
            } => {
                self.touch(reserve.iter().map(|(dimension, _)| dimension));
                self.effect_row(effect, EffectState::Intended, None);
            }
            EventBody::EffectSettled {
                effect,
                spent,
                result,
                ..
            } => {
                self.touch(spent.iter().map(|(dimension, _)| dimension));
                if let Some(entry) = self.progress.effect(effect) {
                    self.touch(entry.reserve.iter().map(|(dimension, _)| dimension));
                }
                self.effect_row(effect, EffectState::Settled, Some(result));
            }
            EventBody::LimitRaised { dimension, .. } => self.touch(std::iter::once(*dimension)),
            EventBody::Suspended { interrupt, .. } => match interrupt {
                RunInterrupt::Approval {
                    approval,
                    digest,
                    nonce,
                    rule,
                    ..
                } => self
                    .scribe
                    .sheet()
                    .approvals
                    .push(ApprovalChange::Open(ApprovalRow {
                        approval: approval.clone(),
                        run: self.progress.run.clone(),
                        digest: *digest,
                        state: ApprovalState::Open,
                        nonce: nonce.clone(),
                        expires_ms: rule.expires_ms,
                    })),
                RunInterrupt::UnknownEffect { effect, .. } => {
                    self.effect_row(effect, EffectState::Unknown, None);
                }
                _ => {}
            },
            EventBody::Resolved { answer, .. } => {
                let asked = waited.map(|pending| &pending.interrupt);
                if let Some(RunInterrupt::Approval { approval, .. }) = asked {
                    self.scribe.sheet().approvals.push(ApprovalChange::Decide {
                        approval: approval.clone(),
                        approved: *answer == InterruptAnswer::Approved,
                    });
                }
            }
            _ => {}
        }
    }

    /// Takes note of what was sent, if anything was. It is committed with whatever the run does
    /// next.
    pub(crate) async fn take_signals(&mut self) -> Result<(), VisitStop> {
        let scribe = Arc::clone(&self.scribe);
        if !scribe.live.signalled.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let waiting = scribe.store.signals(&scribe.lease.run).await?;
        let now_ms = self.now();
        for (id, signal) in waiting {
            if scribe.sheet().takes.contains(&id) {
                continue;
            }
            let body = signals::respond(&self.progress, &signal, now_ms);
            self.note(body)?;
            scribe.sheet().takes.push(id);
        }
        match signals::wait_over(&self.progress, now_ms) {
            Some(body) => self.note(body),
            None => Ok(()),
        }
    }

    fn touch(&self, dimensions: impl Iterator<Item = BudgetDimension>) {
        let rows = self.progress.ledger.rows(dimensions);
        self.scribe.sheet().keep_rows(rows);
    }

    fn effect_row(&self, effect: &EffectId, state: EffectState, result: Option<&EffectResult>) {
        let Some(entry) = self.progress.effect(effect) else {
            return;
        };
        let row = row_of(entry, state, self.scribe.lease.epoch, result);
        let mut sheet = self.scribe.sheet();
        sheet.effects.retain(|old| old.effect != row.effect);
        sheet.effects.push(row);
    }

    /// Commits everything that waits. `snap` is asked for a snapshot when one is due.
    pub(crate) async fn commit(
        &mut self,
        rest: LeaseAfterAppend,
        snap: Option<SnapshotMaker<'_>>,
    ) -> Result<(), VisitStop> {
        if self.replay {
            return Err(VisitStop::EndOfJournal);
        }
        let scribe = Arc::clone(&self.scribe);
        if rest == LeaseAfterAppend::Keep && scribe.sheet().is_empty() {
            return Ok(());
        }
        let mut append = scribe.draw_up(rest)?;
        self.seal(&mut append)?;
        let every = scribe.options.snapshot_every;
        if every > 0
            && rest != LeaseAfterAppend::Done
            && scribe.sheet().since_snapshot >= every
            && let Some(bytes) = snap.and_then(|snap| snap(&self.progress))
        {
            let head = append.new_head();
            append.snapshot = Some(StateSnapshot { head, bytes });
            scribe.sheet().since_snapshot = 0;
        }
        scribe.commit(append).await?;
        Ok(())
    }

    /// Vouches for the log where it is time to.
    fn seal(&mut self, append: &mut LogAppend) -> Result<(), VisitStop> {
        let options = &self.scribe.options;
        let mut sheet = self.scribe.sheet();
        let due = append.rest == LeaseAfterAppend::Done || sheet.since_seal >= options.seal_every;
        let (Some(key), true) = (&options.seal, due) else {
            return Ok(());
        };
        let head = append.new_head();
        let body = seal::seal(key, &head.hash);
        self.progress
            .apply(&body)
            .map_err(|broken| VisitStop::Halt(broken.to_string()))?;
        let (run, epoch) = (&append.run, append.epoch);
        let (sealed, _) = LogRecord::continue_log(run, head, epoch, sheet.last_at, &[body])?;
        append.records.extend(sealed);
        sheet.since_seal = 0;
        Ok(())
    }

    /// Commits that the run waits for this.
    pub(crate) async fn suspend(&mut self, ordinal: u32, interrupt: RunInterrupt) -> VisitStop {
        let wake_ms = interrupt.wake_ms();
        let noted = self.note(EventBody::Suspended { ordinal, interrupt });
        if let Err(stop) = noted {
            return stop;
        }
        match self
            .commit(LeaseAfterAppend::Suspend { wake_ms }, None)
            .await
        {
            Ok(()) => VisitStop::Suspended,
            Err(stop) => stop,
        }
    }
}

fn row_of(
    entry: &JournalEffect,
    state: EffectState,
    epoch: u64,
    result: Option<&EffectResult>,
) -> EffectRow {
    let result = result.map(|result| match result {
        EffectResult::Done(EventPayload::Blob(reference)) => reference.digest,
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
