//! From a log to a state: fold, snapshots, and the step that follows. `next` is pure.

use std::collections::HashMap;
use std::sync::Arc;

use lula_protocol::event::LogChain;
use lula_protocol::payload::PayloadError;
use lula_protocol::{Digest, EventBody, EventPayload, RunId};
use lula_store::{LogHead, LogRecord, RunStore, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::graph::{Graph, GraphLabel};
use crate::progress::{PendingWait, RunEnd, RunProgress};
use crate::table::{TransitionResult, TransitionTable};

const PAGE: u32 = 512;

/// A run at one position of its log.
#[derive(Debug, Clone)]
pub struct RunState<S> {
    /// What the engine knows.
    pub progress: RunProgress,
    /// What the graph's events add up to.
    pub state: Arc<S>,
}

impl<S: Serialize> RunState<S> {
    /// Digest of the graph's state, the same wherever and however often it was arrived at.
    pub fn digest(&self) -> Result<Digest, PayloadError> {
        Ok(Digest::of(
            lula_protocol::digest::DigestDomain::State,
            &*self.state,
        )?)
    }
}

/// What a run does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextRunStep<N> {
    /// Goes into a node.
    Enter {
        node: N,
        /// How often it was left before.
        visit: u32,
    },
    Await(PendingWait),
    /// Stops, because a signal asked for it.
    Cancel,
    /// Stops, because it leads nowhere.
    Halt(String),
    /// Comes to its end.
    Finish,
    /// Nothing: the run has ended.
    Done(RunEnd),
}

/// What a run does next. A pure function of its state.
pub(crate) fn next<G: Graph>(
    graph: &G,
    table: &TransitionTable<G>,
    progress: &RunProgress,
    state: &G::State,
) -> NextRunStep<G::Node> {
    if let Some(ended) = &progress.ended {
        return NextRunStep::Done(ended.clone());
    }
    if progress.cancel.is_some() {
        return NextRunStep::Cancel;
    }
    if let Some(pending) = &progress.pending {
        return NextRunStep::Await(pending.clone());
    }
    if let Some(guard) = graph.loop_guard()
        && progress.strikes >= guard.strikes
    {
        return NextRunStep::Halt(format!(
            "the run did the same thing again and again ({} times stuck)",
            progress.strikes
        ));
    }
    let node = match &progress.last {
        None => table.start(),
        Some((node, outcome)) => {
            let labels = G::Node::from_name(node).zip(G::Outcome::from_name(outcome));
            let follow = labels.and_then(|(node, outcome)| table.follow(node, outcome, state));
            match follow {
                Some(TransitionResult::Node(node)) => node,
                Some(TransitionResult::Done) => return NextRunStep::Finish,
                None => {
                    return NextRunStep::Halt(format!(
                        "no way leads on from {node} after {outcome}"
                    ));
                }
            }
        }
    };
    if progress.total_visits >= progress.max_visits {
        return NextRunStep::Halt(format!(
            "the run reached its limit of {} visits",
            progress.max_visits
        ));
    }
    let visit = progress.visits_to(node.name());
    NextRunStep::Enter { node, visit }
}

/// Large values of events, by digest.
pub(crate) type Blobs = HashMap<Digest, Vec<u8>>;

fn read_payload<T: DeserializeOwned>(
    payload: &EventPayload,
    blobs: &Blobs,
) -> Result<T, PayloadError> {
    match payload {
        EventPayload::Inline(_) => payload.read(),
        EventPayload::Blob(reference) => match blobs.get(&reference.digest) {
            Some(bytes) => Ok(serde_json::from_slice(bytes)?),
            None => Err(PayloadError::NotLoaded(reference.digest)),
        },
    }
}

/// The state after the first event.
pub(crate) fn begin<G: Graph>(
    graph: &G,
    run: &RunId,
    body: &EventBody,
    blobs: &Blobs,
) -> Result<RunState<G::State>, EngineError> {
    let progress =
        RunProgress::begin(run.clone(), body).map_err(|source| EngineError::History {
            run: run.clone(),
            source,
        })?;
    let EventBody::RunStarted { input, .. } = body else {
        return Err(EngineError::Store(StoreError::NoRun(run.clone())));
    };
    let input = read_payload(input, blobs).map_err(|e| EngineError::payload(run, 0, e))?;
    Ok(RunState {
        progress,
        state: Arc::new(graph.begin(input)),
    })
}

/// Applies what an event says to the graph's state.
pub(crate) fn apply_user<G: Graph>(
    graph: &G,
    state: &mut Arc<G::State>,
    body: &EventBody,
    blobs: &Blobs,
) -> Result<(), PayloadError> {
    let (EventBody::NodeLeft { events, .. } | EventBody::Overridden { events }) = body else {
        return Ok(());
    };
    for payload in events {
        let event = read_payload(payload, blobs)?;
        graph.apply(Arc::make_mut(state), &event);
    }
    Ok(())
}

/// Takes one more event into account.
pub(crate) fn apply<G: Graph>(
    graph: &G,
    run: &mut RunState<G::State>,
    body: &EventBody,
    blobs: &Blobs,
) -> Result<(), EngineError> {
    let seq = run.progress.next_seq;
    let id = run.progress.run.clone();
    run.progress
        .apply(body)
        .map_err(|source| EngineError::History {
            run: id.clone(),
            source,
        })?;
    apply_user(graph, &mut run.state, body, blobs).map_err(|e| EngineError::payload(&id, seq, e))
}

/// The blobs the graph's state needs.
pub(crate) async fn blobs_for(store: &dyn RunStore, body: &EventBody) -> Result<Blobs, StoreError> {
    let mut blobs = Blobs::new();
    let needed = matches!(
        body,
        EventBody::RunStarted { .. } | EventBody::NodeLeft { .. } | EventBody::Overridden { .. }
    );
    if needed {
        for payload in body.payloads() {
            if let Some(reference) = payload.blob() {
                blobs.insert(reference.digest, store.blob(&reference.digest).await?);
            }
        }
    }
    Ok(blobs)
}

/// A run as its log tells it, with the end of what was read.
pub(crate) struct LoadedRun<S> {
    pub(crate) run: RunState<S>,
    pub(crate) head: LogHead,
    pub(crate) last_at: u64,
}

/// Reads a log, verifies its chain and folds it up to `until` entries, or to its end.
pub(crate) async fn load<G: Graph>(
    graph: &G,
    store: &dyn RunStore,
    id: &RunId,
    until: Option<u64>,
) -> Result<LoadedRun<G::State>, EngineError> {
    let mut loaded = None;
    let mut chain = LogChain::start(id.clone());
    if until.is_none()
        && let Some((run, snapshot_chain, last_at)) = from_snapshot::<G>(store, id).await?
    {
        chain = snapshot_chain;
        loaded = Some((run, last_at));
    }
    let end = until.unwrap_or(u64::MAX);
    loop {
        let left = end.saturating_sub(chain.len());
        let limit = u32::try_from(left).unwrap_or(PAGE).min(PAGE);
        if limit == 0 {
            break;
        }
        let page = store.read(id, chain.len(), limit).await?;
        if page.is_empty() {
            break;
        }
        LogRecord::verify(&mut chain, &page)?;
        for record in &page {
            let body = record.read_body()?;
            let blobs = blobs_for(store, &body).await?;
            match &mut loaded {
                None => loaded = Some((begin(graph, id, &body, &blobs)?, record.at_ms)),
                Some((run, last_at)) => {
                    apply(graph, run, &body, &blobs)?;
                    *last_at = record.at_ms;
                }
            }
        }
    }
    let (run, last_at) = loaded.ok_or_else(|| StoreError::NoRun(id.clone()))?;
    if !graph.supports(run.progress.graph_version) {
        return Err(EngineError::Version {
            run: id.clone(),
            graph: G::NAME.to_owned(),
            version: run.progress.graph_version,
        });
    }
    let head = LogHead {
        next: chain.len(),
        hash: chain.head(),
    };
    Ok(LoadedRun { run, head, last_at })
}

/// The shape of snapshots. One of another shape is not read.
const SNAPSHOT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct SnapshotBody<S> {
    shape: u32,
    graph: String,
    version: u32,
    epoch: u64,
    last_at: u64,
    progress: RunProgress,
    state: S,
}

/// A snapshot: the digest of what follows, and what follows.
pub(crate) fn to_snapshot<G: Graph>(
    progress: &RunProgress,
    state: &G::State,
    epoch: u64,
    last_at: u64,
) -> Option<Vec<u8>> {
    let body = SnapshotBody {
        shape: SNAPSHOT,
        graph: G::NAME.to_owned(),
        version: G::VERSION,
        epoch,
        last_at,
        progress: progress.clone(),
        state,
    };
    let body = serde_json::to_vec(&body).ok()?;
    let mut bytes = Digest::of_bytes(&body).as_bytes().to_vec();
    bytes.extend(body);
    Some(bytes)
}

type FromSnapshot<S> = Option<(RunState<S>, LogChain, u64)>;

/// A snapshot is a cache: one that is broken, of another shape or not of this log is as good as
/// none.
async fn from_snapshot<G: Graph>(
    store: &dyn RunStore,
    id: &RunId,
) -> Result<FromSnapshot<G::State>, EngineError> {
    let Some(snapshot) = store.snapshot(id).await? else {
        return Ok(None);
    };
    let Some((digest, body)) = snapshot.bytes.split_first_chunk::<32>() else {
        return Ok(None);
    };
    if Digest::of_bytes(body).as_bytes() != digest {
        return Ok(None);
    }
    let Ok(body) = serde_json::from_slice::<SnapshotBody<G::State>>(body) else {
        return Ok(None);
    };
    let fits = body.shape == SNAPSHOT
        && body.graph == G::NAME
        && body.version == G::VERSION
        && body.progress.run == *id
        && body.progress.next_seq == snapshot.head.next;
    let last = snapshot.head.next.saturating_sub(1);
    let in_log = store.read(id, last, 1).await?;
    let in_log = in_log
        .first()
        .is_some_and(|record| record.hash == snapshot.head.hash);
    if !fits || !in_log {
        return Ok(None);
    }
    let chain = LogChain::resume(
        id.clone(),
        snapshot.head.next,
        body.epoch,
        snapshot.head.hash,
    );
    let run = RunState {
        progress: body.progress,
        state: Arc::new(body.state),
    };
    Ok(Some((run, chain, body.last_at)))
}
