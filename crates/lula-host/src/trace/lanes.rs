//! The agents of a run beside each other in time, and what each of them waited for.

use std::fmt::Write;
use std::sync::Arc;

use lula_agents::CodingState;
use lula_agents::plan::{PlanGraph, StepId};
use lula_graph::RunState;
use lula_protocol::RunId;
use lula_store::RunStore;
use serde::Serialize;

use super::page::text;
use crate::error::HostError;
use crate::standing::{RunStanding, StandingTone};

/// The work of one agent on the time line.
#[derive(Debug, Clone, Serialize)]
pub struct TraceLane {
    pub task: StepId,
    pub run: RunId,
    /// What came of it, in a word.
    pub standing: RunStanding,
    /// Milliseconds since the run began.
    pub begin_ms: u64,
    /// When it was last heard of.
    pub end_ms: u64,
}

/// The agents of a run, in the order they began.
pub(super) async fn lanes(
    store: &Arc<dyn RunStore>,
    known: &RunState<CodingState>,
    began_ms: u64,
) -> Result<Vec<TraceLane>, HostError> {
    let reader = crate::runs::reader(Arc::clone(store))?;
    let mut lanes = Vec::new();
    for (task, run) in known.state.agents(&known.progress.run) {
        let Some(row) = store.run(&run).await? else {
            continue;
        };
        let at = |record: Option<&lula_store::LogRecord>| {
            record.map_or(0, |record| record.at_ms.saturating_sub(began_ms))
        };
        let first = store.read(&run, 0, 1).await?;
        let last = store.read(&run, row.head.next.saturating_sub(1), 1).await?;
        let agent = reader.show(&run, None).await?;
        lanes.push(TraceLane {
            task,
            standing: agent
                .progress
                .ended
                .as_ref()
                .map_or(RunStanding::Unfinished, |ended| {
                    RunStanding::ended(ended.exit)
                }),
            run,
            begin_ms: at(first.first()),
            end_ms: at(last.first()),
        });
    }
    lanes.sort_by_key(|lane| (lane.begin_ms, lane.task.clone()));
    Ok(lanes)
}

const ROW: usize = 26;
const LEFT: u64 = 170;
const WIDE: u64 = 800;

/// A picture of the lanes, with a line from each task to those that waited for it.
pub(super) fn svg(dag: &PlanGraph, lanes: &[TraceLane], total_ms: u64) -> String {
    let height = lanes.len() * ROW + 20;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" width=\"100%\" \
         role=\"img\" aria-label=\"agents in time\" font-family=\"monospace\" font-size=\"12\">",
        LEFT + WIDE + 20
    );
    let x = |ms: u64| LEFT + ms.min(total_ms).saturating_mul(WIDE) / total_ms.max(1);
    let y = |row: usize| row * ROW + 10;
    for (row, lane) in lanes.iter().enumerate() {
        let colour = match lane.standing.tone() {
            StandingTone::Good => "#2a9d5c",
            StandingTone::Bad => "#c94f4f",
            StandingTone::Active | StandingTone::Open => "#8a8a8a",
        };
        let (begin, end) = (x(lane.begin_ms), x(lane.end_ms));
        let _ = write!(
            out,
            "<text x=\"4\" y=\"{}\" fill=\"currentColor\">{}</text>\n<rect x=\"{begin}\" \
             y=\"{}\" width=\"{}\" height=\"14\" rx=\"2\" fill=\"{colour}\"><title>{} {} \
             {}</title></rect>\n",
            y(row) + 12,
            text(lane.task.as_str()),
            y(row),
            end.saturating_sub(begin).max(2),
            text(lane.task.as_str()),
            text(lane.run.as_str()),
            lane.standing.word(),
        );
        let deps = dag.steps.get(&lane.task).map(|entry| &entry.step.deps);
        for dep in deps.into_iter().flatten() {
            let from = lanes.iter().rposition(|other| other.task == *dep);
            if let Some(from) = from {
                let _ = writeln!(
                    out,
                    "<path d=\"M{} {} L{begin} {}\" stroke=\"#8a8a8a\" fill=\"none\"/>",
                    x(lanes[from].end_ms),
                    y(from) + 7,
                    y(row) + 7,
                );
            }
        }
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_stays_inside_its_frame() {
        let lane = TraceLane {
            task: StepId::new("alpha").unwrap(),
            run: RunId::from_parts(0, [1; 10]),
            standing: RunStanding::Verified,
            begin_ms: 50,
            end_ms: 5000,
        };
        let drawn = svg(&PlanGraph::default(), &[lane], 100);
        assert!(
            drawn.contains("x=\"570\"") && drawn.contains("width=\"400\""),
            "{drawn}"
        );
        assert!(!drawn.contains("<script"));
    }
}
