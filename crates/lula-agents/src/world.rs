//! Where deeds are done: each goes to the hands or to a mind, and nowhere else.

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
    CommittedAgentChangeView, DeliveredView, IntegrationBranchView, TestRunRequest, TestRunResult,
};
use serde::Serialize;

use crate::agent_pool::{AgentPoolEvent, AgentPoolPort, NoAgentPool};
use crate::effects::RunEffect;
use crate::model_port::{ModelCallError, ModelPort};
use crate::runner_port::{
    self, AgentWorkspace, DeliverRequest, EffectIdentity, IntegrationBranchRef, MergeOutcome,
    Reply, RunnerPort, RunnerPortError, opening, workspace_of,
};
use crate::task::DeliverMode;
use crate::team::{PlanChangeRequest, site_run};
use crate::{survey, test_selection};

pub use crate::fence::{DriverFence, DriverFenceProbe, DriverFenceReport};

/// Hears how far something is that takes a while.
pub type ProgressObserver = Arc<dyn Fn(&str) + Send + Sync>;

/// The world of a run: hands and minds.
pub struct RunWorld {
    hands: Arc<dyn RunnerPort>,
    minds: Arc<dyn ModelPort>,
    crew: Arc<dyn AgentPoolPort>,
    watch: ProgressObserver,
    fence: DriverFence,
    /// Where the index of a project is kept, if anywhere.
    index: Option<PathBuf>,
}

impl RunWorld {
    /// With these.
    pub fn new(
        hands: Arc<dyn RunnerPort>,
        minds: Arc<dyn ModelPort>,
        watch: ProgressObserver,
    ) -> Self {
        Self {
            hands,
            minds,
            crew: Arc::new(NoAgentPool),
            watch,
            fence: Arc::new(|_, _| DriverFenceReport::default()),
            index: None,
        }
    }

    /// With other agents.
    #[must_use]
    pub fn crewed(mut self, crew: Arc<dyn AgentPoolPort>) -> Self {
        self.crew = crew;
        self
    }

    /// Behind this fence.
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
    async fn deed(&self, order: &EffectOrder) -> Result<(RunId, RunEffect), EffectTrouble> {
        let (mut place, mut deed) = (order.run.clone(), read(order)?);
        if let RunEffect::Elsewhere { site, act } = deed {
            place = site_run(&order.run, site);
            deed = *act;
        }
        if let RunEffect::DeliverAll { parts } = &mut deed {
            for part in parts {
                let own = site_run(&order.run, part.site);
                self.settle_in(&own, &mut part.order.workspace).await?;
            }
        }
        if let Some(mut named) = deed.workspace().cloned() {
            self.settle_in(&place, &mut named).await?;
            deed.move_to(&named);
        }
        Ok((place, deed))
    }

    /// Makes a named workspace the one of that name, which begins as the other began.
    async fn settle_in(&self, run: &RunId, named: &mut WorkspaceId) -> Result<(), EffectTrouble> {
        let own = workspace_of(run);
        if *named != own {
            let adopted = runner_port::adopt(&*self.hands, run, named).await;
            adopted.map_err(trouble)?;
            *named = own;
        }
        Ok(())
    }

    /// Finds something out in forks of a workspace.
    async fn find_out(
        &self,
        workspace: &WorkspaceId,
        trial: TestRunRequest,
    ) -> Result<EffectOutput, EffectTrouble> {
        let found = self.hands.trial(workspace, &trial, &self.watch).await;
        match found.map_err(trouble)? {
            TestRunResult::Examined { baseline } => said(&baseline),
            TestRunResult::Searched { found } => said(&found),
            TestRunResult::Weighed { evidence } => said(&evidence),
            TestRunResult::Failed { message } => Err(failed(message)),
        }
    }

    /// Asks a model.
    async fn ask(
        &self,
        mind: &str,
        request: &ModelRequest,
        at_most: &BudgetAmounts,
    ) -> Result<EffectOutput, EffectTrouble> {
        match self.minds.ask(mind, request, at_most).await {
            Ok((response, spent)) => Ok(EffectOutput {
                spent,
                ..said(&response)?
            }),
            Err(ModelCallError { message, spent }) => Err(EffectTrouble::Failed { message, spent }),
        }
    }

    /// What is done by having agents.
    async fn company(
        &self,
        order: &EffectOrder,
        deed: RunEffect,
    ) -> Result<EffectOutput, EffectTrouble> {
        match deed {
            RunEffect::Begin {
                agent,
                task,
                limits,
            } => {
                let begun = self.crew.begin(&agent, &task, &limits).await;
                said(&begun.map_err(trouble)?)
            }
            RunEffect::Await { agents } => {
                let news = self.crew.wait(&agents).await.map_err(trouble)?;
                let spent = match &news {
                    AgentPoolEvent::Back(returned) => returned.spent.clone(),
                    AgentPoolEvent::Wish { .. } => BudgetAmounts::none(),
                };
                Ok(EffectOutput {
                    spent,
                    ..said(&news)?
                })
            }
            RunEffect::Propose { job, arguments } => {
                let wish = PlanChangeRequest {
                    id: order.effect.clone(),
                    run: order.run.clone(),
                    job,
                    arguments,
                };
                said(&self.crew.propose(&wish).await.map_err(trouble)?)
            }
            RunEffect::Answer { answers } => {
                for (wish, answer) in &answers {
                    self.crew.answer(wish, answer).await.map_err(trouble)?;
                }
                said(&())
            }
            RunEffect::Dismiss { agents } => {
                let ended = self.crew.dismiss(&agents).await.map_err(trouble)?;
                let spent = ended.iter().flat_map(|back| back.spent.iter());
                Ok(EffectOutput {
                    spent: total(spent),
                    ..said(&ended)?
                })
            }
            other => Err(failed(format!("{} needs no agents", other.name()))),
        }
    }

    /// A line, which begins where it is first asked for.
    async fn line(
        &self,
        line: &IntegrationBranchRef,
    ) -> Result<IntegrationBranchView, EffectTrouble> {
        let view = self.hands.open_line(&line.request()).await;
        view.map_err(trouble)
    }

    /// What is done on the line that agents build on.
    async fn on_line(
        &self,
        effect: &EffectIdentity,
        deed: RunEffect,
    ) -> Result<EffectOutput, EffectTrouble> {
        match deed {
            RunEffect::OpenOver { wanted } => {
                let line = self.line(&wanted.line).await?.line;
                let opened = self.hands.open_at_line(&line, &wanted.request()).await;
                said(&opened.and_then(AgentWorkspace::of).map_err(trouble)?)
            }
            RunEffect::Harvest { order } => {
                let line = self.line(&order.line).await?.line;
                let produced = self.hands.produce(&line, &order.request(effect)).await;
                // Its files are in the log already, with the agent that changed them.
                said(&CommittedAgentChangeView {
                    files: Vec::new(),
                    ..produced.map_err(trouble)?
                })
            }
            RunEffect::Join { order } => {
                let line = self.line(&order.line).await?.line;
                let came = self.hands.integrate(&line, &order.request(effect)).await;
                said(&MergeOutcome::from(came.map_err(trouble)?))
            }
            RunEffect::Lay { line, workspace } => {
                let line = self.line(&line).await?.line;
                let laid = self
                    .hands
                    .lay(&line, &runner_port::lay(effect, &workspace))
                    .await;
                said(&laid.map(drop).map_err(trouble)?)
            }
            other => Err(failed(format!("{} needs no line", other.name()))),
        }
    }

    /// Puts a change where it is to go, if anywhere.
    async fn deliver(
        &self,
        effect: &EffectIdentity,
        order: &DeliverRequest,
    ) -> Result<DeliveredView, RunnerPortError> {
        match order.deliver {
            DeliverMode::Branch | DeliverMode::Worktree => {
                let wanted = order.request(effect);
                self.hands.deliver(&order.workspace, &wanted).await
            }
            _ => Ok(DeliveredView::default()),
        }
    }

    async fn act(
        &self,
        order: &EffectOrder,
        place: &RunId,
        deed: RunEffect,
    ) -> Result<EffectOutput, EffectTrouble> {
        match deed {
            RunEffect::Open { repository } => {
                let opened = self.hands.open(&opening(place, &repository, None)).await;
                said(&opened.and_then(AgentWorkspace::of).map_err(trouble)?)
            }
            RunEffect::Fence {
                repository,
                workspace,
            } => said(&(self.fence)(&repository, &workspace)),
            RunEffect::Survey { workspace, wanted } => {
                let (effect, cache) = (whose(order), self.index.as_deref());
                let found = survey::survey(&*self.hands, &effect, &workspace, &wanted, cache).await;
                said(&found.map_err(trouble)?)
            }
            RunEffect::Fetch { workspace, path } => {
                let (hands, effect) = (&*self.hands, whose(order));
                let texts = runner_port::fetch(hands, &effect, &workspace, &[path]).await;
                said(&texts.map_err(trouble)?.into_iter().next().flatten())
            }
            RunEffect::Act { workspace, action } => {
                let call = ToolCall {
                    protocol: ProtocolVersion,
                    effect: order.effect.clone(),
                    epoch: order.epoch,
                    run: order.run.clone(),
                    workspace,
                    action,
                };
                let reply = self.hands.call(&call).await.and_then(Reply::of);
                let mut performed = said(&reply.map_err(trouble)?)?;
                performed.spent = BudgetAmounts::none().with(BudgetDimension::ToolCalls, 1);
                Ok(performed)
            }
            RunEffect::Reset { workspace } => {
                let done = runner_port::reset(&*self.hands, &whose(order), &workspace).await;
                said(&done.map_err(trouble)?)
            }
            RunEffect::Change { workspace } => {
                said(&self.hands.change(&workspace).await.map_err(trouble)?)
            }
            RunEffect::Examine { .. } | RunEffect::Repair { .. } | RunEffect::Weigh { .. } => {
                let (workspace, trial) = trial(deed)?;
                self.find_out(&workspace, trial).await
            }
            RunEffect::Pick { workspace, change } => {
                let (effect, cache) = (whose(order), self.index.as_deref());
                let picked =
                    test_selection::pick(&*self.hands, &effect, &workspace, *change, cache).await;
                said(&picked.map_err(trouble)?)
            }
            RunEffect::Ask {
                mind,
                request,
                at_most,
            } => self.ask(&mind, &request, &at_most).await,
            RunEffect::Begin { .. }
            | RunEffect::Await { .. }
            | RunEffect::Dismiss { .. }
            | RunEffect::Propose { .. }
            | RunEffect::Answer { .. } => self.company(order, deed).await,
            RunEffect::OpenOver { .. }
            | RunEffect::Harvest { .. }
            | RunEffect::Join { .. }
            | RunEffect::Lay { .. } => self.on_line(&whose(order), deed).await,
            RunEffect::Deliver { order: what } => {
                let arrived = self.deliver(&whose(order), &what).await;
                said(&arrived.map_err(trouble)?)
            }
            RunEffect::DeliverAll { parts } => {
                let wanted = runner_port::deliver_all(&whose(order), parts);
                let arrived = self.hands.deliver_all(&wanted).await;
                said(&arrived.map_err(trouble)?.parts)
            }
            RunEffect::Elsewhere { .. } => Err(failed("a place inside a place".to_owned())),
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
    serde_json::from_value(order.request.clone())
        .map_err(|error| failed(format!("{} is not something to do: {error}", order.name)))
}

fn whose(order: &EffectOrder) -> EffectIdentity {
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
        let (place, deed) = self.deed(order).await?;
        if let Some(text) = deed.doing() {
            (self.watch)(&text);
        }
        self.act(order, &place, deed).await
    }

    /// The hands' ledger knows: ordering it again does it, or tells what came of it.
    async fn probe(&self, _: &EffectOrder) -> CrashEvidence {
        CrashEvidence::NotDone
    }

    /// Agents end with the run that waits for them, and commands with the run that ordered them.
    /// A trial ends by itself where the driver does not listen any more.
    async fn abort(&self, order: &EffectOrder) {
        match read(order) {
            Ok(RunEffect::Await { agents } | RunEffect::Dismiss { agents }) => {
                self.crew.stop(&agents).await;
            }
            Ok(RunEffect::Act { .. } | RunEffect::Join { .. }) => {
                self.hands.stop(&order.effect).await;
            }
            _ => {}
        }
    }

    /// What was cut off is taken back by the hands themselves before it is done again.
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
fn trial(deed: RunEffect) -> Result<(WorkspaceId, TestRunRequest), EffectTrouble> {
    let wanted = |command, folder| TestSelection { command, folder };
    Ok(match deed {
        RunEffect::Examine {
            workspace,
            tests,
            folder,
            accept,
            tests_ms,
        } => {
            let tests = wanted(tests, folder);
            let trial = TestRunRequest::Examine {
                tests,
                accept,
                tests_ms,
            };
            (workspace, trial)
        }
        RunEffect::Repair {
            workspace,
            tests,
            folder,
            search_ms,
        } => {
            let tests = wanted(tests, folder);
            (workspace, TestRunRequest::Search { tests, search_ms })
        }
        RunEffect::Weigh {
            workspace,
            tests,
            folder,
            before,
            first,
            accept,
            tests_ms,
        } => {
            let trial = TestRunRequest::Weigh {
                tests: wanted(tests, folder),
                before,
                first,
                accept,
                tests_ms,
            };
            (workspace, trial)
        }
        other => return Err(failed(format!("{} needs no fork", other.name()))),
    })
}
