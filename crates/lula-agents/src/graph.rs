//! The graph: twelve nodes, the ways out of them, and where each way leads.

use async_trait::async_trait;
use lula_graph::{
    Graph, NodeContext, NodeExit, NodeVisitFuture, RunEndReport, TransitionTable, labels,
};
use lula_protocol::RunExit;

use crate::nodes;
use crate::recovery::{AttemptFailureClass, RetryTarget};
use crate::route::TaskLane;
use crate::task::RunTask;
use crate::verdict::RunVerdict;
use crate::work::{CodingState, EarlyEnd, RunStateEvent};

labels! {
    /// The nodes of the coding graph.
    pub enum RunNode {
        Ingest = "ingest",
        Router = "router",
        PolicyGate = "policy_gate",
        Planner = "planner",
        ContextBuilder = "context_builder",
        Scheduler = "scheduler",
        Contest = "contest",
        Coder = "coder",
        Executor = "executor",
        Verifier = "verifier",
        Reporter = "reporter",
        Chat = "chat",
    }
}

labels! {
    /// The ways out of them.
    pub enum RunNodeExit {
        Ok = "ok",
        Invalid = "invalid",
        Interactive = "interactive",
        Deep = "deep_planning",
        Allow = "allow",
        Deny = "deny",
        Edits = "edits",
        NoOp = "no_op",
        Malformed = "malformed",
        NoCoder = "nobody",
        Blocked = "blocked",
        Pointless = "pointless",
        Pass = "pass",
        Fail = "fail",
        Inconclusive = "inconclusive",
        Done = "done",
        Shared = "shared",
        More = "more",
        Amend = "amend",
        Whole = "whole",
        Answered = "answered",
        Turn = "turn",
        Said = "said",
        Commit = "commit",
    }
}

/// From a task to a verified change.
#[derive(Debug, Clone, Copy, Default)]
pub struct CodingGraph;

/// Where the gate lets a run through to.
pub(crate) fn admitted(work: &CodingState) -> RunNode {
    // What several did together is mended by the planner.
    if work.joint.is_some() {
        return RunNode::Planner;
    }
    match (work.lane, &work.retry) {
        (TaskLane::Recovery, Some(retry)) => match retry.target {
            RetryTarget::Planner if work.task.models.is_empty() => RunNode::ContextBuilder,
            RetryTarget::Planner => RunNode::Planner,
            RetryTarget::Context => RunNode::ContextBuilder,
            RetryTarget::Coder | RetryTarget::Conversation => RunNode::Coder,
        },
        (TaskLane::DeepPlanning, _) => RunNode::Planner,
        (TaskLane::Interactive | TaskLane::Recovery, _) => RunNode::ContextBuilder,
    }
}

/// Who works with what was found out: one coder, or several who try the same. In a chat in which nothing
/// was said, a person goes first.
fn informed(work: &CodingState) -> RunNode {
    if work.chat.as_ref().is_some_and(|chat| !chat.begun) {
        RunNode::Chat
    } else if work.task.best_of.is_some() {
        RunNode::Contest
    } else {
        RunNode::Coder
    }
}

/// Where a run goes on whose change is there, or did not come about.
const fn coded(work: &CodingState) -> RunNode {
    person_or(work, RunNode::Executor)
}

/// Where a failure is handled: a person who talks with the coder hears of it.
const fn failed(work: &CodingState) -> RunNode {
    person_or(work, RunNode::PolicyGate)
}

/// Where a change goes of which nothing shows that it is right: in a chat a person has to have said so.
fn undecided(work: &CodingState) -> RunNode {
    match &work.chat {
        Some(chat) if !chat.takes_unverified() => RunNode::Chat,
        _ => RunNode::Reporter,
    }
}

const fn person_or(work: &CodingState, node: RunNode) -> RunNode {
    if work.chat.is_some() {
        RunNode::Chat
    } else {
        node
    }
}

#[async_trait]
impl Graph for CodingGraph {
    type Node = RunNode;
    type Outcome = RunNodeExit;
    type Input = RunTask;
    type State = CodingState;
    type Event = RunStateEvent;
    const NAME: &'static str = "coding";
    const VERSION: u32 = 3;

    fn outcomes(&self, node: RunNode) -> &'static [RunNodeExit] {
        match node {
            RunNode::Ingest => &[RunNodeExit::Ok, RunNodeExit::Invalid],
            RunNode::Router => &[RunNodeExit::Interactive, RunNodeExit::Deep],
            RunNode::PolicyGate => &[RunNodeExit::Allow, RunNodeExit::Deny],
            RunNode::Planner => &[
                RunNodeExit::Ok,
                RunNodeExit::Malformed,
                RunNodeExit::Shared,
                RunNodeExit::Deny,
            ],
            RunNode::Scheduler => &[
                RunNodeExit::More,
                RunNodeExit::Amend,
                RunNodeExit::Whole,
                RunNodeExit::Deny,
            ],
            RunNode::Contest => &[RunNodeExit::More, RunNodeExit::Whole, RunNodeExit::Deny],
            RunNode::ContextBuilder => &[RunNodeExit::Ok, RunNodeExit::Pointless],
            RunNode::Coder => &[
                RunNodeExit::Edits,
                RunNodeExit::NoOp,
                RunNodeExit::Malformed,
                RunNodeExit::NoCoder,
                RunNodeExit::Blocked,
                RunNodeExit::Answered,
                RunNodeExit::Turn,
            ],
            RunNode::Verifier => &[
                RunNodeExit::Pass,
                RunNodeExit::Fail,
                RunNodeExit::Inconclusive,
            ],
            RunNode::Executor => &[RunNodeExit::Done, RunNodeExit::Fail],
            RunNode::Reporter => &[RunNodeExit::Done],
            RunNode::Chat => &[RunNodeExit::Said, RunNodeExit::More, RunNodeExit::Commit],
        }
    }

    fn table(&self) -> TransitionTable<Self> {
        TransitionTable::starting_at(RunNode::Ingest)
            .on(RunNode::Ingest, RunNodeExit::Ok, RunNode::Router)
            .on(RunNode::Ingest, RunNodeExit::Invalid, RunNode::Reporter)
            .on(
                RunNode::Router,
                RunNodeExit::Interactive,
                RunNode::PolicyGate,
            )
            .on(RunNode::Router, RunNodeExit::Deep, RunNode::PolicyGate)
            .choose(
                RunNode::PolicyGate,
                RunNodeExit::Allow,
                &[RunNode::ContextBuilder, RunNode::Planner, RunNode::Coder],
                admitted,
            )
            .on(RunNode::PolicyGate, RunNodeExit::Deny, RunNode::Reporter)
            .on(RunNode::Planner, RunNodeExit::Ok, RunNode::ContextBuilder)
            .on(
                RunNode::Planner,
                RunNodeExit::Malformed,
                RunNode::PolicyGate,
            )
            .on(RunNode::Planner, RunNodeExit::Shared, RunNode::Scheduler)
            .on(RunNode::Planner, RunNodeExit::Deny, RunNode::Reporter)
            .on(RunNode::Scheduler, RunNodeExit::More, RunNode::Scheduler)
            .on(RunNode::Scheduler, RunNodeExit::Amend, RunNode::Planner)
            .on(RunNode::Scheduler, RunNodeExit::Whole, RunNode::Executor)
            .on(RunNode::Scheduler, RunNodeExit::Deny, RunNode::Reporter)
            .choose(
                RunNode::ContextBuilder,
                RunNodeExit::Ok,
                &[RunNode::Coder, RunNode::Contest, RunNode::Chat],
                informed,
            )
            .on(RunNode::Contest, RunNodeExit::More, RunNode::Contest)
            .on(RunNode::Contest, RunNodeExit::Whole, RunNode::Executor)
            .on(RunNode::Contest, RunNodeExit::Deny, RunNode::Reporter)
            .on(
                RunNode::ContextBuilder,
                RunNodeExit::Pointless,
                RunNode::Reporter,
            )
            .choose(
                RunNode::Coder,
                RunNodeExit::Edits,
                &[RunNode::Executor, RunNode::Chat],
                coded,
            )
            .on(RunNode::Coder, RunNodeExit::NoOp, RunNode::Verifier)
            .choose(
                RunNode::Coder,
                RunNodeExit::Malformed,
                &[RunNode::PolicyGate, RunNode::Chat],
                failed,
            )
            .on(RunNode::Coder, RunNodeExit::NoCoder, RunNode::Reporter)
            .on(RunNode::Coder, RunNodeExit::Blocked, RunNode::Reporter)
            .on(RunNode::Coder, RunNodeExit::Answered, RunNode::Reporter)
            .on(RunNode::Coder, RunNodeExit::Turn, RunNode::Chat)
            .on(RunNode::Chat, RunNodeExit::Said, RunNode::Coder)
            .on(RunNode::Chat, RunNodeExit::More, RunNode::Chat)
            .on(RunNode::Chat, RunNodeExit::Commit, RunNode::Executor)
            .on(RunNode::Executor, RunNodeExit::Done, RunNode::Verifier)
            .choose(
                RunNode::Executor,
                RunNodeExit::Fail,
                &[RunNode::PolicyGate, RunNode::Chat],
                failed,
            )
            .on(RunNode::Verifier, RunNodeExit::Pass, RunNode::Reporter)
            .choose(
                RunNode::Verifier,
                RunNodeExit::Fail,
                &[RunNode::PolicyGate, RunNode::Chat],
                failed,
            )
            .choose(
                RunNode::Verifier,
                RunNodeExit::Inconclusive,
                &[RunNode::Reporter, RunNode::Chat],
                undecided,
            )
            .done(RunNode::Reporter, RunNodeExit::Done)
    }

    fn begin(&self, task: RunTask) -> CodingState {
        CodingState::begin(task)
    }

    fn apply(&self, work: &mut CodingState, event: &RunStateEvent) {
        work.apply(event);
    }

    fn supports(&self, version: u32) -> bool {
        (2..=Self::VERSION).contains(&version)
    }

    /// Since version 3 a failed attempt goes on in its conversation, and models are told other things.
    fn rederives(&self, node: RunNode, version: u32) -> bool {
        version == Self::VERSION || matches!(node, RunNode::Ingest | RunNode::Router)
    }

    async fn visit(
        &self,
        node: RunNode,
        work: &CodingState,
        ctx: &mut NodeContext<'_>,
    ) -> NodeVisitFuture<Self> {
        let left = match node {
            RunNode::Ingest => nodes::ingest(work, ctx).await,
            RunNode::Router => Ok(nodes::router(work)),
            RunNode::PolicyGate => nodes::policy_gate(work, ctx).await,
            RunNode::Planner => nodes::planner(work, ctx).await,
            RunNode::Scheduler => nodes::scheduler(work, ctx).await,
            RunNode::Contest => nodes::contest(work, ctx).await,
            RunNode::ContextBuilder => nodes::context_builder(work, ctx).await,
            RunNode::Coder => nodes::coder(work, ctx).await,
            RunNode::Executor => nodes::executor(work, ctx).await,
            RunNode::Verifier => nodes::verifier(work, ctx).await,
            RunNode::Reporter => nodes::reporter(work, ctx).await,
            RunNode::Chat => nodes::chat(work, ctx).await,
        }?;
        let notes: Vec<String> = ctx.heard().into_iter().map(|note| note.text).collect();
        if notes.is_empty() {
            return Ok(left);
        }
        Ok(left.with(RunStateEvent::Steered { notes }))
    }

    fn report(&self, work: &CodingState) -> RunEndReport {
        report(work)
    }

    fn set(&self, work: &CodingState, key: &str, value: &str) -> Result<RunStateEvent, String> {
        match key {
            "task" => Ok(RunStateEvent::Reworded {
                text: value.to_owned(),
            }),
            "model" if work.task.models.iter().any(|model| model.name == value) => {
                Ok(RunStateEvent::Preferring {
                    model: value.to_owned(),
                })
            }
            "model" => Err(format!("the run knows no model {value:?}")),
            _ => Err(format!("{key:?} cannot be set: task and model can")),
        }
    }
}

/// What is said when a run ends.
fn report(work: &CodingState) -> RunEndReport {
    let (exit, summary) = match (&work.verdict, &work.end) {
        (_, Some(EarlyEnd::Rejected { why })) => (RunExit::Usage, why.clone()),
        (_, Some(EarlyEnd::Unclear { why })) => (RunExit::Inconclusive, why.clone()),
        (_, Some(EarlyEnd::NeedsModel { why } | EarlyEnd::Environment { why, .. })) => {
            (RunExit::Environment, why.clone())
        }
        (_, Some(EarlyEnd::Blocked { why, .. })) | (Some(RunVerdict::Fail { why, .. }), None) => {
            (RunExit::Failed, why.clone())
        }
        (_, Some(EarlyEnd::OutOfTime { why })) => (RunExit::Budget, why.clone()),
        (_, Some(EarlyEnd::Halted { why })) => {
            let unreachable = work
                .failures
                .last()
                .is_some_and(|failure| failure.class == AttemptFailureClass::ModelUnavailable);
            let exit = if unreachable {
                RunExit::Environment
            } else {
                RunExit::Failed
            };
            (exit, why.clone())
        }
        (_, Some(EarlyEnd::NothingToDo { passing, named })) => {
            let nothing = match named.as_slice() {
                [] => "nothing fails".to_owned(),
                named => format!("no failing test is called {}", named.join(" or ")),
            };
            let tests = if *passing == 1 {
                "test passes"
            } else {
                "tests pass"
            };
            let text = format!("{nothing}: {passing} {tests}; nothing was changed");
            // Logs from before intents were settled say what they said.
            let exit = match work.task.intent {
                Some(_) => RunExit::Inconclusive,
                None => RunExit::Verified,
            };
            (exit, text)
        }
        (_, Some(EarlyEnd::Planned { tasks })) => (
            RunExit::Verified,
            format!("a plan of {tasks} tasks; nothing was begun"),
        ),
        (Some(RunVerdict::Pass { why }), None) => (RunExit::Verified, why.clone()),
        (Some(RunVerdict::Inconclusive { why }), None) => {
            (RunExit::Inconclusive, format!("not verified: {why}"))
        }
        (None, None) if work.answer.is_some() => {
            let text = work.answer.as_ref().map(|answer| answer.text.clone());
            (RunExit::Inconclusive, text.unwrap_or_default())
        }
        (None, None) => (
            RunExit::Inconclusive,
            "the run came to no verdict".to_owned(),
        ),
    };
    part_of(work, exit, summary)
}

/// What came together of a plan of which a task is missing is delivered, and is never all of it.
fn part_of(work: &CodingState, exit: RunExit, summary: String) -> RunEndReport {
    let judged = matches!(
        work.verdict,
        Some(RunVerdict::Pass { .. } | RunVerdict::Inconclusive { .. })
    );
    match &work.joint {
        Some(joint) if judged && work.end.is_none() && joint.is_partial() => RunEndReport {
            exit: RunExit::Inconclusive,
            summary: format!("a part: {}; of what came together: {summary}", joint.told()),
        },
        _ => RunEndReport { exit, summary },
    }
}

/// How a node of the coding graph is left.
pub(crate) type NodeDeparture = NodeExit<RunNodeExit, RunStateEvent>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_out_of_every_node_leads_somewhere_and_every_node_to_the_end() {
        CodingGraph.table().check(&CodingGraph).unwrap();
    }

    #[test]
    fn the_picture_in_the_architecture_page_is_the_table() {
        let page = include_str!("../../../ARCHITECTURE.md");
        let picture = CodingGraph.table().picture();
        let lines: Vec<String> = picture.lines().map(|line| format!("    {line}")).collect();
        let shown = lines.join("\n");
        assert!(
            page.contains(&shown),
            "put this into ARCHITECTURE.md, below \"The graph\":\n\n{shown}"
        );
    }

    #[test]
    fn a_run_without_a_verdict_never_reports_success() {
        let work = CodingState::begin(RunTask::new("x", "/r"));
        assert_eq!(report(&work).exit, RunExit::Inconclusive);
    }

    #[test]
    fn nothing_to_do_is_no_success() {
        let mut work = CodingState::begin(RunTask::new("fix the failing tests", "/r"));
        work.end = Some(EarlyEnd::NothingToDo {
            passing: 3,
            named: Vec::new(),
        });
        let said = report(&work);
        assert_eq!(said.exit, RunExit::Inconclusive);
        assert!(said.summary.contains("nothing was changed"));
    }

    #[test]
    fn a_broken_environment_and_lost_time_have_exits_of_their_own() {
        let mut work = CodingState::begin(RunTask::new("add a flag", "/r"));
        let why = "pytest is missing".to_owned();
        work.end = Some(EarlyEnd::Environment {
            why: why.clone(),
            broken: Some(Box::default()),
        });
        assert_eq!(report(&work).exit, RunExit::Environment);
        work.end = Some(EarlyEnd::OutOfTime { why });
        assert_eq!(report(&work).exit, RunExit::Budget);
        // An end of an older log has nothing of it.
        let old = r#"{"end":"environment","why":"x"}"#;
        let end: EarlyEnd = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&end).unwrap(), old);
        let old = r#"{"end":"nothing_to_do","passing":2}"#;
        let end: EarlyEnd = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&end).unwrap(), old);
    }

    #[test]
    fn recovery_goes_where_the_failure_says() {
        use crate::work::RetryPlan;
        let mut work = CodingState::begin(RunTask::new("x", "/r"));
        for (target, node) in [
            (RetryTarget::Coder, RunNode::Coder),
            (RetryTarget::Context, RunNode::ContextBuilder),
            // No model could make a plan.
            (RetryTarget::Planner, RunNode::ContextBuilder),
        ] {
            let retry = RetryPlan {
                target,
                another_model: false,
            };
            work.apply(&RunStateEvent::Retrying { retry });
            assert_eq!(admitted(&work), node);
        }
    }
}
