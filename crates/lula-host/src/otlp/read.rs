//! The trace of a run, with the runs of its agents.

use std::sync::Arc;

use lula_protocol::RunId;
use lula_store::RunStore;
use serde::Serialize;

use super::context::{SpanId, TraceContext, TraceId};
use super::fold::{ReadEntry, SpanFold};
use super::span::RunSpan;
use crate::error::HostError;
use crate::runs::reader;
use crate::story::StoryTeller;
use crate::story::follow::fetch;

/// All spans of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunTrace {
    #[serde(rename = "trace_id")]
    pub id: TraceId,
    #[serde(skip)]
    pub(super) run: RunId,
    pub spans: Vec<RunSpan>,
}

async fn entries(store: &dyn RunStore, run: &RunId) -> Result<Vec<ReadEntry>, HostError> {
    let mut teller = StoryTeller::default();
    let mut entries = Vec::new();
    loop {
        let page = store.read(run, entries.len() as u64, 256).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        for record in page {
            let body = record.read_body()?;
            let mut values = Vec::new();
            for payload in body.payloads() {
                values.push(fetch(store, payload).await);
            }
            let moment = teller.tell((record.seq, record.at_ms), &body, &values);
            entries.push(ReadEntry {
                body,
                values,
                moment,
            });
        }
    }
}

impl RunTrace {
    /// Reads the log of a run and those of its agents.
    pub async fn read(store: &Arc<dyn RunStore>, run: &RunId) -> Result<Self, HostError> {
        let known = reader(Arc::clone(store))?.show(run, None).await?;
        let task = &known.state.task;
        let context = TraceContext::of(run, task.traceparent.as_deref());
        let root: SpanId = TraceContext::root(run);
        let own = entries(&**store, run).await?;
        let mut spans = SpanFold::of(run, context.parent, None, &own);
        for (step, agent) in known.state.agents(run) {
            if store.run(&agent).await?.is_none() {
                continue;
            }
            let theirs = entries(&**store, &agent).await?;
            spans.extend(SpanFold::of(
                &agent,
                Some(root),
                Some(step.as_str()),
                &theirs,
            ));
        }
        Ok(Self {
            id: context.trace,
            run: run.clone(),
            spans,
        })
    }

    /// The same without what was asked for and what came of it.
    #[must_use]
    pub fn without_content(mut self) -> Self {
        for span in &mut self.spans {
            span.attributes.without_content();
        }
        self
    }
}
