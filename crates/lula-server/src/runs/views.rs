//! Runs as documents.

use lula_agents::CodingState;
use lula_graph::RunState;
use lula_host::history::listing::is_driven;
use lula_host::otlp::TraceContext;
use lula_host::report::{RunReport, waiting_for};
use lula_protocol::RunInterrupt;
use lula_store::RunRow;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::summaries::RunSummary;
use crate::problem::{ApiRefusal, ApiResult};
use crate::state::ServerState;

/// A document whose fields are those of the command line's.
#[derive(Debug, Serialize, ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct OpenDocument(pub(crate) Value);

/// What a run waits for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PendingView {
    /// `approval`, `held`, `operator`, `budget`, `timer`, `unknown_effect` or `non_determinism`.
    kind: String,
    /// The same in words.
    reason: String,
    /// The question to answer below `/v1/approvals`, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<String>,
    /// What can be chosen below `/v1/runs/{run}/answers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
}

/// A run with its whole report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunView {
    #[serde(flatten)]
    summary: RunSummary,
    /// The trace that the run belongs to.
    trace_id: String,
    /// What the run waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<PendingView>,
    /// Why the last driver did not bring it to rest, where it is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<OpenDocument>,
    /// The whole report, as `lula show --json` has it.
    report: OpenDocument,
}

/// The plan that several agents share.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanView {
    run: String,
    /// The steps, what each needs and how far it is; nothing where there is no plan.
    plan: Option<OpenDocument>,
}

impl PlanView {
    pub(crate) fn of(known: &RunState<CodingState>) -> ApiResult<Self> {
        let plan = RunReport::of(known).plan;
        let plan = plan.as_ref().map(document).transpose()?;
        Ok(Self {
            run: known.progress.run.to_string(),
            plan,
        })
    }
}

impl PendingView {
    fn of(known: &RunState<CodingState>) -> Option<Self> {
        if known.progress.ended.is_some() {
            return None;
        }
        let interrupt = &known.progress.pending.as_ref()?.interrupt;
        let (kind, approval) = match interrupt {
            RunInterrupt::Approval { approval, .. } => ("approval", Some(approval)),
            RunInterrupt::Held { approval, .. } => ("held", Some(approval)),
            RunInterrupt::Operator { .. } => ("operator", None),
            RunInterrupt::Budget { .. } => ("budget", None),
            RunInterrupt::Timer { .. } => ("timer", None),
            RunInterrupt::UnknownEffect { .. } => ("unknown_effect", None),
            RunInterrupt::NonDeterminism { .. } => ("non_determinism", None),
        };
        let options = match approval {
            Some(_) => Vec::new(),
            None => interrupt
                .options()
                .iter()
                .map(ToString::to_string)
                .collect(),
        };
        Some(Self {
            kind: kind.to_owned(),
            reason: waiting_for(interrupt),
            approval: approval.map(ToString::to_string),
            options,
        })
    }
}

/// A value as a document.
pub(super) fn document(value: &impl Serialize) -> ApiResult<OpenDocument> {
    let value = serde_json::to_value(value);
    value
        .map(OpenDocument)
        .map_err(|error| ApiRefusal::internal(&error))
}

impl RunView {
    /// A run as it is now.
    pub(crate) async fn of(row: &RunRow, state: &ServerState) -> ApiResult<Self> {
        let known = state.reader.show(&row.run, None).await?;
        let driven = is_driven(row) || state.drivers.has(&row.run);
        let mut report = RunReport::of(&known);
        if driven {
            report.status = "running";
            report.summary = String::new();
        }
        let trouble = if driven || known.progress.ended.is_some() {
            None
        } else {
            lula_host::drive::background::failure(&row.run, &state.installation)?
        };
        let summary = state.summaries.of(row, state).await;
        let traceparent = known.state.task.traceparent.as_deref();
        let none = || ApiRefusal::internal(&"the run cannot be summed up");
        Ok(Self {
            summary: summary.ok_or_else(none)?,
            trace_id: TraceContext::of(&row.run, traceparent).trace.to_string(),
            pending: PendingView::of(&known).filter(|_| !driven),
            trouble: trouble.as_ref().map(document).transpose()?,
            report: document(&report)?,
        })
    }
}
