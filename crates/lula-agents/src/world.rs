//! Where effects happen: each goes to the runner or to a model, and nowhere else.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use lula_graph::{CrashEvidence, EffectOrder, EffectOutput, EffectTrouble, EffectWorld};
use lula_models::normal::ModelRequest;
use lula_protocol::{
    BudgetAmounts, BudgetDimension, Digest, ProtocolVersion, RunId, ToolCall, WorkspaceId,
};
use lula_repair::TestSelection;
use lula_runner_api::{
    CommittedAgentChangeView, DeliverChanges, JudgeActs, TestRunRequest, TestRunResult,
};
use serde::Serialize;

use crate::agent_pool::{AgentPoolEvent, AgentPoolPort, NoAgentPool};
use crate::effects::{RepositoryChangeDelivery, RunEffect, TodoSummary};
use crate::model_port::{AnswerObserver, ModelCallError, ModelPort};
use crate::runner_port::{
    self, AgentWorkspace, EffectIdentity, MergeOutcome, Reply, RunnerPort, RunnerPortError, USUAL,
    opening, workspace_of,
};
use crate::team::{PlanChangeRequest, repository_run};
use crate::{survey, test_selection};

pub use crate::fence::{DriverFence, DriverFenceProbe, DriverFenceReport};

/// Hears how far something is that takes a while.
pub type ProgressObserver = Arc<dyn Fn(&str) + Send + Sync>;

/// The world of a run: its runner, its models and its agents.
pub struct RunWorld {
    runner: Arc<dyn RunnerPort>,
    models: Arc<dyn ModelPort>,
    agents: Arc<dyn AgentPoolPort>,
    watch: ProgressObserver,
    answers: AnswerObserver,
    fence: DriverFence,
    /// Where the index of a project is kept, if anywhere.
    index: Option<PathBuf>,
}

impl RunWorld {
    /// A world without agents, without a fence and without an index.
    pub fn new(
        runner: Arc<dyn RunnerPort>,
        models: Arc<dyn ModelPort>,
        watch: ProgressObserver,
    ) -> Self {
        Self {
            runner,
            models,
            agents: Arc::new(NoAgentPool),
            watch,
            answers: Arc::new(|_| ()),
            fence: Arc::new(|_, _| DriverFenceReport::default()),
            index: None,
        }
    }

    /// Gives the run agents to lead.
    #[must_use]
    pub fn with_agents(mut self, agents: Arc<dyn AgentPoolPort>) -> Self {
        self.agents = agents;
        self
    }

    /// Has the answers of models heard while they grow.
    #[must_use]
    pub fn heard_by(mut self, answers: AnswerObserver) -> Self {
        self.answers = answers;
        self
    }

    /// Puts the driver behind a fence, which the run tries out.
    #[must_use]
    pub fn fenced(mut self, fence: DriverFence) -> Self {
        self.fence = fence;
        self
    }

    /// Keeping what it knows of projects in that directory.
    #[must_use]
    pub fn indexed_in(mut self, directory: PathBuf) -> Self {
        self.index = Some(directory);
        self
    }

    /// What an order asks for. A run that was forked names the workspace of the run it came from,
    /// and works in one of its own.
    async fn ordered(&self, order: &EffectOrder) -> Result<(RunId, RunEffect), EffectTrouble> {
        let (mut run, mut effect) = (order.run.clone(), read(order)?);
        if let RunEffect::InRepository {
            repo,
            effect: inner,
        } = effect
        {
            run = repository_run(&order.run, repo);
            effect = *inner;
        }
        if let RunEffect::Deliver { parts, .. } = &mut effect {
            for part in parts {
                let own = repository_run(&order.run, part.repo);
                self.settle_in(&own, &mut part.delivery.workspace).await?;
            }
        }
        if let Some(mut named) = effect.workspace().cloned() {
            self.settle_in(&run, &mut named).await?;
            effect.move_to(&named);
        }
        Ok((run, effect))
    }

    /// Makes a named workspace the one of that name, which begins as the other began.
    async fn settle_in(&self, run: &RunId, named: &mut WorkspaceId) -> Result<(), EffectTrouble> {
        let own = workspace_of(run);
        if *named != own {
            let adopted = runner_port::adopt(&*self.runner, run, named).await;
            adopted.map_err(trouble)?;
            *named = own;
        }
        Ok(())
    }

    /// Runs tests in forks of a workspace.
    async fn run_tests(
        &self,
        workspace: &WorkspaceId,
        request: TestRunRequest,
    ) -> Result<EffectOutput, EffectTrouble> {
        let found = self
            .runner
            .run_tests(workspace, &request, &self.watch)
            .await;
        match found.map_err(trouble)? {
            TestRunResult::Ran { baseline } => said(&baseline),
            TestRunResult::Searched { found } => said(&found),
            TestRunResult::Verified { evidence } => said(&evidence),
            TestRunResult::Failed { message } => Err(failed(message)),
        }
    }

    /// Asks a model, and tells what the answer cost.
    async fn ask(
        &self,
        model: &str,
        request: &ModelRequest,
        at_most: &BudgetAmounts,
    ) -> Result<EffectOutput, EffectTrouble> {
        let asked = self
            .models
            .ask_heard(model, request, at_most, &self.answers);
        match asked.await {
            Ok((response, spent)) => Ok(EffectOutput {
                spent,
                ..said(&response)?
            }),
            Err(ModelCallError { message, spent }) => Err(EffectTrouble::Failed { message, spent }),
        }
    }

    /// What is done with the agents of a run.
    async fn with_pool(
        &self,
        order: &EffectOrder,
        effect: RunEffect,
    ) -> Result<EffectOutput, EffectTrouble> {
        match effect {
            RunEffect::Begin {
                agent,
                task,
                limits,
            } => {
                let begun = self.agents.begin(&agent, &task, &limits).await;
                said(&begun.map_err(trouble)?)
            }
            RunEffect::Await { agents } => {
                let news = self.agents.wait(&agents).await.map_err(trouble)?;
                let spent = match &news {
                    AgentPoolEvent::Back(returned) => returned.spent.clone(),
                    AgentPoolEvent::Wish { .. } => BudgetAmounts::none(),
                };
                Ok(EffectOutput {
                    spent,
                    ..said(&news)?
                })
            }
            RunEffect::Propose { step, arguments } => {
                let wish = PlanChangeRequest {
                    id: order.effect.clone(),
                    run: order.run.clone(),
                    step,
                    arguments,
                };
                said(&self.agents.propose(&wish).await.map_err(trouble)?)
            }
            RunEffect::Answer { answers } => {
                for (wish, answer) in &answers {
                    self.agents.answer(wish, answer).await.map_err(trouble)?;
                }
                said(&())
            }
            RunEffect::Dismiss { agents } => {
                let ended = self.agents.dismiss(&agents).await.map_err(trouble)?;
                let spent = ended.iter().flat_map(|back| back.spent.iter());
                Ok(EffectOutput {
                    spent: total(spent),
                    ..said(&ended)?
                })
            }
            other => Err(failed(format!("{} needs no agents", other.name()))),
        }
    }

    /// What is done on the integration branch that agents build on.
    async fn on_branch(
        &self,
        identity: &EffectIdentity,
        effect: RunEffect,
    ) -> Result<EffectOutput, EffectTrouble> {
        match effect {
            RunEffect::OpenOnBranch { order } => {
                let opened = self.runner.open_on_branch(&order).await;
                said(&opened.and_then(AgentWorkspace::of).map_err(trouble)?)
            }
            RunEffect::Commit { order } => {
                let committed = self.runner.commit(&identity.call(order)).await;
                // Its files are in the log already, with the agent that changed them.
                said(&CommittedAgentChangeView {
                    files: Vec::new(),
                    ..committed.map_err(trouble)?
                })
            }
            RunEffect::Merge { order } => {
                let merged = self.runner.merge(&identity.call(*order)).await;
                said(&MergeOutcome::from(merged.map_err(trouble)?))
            }
            RunEffect::Fill { order } => {
                let filled = self.runner.fill(&identity.call(order)).await;
                said(&filled.map(drop).map_err(trouble)?)
            }
            other => Err(failed(format!("{} needs no branch", other.name()))),
        }
    }

    /// Puts changes where they are to go. Logs hold one arrival of a run with one repository, and a
    /// list of one with several.
    async fn deliver(
        &self,
        identity: &EffectIdentity,
        parts: Vec<RepositoryChangeDelivery>,
        several: bool,
    ) -> Result<EffectOutput, EffectTrouble> {
        let deliveries = parts.into_iter().map(|part| part.delivery).collect();
        let call = identity.call(DeliverChanges { deliveries });
        let mut delivered = self.runner.deliver(&call).await.map_err(trouble)?.parts;
        if several {
            return said(&delivered);
        }
        let one = delivered.pop();
        said(&one.ok_or_else(|| failed("the runner delivered nothing".to_owned()))?)
    }

    async fn act(
        &self,
        order: &EffectOrder,
        run: &RunId,
        effect: RunEffect,
    ) -> Result<EffectOutput, EffectTrouble> {
        let runner = &*self.runner;
        match effect {
            RunEffect::Open { repository } => {
                let opened = runner.open(&opening(run, &repository, None)).await;
                said(&opened.and_then(AgentWorkspace::of).map_err(trouble)?)
            }
            RunEffect::Fence {
                repository,
                workspace,
            } => said(&(self.fence)(&repository, &workspace)),
            RunEffect::Survey { workspace, wanted } => {
                let (identity, cache) = (identity(order), self.index.as_deref());
                let found = survey::survey(runner, &identity, &workspace, &wanted, cache).await;
                said(&found.map_err(trouble)?)
            }
            RunEffect::Fetch { workspace, path } => {
                let texts = runner_port::fetch(runner, &identity(order), &workspace, &[path]).await;
                said(&texts.map_err(trouble)?.into_iter().next().flatten())
            }
            RunEffect::Act {
                workspace,
                action,
                shown,
            } => {
                let call = ToolCall {
                    protocol: ProtocolVersion,
                    effect: order.effect.clone(),
                    epoch: order.epoch,
                    run: order.run.clone(),
                    workspace,
                    action,
                };
                let most = shown.map_or(USUAL, |shown| shown as usize);
                let result = runner.call(&call).await;
                let reply = result.and_then(|result| Reply::of(result, most));
                let mut performed = said(&reply.map_err(trouble)?)?;
                performed.spent = BudgetAmounts::none().with(BudgetDimension::ToolCalls, 1);
                Ok(performed)
            }
            RunEffect::Todo { items } => said(&TodoSummary::of(&items)),
            RunEffect::Reset { workspace } => {
                let done = runner_port::reset(runner, &identity(order), &workspace).await;
                said(&done.map_err(trouble)?)
            }
            RunEffect::TakeChange { workspace } => {
                said(&runner.change(&workspace).await.map_err(trouble)?)
            }
            RunEffect::Judge { workspace, acts } => {
                let judged = runner.judge(&workspace, &JudgeActs { acts }).await;
                said(&judged.map_err(trouble)?)
            }
            RunEffect::RunTests { .. }
            | RunEffect::Search { .. }
            | RunEffect::RunOthersTests { .. }
            | RunEffect::Verify { .. } => {
                let (workspace, request) = test_run(effect)?;
                self.run_tests(&workspace, request).await
            }
            RunEffect::SelectTests { workspace, change } => {
                let (identity, cache) = (identity(order), self.index.as_deref());
                let selected =
                    test_selection::pick(runner, &identity, &workspace, *change, cache).await;
                said(&selected.map_err(trouble)?)
            }
            RunEffect::Ask {
                model,
                request,
                at_most,
            } => self.ask(&model, &request, &at_most).await,
            RunEffect::Begin { .. }
            | RunEffect::Await { .. }
            | RunEffect::Dismiss { .. }
            | RunEffect::Propose { .. }
            | RunEffect::Answer { .. } => self.with_pool(order, effect).await,
            RunEffect::OpenOnBranch { .. }
            | RunEffect::Commit { .. }
            | RunEffect::Merge { .. }
            | RunEffect::Fill { .. } => self.on_branch(&identity(order), effect).await,
            RunEffect::Deliver { parts, several } => {
                self.deliver(&identity(order), parts, several).await
            }
            RunEffect::InRepository { .. } => {
                Err(failed("a repository inside a repository".to_owned()))
            }
        }
    }
}

fn total(amounts: impl Iterator<Item = (BudgetDimension, u64)>) -> BudgetAmounts {
    let mut sum = BudgetAmounts::none();
    for (dimension, amount) in amounts {
        let held = sum.0.entry(dimension).or_default();
        *held = held.saturating_add(amount);
    }
    sum
}

fn read(order: &EffectOrder) -> Result<RunEffect, EffectTrouble> {
    RunEffect::from_log(order.request.clone())
        .map_err(|error| failed(format!("{} is not something to do: {error}", order.name)))
}

fn identity(order: &EffectOrder) -> EffectIdentity {
    EffectIdentity {
        run: order.run.clone(),
        id: order.effect.clone(),
        epoch: order.epoch,
    }
}

fn said(value: &impl Serialize) -> Result<EffectOutput, EffectTrouble> {
    serde_json::to_value(value)
        .map(EffectOutput::free)
        .map_err(|error| failed(error.to_string()))
}

fn failed(message: String) -> EffectTrouble {
    EffectTrouble::Failed {
        message,
        spent: BudgetAmounts::none(),
    }
}

fn trouble(error: RunnerPortError) -> EffectTrouble {
    match error {
        RunnerPortError::Failed(message) => failed(message),
        RunnerPortError::Lost(message) => EffectTrouble::Lost(message),
        RunnerPortError::Unreachable(message) => EffectTrouble::Unreachable(message),
        RunnerPortError::Held { approval, reason } => EffectTrouble::Held { approval, reason },
        RunnerPortError::Refused { why, .. } => failed(why),
    }
}

#[async_trait]
impl EffectWorld for RunWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        let (run, effect) = self.ordered(order).await?;
        if let Some(text) = effect.doing() {
            (self.watch)(&text);
        }
        self.act(order, &run, effect).await
    }

    /// The runner's ledger knows: ordering it again does it, or tells what came of it.
    async fn probe(&self, _: &EffectOrder) -> CrashEvidence {
        CrashEvidence::NotDone
    }

    /// Agents end with the run that waits for them, and commands with the run that ordered them.
    /// A test run ends by itself where the driver does not listen any more.
    async fn abort(&self, order: &EffectOrder) {
        match read(order) {
            Ok(RunEffect::Await { agents } | RunEffect::Dismiss { agents }) => {
                self.agents.stop(&agents).await;
            }
            Ok(RunEffect::Act { .. } | RunEffect::Merge { .. }) => {
                self.runner.stop(&order.effect).await;
            }
            _ => {}
        }
    }

    /// What was cut off is taken back by the runner itself before it is done again.
    async fn restore(&self, _: &EffectOrder, _: Option<Digest>) -> Result<(), EffectTrouble> {
        Ok(())
    }
}

/// No world at all, for looking at runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOnlyWorld;

#[async_trait]
impl EffectWorld for ReadOnlyWorld {
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble> {
        Err(EffectTrouble::Unreachable(format!(
            "{} cannot be done here: runs are only looked at",
            order.name
        )))
    }
}

/// What is to be found out in forks, and of which workspace.
fn test_run(effect: RunEffect) -> Result<(WorkspaceId, TestRunRequest), EffectTrouble> {
    let wanted = |command, folder| TestSelection { command, folder };
    Ok(match effect {
        RunEffect::RunTests {
            workspace,
            tests,
            folder,
            accept,
            tests_ms,
        } => {
            let tests = wanted(tests, folder);
            let request = TestRunRequest::RunTests {
                tests,
                accept,
                tests_ms,
            };
            (workspace, request)
        }
        RunEffect::Search {
            workspace,
            tests,
            folder,
            search_ms,
        } => {
            let tests = wanted(tests, folder);
            (workspace, TestRunRequest::Search { tests, search_ms })
        }
        RunEffect::Verify {
            workspace,
            tests,
            folder,
            before,
            first,
            accept,
            tests_ms,
        } => {
            let request = TestRunRequest::Verify {
                tests: wanted(tests, folder),
                before,
                first,
                accept,
                tests_ms,
            };
            (workspace, request)
        }
        RunEffect::RunOthersTests {
            workspace,
            of,
            tests,
            folder,
            tests_ms,
        } => {
            let request = TestRunRequest::RunOthersTests {
                tests: wanted(tests, folder),
                of,
                tests_ms,
            };
            (workspace, request)
        }
        other => return Err(failed(format!("{} needs no fork", other.name()))),
    })
}
