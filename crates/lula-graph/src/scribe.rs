//! What waits to be committed, and the commit itself.
//!
//! It is shared by the desk that fills it and by what watches over a visit (`linger.rs`): where a body takes
//! its time after the world has answered, the answer is committed without it. The two never work at
//! the same moment, because one task polls both.
//!
//! When it commits: before any effect that cannot be taken back, after any that changed something
//! outside, and at the end. Other answers of the world, and what a visit decides, are committed
//! with the next of those, an answer after 2 ms at the latest (`Options::linger`), while the body
//! waits for something else (`linger.rs` polls the body and the clock). The engine asks nothing of
//! the world, and shows nothing, that follows from an uncommitted answer. So a crash that loses one
//! is, for everything but the world, as if the answer had not come; what happens then follows from
//! the class of the effect: a model is asked once more and the lost call stays charged, an edit is
//! put back and done again, a reference is looked at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use lula_protocol::EventBody;
use lula_store::{
    ApprovalChange, Blob, EffectRow, LeaseAfterAppend, LedgerRow, LogAppend, LogHead, LogRecord,
    NewRun, RunLease, RunStore, StoreError,
};

use crate::clock::WallClock;
use crate::engine::DrivenRun;
use crate::options::EngineOptions;

/// Writes the log of one run.
pub(crate) struct RunLogWriter {
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) clock: Arc<dyn WallClock>,
    pub(crate) options: Arc<EngineOptions>,
    pub(crate) live: Arc<DrivenRun>,
    pub(crate) lease: RunLease,
    sheet: Mutex<UncommittedEntries>,
}

/// What waits to be committed, and where the log ends.
pub(crate) struct UncommittedEntries {
    pub(crate) head: LogHead,
    pub(crate) last_at: u64,
    pub(crate) bodies: Vec<EventBody>,
    pub(crate) blobs: Vec<Blob>,
    pub(crate) effects: Vec<EffectRow>,
    pub(crate) approvals: Vec<ApprovalChange>,
    pub(crate) ledger: Vec<LedgerRow>,
    pub(crate) takes: Vec<u64>,
    /// A run that is created with its first commit.
    pub(crate) newborn: Option<NewRun>,
    /// Whether the run itself, an answer, or the end of a visit that acted waits: then the world is
    /// asked nothing before it is committed.
    pub(crate) owes: bool,
    /// When the first answer that waits has waited long enough.
    pub(crate) due: Option<Instant>,
    pub(crate) since_seal: u64,
    pub(crate) since_snapshot: u64,
    /// A commit was begun and how it ended is not known: what is true stands in the log, and
    /// nothing may be written after what is only believed.
    torn: bool,
}

impl UncommittedEntries {
    /// Whether there is nothing to commit.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bodies.is_empty() && self.takes.is_empty() && self.newborn.is_none()
    }

    /// Whether an answer has waited long enough.
    pub(crate) fn is_overdue(&self) -> bool {
        self.due.is_some_and(|due| Instant::now() >= due)
    }

    /// Keeps the newest row of each dimension.
    pub(crate) fn keep_rows(&mut self, rows: Vec<LedgerRow>) {
        for row in rows {
            let old = self.ledger.iter_mut();
            match old.into_iter().find(|old| old.dimension == row.dimension) {
                Some(old) => *old = row,
                None => self.ledger.push(row),
            }
        }
    }

    /// The time, which never goes back within a run.
    pub(crate) fn now(&mut self, clock: &dyn WallClock) -> u64 {
        self.last_at = self.last_at.max(clock.now_ms());
        self.last_at
    }
}

impl RunLogWriter {
    pub(crate) fn new(
        store: Arc<dyn RunStore>,
        clock: Arc<dyn WallClock>,
        options: Arc<EngineOptions>,
        live: Arc<DrivenRun>,
        lease: RunLease,
        (head, last_at): (LogHead, u64),
    ) -> Self {
        let sheet = UncommittedEntries {
            head,
            last_at,
            bodies: Vec::new(),
            blobs: Vec::new(),
            effects: Vec::new(),
            approvals: Vec::new(),
            ledger: Vec::new(),
            takes: Vec::new(),
            newborn: None,
            owes: false,
            due: None,
            since_seal: head.next % options.seal_every.max(1),
            since_snapshot: head.next % options.snapshot_every.max(1),
            torn: false,
        };
        Self {
            store,
            clock,
            options,
            live,
            lease,
            sheet: Mutex::new(sheet),
        }
    }

    /// Never held while anything is waited for.
    pub(crate) fn sheet(&self) -> MutexGuard<'_, UncommittedEntries> {
        self.sheet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits what waits, as it is: without a seal and without a snapshot.
    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        if self.sheet().is_empty() {
            return Ok(());
        }
        let append = self.draw_up(LeaseAfterAppend::Keep)?;
        self.commit(append).await
    }

    /// Takes everything that waits into one append.
    pub(crate) fn draw_up(&self, rest: LeaseAfterAppend) -> Result<LogAppend, StoreError> {
        let (run, epoch) = (self.lease.run.clone(), self.lease.epoch);
        let mut sheet = self.sheet();
        if sheet.torn || Instant::now() >= self.live.deadline() {
            return Err(StoreError::Fenced { run, epoch });
        }
        let at_ms = sheet.now(&*self.clock);
        let bodies = std::mem::take(&mut sheet.bodies);
        // From here on what was taken is in this append or nowhere, and waits for nothing else.
        sheet.torn = true;
        sheet.due = None;
        let (records, _) = LogRecord::continue_log(&run, sheet.head, epoch, at_ms, &bodies)?;
        let count = bodies.len() as u64;
        sheet.since_seal += count;
        sheet.since_snapshot += count;
        let mut append = LogAppend::new(run, epoch, sheet.head);
        append.records = records;
        append.blobs = std::mem::take(&mut sheet.blobs);
        append.effects = std::mem::take(&mut sheet.effects);
        append.approvals = std::mem::take(&mut sheet.approvals);
        append.ledger = std::mem::take(&mut sheet.ledger);
        append.takes = std::mem::take(&mut sheet.takes);
        append.rest = rest;
        Ok(append)
    }

    /// Commits what was drawn up.
    pub(crate) async fn commit(&self, append: LogAppend) -> Result<(), StoreError> {
        let newborn = self.sheet().newborn.take();
        let head = match newborn {
            None => self.store.append(append).await?,
            Some(mut run) => {
                let lease = u64::try_from(self.options.lease.as_millis()).unwrap_or(u64::MAX);
                if let Some(claim) = &mut run.claim {
                    claim.now_ms = self.clock.now_ms();
                    claim.ttl_ms = lease;
                }
                let head = self.store.create_and_append(run, append).await?;
                self.live.bear();
                head
            }
        };
        let mut sheet = self.sheet();
        sheet.head = head;
        sheet.torn = false;
        sheet.owes = false;
        Ok(())
    }
}
