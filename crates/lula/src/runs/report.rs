//! What is said of a run: for people and for programs.

use lula_agents::Work;
use lula_agents::choose::Part;
use lula_agents::dag::Dag;
use lula_agents::glean::{Confidence, Rating};
use lula_agents::hands::Delivered;
use lula_agents::recover::Failure as Attempt;
use lula_agents::verdict::{Compared, Evidence, Verdict};
use lula_agents::work::{End, Site};
use lula_graph::RunState;
use lula_protocol::{Amounts, Dimension, Exit, Interrupt, RunId};
use lula_repair::BrokenEnvironment;
use serde::Serialize;

use super::contest::BestOf;
use super::evidence::{self, Before};
use crate::term::{DIM, paint, visible};

/// Another repository of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Elsewhere {
    repository: String,
    base: String,
    delivered: Option<Delivered>,
}

impl From<&Site> for Elsewhere {
    fn from(site: &Site) -> Self {
        Self {
            repository: site.repository.clone(),
            base: site.place.commit.clone(),
            delivered: site.delivered.clone(),
        }
    }
}

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
    /// What was there before anything was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Before>,
    /// Tests before and with the change, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<Compared>,
    evidence: Option<Evidence>,
    /// What the tests lack on this machine, where that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) environment: Option<Box<BrokenEnvironment>>,
    /// What it came to in a word, where that is not its exit status.
    #[serde(skip)]
    ending: Option<&'static str>,
    /// How sure to be of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<Confidence>,
    /// How its steps were rated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ratings: Vec<Rating>,
    /// Where the change is.
    pub(crate) delivered: Option<Delivered>,
    /// The other repositories, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repositories: Vec<Elsewhere>,
    files: Vec<String>,
    /// The change.
    pub(crate) diff: String,
    attempts: Vec<Attempt>,
    /// Who was asked, why, and what that took.
    models: Vec<Part>,
    /// The tasks of several agents, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<Dag>,
    /// Those who tried the same, where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) best_of: Option<BestOf>,
    /// What it cost.
    pub(crate) spent: Amounts,
    events: u64,
}

impl RunReport {
    /// What it came to, in a word.
    pub(crate) fn word(&self) -> &'static str {
        self.ending.unwrap_or(word(self.exit))
    }

    /// The files it changes.
    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    /// Where the change is, and what can be done with it.
    pub(crate) fn delivery(&self) -> Vec<String> {
        let elsewhere = self.repositories.iter().filter_map(|other| {
            let branch = other.delivered.as_ref()?.branch.as_ref()?;
            let repository = visible(&other.repository);
            Some(format!(
                "a change of {repository} is on its branch {branch}"
            ))
        });
        let mut lines: Vec<String> = elsewhere.collect();
        let Some(delivered) = &self.delivered else {
            return lines;
        };
        let undo = format!("lula undo {}", self.run);
        let own = match (&delivered.branch, &delivered.directory) {
            (Some(branch), _) => vec![
                format!("the change is on the branch {branch}"),
                paint(DIM, format!("git merge {branch}   or   {undo}")),
            ],
            (None, Some(directory)) => vec![
                format!("the change is in the files of {}", visible(directory)),
                paint(DIM, format!("git diff   or   {undo}")),
            ],
            (None, None) => Vec::new(),
        };
        lines.splice(0..0, own);
        lines
    }

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
            before: Before::of(work),
            tests: evidence::compared(work),
            evidence: work.evidence.clone(),
            environment: match &work.end {
                Some(End::Environment { broken, .. }) => broken.clone(),
                _ => None,
            },
            ending: match &work.end {
                Some(End::NothingToDo { .. }) => Some("nothing to do"),
                Some(End::OutOfTime { .. }) => Some("out of time"),
                _ => None,
            },
            confidence: work.confidence.clone(),
            ratings: work.ratings.clone(),
            delivered: work.delivered.clone(),
            repositories: work.sites.iter().map(Elsewhere::from).collect(),
            files: produced.map(|made| made.files.clone()).unwrap_or_default(),
            diff: produced.map(|made| made.diff.clone()).unwrap_or_default(),
            attempts: work.failures.clone(),
            models: work.parts.clone(),
            plan: work.joint.as_ref().map(|joint| joint.dag.clone()),
            best_of: work.contest.as_deref().map(BestOf::from),
            spent,
            events: progress.next_seq,
        }
    }
}

/// What a run waits for, and how it goes on.
fn waiting(run: &RunId, interrupt: &Interrupt) -> (Exit, String) {
    let what = waiting_for(interrupt);
    match interrupt {
        Interrupt::Budget { dimension, .. } => {
            let flag = match dimension {
                Dimension::MicroUsd => "--budget USD",
                Dimension::ModelCalls => "--max-calls N",
                _ => "--max-tokens N",
            };
            let summary = format!("{what}; `lula resume {run} {flag}` goes on");
            (Exit::Budget, summary)
        }
        Interrupt::Approval { .. } => {
            let summary = format!("{what}; `lula approve {run}` or `lula reject {run}` answers");
            (Exit::WaitingForApproval, summary)
        }
        Interrupt::Held { approval, .. } => {
            let summary = format!(
                "{what}; `lula diff {approval}` shows it, then `lula approve {approval}` or `lula \
                 reject {approval}`, and `lula resume {run}` goes on"
            );
            (Exit::WaitingForApproval, summary)
        }
        Interrupt::Operator { .. } | Interrupt::UnknownEffect { .. } => {
            let choices = interrupt.options();
            let choices: Vec<String> = choices
                .iter()
                .map(|choice| format!("`lula resume {run} --answer '{choice}'`"))
                .collect();
            let summary = format!("{what}; {} answers", choices.join(" or "));
            (Exit::WaitingForApproval, summary)
        }
        Interrupt::Timer { .. } => (Exit::Inconclusive, what),
        Interrupt::NonDeterminism { .. } => (Exit::Failed, what),
    }
}

/// What a run waits for.
pub(crate) fn waiting_for(interrupt: &Interrupt) -> String {
    match interrupt {
        Interrupt::Budget {
            dimension,
            asked,
            free,
        } => {
            let amount = |amount: u64| match dimension {
                Dimension::MicroUsd => usd(amount),
                _ => amount.to_string(),
            };
            format!(
                "the budget is spent: the next step may need {} of {dimension}, {} are left",
                amount(*asked),
                amount(*free)
            )
        }
        Interrupt::Approval { reason, .. } => format!("waits for approval: {reason}"),
        Interrupt::Held { name, reason, .. } => format!("{name} waits for approval: {reason}"),
        Interrupt::Operator { question, .. } => format!("waits for an answer: {question}"),
        Interrupt::Timer { .. } => "waits for a time".to_owned(),
        Interrupt::UnknownEffect { name, detail, .. } => {
            format!("nobody knows whether {name} was done ({detail})")
        }
        Interrupt::NonDeterminism { .. } => {
            "this program does not do what the log says it did; use the lula that began the run"
                .to_owned()
        }
    }
}

/// Millionths of a dollar as people write them.
pub(crate) fn usd(micro: u64) -> String {
    if micro == 0 {
        return "$0".to_owned();
    }
    format!("${}.{:04}", micro / 1_000_000, micro % 1_000_000 / 100)
}

/// An exit status in a word.
pub(crate) const fn word(exit: Exit) -> &'static str {
    match exit {
        Exit::Verified => "verified",
        Exit::Inconclusive => "unverified",
        Exit::Budget | Exit::WaitingForApproval => "waiting",
        Exit::Failed | Exit::Usage => "failed",
        // Nothing was tried: something is missing here.
        Exit::Environment => "not possible",
    }
}
