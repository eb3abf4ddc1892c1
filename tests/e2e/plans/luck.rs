//! A runner, agents and a planner that do what was drawn, and nothing by themselves.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use lula_agents::agent_pool::{AgentPoolEvent, AgentResult};
use lula_agents::model_port::ModelCallError;
use lula_agents::runner_port::{Reply, workspace_of};
use lula_agents::team::PlanChangeRequest;
use lula_agents::{
    AgentPoolPort, ModelPort, ProgressObserver, RunTask, RunnerPort, RunnerPortError,
};
use lula_models::normal::{MessagePart, ModelRequest, ModelResponse, ModelStopReason};
use lula_protocol::output::TextOrigin;
use lula_protocol::{
    BudgetAmounts, Code, Digest, EffectId, ProtocolVersion, RunExit, RunId, ToolAction, ToolCall,
    ToolOutcome, ToolOutput, ToolOutputDetails, ToolResult, WorkspaceId,
};
use lula_repair::trial::{
    AcceptanceResult, ProjectTestResults, TestBaseline, TestRunAttempt, VerificationEvidence,
};
use lula_runner_api::{
    ActRuling, ActRulings, CheckoutOriginView, CommitAgentChange, CommittedAgentChangeView,
    CommittedChangeView, ConflictFile, DeliverChanges, DeliveredChanges, EffectCall,
    FillWorkspaceFromBranch, FilledWorkspaceView, IntegrationBranchRef, IntegrationBranchView,
    JudgeActs, MergeAgentChange, MergeAgentChangeResult, OpenWorkspace, OpenWorkspaceOnBranch,
    RulingView, RunnerProblem, TestRunRequest, TestRunResult, ToolCallBatchItem, WorkspaceState,
    WorkspaceView,
};

use super::bench::Bench;
use super::drawn::{Drawn, Fate, How, Rewiring};

pub(super) struct State {
    pub(super) bench: Bench,
    first: Option<serde_json::Value>,
    fates: VecDeque<Fate>,
    amends: VecDeque<Rewiring>,
    /// What each agent at work was handed.
    at_work: BTreeMap<RunId, RunTask>,
    /// Wishes, and what each agent was told.
    pub(super) wishes: BTreeMap<EffectId, Option<Reply>>,
}

pub(super) struct Luck(Mutex<State>);

fn results() -> ProjectTestResults {
    ProjectTestResults {
        passing: ["every word stands once".to_owned()].into(),
        ..ProjectTestResults::default()
    }
}

fn baseline() -> TestBaseline {
    TestBaseline {
        looked: TestRunAttempt::Ran(results()),
        ..TestBaseline::default()
    }
}

fn no<T>() -> Result<T, RunnerPortError> {
    Err(RunnerPortError::Failed("nobody does that here".to_owned()))
}

impl Luck {
    pub(super) fn new(drawn: &Drawn) -> Self {
        Self(Mutex::new(State {
            bench: Bench::new(),
            first: Some(drawn.spoken()),
            fates: drawn.fates.clone().into(),
            amends: drawn.amends.clone().into(),
            at_work: BTreeMap::new(),
            wishes: BTreeMap::new(),
        }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    /// What comes of one of these agents next.
    fn news(&mut self, agents: &[RunId]) -> AgentPoolEvent {
        let (who, edits, mends, how) = match self.fates.pop_front() {
            Some(Fate::Wish { who, rewiring }) => {
                let run = agents[who % agents.len()].clone();
                let handoff = self.at_work[&run].handoff.as_ref().unwrap();
                let number = u64::try_from(self.wishes.len()).unwrap();
                let wish = PlanChangeRequest {
                    id: EffectId::from_parts(number, [3; 10]),
                    step: handoff.step.clone(),
                    arguments: rewiring.proposed(handoff.authority.scope.patterns()),
                    run,
                };
                self.wishes.insert(wish.id.clone(), None);
                return AgentPoolEvent::Wish { wish };
            }
            Some(Fate::Back {
                who,
                edits,
                mends,
                how,
            }) => (who, edits, mends, how),
            // An agent that is left does a little and is done.
            None => (0, vec![(0, super::drawn::Edit::Insert(0))], true, How::Done),
        };
        let run = agents[who % agents.len()].clone();
        self.at_work.remove(&run).unwrap();
        let made = self
            .bench
            .work(&workspace_of(&run), &edits, mends, how == How::Strays);
        let done = how != How::GivesUp && made.bearable && !made.taken.files.is_empty();
        AgentPoolEvent::Back(Box::new(AgentResult {
            run,
            exit: if done {
                RunExit::Verified
            } else {
                RunExit::Failed
            },
            summary: "as luck has it".to_owned(),
            by: "luck".to_owned(),
            said: String::new(),
            files: made.taken.files.iter().map(|f| f.path.clone()).collect(),
            diff: made.taken.diff.clone(),
            lines: 1,
            outline: String::new(),
            new_tests: Vec::new(),
            tree: done.then_some(made.taken.digest),
            answer: None,
            confidence: None,
            spent: BudgetAmounts::none(),
        }))
    }
}

#[async_trait]
impl AgentPoolPort for Luck {
    async fn begin(
        &self,
        agent: &RunId,
        task: &RunTask,
        _: &BudgetAmounts,
    ) -> Result<(), RunnerPortError> {
        let handoff = task.handoff.as_ref().unwrap();
        handoff.check().unwrap();
        let mut state = self.state();
        state.bench.settle(&workspace_of(agent), handoff);
        let before = state.at_work.insert(agent.clone(), task.clone());
        assert!(before.is_none(), "{agent} was begun twice");
        Ok(())
    }

    async fn wait(&self, agents: &[RunId]) -> Result<AgentPoolEvent, RunnerPortError> {
        assert!(!agents.is_empty(), "nobody is waited for: a deadlock");
        Ok(self.state().news(agents))
    }

    async fn stop(&self, _: &[RunId]) {}

    async fn dismiss(&self, _: &[RunId]) -> Result<Vec<AgentResult>, RunnerPortError> {
        no()
    }

    async fn propose(&self, _: &PlanChangeRequest) -> Result<Reply, RunnerPortError> {
        no()
    }

    async fn answer(&self, wish: &EffectId, said: &Reply) -> Result<(), RunnerPortError> {
        let before = self.state().wishes.insert(wish.clone(), Some(said.clone()));
        assert_eq!(before, Some(None), "one answer to one wish");
        Ok(())
    }
}

#[async_trait]
impl ModelPort for Luck {
    async fn ask(
        &self,
        _: &str,
        _: &ModelRequest,
        _: &BudgetAmounts,
    ) -> Result<(ModelResponse, BudgetAmounts), ModelCallError> {
        let mut state = self.state();
        let said = state.first.take();
        let amended = || Some(state.amends.pop_front()?.spoken());
        let nothing = || serde_json::json!({"replaces": "", "tasks": []});
        let text = said.or_else(amended).unwrap_or_else(nothing).to_string();
        let response = ModelResponse {
            raw: Digest::of_bytes(text.as_bytes()),
            parts: vec![MessagePart::Text { text }],
            stop: ModelStopReason::End,
            usage: None,
        };
        Ok((response, BudgetAmounts::none()))
    }
}

/// A result of a tool, with these details.
fn done(call: &ToolCall, details: ToolOutputDetails) -> ToolResult {
    ToolResult {
        protocol: ProtocolVersion,
        effect: call.effect.clone(),
        outcome: ToolOutcome::Done {
            output: ToolOutput::new("", TextOrigin::Lula).with(details),
        },
        receipt: None,
    }
}

#[async_trait]
impl RunnerPort for Luck {
    async fn open(&self, order: &OpenWorkspace) -> Result<WorkspaceView, RunnerPortError> {
        let id = order.checkout.as_ref().unwrap().id.clone();
        let commit = self.state().bench.open(&id);
        Ok(WorkspaceView {
            id,
            path: order.path.clone(),
            title: order.title.clone(),
            state: WorkspaceState::Pending,
            backend: "copy".to_owned(),
            opened_ms: 0,
            snapshots: Vec::new(),
            origin: Some(CheckoutOriginView {
                commit,
                uncommitted: 0,
                history: Vec::new(),
                ignored: None,
            }),
        })
    }

    async fn workspace(&self, _: &WorkspaceId) -> Result<WorkspaceView, RunnerPortError> {
        no()
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolResult, RunnerPortError> {
        match &call.action {
            ToolAction::ListFiles(_) => Ok(done(
                call,
                ToolOutputDetails::Files {
                    entries: Vec::new(),
                    left_out: 0,
                },
            )),
            _ => no(),
        }
    }

    async fn batch(&self, calls: Vec<ToolCall>) -> Result<Vec<ToolCallBatchItem>, RunnerPortError> {
        let problem = |_| {
            ToolCallBatchItem::Problem(RunnerProblem {
                code: Code::FileAccess,
                message: "there is no file".to_owned(),
            })
        };
        Ok(calls.iter().map(problem).collect())
    }

    async fn stop(&self, _: &EffectId) {}

    async fn change(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<CommittedChangeView, RunnerPortError> {
        let taken = self.state().bench.take(workspace);
        Ok(CommittedChangeView {
            files: taken.files.iter().map(|file| file.path.clone()).collect(),
            diff: taken.diff,
            tree: taken.digest,
        })
    }

    async fn judge(
        &self,
        _: &WorkspaceId,
        acts: &JudgeActs,
    ) -> Result<ActRulings, RunnerPortError> {
        let allowed = |_| ActRuling {
            ruling: RulingView::Allow,
            rule: None,
            reason: "no rule is about it".to_owned(),
        };
        let rulings = acts.acts.iter().map(allowed).collect();
        Ok(ActRulings { rulings })
    }

    async fn run_tests(
        &self,
        workspace: &WorkspaceId,
        request: &TestRunRequest,
        _: &ProgressObserver,
    ) -> Result<TestRunResult, RunnerPortError> {
        if matches!(request, TestRunRequest::RunTests { .. }) {
            let baseline = baseline();
            return Ok(TestRunResult::Ran {
                baseline: Box::new(baseline),
            });
        }
        let accepted = AcceptanceResult {
            command: "look".to_owned(),
            before: false,
            after: true,
            timed_out: false,
            unsteady: false,
            output: String::new(),
        };
        let evidence = Box::new(VerificationEvidence {
            before: TestRunAttempt::Ran(results()),
            after: TestRunAttempt::Ran(results()),
            accepted: vec![accepted],
            changed_files: self.state().bench.take(workspace).files.len(),
            ..VerificationEvidence::default()
        });
        Ok(TestRunResult::Verified { evidence })
    }

    async fn open_branch(
        &self,
        order: &IntegrationBranchRef,
    ) -> Result<IntegrationBranchView, RunnerPortError> {
        let branch = self.state().bench.branch(&order.run);
        Ok(IntegrationBranchView {
            branch: branch.name().as_str().to_owned(),
            run: order.run.clone(),
            path: order.repository.clone(),
            base: branch.base().to_owned(),
            commit: branch.commit().unwrap(),
            commits: Vec::new(),
            archived: false,
            bytes: 0,
        })
    }

    async fn open_on_branch(
        &self,
        _: &OpenWorkspaceOnBranch,
    ) -> Result<WorkspaceView, RunnerPortError> {
        no()
    }

    async fn commit(
        &self,
        call: &EffectCall<CommitAgentChange>,
    ) -> Result<CommittedAgentChangeView, RunnerPortError> {
        let order = &call.order;
        let bench = &mut self.state().bench;
        let branch = bench.branch(&call.run);
        match bench.commit(&branch, &order.step, &order.workspace, &order.message) {
            Ok((commit, outside)) => Ok(CommittedAgentChangeView {
                commit,
                files: Vec::new(),
                outside,
            }),
            Err(why) => Err(RunnerPortError::Failed(why)),
        }
    }

    async fn merge(
        &self,
        call: &EffectCall<MergeAgentChange>,
    ) -> Result<MergeAgentChangeResult, RunnerPortError> {
        let order = &call.order;
        let bench = &mut self.state().bench;
        let branch = bench.branch(&call.run);
        let onto = branch.commit().unwrap();
        let merged = bench.merge(&branch, &order.step, &order.commit, &order.message);
        Ok(match merged {
            Ok(commit) => MergeAgentChangeResult::Merged {
                commit,
                tests: Some(Box::new(results())),
                flaky: BTreeSet::new(),
            },
            Err((why, files)) if files.is_empty() => MergeAgentChangeResult::TestConflict {
                onto,
                failing: Vec::new(),
                messages: Vec::new(),
                accept: Vec::new(),
                why,
            },
            Err((_, files)) => MergeAgentChangeResult::Conflict {
                onto,
                files: files.into_iter().map(conflict).collect(),
                ours: String::new(),
                theirs: String::new(),
            },
        })
    }

    async fn fill(
        &self,
        call: &EffectCall<FillWorkspaceFromBranch>,
    ) -> Result<FilledWorkspaceView, RunnerPortError> {
        let order = &call.order;
        let bench = &mut self.state().bench;
        let branch = bench.branch(&call.run);
        bench.fill(&branch, &order.workspace);
        Ok(FilledWorkspaceView {
            commit: branch.commit().unwrap(),
            tree: bench.take(&order.workspace).digest,
            files: Vec::new(),
        })
    }

    async fn deliver(
        &self,
        _: &EffectCall<DeliverChanges>,
    ) -> Result<DeliveredChanges, RunnerPortError> {
        no()
    }
}

fn conflict(path: String) -> ConflictFile {
    ConflictFile {
        path,
        what: Vec::new(),
        hunks: Vec::new(),
    }
}
