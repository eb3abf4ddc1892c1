//! Looking after a repository: its tests are run in a private copy of the commit that is checked out,
//! and a run is begun where they do not pass. What is remembered is on disk before a run begins.

mod memory;
pub mod watch;

use std::time::Duration;

use lula_agents::heal::{
    self, BreakageEpisode, CommitHealth, HealAction, HealLimits, HealRunOutcome,
    RepositoryHealHistory,
};
use lula_agents::runner_port::{AgentWorkspace, opening};
use lula_agents::{ProgressObserver, RunTask, RunnerPort};
use lula_protocol::{BudgetAmounts, BudgetDimension, RunExit, RunId};
use lula_runner_api::{TestRunRequest, TestRunResult};
use serde::Serialize;

use crate::drive::{self, DriveResult, Driver};
use crate::error::HostError;
use lula_protocol::calendar::utc_text;

use crate::record::now_ms;
use crate::report::RunReport;
use crate::text::usd;

pub use memory::HealHistoryFile;

/// What came of one look.
#[derive(Debug, Serialize)]
pub struct HealCheck {
    pub repository: String,
    /// Which commit was tested.
    pub commit: String,
    /// How the tests stand.
    #[serde(flatten)]
    pub health: CommitHealth,
    #[serde(flatten)]
    pub act: HealAction,
    /// What is known of the breakage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub episode: Option<BreakageEpisode>,
    /// The exit status of the command.
    pub exit: RunExit,
    pub summary: String,
}

/// What is looked after: a repository, or a folder of it that breaks and heals by itself.
pub fn watched(task: &RunTask) -> String {
    match task.folder.as_str() {
        "" => task.repository(0).to_owned(),
        folder => format!("{}/{folder}", task.repository(0)),
    }
}

/// Hears what a look at a repository comes to on the way.
pub trait Witness {
    /// The tests begin; what they say goes there, until it is dropped.
    fn tests(&self) -> ProgressObserver;

    /// These tests fail, and a run works on that.
    fn broken(&self, failing: &[String]);

    /// Work on that run begins.
    fn run(&self, run: &RunId);

    /// Work on the run has ended or waits.
    fn ended(&self, report: &RunReport);

    /// Something that may surprise.
    fn warning(&self, text: &str);

    /// Something only the curious want to know.
    fn detail(&self, text: &str);
}

/// Looks after one repository.
pub struct Healer<'a> {
    /// Drives the run that is begun.
    pub driver: &'a Driver,
    /// What the repository broke with before.
    pub memory: HealHistoryFile,
    /// When a run may begin.
    pub limits: HealLimits,
    /// What one run may spend.
    pub amounts: BudgetAmounts,
    /// How long one run may be worked on.
    pub max_time: Option<Duration>,
    /// Hears what happens on the way.
    pub witness: &'a dyn Witness,
}

impl Healer<'_> {
    /// Tests the commit that is checked out, decides, and works on a run where one is due.
    pub async fn look(&self, task: RunTask) -> Result<HealCheck, HostError> {
        let mut history = self.memory.read()?;
        let name = drive::fresh()?;
        if let Some(cut_off) = history.looking.replace(name.clone()) {
            let cleared = self.driver.runner().clear(&cut_off).await;
            cleared?;
        }
        self.memory.write(&history)?;
        let looked = self.examine(&task, &name).await?;
        history.looking = None;
        let Some((commit, health)) = looked else {
            self.memory.write(&history)?;
            return Ok(HealCheck {
                repository: task.repository(0).to_owned(),
                commit: String::new(),
                health: CommitHealth::Unknown {
                    why: "interrupted".to_owned(),
                    broken: None,
                },
                act: HealAction::Nothing,
                episode: None,
                exit: RunExit::Inconclusive,
                summary: "interrupted before the tests were through".to_owned(),
            });
        };
        match &health {
            CommitHealth::Green { .. } => history.green(now_ms()),
            CommitHealth::Broken {
                fingerprint,
                failing,
            } => history.saw(fingerprint, failing, &commit, now_ms()),
            CommitHealth::Unclear { .. } | CommitHealth::Unknown { .. } => {}
        }
        self.memory.write(&history)?;
        let act = heal::decide(&history, &health, self.limits, now_ms());
        let (exit, summary) = self.act(&act, &health, &task, &mut history).await?;
        let episode = match &health {
            CommitHealth::Broken { fingerprint, .. } => history.open(fingerprint).cloned(),
            _ => None,
        };
        Ok(HealCheck {
            repository: task.repository(0).to_owned(),
            commit,
            health,
            act,
            episode,
            exit,
            summary,
        })
    }

    /// Runs the tests of the commit that is checked out, in a private copy; nothing where the
    /// operator interrupted it.
    async fn examine(
        &self,
        task: &RunTask,
        name: &RunId,
    ) -> Result<Option<(String, CommitHealth)>, HostError> {
        let runner = self.driver.runner();
        let opened = runner
            .open(&opening(name, task.repository(0), None))
            .await?;
        let place = AgentWorkspace::of(opened)?;
        let watch = self.witness.tests();
        let request = TestRunRequest::RunTests {
            tests: task.tests_of(0),
            accept: Vec::new(),
            tests_ms: task.tests_ms,
        };
        let found = tokio::select! {
            found = runner.run_tests(&place.workspace, &request, &watch) => Some(found),
            () = self.driver.interrupted() => None,
        };
        drop(watch);
        if let Err(error) = runner.clear(name).await {
            let text = format!("the copy that was tested could not be removed: {error}");
            self.witness.warning(&text);
        }
        let health = match found.transpose()? {
            None => return Ok(None),
            Some(TestRunResult::Ran { baseline }) => heal::assess(&baseline),
            Some(TestRunResult::Failed { message }) => CommitHealth::Unknown {
                why: message,
                broken: None,
            },
            Some(_) => {
                let why = "the runner answered another question".to_owned();
                CommitHealth::Unknown { why, broken: None }
            }
        };
        if place.origin.uncommitted > 0 {
            let text = "files have changes that are not committed; the commit was looked at";
            let text = format!("{} {text}", place.origin.uncommitted);
            self.witness.detail(&text);
        }
        Ok(Some((place.origin.commit, health)))
    }

    async fn act(
        &self,
        act: &HealAction,
        health: &CommitHealth,
        task: &RunTask,
        history: &mut RepositoryHealHistory,
    ) -> Result<(RunExit, String), HostError> {
        let CommitHealth::Broken {
            fingerprint,
            failing,
        } = health
        else {
            return Ok(match health {
                CommitHealth::Green { passing } => {
                    (RunExit::Verified, format!("{passing} tests pass"))
                }
                CommitHealth::Unclear { why } => (RunExit::Inconclusive, why.clone()),
                CommitHealth::Unknown { why, .. } => (RunExit::Environment, why.clone()),
                CommitHealth::Broken { .. } => (RunExit::Failed, String::new()),
            });
        };
        let broken = match failing.len() {
            1 => "1 test fails".to_owned(),
            number => format!("{number} tests fail"),
        };
        Ok(match act {
            HealAction::Begin => {
                self.witness.broken(failing);
                // Its name is written down first: whatever happens, there is one run for it.
                let run = drive::fresh()?;
                history.begins(fingerprint, &run, now_ms());
                self.memory.write(history)?;
                self.begin(&run, failing, task, history).await?;
                self.drive(&run, history).await?
            }
            HealAction::GoOn { run } => {
                self.witness.broken(failing);
                if self.driver.store.run(run).await?.is_none() {
                    self.begin(run, failing, task, history).await?;
                }
                self.drive(run, history).await?
            }
            HealAction::Known { run } => known(&broken, run, history.open(fingerprint)),
            HealAction::TooMany { until_ms } => (
                RunExit::Budget,
                format!(
                    "{broken}; {} runs were begun within an hour, another may begin at {}",
                    self.limits.per_hour,
                    utc_text(*until_ms)
                ),
            ),
            HealAction::Spent { spent } => (
                RunExit::Budget,
                format!("{broken}; {} were spent within a day", usd(*spent)),
            ),
            HealAction::Nothing => (RunExit::Failed, broken),
        })
    }

    async fn begin(
        &self,
        run: &RunId,
        failing: &[String],
        task: &RunTask,
        history: &RepositoryHealHistory,
    ) -> Result<(), HostError> {
        let task = RunTask {
            text: heal::task(failing),
            ..task.clone().repairing()
        };
        let mut limits = self.amounts.clone();
        if let Some(left) = heal::left(history, self.limits, now_ms()) {
            let most = limits.0.entry(BudgetDimension::MicroUsd).or_insert(left);
            *most = left.min(*most);
        }
        drive::begin_as(run.clone(), &self.driver.engine, &task, limits).await?;
        Ok(())
    }

    /// Works on a run and writes down what came of it. One that was put down goes on at the next
    /// look.
    async fn drive(
        &self,
        run: &RunId,
        history: &mut RepositoryHealHistory,
    ) -> Result<(RunExit, String), HostError> {
        self.witness.run(run);
        let reached = self.driver.reach(run, self.max_time).await?;
        let known = match reached {
            DriveResult::Stopped(_) => {
                let summary = format!("{run} was put down; the next look goes on with it");
                return Ok((RunExit::Inconclusive, summary));
            }
            DriveResult::Rested(known) => known,
        };
        let report = RunReport::of(&known);
        if known.progress.ended.is_some() {
            let delivered = report.delivered.as_ref();
            history.ended(
                run,
                HealRunOutcome {
                    exit: report.exit,
                    summary: report.summary.clone(),
                    branch: delivered.and_then(|delivered| delivered.branch.clone()),
                    spent: known.progress.ledger.spent(BudgetDimension::MicroUsd),
                },
            );
            self.memory.write(history)?;
        }
        self.witness.ended(&report);
        Ok((report.exit, report.summary))
    }
}

/// What is said of a breakage that was worked on before.
fn known(broken: &str, run: &RunId, episode: Option<&BreakageEpisode>) -> (RunExit, String) {
    let outcome = episode.and_then(|episode| episode.outcome.as_ref());
    match outcome {
        Some(HealRunOutcome {
            exit: RunExit::Verified,
            branch,
            ..
        }) => {
            let place = match branch {
                Some(branch) => format!("merge {branch}"),
                None => format!("`lula diff {run}` shows the change"),
            };
            let text = format!("{broken}, as before; {} mended it: {place}", run.short());
            (RunExit::Verified, text)
        }
        Some(outcome) => {
            let text = format!(
                "{broken}, as before; {} did not mend it ({}); --again tries once more",
                run.short(),
                outcome.summary
            );
            (RunExit::Failed, text)
        }
        None => (RunExit::Failed, broken.to_owned()),
    }
}
