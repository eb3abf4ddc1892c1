//! Fork: another run that begins with the first events of one that was, and goes on otherwise.

use lula_protocol::event::ParentRun;
use lula_protocol::{EventBody, EventPayload, RunId};
use lula_store::{Blob, LedgerRow, LogHead, LogRecord, NewRun, StoreError};

use crate::engine::{GraphEngine, random};
use crate::error::EngineError;
use crate::graph::Graph;
use crate::load;

impl<G: Graph> GraphEngine<G> {
    /// Forks a run after its first `at` events, with things set otherwise. The fork waits in the
    /// queue. Its log is complete in itself: it can be replayed, exported and verified alone.
    ///
    /// A run can be forked where no visit is under way: half of what a node did belongs to a node
    /// that will not end the same way.
    pub async fn fork(
        &self,
        id: &RunId,
        at: u64,
        set: &[(String, String)],
    ) -> Result<RunId, EngineError> {
        let inner = &self.inner;
        let row = inner.store.run(id).await?;
        let row = row.ok_or_else(|| StoreError::NoRun(id.clone()))?;
        let no = |why: String| EngineError::Fork {
            run: id.clone(),
            at,
            why,
        };
        if at == 0 || at > row.head.next {
            return Err(no(format!("its log has entries 1 to {}", row.head.next)));
        }
        let loaded = load::load(&inner.graph, &*inner.store, id, Some(at)).await?;
        let progress = &loaded.run.progress;
        if progress.ended.is_some() {
            return Err(no("the run had ended there".to_owned()));
        }
        if progress.entered || !progress.journal.is_empty() || progress.pending.is_some() {
            let boundary = self.boundary_before(id, at).await?;
            return Err(no(format!(
                "a visit was under way; the nearest place is {boundary}"
            )));
        }
        let now_ms = inner.clock.now_ms();
        let fork = RunId::from_parts(now_ms, random()?);
        let (mut bodies, mut blobs) = self.copied(id, at).await?;
        let parent = ParentRun {
            run: id.clone(),
            seq: at - 1,
        };
        if let Some(EventBody::RunStarted { parent: of, .. }) = bodies.first_mut() {
            *of = Some(parent.clone());
        }
        let mut events = Vec::new();
        for (key, value) in set {
            let event = inner
                .graph
                .set(&loaded.run.state, key, value)
                .map_err(&no)?;
            let packed = EventPayload::pack(&event).map_err(|e| EngineError::payload(id, at, e))?;
            blobs.extend(packed.blob.map(|(digest, bytes)| Blob { digest, bytes }));
            events.push(packed.payload);
        }
        if !events.is_empty() {
            bodies.push(EventBody::Overridden { events });
        }
        let (records, _) = LogRecord::continue_log(&fork, LogHead::empty(), 0, now_ms, &bodies)?;
        let ledger = progress
            .ledger
            .rows(lula_protocol::BudgetDimension::ALL.into_iter());
        inner
            .store
            .create(NewRun {
                run: fork.clone(),
                tenant: row.tenant,
                graph: row.graph,
                graph_version: progress.graph_version,
                parent: Some(parent),
                records,
                blobs,
                ledger: ledger.into_iter().filter(LedgerRow::holds).collect(),
                epoch: 0,
                claim: None,
            })
            .await?;
        Ok(fork)
    }

    /// The events a fork takes over. Seals are left behind: they vouch for another log.
    async fn copied(
        &self,
        id: &RunId,
        at: u64,
    ) -> Result<(Vec<EventBody>, Vec<Blob>), EngineError> {
        let store = &self.inner.store;
        let mut bodies = Vec::new();
        let mut blobs = Vec::new();
        let mut seq = 0;
        while seq < at {
            let limit = u32::try_from(at - seq).unwrap_or(512).min(512);
            let page = store.read(id, seq, limit).await?;
            if page.is_empty() {
                break;
            }
            seq += page.len() as u64;
            for record in page {
                let body = record.read_body()?;
                for payload in body.payloads() {
                    let Some(reference) = payload.blob() else {
                        continue;
                    };
                    match store.blob(&reference.digest).await {
                        Ok(bytes) => blobs.push(Blob {
                            digest: reference.digest,
                            bytes,
                        }),
                        // What a visit was told that is over is not needed to go on.
                        Err(StoreError::Dropped(_)) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                if !matches!(body, EventBody::Sealed { .. }) {
                    bodies.push(body);
                }
            }
        }
        Ok((bodies, blobs))
    }

    /// The last position up to `at` where no visit was under way.
    async fn boundary_before(&self, id: &RunId, at: u64) -> Result<u64, EngineError> {
        let mut boundary = 1;
        let mut seq = 0;
        'log: while seq < at {
            let page = self.inner.store.read(id, seq, 512).await?;
            if page.is_empty() {
                break;
            }
            for record in page {
                if record.seq >= at {
                    break 'log;
                }
                seq = record.seq + 1;
                if matches!(record.read_body()?, EventBody::NodeLeft { .. }) {
                    boundary = seq;
                }
            }
        }
        Ok(boundary)
    }
}
