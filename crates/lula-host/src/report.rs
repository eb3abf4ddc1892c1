//! What is said of a run: for people and for programs.

use std::collections::BTreeMap;

use lula_agents::guidelines::{ChangeConfidence, StepRating};
use lula_agents::model_choice::ModelShareOfRun;
use lula_agents::plan::{PlanGraph, StepId};
use lula_agents::recovery::AttemptFailure as Attempt;
use lula_agents::team::{MissingTask, WholeReview};
use lula_agents::verdict::{RunVerdict, TestComparison, VerificationEvidence};
use lula_agents::work::EarlyEnd;
use lula_agents::{CodingState, RunTask};
use lula_graph::RunState;
use lula_protocol::{BudgetAmounts, BudgetDimension, RunExit, RunId, RunInterrupt};
use lula_repair::BrokenEnvironment;
use lula_runner_api::DeliveredView;
use serde::Serialize;

use crate::standing::RunStanding;
use crate::story::contest::ContestView;
use crate::story::evidence::{self, BaselineView};
use crate::text::{usd, visible};

/// A line that is said of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Something that is so.
    Fact(String),
    /// What can be typed next.
    Hint(String),
}

/// A repository of a run beside the first.
#[derive(Debug, Serialize)]
pub struct RepositoryView {
    repository: String,
    base: String,
    delivered: Option<DeliveredView>,
}

impl RepositoryView {
    fn of(work: &CodingState, repo: usize) -> Self {
        Self {
            repository: work.repository(repo).to_owned(),
            base: work.base_of(repo).to_owned(),
            delivered: work.delivered_of(repo).cloned(),
        }
    }
}

/// A run in one document.
#[derive(Debug, Serialize)]
pub struct RunReport {
    pub run: RunId,
    #[serde(skip)]
    standing: RunStanding,
    /// How it stands: `done`, or what it waits for.
    pub status: &'static str,
    /// The exit status of the command, as a word.
    pub exit: RunExit,
    pub summary: String,
    task: String,
    base: Option<String>,
    by: Option<String>,
    verdict: Option<RunVerdict>,
    /// What was there before anything was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<BaselineView>,
    /// Tests before and with the change, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    tests: Option<TestComparison>,
    evidence: Option<VerificationEvidence>,
    /// What the tests lack on this machine, where that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Box<BrokenEnvironment>>,
    /// What it came to in a word, where that is not its exit status.
    #[serde(skip)]
    ending: Option<&'static str>,
    /// How sure to be of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<ChangeConfidence>,
    /// How its steps were rated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ratings: Vec<StepRating>,
    /// Where the change is.
    pub delivered: Option<DeliveredView>,
    /// The other repositories, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repositories: Vec<RepositoryView>,
    files: Vec<String>,
    /// The change as a unified diff.
    pub diff: String,
    attempts: Vec<Attempt>,
    /// Who was asked, why, and what that took.
    models: Vec<ModelShareOfRun>,
    /// The tasks of several agents, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanGraph>,
    /// What tasks wait for that no agent works on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<StepId, String>,
    /// The tasks that are missing from what was delivered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingTask>,
    /// What a model doubts that compared the whole with the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<WholeReview>,
    /// Those who tried the same, where there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_of: Option<ContestView>,
    pub spent: BudgetAmounts,
    events: u64,
}

impl RunReport {
    pub fn standing(&self) -> RunStanding {
        self.standing
    }

    /// What it came to, in a word.
    pub fn word(&self) -> &'static str {
        self.ending.unwrap_or(word(self.exit))
    }

    /// The files it changes.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Where the change is, and what can be done with it.
    pub fn delivery(&self) -> Vec<Notice> {
        let elsewhere = self.repositories.iter().filter_map(|other| {
            let branch = other.delivered.as_ref()?.branch.as_ref()?;
            let repository = visible(&other.repository);
            let text = format!("a change of {repository} is on its branch {branch}");
            Some(Notice::Fact(text))
        });
        let mut lines: Vec<Notice> = elsewhere.collect();
        let Some(delivered) = &self.delivered else {
            if self.exit == RunExit::Failed && !self.diff.is_empty() {
                let text = "the change was not accepted; it is kept in the record of the run";
                let take = format!("lula diff {} | git apply   takes it all the same", self.run);
                lines.extend([Notice::Fact(text.to_owned()), Notice::Hint(take)]);
            }
            return lines;
        };
        let undo = format!("lula undo {}", self.run);
        let own = match (&delivered.branch, &delivered.directory) {
            (Some(branch), _) => vec![
                Notice::Fact(format!("the change is on the branch {branch}")),
                Notice::Hint(format!("git merge {branch}   or   {undo}")),
            ],
            (None, Some(directory)) => vec![
                Notice::Fact(format!(
                    "the change is in the files of {}",
                    visible(directory)
                )),
                Notice::Hint(format!("git diff   or   {undo}")),
            ],
            (None, None) => Vec::new(),
        };
        lines.splice(0..0, own);
        lines.extend(self.rest(delivered.branch.as_deref()));
        lines
    }

    /// What is missing of a plan that was delivered in part, and how it is gone on with; and what the
    /// review of the whole doubts.
    fn rest(&self, branch: Option<&str>) -> Vec<Notice> {
        let mut lines: Vec<Notice> = Vec::new();
        for one in &self.missing {
            let text = format!("missing: {}: {} ({})", one.task, one.goal, one.why);
            lines.push(Notice::Fact(visible(&text)));
        }
        if let (Some(branch), false) = (branch, self.missing.is_empty()) {
            // What is typed is no excerpt.
            let goals = self
                .missing
                .iter()
                .map(|one| one.goal.trim_end_matches('…'));
            let goals: Vec<&str> = goals.collect();
            let rest = visible(&goals.join("; ")).replace('\'', "");
            let text = format!("git switch {branch} && lula run '{rest}'   goes on with the rest");
            lines.push(Notice::Hint(text));
        }
        if let Some(review) = &self.review {
            let text = format!("the whole beside the task: {}", review.told());
            lines.push(Notice::Fact(visible(&text)));
            for doubt in &review.doubts {
                lines.push(Notice::Fact(visible(&format!("doubt: {doubt}"))));
            }
        }
        lines
    }

    /// The report of a run as it stands.
    pub fn of(run: &RunState<CodingState>) -> Self {
        let (work, progress) = (&*run.state, &run.progress);
        let standing = match (&progress.ended, &progress.pending) {
            (Some(ended), _) => RunStanding::ended(ended.exit),
            (None, Some(_)) => RunStanding::Waiting,
            (None, None) => RunStanding::Interrupted,
        };
        let (status, exit, summary) = match (&progress.ended, &progress.pending) {
            (Some(ended), _) => ("done", ended.exit, ended.summary.clone()),
            (None, Some(pending)) => {
                let (exit, summary) = waiting(&progress.run, &pending.interrupt, &work.task);
                ("waiting", exit, summary)
            }
            (None, None) => (
                "interrupted",
                RunExit::Inconclusive,
                format!("not finished: `lula resume {}` goes on", progress.run),
            ),
        };
        let spent = spent(&|dimension| progress.ledger.spent(dimension));
        let proposal = work.proposal.as_ref();
        Self {
            run: progress.run.clone(),
            standing,
            status,
            exit,
            summary,
            task: work.task.text.clone(),
            base: work.place_of(0).map(|place| place.origin.commit.clone()),
            by: work.made.as_ref().map(|(by, _)| by.clone()),
            verdict: work.verdict.clone(),
            before: BaselineView::of(work),
            tests: evidence::compared(work),
            evidence: work.evidence.clone(),
            environment: match &work.end {
                Some(EarlyEnd::Environment { broken, .. }) => broken.clone(),
                _ => None,
            },
            ending: match &work.end {
                Some(EarlyEnd::NothingToDo { .. }) => Some("nothing to do"),
                Some(EarlyEnd::OutOfTime { .. }) => Some("out of time"),
                Some(EarlyEnd::Blocked { .. }) => Some("blocked"),
                None if progress.ended.is_some() && !work.missing().is_empty() => Some("partial"),
                _ => None,
            },
            confidence: work.confidence.clone(),
            ratings: work.ratings.clone(),
            delivered: work.delivered_of(0).cloned(),
            repositories: (1..work.repositories.len())
                .filter(|repo| work.place_of(*repo).is_some())
                .map(|repo| RepositoryView::of(work, repo))
                .collect(),
            files: proposal.map(|made| made.files.clone()).unwrap_or_default(),
            diff: proposal.map(|made| made.diff.clone()).unwrap_or_default(),
            attempts: work.failures.clone(),
            models: work.parts.clone(),
            plan: work.joint.as_ref().map(|joint| joint.dag.clone()),
            waiting: waits(work, progress.ended.is_some()),
            missing: work.missing(),
            review: work.review.clone(),
            best_of: work.contest.as_deref().map(ContestView::from),
            spent,
            events: progress.next_seq,
        }
    }
}

/// What was spent. A bound on what nobody knows the price of is no amount.
fn spent(of: &dyn Fn(BudgetDimension) -> u64) -> BudgetAmounts {
    let unpriced = of(BudgetDimension::UnpricedCalls);
    let unknown = unpriced > 0 && unpriced >= of(BudgetDimension::ModelCalls);
    BudgetDimension::ALL
        .into_iter()
        .filter(|dimension| !(unknown && *dimension == BudgetDimension::MicroUsd))
        .map(|dimension| (dimension, of(dimension)))
        .filter(|(_, amount)| *amount > 0)
        .collect()
}

/// What can be done where a budget in money is held against a price that is not known.
fn unpriced(task: &RunTask) -> String {
    let models = task.models.iter().filter(|model| model.settings.unpriced);
    let Some(model) = models.clone().next() else {
        return String::new();
    };
    let names: Vec<&str> = models.map(|model| model.name.as_str()).collect();
    format!(
        ". The price of {} is not known, and counts as {} for a million tokens: write it into the file \
         that models.prices names, or leave --budget out and limit the run with --max-calls",
        names.join(", "),
        usd(model.rates.output),
    )
}

/// What the tasks of a plan wait for.
fn waits(work: &CodingState, ended: bool) -> BTreeMap<StepId, String> {
    let joint = work.joint.as_ref().filter(|_| !ended);
    let ids = joint.iter().flat_map(|joint| {
        let ids = joint.dag.steps.keys();
        ids.filter_map(|id| Some((id.clone(), joint.dag.waits(id)?.to_string())))
    });
    ids.collect()
}

/// What a run waits for, and how it goes on.
fn waiting(run: &RunId, interrupt: &RunInterrupt, task: &RunTask) -> (RunExit, String) {
    let what = waiting_for(interrupt);
    match interrupt {
        RunInterrupt::Budget { dimension, .. } => {
            let flag = match dimension {
                BudgetDimension::MicroUsd => "--budget USD",
                BudgetDimension::ModelCalls => "--max-calls N",
                _ => "--max-tokens N",
            };
            let unknown = match dimension {
                BudgetDimension::MicroUsd => unpriced(task),
                _ => String::new(),
            };
            let summary = format!("{what}; `lula resume {run} {flag}` goes on{unknown}");
            (RunExit::Budget, summary)
        }
        RunInterrupt::Approval { .. } => {
            let summary = format!("{what}; `lula approve {run}` or `lula reject {run}` answers");
            (RunExit::WaitingForApproval, summary)
        }
        RunInterrupt::Held { approval, .. } => {
            let summary = format!(
                "{what}; `lula diff {approval}` shows it, then `lula approve {approval}` or `lula \
                 reject {approval}`, and `lula resume {run}` goes on"
            );
            (RunExit::WaitingForApproval, summary)
        }
        RunInterrupt::Operator { .. } | RunInterrupt::UnknownEffect { .. } => {
            let choices = interrupt.options();
            let choices: Vec<String> = choices
                .iter()
                .map(|choice| format!("`lula resume {run} --answer '{choice}'`"))
                .collect();
            let summary = format!("{what}; {} answers", choices.join(" or "));
            (RunExit::WaitingForApproval, summary)
        }
        RunInterrupt::Timer { .. } => (RunExit::Inconclusive, what),
        RunInterrupt::NonDeterminism { .. } => (RunExit::Failed, what),
    }
}

/// What a run waits for.
pub fn waiting_for(interrupt: &RunInterrupt) -> String {
    match interrupt {
        RunInterrupt::Budget {
            dimension,
            asked,
            free,
        } => {
            let amount = |amount: u64| match dimension {
                BudgetDimension::MicroUsd => usd(amount),
                _ => amount.to_string(),
            };
            format!(
                "the budget is spent: the next step may need {} of {dimension}, {} are left",
                amount(*asked),
                amount(*free)
            )
        }
        RunInterrupt::Approval { reason, .. } => format!("waits for approval: {reason}"),
        RunInterrupt::Held { name, reason, .. } => format!("{name} waits for approval: {reason}"),
        RunInterrupt::Operator { question, .. } => format!("waits for an answer: {question}"),
        RunInterrupt::Timer { .. } => "waits for a time".to_owned(),
        RunInterrupt::UnknownEffect { name, detail, .. } => {
            format!("it is not known whether {name} was done ({detail})")
        }
        RunInterrupt::NonDeterminism { .. } => {
            "this program does not do what the log says it did; use the lula that began the run"
                .to_owned()
        }
    }
}

/// An exit status in a word.
pub const fn word(exit: RunExit) -> &'static str {
    RunStanding::ended(exit).word()
}
