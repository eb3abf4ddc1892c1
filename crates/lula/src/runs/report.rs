//! What is said of a run: for people and for programs.

use lula_agents::Work;
use lula_agents::choose::Part;
use lula_agents::hands::Delivered;
use lula_agents::recover::Failure as Attempt;
use lula_agents::verdict::{Evidence, Verdict};
use lula_graph::RunState;
use lula_protocol::{Amounts, Dimension, Exit, Interrupt, RunId};
use serde::Serialize;

use super::follow::usd;

/// A run in one document.
#[derive(Debug, Serialize)]
pub(crate) struct RunReport {
    /// The run.
    pub(crate) run: RunId,
    /// How it stands: `done`, or what it waits for.
    pub(crate) status: &'static str,
    /// The exit status of the command, as a word.
    pub(crate) exit: Exit,
    /// In one sentence.
    pub(crate) summary: String,
    task: String,
    base: Option<String>,
    by: Option<String>,
    verdict: Option<Verdict>,
    evidence: Option<Evidence>,
    /// Where the change is.
    pub(crate) delivered: Option<Delivered>,
    files: Vec<String>,
    /// The change.
    pub(crate) diff: String,
    attempts: Vec<Attempt>,
    /// Who was asked, why, and what that took.
    models: Vec<Part>,
    spent: Amounts,
    events: u64,
}

impl RunReport {
    pub(crate) fn of(run: &RunState<Work>) -> Self {
        let (work, progress) = (&*run.state, &run.progress);
        let (status, exit, summary) = match (&progress.ended, &progress.pending) {
            (Some(ended), _) => ("done", ended.exit, ended.summary.clone()),
            (None, Some(pending)) => {
                let (exit, summary) = waiting(&progress.run, &pending.interrupt);
                ("waiting", exit, summary)
            }
            (None, None) => (
                "interrupted",
                Exit::Inconclusive,
                format!("not finished: `lula resume {}` goes on", progress.run),
            ),
        };
        let spent = Dimension::ALL
            .into_iter()
            .map(|dimension| (dimension, progress.ledger.spent(dimension)))
            .filter(|(_, amount)| *amount > 0)
            .collect();
        let produced = work.produced.as_ref();
        Self {
            run: progress.run.clone(),
            status,
            exit,
            summary,
            task: work.task.text.clone(),
            base: work.place.as_ref().map(|place| place.commit.clone()),
            by: work.made.as_ref().map(|(by, _)| by.clone()),
            verdict: work.verdict.clone(),
            evidence: work.evidence.clone(),
            delivered: work.delivered.clone(),
            files: produced.map(|made| made.files.clone()).unwrap_or_default(),
            diff: produced.map(|made| made.diff.clone()).unwrap_or_default(),
            attempts: work.failures.clone(),
            models: work.parts.clone(),
            spent,
            events: progress.next_seq,
        }
    }
}

/// What a run waits for, and how it goes on.
fn waiting(run: &RunId, interrupt: &Interrupt) -> (Exit, String) {
    match interrupt {
        Interrupt::Budget {
            dimension,
            asked,
            free,
        } => {
            let (asked, free, flag) = match dimension {
                Dimension::MicroUsd => (usd(*asked), usd(*free), "--budget USD"),
                Dimension::ModelCalls => (asked.to_string(), free.to_string(), "--max-calls N"),
                _ => (asked.to_string(), free.to_string(), "--max-tokens N"),
            };
            let summary = format!(
                "the budget is spent: the next step may need {asked} of {dimension}, {free} are \
                 left; `lula resume {run} {flag}` goes on"
            );
            (Exit::Budget, summary)
        }
        Interrupt::Approval { reason, .. } => (
            Exit::WaitingForApproval,
            format!("waits for approval: {reason}"),
        ),
        Interrupt::Held {
            approval,
            reason,
            name,
            ..
        } => (
            Exit::WaitingForApproval,
            format!(
                "{name} waits for approval ({reason}): `lula diff {approval}` shows it, then `lula \
                 approve {approval}` or `lula reject {approval}`, and `lula resume {run}` goes on"
            ),
        ),
        Interrupt::Operator { question, .. } => (
            Exit::WaitingForApproval,
            format!("waits for an answer: {question}"),
        ),
        Interrupt::Timer { .. } => (Exit::Inconclusive, "waits for a time".to_owned()),
        Interrupt::UnknownEffect { name, detail, .. } => (
            Exit::WaitingForApproval,
            format!("nobody knows whether {name} was done ({detail})"),
        ),
        Interrupt::NonDeterminism { .. } => (
            Exit::Failed,
            "this program does not do what the log says it did; use the lula that began the run"
                .to_owned(),
        ),
    }
}
