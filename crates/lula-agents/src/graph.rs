//! The graph: eleven nodes, the ways out of them, and where each way leads.

use async_trait::async_trait;
use lula_graph::{Ctx, Graph, Leave, Report, Table, Visit, labels};
use lula_protocol::Exit;

use crate::nodes;
use crate::recover::{FailureClass, Target};
use crate::route::Lane;
use crate::task::Task;
use crate::verdict::Verdict;
use crate::work::{End, Event, Work};

labels! {
    /// The nodes.
    pub enum Node {
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
    }
}

labels! {
    /// The ways out of them.
    pub enum Way {
        Ok = "ok",
        Invalid = "invalid",
        Interactive = "interactive",
        Deep = "deep_planning",
        Allow = "allow",
        Deny = "deny",
        Edits = "edits",
        NoOp = "no_op",
        Malformed = "malformed",
        Nobody = "nobody",
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
    }
}

/// From a task to a verified change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Coding;

/// Where the gate lets a run through to.
fn admitted(work: &Work) -> Node {
    // What several did together is mended by whoever planned it.
    if work.joint.is_some() {
        return Node::Planner;
    }
    match (work.lane, &work.retry) {
        (Lane::Recovery, Some(retry)) => match retry.target {
            Target::Planner if work.task.models.is_empty() => Node::ContextBuilder,
            Target::Planner => Node::Planner,
            Target::Context => Node::ContextBuilder,
            Target::Coder => Node::Coder,
        },
        (Lane::DeepPlanning, _) => Node::Planner,
        (Lane::Interactive | Lane::Recovery, _) => Node::ContextBuilder,
    }
}

/// Who works with what was found out: one coder, or several who try the same.
const fn informed(work: &Work) -> Node {
    if work.task.best_of.is_some() {
        Node::Contest
    } else {
        Node::Coder
    }
}

#[async_trait]
impl Graph for Coding {
    type Node = Node;
    type Outcome = Way;
    type Input = Task;
    type State = Work;
    type Event = Event;
    const NAME: &'static str = "coding";
    const VERSION: u32 = 2;

    fn outcomes(&self, node: Node) -> &'static [Way] {
        match node {
            Node::Ingest => &[Way::Ok, Way::Invalid],
            Node::Router => &[Way::Interactive, Way::Deep],
            Node::PolicyGate => &[Way::Allow, Way::Deny],
            Node::Planner => &[Way::Ok, Way::Malformed, Way::Shared, Way::Deny],
            Node::Scheduler => &[Way::More, Way::Amend, Way::Whole, Way::Deny],
            Node::Contest => &[Way::More, Way::Whole, Way::Deny],
            Node::ContextBuilder => &[Way::Ok, Way::Pointless],
            Node::Coder => &[
                Way::Edits,
                Way::NoOp,
                Way::Malformed,
                Way::Nobody,
                Way::Answered,
            ],
            Node::Verifier => &[Way::Pass, Way::Fail, Way::Inconclusive],
            Node::Executor | Node::Reporter => &[Way::Done],
        }
    }

    fn table(&self) -> Table<Self> {
        Table::starting_at(Node::Ingest)
            .on(Node::Ingest, Way::Ok, Node::Router)
            .on(Node::Ingest, Way::Invalid, Node::Reporter)
            .on(Node::Router, Way::Interactive, Node::PolicyGate)
            .on(Node::Router, Way::Deep, Node::PolicyGate)
            .choose(
                Node::PolicyGate,
                Way::Allow,
                &[Node::ContextBuilder, Node::Planner, Node::Coder],
                admitted,
            )
            .on(Node::PolicyGate, Way::Deny, Node::Reporter)
            .on(Node::Planner, Way::Ok, Node::ContextBuilder)
            .on(Node::Planner, Way::Malformed, Node::PolicyGate)
            .on(Node::Planner, Way::Shared, Node::Scheduler)
            .on(Node::Planner, Way::Deny, Node::Reporter)
            .on(Node::Scheduler, Way::More, Node::Scheduler)
            .on(Node::Scheduler, Way::Amend, Node::Planner)
            .on(Node::Scheduler, Way::Whole, Node::Executor)
            .on(Node::Scheduler, Way::Deny, Node::Reporter)
            .choose(
                Node::ContextBuilder,
                Way::Ok,
                &[Node::Coder, Node::Contest],
                informed,
            )
            .on(Node::Contest, Way::More, Node::Contest)
            .on(Node::Contest, Way::Whole, Node::Executor)
            .on(Node::Contest, Way::Deny, Node::Reporter)
            .on(Node::ContextBuilder, Way::Pointless, Node::Reporter)
            .on(Node::Coder, Way::Edits, Node::Executor)
            .on(Node::Coder, Way::NoOp, Node::Verifier)
            .on(Node::Coder, Way::Malformed, Node::PolicyGate)
            .on(Node::Coder, Way::Nobody, Node::Reporter)
            .on(Node::Coder, Way::Answered, Node::Reporter)
            .on(Node::Executor, Way::Done, Node::Verifier)
            .on(Node::Verifier, Way::Pass, Node::Reporter)
            .on(Node::Verifier, Way::Fail, Node::PolicyGate)
            .on(Node::Verifier, Way::Inconclusive, Node::Reporter)
            .done(Node::Reporter, Way::Done)
    }

    fn begin(&self, task: Task) -> Work {
        Work::begin(task)
    }

    fn apply(&self, work: &mut Work, event: &Event) {
        work.apply(event);
    }

    async fn visit(&self, node: Node, work: &Work, ctx: &mut Ctx<'_>) -> Visit<Self> {
        let left = match node {
            Node::Ingest => nodes::ingest(work, ctx).await,
            Node::Router => Ok(nodes::router(work)),
            Node::PolicyGate => Ok(nodes::policy_gate(work, ctx.strikes())),
            Node::Planner => nodes::planner(work, ctx).await,
            Node::Scheduler => nodes::scheduler(work, ctx).await,
            Node::Contest => nodes::contest(work, ctx).await,
            Node::ContextBuilder => nodes::context_builder(work, ctx).await,
            Node::Coder => nodes::coder(work, ctx).await,
            Node::Executor => nodes::executor(work, ctx).await,
            Node::Verifier => nodes::verifier(work, ctx).await,
            Node::Reporter => nodes::reporter(work, ctx).await,
        }?;
        let notes: Vec<String> = ctx.heard().into_iter().map(|note| note.text).collect();
        if notes.is_empty() {
            return Ok(left);
        }
        Ok(left.with(Event::Steered { notes }))
    }

    fn report(&self, work: &Work) -> Report {
        report(work)
    }

    fn set(&self, work: &Work, key: &str, value: &str) -> Result<Event, String> {
        match key {
            "task" => Ok(Event::Reworded {
                text: value.to_owned(),
            }),
            "model" if work.task.models.iter().any(|mind| mind.name == value) => {
                Ok(Event::Preferring {
                    model: value.to_owned(),
                })
            }
            "model" => Err(format!("the run knows no model {value:?}")),
            _ => Err(format!("{key:?} cannot be set: task and model can")),
        }
    }
}

/// What is said when a run ends.
fn report(work: &Work) -> Report {
    let (exit, summary) = match (&work.verdict, &work.end) {
        (_, Some(End::Rejected { why })) => (Exit::Usage, why.clone()),
        (_, Some(End::Unclear { why })) => (Exit::Inconclusive, why.clone()),
        (_, Some(End::NeedsModel { why } | End::Environment { why, .. })) => {
            (Exit::Environment, why.clone())
        }
        (_, Some(End::OutOfTime { why })) => (Exit::Budget, why.clone()),
        (_, Some(End::Halted { why })) => {
            let unreachable = work
                .failures
                .last()
                .is_some_and(|failure| failure.class == FailureClass::ModelUnavailable);
            let exit = if unreachable {
                Exit::Environment
            } else {
                Exit::Failed
            };
            (exit, why.clone())
        }
        (_, Some(End::NothingToDo { passing, named })) => {
            let nothing = match named.as_slice() {
                [] => "nothing fails".to_owned(),
                named => format!("no failing test is called {}", named.join(" or ")),
            };
            let text = format!("{nothing}: {passing} tests pass; nothing was changed");
            // Logs from before intents were settled say what they said.
            let exit = match work.task.intent {
                Some(_) => Exit::Inconclusive,
                None => Exit::Verified,
            };
            (exit, text)
        }
        (_, Some(End::Planned { tasks })) => (
            Exit::Verified,
            format!("a plan of {tasks} tasks; nothing was begun"),
        ),
        (Some(Verdict::Pass { why }), None) => (Exit::Verified, why.clone()),
        (Some(Verdict::Fail { why, .. }), None) => (Exit::Failed, why.clone()),
        (Some(Verdict::Inconclusive { why }), None) => {
            (Exit::Inconclusive, format!("not verified: {why}"))
        }
        (None, None) if work.answer.is_some() => {
            let text = work.answer.as_ref().map(|answer| answer.text.clone());
            (Exit::Inconclusive, text.unwrap_or_default())
        }
        (None, None) => (Exit::Inconclusive, "the run came to no verdict".to_owned()),
    };
    Report { exit, summary }
}

/// Leaves a node.
pub(crate) type Left = Leave<Way, Event>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_out_of_every_node_leads_somewhere_and_every_node_to_the_end() {
        Coding.table().check(&Coding).unwrap();
    }

    #[test]
    fn a_run_without_a_verdict_never_reports_success() {
        let work = Work::begin(Task::new("x", "/r"));
        assert_eq!(report(&work).exit, Exit::Inconclusive);
    }

    #[test]
    fn nothing_to_do_is_no_success() {
        let mut work = Work::begin(Task::new("fix the failing tests", "/r"));
        work.end = Some(End::NothingToDo {
            passing: 3,
            named: Vec::new(),
        });
        let said = report(&work);
        assert_eq!(said.exit, Exit::Inconclusive);
        assert!(said.summary.contains("nothing was changed"));
    }

    #[test]
    fn a_broken_environment_and_lost_time_have_exits_of_their_own() {
        let mut work = Work::begin(Task::new("add a flag", "/r"));
        let why = "pytest is missing".to_owned();
        work.end = Some(End::Environment {
            why: why.clone(),
            broken: Some(Box::default()),
        });
        assert_eq!(report(&work).exit, Exit::Environment);
        work.end = Some(End::OutOfTime { why });
        assert_eq!(report(&work).exit, Exit::Budget);
        // An end of an older log has nothing of it.
        let old = r#"{"end":"environment","why":"x"}"#;
        let end: End = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&end).unwrap(), old);
        let old = r#"{"end":"nothing_to_do","passing":2}"#;
        let end: End = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&end).unwrap(), old);
    }

    #[test]
    fn recovery_goes_where_the_failure_says() {
        use crate::work::Retry;
        let mut work = Work::begin(Task::new("x", "/r"));
        for (target, node) in [
            (Target::Coder, Node::Coder),
            (Target::Context, Node::ContextBuilder),
            // Nobody could make a plan.
            (Target::Planner, Node::ContextBuilder),
        ] {
            let retry = Retry {
                target,
                another_mind: false,
            };
            work.apply(&Event::Retrying { retry });
            assert_eq!(admitted(&work), node);
        }
    }
}
