//! The loop: ask what is next, do it, commit what came of it, again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lula_protocol::event::RunEnding;
use lula_protocol::{EventBody, EventPayload, RunExit};
use lula_store::{LeaseAfterAppend, NewRun, RunLease, StoreError};
use tracing::Instrument;

use crate::ctx::NodeContext;
use crate::desk::EngineDesk;
use crate::engine::{DrivenRun, EngineInner};
use crate::error::EngineError;
use crate::graph::{Graph, GraphLabel, NodeExit, RunEndReport};
use crate::linger;
use crate::load::{self, LoadedRun, NextRunStep, RunState};
use crate::progress::{PendingWait, RunEnd, RunProgress};
use crate::scribe::RunLogWriter;
use crate::stop::{EffectError, VisitStop};

/// Why an engine put a run down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestReason {
    Done(RunEnd),
    /// It waits for this.
    Waiting(PendingWait),
    /// The world could not be reached; it is tried again later.
    Trouble(String),
    /// It was put down by its driver.
    Paused,
}

/// Drives a run this engine owns until it rests.
pub(crate) async fn drive<G: Graph>(
    inner: &EngineInner<G>,
    lease: RunLease,
    newborn: Option<(NewRun, LoadedRun<G::State>)>,
    live: Arc<DrivenRun>,
) -> Result<RestReason, EngineError> {
    let resumed = newborn.is_none();
    let (newborn, loaded) = if let Some((run, loaded)) = newborn {
        (Some(run), loaded)
    } else {
        let loaded = load::load(&inner.graph, &*inner.store, &lease.run, None).await?;
        (None, loaded)
    };
    if loaded.head.next < lease.head.next {
        return Err(StoreError::CorruptEvent {
            run: lease.run,
            seq: loaded.head.next,
            why: format!(
                "the log ends here, the run should have {} entries: restore it from a backup",
                lease.head.next
            ),
        }
        .into());
    }
    if loaded.head != lease.head {
        // Between the claim and the read no other worker could have written: something is wrong.
        return Err(StoreError::Fenced {
            run: lease.run,
            epoch: lease.epoch,
        }
        .into());
    }
    let scribe = RunLogWriter::new(
        Arc::clone(&inner.store),
        Arc::clone(&inner.clock),
        Arc::clone(&inner.options),
        live,
        lease,
        (loaded.head, loaded.last_at),
    );
    let RunState { progress, state } = loaded.run;
    let mut driver = Driver {
        inner,
        desk: EngineDesk::new(Arc::new(scribe), Arc::clone(&inner.world), progress),
        state,
    };
    if let Some(run) = newborn {
        driver.desk.give_birth_to(run);
    }
    if resumed && driver.desk.scribe.lease.epoch > 1 && driver.desk.progress.ended.is_none() {
        let worker = inner.options.worker.clone();
        let noted = driver.desk.note(EventBody::RunTaken { worker });
        driver.settle(noted)?;
    }
    driver.migrate()?;
    let lease = &driver.desk.scribe.lease;
    // Of the highest level: a line of any level names its run.
    let span = tracing::error_span!("run", id = %lease.run, epoch = lease.epoch);
    driver.go().instrument(span).await
}

struct Driver<'e, G: Graph> {
    inner: &'e EngineInner<G>,
    desk: EngineDesk,
    state: Arc<G::State>,
}

impl<G: Graph> Driver<'_, G> {
    /// Errors that end the drive but not the run.
    fn settle<T>(&self, result: Result<T, VisitStop>) -> Result<T, EngineError> {
        result.map_err(|stop| match stop {
            VisitStop::Store(error) => EngineError::Store(error),
            other => EngineError::Store(StoreError::CorruptEvent {
                run: self.desk.scribe.lease.run.clone(),
                seq: self.desk.progress.next_seq,
                why: other.to_string(),
            }),
        })
    }

    /// Brings a run of an older version to today's, unless it is in the middle of a node that works
    /// otherwise now: what that was answered would not fit what it asks.
    fn migrate(&mut self) -> Result<(), EngineError> {
        let progress = &self.desk.progress;
        let version = progress.graph_version;
        if version == G::VERSION || progress.ended.is_some() {
            return Ok(());
        }
        let (graph, table) = (&self.inner.graph, &self.inner.table);
        let mut open = progress.clone();
        open.pending = None;
        if !progress.journal.is_empty()
            && let NextRunStep::Enter { node, .. } = load::next(graph, table, &open, &self.state)
            && !graph.rederives(node, version)
        {
            return Err(EngineError::OpenVisit {
                run: progress.run.clone(),
                node: node.name(),
            });
        }
        let noted = self.desk.note(EventBody::Migrated {
            from: version,
            to: G::VERSION,
        });
        self.settle(noted)
    }

    async fn go(&mut self) -> Result<RestReason, EngineError> {
        loop {
            self.take_signals().await?;
            let (graph, table) = (&self.inner.graph, &self.inner.table);
            let step = load::next(graph, table, &self.desk.progress, &self.state);
            match step {
                NextRunStep::Done(ended) => {
                    // Sealed already; only the place in the queue may be missing.
                    let rested = self.desk.commit(LeaseAfterAppend::Done, None).await;
                    self.settle(rested)?;
                    return Ok(RestReason::Done(ended));
                }
                NextRunStep::Await(pending) => return self.wait(pending).await,
                NextRunStep::Cancel => {
                    let (by, reason) = match &self.desk.progress.cancel {
                        Some((by, reason)) => (by.to_string(), reason.clone()),
                        None => (String::new(), String::new()),
                    };
                    let open = self.open_effects();
                    let summary = format!("cancelled by {by}: {reason}{open}");
                    return self
                        .end(RunEnding::Cancelled, RunExit::Failed, summary)
                        .await;
                }
                NextRunStep::Halt(summary) => {
                    return self.end(RunEnding::Halted, RunExit::Failed, summary).await;
                }
                NextRunStep::Finish => return self.finish().await,
                NextRunStep::Enter { node, visit } => {
                    let span = tracing::error_span!("visit", node = node.name(), visit);
                    if let Some(rested) = self.visit(node, visit).instrument(span).await? {
                        return Ok(rested);
                    }
                }
            }
        }
    }

    /// Says of which effects outside the end is not known.
    fn open_effects(&self) -> String {
        let open = self
            .desk
            .progress
            .journal
            .values()
            .filter_map(|entry| match entry {
                crate::progress::JournalEntry::Effect(effect) if effect.result.is_none() => {
                    Some(effect.name.as_str())
                }
                _ => None,
            });
        let open: Vec<_> = open.collect();
        if open.is_empty() {
            String::new()
        } else {
            format!(" (may or may not have been done: {})", open.join(", "))
        }
    }

    async fn wait(&mut self, pending: PendingWait) -> Result<RestReason, EngineError> {
        let wake_ms = pending.interrupt.wake_ms();
        let rested = self
            .desk
            .commit(LeaseAfterAppend::Suspend { wake_ms }, None)
            .await;
        self.settle(rested)?;
        Ok(RestReason::Waiting(pending))
    }

    async fn take_signals(&mut self) -> Result<(), EngineError> {
        let taken = self.desk.take_signals().await;
        self.settle(taken)
    }

    /// One visit. `None` where the run goes on.
    async fn visit(
        &mut self,
        node: G::Node,
        visit: u32,
    ) -> Result<Option<RestReason>, EngineError> {
        if let Some(hears) = &self.inner.options.on_visit {
            hears(&self.desk.scribe.lease.run, node.name(), visit);
        }
        tracing::info!("node entered");
        let (state, scribe) = (Arc::clone(&self.state), Arc::clone(&self.desk.scribe));
        let mut ctx = NodeContext::new(&mut self.desk, node.name(), visit);
        let body = self.inner.graph.visit(node, &state, &mut ctx);
        let mut left = linger::attend(body, &scribe).await;
        if left.is_ok()
            && let Err(stop) = ctx.finish().await
        {
            left = Err(stop);
        }
        drop(state);
        match left {
            Ok(leave) => {
                tracing::info!(outcome = leave.outcome.name(), "node left");
                self.leave(node, visit, leave).await
            }
            Err(VisitStop::Suspended) => match self.desk.progress.pending.clone() {
                Some(pending) => Ok(Some(RestReason::Waiting(pending))),
                None => self.halt("a node waited for nothing".to_owned()).await,
            },
            Err(VisitStop::Cancelled) => {
                if self.desk.progress.cancel.is_none() {
                    self.desk
                        .scribe
                        .live
                        .signalled
                        .store(true, Ordering::Release);
                    self.take_signals().await?;
                }
                Ok(None)
            }
            Err(VisitStop::Paused) => {
                let rested = self.desk.commit(LeaseAfterAppend::Yield, None).await;
                self.settle(rested)?;
                Ok(Some(RestReason::Paused))
            }
            Err(VisitStop::Halt(summary)) => self.halt(summary).await,
            Err(VisitStop::Effect(error)) => {
                // A budget that is spent is no failure of the work, and can be raised.
                let exit = match error {
                    EffectError::OverBudget { .. } => RunExit::Budget,
                    _ => RunExit::Failed,
                };
                let ended = self.end(RunEnding::Halted, exit, error.to_string()).await?;
                Ok(Some(ended))
            }
            Err(VisitStop::Trouble(message)) => {
                tracing::warn!("the visit is tried again later");
                let backoff = self.inner.options.backoff.as_millis();
                let backoff = u64::try_from(backoff).unwrap_or(u64::MAX);
                let wake_ms = Some(self.desk.now().saturating_add(backoff));
                let rested = self
                    .desk
                    .commit(LeaseAfterAppend::Suspend { wake_ms }, None)
                    .await;
                self.settle(rested)?;
                Ok(Some(RestReason::Trouble(message)))
            }
            Err(stop) => {
                // What the world answered before is kept, if the store still takes anything.
                let _ = scribe.flush().await;
                self.settle(Err(stop)).map(|()| None)
            }
        }
    }

    async fn halt(&mut self, summary: String) -> Result<Option<RestReason>, EngineError> {
        let ended = self
            .end(RunEnding::Halted, RunExit::Failed, summary)
            .await?;
        Ok(Some(ended))
    }

    async fn leave(
        &mut self,
        node: G::Node,
        visit: u32,
        leave: NodeExit<G::Outcome, G::Event>,
    ) -> Result<Option<RestReason>, EngineError> {
        let mut events = Vec::with_capacity(leave.events.len());
        for event in &leave.events {
            let packed = self.desk.pack(event);
            match packed {
                Ok(payload) => events.push(payload),
                Err(error) => return self.halt(format!("{}: {error}", node.name())).await,
            }
        }
        let body = left_body(node, visit, leave.outcome, events);
        let acted = self.desk.progress.entered || !self.desk.progress.journal.is_empty();
        // From here on the state is ahead of the log until the commit; an error drops both.
        for event in &leave.events {
            self.inner
                .graph
                .apply(Arc::make_mut(&mut self.state), event);
        }
        let noted = self.desk.note(body);
        self.settle(noted)?;
        if let Some(stuck) = stuck(&self.inner.graph, &self.desk.progress, node.name()) {
            let noted = self.desk.note(stuck);
            self.settle(noted)?;
        }
        let follow = self.inner.table.follow(node, leave.outcome, &self.state);
        if follow == Some(crate::table::TransitionResult::Done)
            && self.desk.progress.cancel.is_none()
        {
            return self.finish().await.map(Some);
        }
        // Run again after a crash, a visit comes out the same: what it asked for is answered from
        // the journal. So its end is committed with the next thing that cannot be taken back.
        if !self.desk.close_visit(acted) {
            return Ok(None);
        }
        let (state, epoch) = (&*self.state, self.desk.scribe.lease.epoch);
        let last_at = self.desk.scribe.sheet().last_at;
        let snap = |progress: &RunProgress| load::to_snapshot::<G>(progress, state, epoch, last_at);
        let committed = self.desk.commit(LeaseAfterAppend::Keep, Some(&snap)).await;
        self.settle(committed)?;
        Ok(None)
    }

    async fn finish(&mut self) -> Result<RestReason, EngineError> {
        let RunEndReport { exit, summary } = self.inner.graph.report(&self.state);
        self.end(RunEnding::Completed, exit, summary).await
    }

    async fn end(
        &mut self,
        ending: RunEnding,
        exit: RunExit,
        summary: String,
    ) -> Result<RestReason, EngineError> {
        tracing::info!(?ending, ?exit, "run ended");
        let ended = RunEnd {
            ending,
            exit,
            summary: summary.clone(),
        };
        let noted = self.desk.note(EventBody::RunEnded {
            ending,
            exit,
            summary,
        });
        self.settle(noted)?;
        let committed = self.desk.commit(LeaseAfterAppend::Done, None).await;
        self.settle(committed)?;
        Ok(RestReason::Done(ended))
    }
}

/// The event that ends a visit.
pub(crate) fn left_body<N: GraphLabel, O: GraphLabel>(
    node: N,
    visit: u32,
    outcome: O,
    events: Vec<EventPayload>,
) -> EventBody {
    EventBody::NodeLeft {
        node: node.name().to_owned(),
        visit,
        outcome: outcome.name().to_owned(),
        events,
    }
}

/// The event that says a run is stuck, if the visit that just ended shows it.
pub(crate) fn stuck<G: Graph>(graph: &G, progress: &RunProgress, node: &str) -> Option<EventBody> {
    let guard = graph.loop_guard()?;
    (progress.repeats_of_last() >= guard.repeats).then(|| EventBody::StuckDetected {
        node: node.to_owned(),
        strikes: progress.strikes + 1,
    })
}
