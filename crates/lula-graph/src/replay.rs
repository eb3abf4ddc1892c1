//! Replay: every decision of a run derived again from what was recorded, and compared.
//!
//! What came from outside (answers of the world, votes, clocks, signatures) is taken from the log;
//! everything the engine and the graph decided has to come out the same, event by event. Nothing is
//! done and nothing is written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lula_protocol::event::RunEnding;
use lula_protocol::{EventBody, EventPayload, RunId};
use lula_store::{LogHead, LogRecord, RunLease, StoreError};
use serde::Serialize;

use crate::ctx::NodeContext;
use crate::desk::EngineDesk;
use crate::drive::{left_body, stuck};
use crate::engine::{DrivenRun, GraphEngine};
use crate::error::EngineError;
use crate::graph::{Graph, GraphLabel};
use crate::load::{self, NextRunStep, RunState};
use crate::scribe::RunLogWriter;
use crate::seal::verify_seal;
use crate::signals;
use crate::stop::VisitStop;
use crate::world::EffectWorld;

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// The run that was replayed.
    pub run: RunId,
    pub events: u64,
    pub visits: u64,
    /// Digest of the state it came to.
    pub state: lula_protocol::Digest,
    /// Where it came out otherwise; empty for a faithful log.
    pub differences: Vec<ReplayDifference>,
    /// Visits that cannot be run again, by the position of their end: what they were told was
    /// dropped to make room.
    pub dropped: Vec<u64>,
    /// Visits of nodes that work otherwise since the version of the run, by the position of their end:
    /// what came of them is taken as it was recorded.
    pub older: Vec<u64>,
    /// Looks and edits that came out otherwise, where they were done again.
    pub drift: Vec<ReplayDrift>,
}

/// A decision that comes out otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayDifference {
    /// Position in the log.
    pub seq: u64,
    pub what: String,
}

/// A look or an edit that came out otherwise when it was done again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplayDrift {
    pub name: String,
    /// Position in its visit's journal.
    pub ordinal: u32,
}

impl<G: Graph> GraphEngine<G> {
    /// Derives a run again from its log.
    pub async fn replay(&self, id: &RunId) -> Result<ReplayReport, EngineError> {
        self.replay_in(id, None).await
    }

    /// Derives a run again from its log, and does its looks and edits again in a world made for
    /// that (a clean workspace at the recorded base), to see what has drifted.
    pub async fn replay_tools(
        &self,
        id: &RunId,
        world: Arc<dyn EffectWorld>,
    ) -> Result<ReplayReport, EngineError> {
        self.replay_in(id, Some(world)).await
    }

    async fn replay_in(
        &self,
        id: &RunId,
        rerun: Option<Arc<dyn EffectWorld>>,
    ) -> Result<ReplayReport, EngineError> {
        let inner = &self.inner;
        let mut records = Vec::new();
        loop {
            let page = inner.store.read(id, records.len() as u64, 512).await?;
            if page.is_empty() {
                break;
            }
            records.extend(page);
        }
        let mut chain = lula_protocol::event::LogChain::start(id.clone());
        LogRecord::verify(&mut chain, &records)?;
        let Some(first) = records.first() else {
            return Err(StoreError::NoRun(id.clone()).into());
        };
        let body = first.read_body()?;
        let blobs = load::blobs_for(&*inner.store, &body).await?;
        let run = load::begin(&inner.graph, id, &body, &blobs)?;
        let mut replay = Replay {
            engine: self,
            run,
            rerun,
            visits: 0,
            differences: Vec::new(),
            dropped: Vec::new(),
            older: Vec::new(),
            drift: Vec::new(),
        };
        for record in &records[1..] {
            replay.follow(record).await?;
        }
        replay.last_visit().await;
        let state = replay
            .run
            .digest()
            .map_err(|error| EngineError::payload(id, records.len() as u64, error))?;
        Ok(ReplayReport {
            run: id.clone(),
            events: records.len() as u64,
            visits: replay.visits,
            state,
            differences: replay.differences,
            dropped: replay.dropped,
            older: replay.older,
            drift: replay.drift,
        })
    }
}

struct Replay<'e, G: Graph> {
    engine: &'e GraphEngine<G>,
    run: RunState<G::State>,
    rerun: Option<Arc<dyn EffectWorld>>,
    visits: u64,
    differences: Vec<ReplayDifference>,
    dropped: Vec<u64>,
    older: Vec<u64>,
    drift: Vec<ReplayDrift>,
}

impl<G: Graph> Replay<'_, G> {
    fn differ(&mut self, seq: u64, what: impl Into<String>) {
        self.differences.push(ReplayDifference {
            seq,
            what: what.into(),
        });
    }

    fn rederives(&self, node: G::Node) -> bool {
        let version = self.run.progress.graph_version;
        self.engine.inner.graph.rederives(node, version)
    }

    /// Whether an entry was taken over from the run this one was forked from.
    fn is_taken_over(&self, seq: u64) -> bool {
        let parent = self.run.progress.parent.as_ref();
        parent.is_some_and(|parent| seq <= parent.seq)
    }

    async fn follow(&mut self, record: &LogRecord) -> Result<(), EngineError> {
        let body = record.read_body()?;
        let seq = record.seq;
        match &body {
            EventBody::NodeEntered { node, visit } => match self.engine.next(&self.run) {
                NextRunStep::Enter {
                    node: next,
                    visit: nth,
                } if next.name() == node && nth == *visit => {}
                other => self.differ(seq, format!("{node} was entered, next is {other:?}")),
            },
            EventBody::NodeLeft { .. } => self.leave(seq, &body).await,
            EventBody::Resolved { .. } => self.resolved(record, &body),
            EventBody::StuckDetected { node, .. } => {
                let again = stuck(&self.engine.inner.graph, &self.run.progress, node);
                if again.as_ref() != Some(&body) {
                    self.differ(seq, format!("stuck was {body:?}, now {again:?}"));
                }
            }
            EventBody::RunEnded {
                ending,
                exit,
                summary,
            } => self.ended(seq, *ending, *exit, summary),
            EventBody::HeadRead { head, .. }
                if *head != record.previous && !self.is_taken_over(seq) =>
            {
                self.differ(seq, format!("the log held {}, not {head}", record.previous));
            }
            EventBody::Sealed { key, signature }
                if !verify_seal(key, signature, &record.previous) =>
            {
                self.differ(seq, "the seal does not fit the log");
            }
            _ => {}
        }
        let blobs = load::blobs_for(&*self.engine.inner.store, &body).await?;
        load::apply(&self.engine.inner.graph, &mut self.run, &body, &blobs)
    }

    fn resolved(&mut self, record: &LogRecord, body: &EventBody) {
        let by_itself = matches!(
            body,
            EventBody::Resolved { answer, .. }
                if !matches!(answer, lula_protocol::InterruptAnswer::Chose { .. })
        );
        if by_itself {
            let again = signals::wait_over(&self.run.progress, record.at_ms);
            if again.as_ref() != Some(body) {
                self.differ(
                    record.seq,
                    format!("the wait ended with {body:?}, now {again:?}"),
                );
            }
        }
    }

    fn ended(&mut self, seq: u64, ending: RunEnding, exit: lula_protocol::RunExit, summary: &str) {
        let step = self.engine.next(&self.run);
        let same = match ending {
            RunEnding::Completed => {
                let report = self.engine.inner.graph.report(&self.run.state);
                // An earlier version may have said the same in other words.
                let older = self.run.progress.graph_version != G::VERSION;
                step == NextRunStep::Finish
                    && report.exit == exit
                    && (older || report.summary == summary)
            }
            RunEnding::Cancelled => step == NextRunStep::Cancel,
            // A halt inside a visit is seen by the visit that is run again.
            RunEnding::Halted => matches!(step, NextRunStep::Halt(_) | NextRunStep::Enter { .. }),
        };
        if !same {
            self.differ(
                seq,
                format!("the run ended with {summary:?}, next is {step:?}"),
            );
        }
    }

    async fn leave(&mut self, seq: u64, recorded: &EventBody) {
        let NextRunStep::Enter { node, visit } = self.engine.next(&self.run) else {
            let next = self.engine.next(&self.run);
            self.differ(seq, format!("a node was left, next is {next:?}"));
            return;
        };
        match self.visit(node, visit).await {
            Ok(again) if again == *recorded => {}
            Err(VisitStop::Store(StoreError::Dropped(_))) => self.dropped.push(seq),
            _ if !self.rederives(node) => self.older.push(seq),
            Ok(again) => self.differ(seq, format!("{} ends otherwise: {again:?}", node.name())),
            Err(stop) => self.differ(seq, format!("{} stops: {stop}", node.name())),
        }
    }

    /// A visit that did not end is run as far as its journal goes.
    async fn last_visit(&mut self) {
        let seq = self.run.progress.next_seq;
        if self.run.progress.journal.is_empty() {
            return;
        }
        let mut open = self.run.clone();
        // How it ended is known; how it came there is looked at.
        open.progress.ended = None;
        open.progress.cancel = None;
        open.progress.pending = None;
        let NextRunStep::Enter { node, visit } = self.engine.next(&open) else {
            return;
        };
        let before = std::mem::replace(&mut self.run, open);
        let stop = self.visit(node, visit).await;
        self.run = before;
        if let Err(VisitStop::NonDeterminism { ordinal, .. }) = stop
            && self.rederives(node)
        {
            self.differ(
                seq,
                format!("{} asks otherwise at call {ordinal}", node.name()),
            );
        }
    }

    /// Runs the body of a visit against its journal.
    async fn visit(&mut self, node: G::Node, visit: u32) -> Result<EventBody, VisitStop> {
        self.visits += 1;
        let inner = &self.engine.inner;
        let lease = RunLease {
            run: self.run.progress.run.clone(),
            epoch: 0,
            head: LogHead::empty(),
        };
        let scribe = RunLogWriter::new(
            Arc::clone(&inner.store),
            Arc::clone(&inner.clock),
            Arc::clone(&inner.options),
            Arc::new(DrivenRun::new(
                Instant::now() + Duration::from_hours(1),
                true,
            )),
            lease,
            (LogHead::empty(), 0),
        );
        let progress = self.run.progress.clone();
        let mut desk = EngineDesk::new(Arc::new(scribe), Arc::clone(&inner.world), progress);
        desk.replay = true;
        desk.rerun.clone_from(&self.rerun);
        let mut ctx = NodeContext::new(&mut desk, node.name(), visit);
        let left = inner.graph.visit(node, &self.run.state, &mut ctx).await;
        let finished = match left {
            Ok(left) => ctx.finish().await.map(|()| left),
            Err(stop) => Err(stop),
        };
        self.drift.append(&mut desk.drift);
        let left = finished?;
        let mut events = Vec::with_capacity(left.events.len());
        for event in &left.events {
            let packed =
                EventPayload::pack(event).map_err(|error| VisitStop::Halt(error.to_string()))?;
            events.push(packed.payload);
        }
        Ok(left_body(node, visit, left.outcome, events))
    }
}
