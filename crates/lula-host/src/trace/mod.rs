//! How a run went, as data: its moments laid out in time, its agents beside each other, and the page
//! that is made of both.

mod lanes;
mod page;
mod timeline;

use std::sync::Arc;
use std::time::Duration;

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_protocol::RunId;
use lula_protocol::units::rough_duration;
use lula_store::RunStore;
use serde::Serialize;

use crate::error::HostError;
use crate::otlp::RunTrace;
use crate::report::RunReport;
use crate::runs::reader;
use crate::standing::RunStanding;
use crate::story::StoryEvent;
use crate::story::follow::RunLogFollower;

pub use lanes::TraceLane;
pub(crate) use timeline::times;
pub use timeline::{RunTimeline, TraceSpan, TraceVisit};

/// Everything that is known of a run and how it came about.
pub struct Trace {
    /// The run as it stands.
    pub known: RunState<CodingState>,
    /// What is said of it.
    pub report: RunReport,
    /// Where its time went.
    pub timeline: RunTimeline,
    /// What its log says.
    pub moments: Vec<StoryEvent>,
    /// The agents, where there were several.
    pub lanes: Vec<TraceLane>,
    /// Digest of the last entry of the log.
    pub head: String,
    /// The same as OpenTelemetry has it.
    pub spans: RunTrace,
}

/// The same for programs.
#[derive(Serialize)]
pub struct TraceDocument<'a> {
    run: &'a RunId,
    standing: RunStanding,
    summary: &'a str,
    #[serde(flatten)]
    timeline: &'a RunTimeline,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    agents: &'a [TraceLane],
    #[serde(flatten)]
    spans: &'a RunTrace,
}

impl Trace {
    /// Reads the log of a run.
    pub async fn read(store: &Arc<dyn RunStore>, run: &RunId) -> Result<Self, HostError> {
        let known = reader(Arc::clone(store))?.show(run, None).await?;
        let mut moments = Vec::new();
        let mut head = String::new();
        RunLogFollower::new(Arc::clone(store), run.clone())
            .catch_up(|record, moment, _| {
                moments.push(moment.clone());
                head = record.hash.to_string();
            })
            .await?;
        let began_ms = moments.first().map_or(0, |moment| moment.at_ms);
        Ok(Self {
            lanes: lanes::lanes(store, &known, began_ms).await?,
            report: RunReport::of(&known),
            known,
            timeline: RunTimeline::of(&moments),
            moments,
            head,
            spans: RunTrace::read(store, run).await?.without_content(),
        })
    }

    /// The page: one file for a browser.
    pub fn page(&self) -> String {
        page::page(self)
    }

    /// The agents beside each other, where there were several.
    pub fn picture(&self) -> Option<String> {
        // Candidates for the same task wait for nothing.
        let plan = self.report.plan.clone().unwrap_or_default();
        let total = self.timeline.total_ms;
        (!self.lanes.is_empty()).then(|| lanes::svg(&plan, &self.lanes, total))
    }

    pub fn standing(&self) -> RunStanding {
        self.report.standing()
    }

    /// The whole for programs.
    pub fn document(&self) -> TraceDocument<'_> {
        TraceDocument {
            run: &self.known.progress.run,
            standing: self.standing(),
            summary: &self.report.summary,
            timeline: &self.timeline,
            agents: &self.lanes,
            spans: &self.spans,
        }
    }
}

fn spoken(ms: u64) -> String {
    rough_duration(Duration::from_millis(ms))
}
