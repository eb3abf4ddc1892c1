//! What changes the state of a run.

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::{BudgetAmounts, EffectId, RunId};
use lula_repair::trial::ProjectTestResults;
use serde::{Deserialize, Serialize};

use super::conversation::OpenConversation;
use super::parts::{
    CoderBrief, CoderProposal, EarlyEnd, ForeseenQuestion, ResearchAnswer, RetryPlan,
};
use super::repository::RepositoryEvent;
use crate::agent_pool::AgentResult;
use crate::chat::ChatEvent;
use crate::guidelines::{ChangeConfidence, StepRating};
use crate::lessons::LessonSelection;
use crate::model_choice::ModelShareOfRun;
use crate::plan::{PlanGraph, PlanPatch, StepId, StepTransition};
use crate::recovery::AttemptFailure;
use crate::route::TaskLane;
use crate::runner_port::Reply;
use crate::team::{
    AgentRoles, ContestCandidate, ContestDecision, OthersTests, RejectedMerge, WholeReview,
};
use crate::verdict::{RunVerdict, VerificationEvidence};
use crate::world::DriverFenceReport;

/// What changes the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum RunStateEvent {
    /// It was tried how far the driver is kept away from what it works on.
    Fenced {
        /// What came of it.
        fenced: DriverFenceReport,
    },
    /// The lane is chosen.
    Routed { lane: TaskLane },
    /// The rules were asked before anything was begun, and forbid nothing.
    Foreseen {
        /// What they would ask people about.
        questions: Vec<ForeseenQuestion>,
    },
    /// A plan is made.
    Planned {
        /// The steps, one sentence each.
        steps: Vec<String>,
    },
    /// The context is collected.
    Briefed { brief: CoderBrief },
    /// A model was asked for its part.
    Asked {
        /// What came of it, before it is judged.
        part: ModelShareOfRun,
    },
    /// A coder is done.
    Coded {
        /// Who: the name of a model, or `repairer`.
        by: String,
        summary: String,
    },
    /// A model handed its change in: the conversation so far, in which another attempt may go on.
    HandedIn { conversation: Box<OpenConversation> },
    /// Commands finished what a coder left.
    Finished { commands: Vec<String> },
    /// The change is this.
    Executed {
        /// What the change is.
        #[serde(rename = "produced")]
        proposal: CoderProposal,
    },
    /// An attempt did not reach its goal.
    Failed { failure: AttemptFailure },
    /// Another attempt is begun.
    Retrying { retry: RetryPlan },
    /// The change was judged.
    Judged {
        evidence: Box<VerificationEvidence>,
        verdict: RunVerdict,
    },
    /// Lessons were chosen for the coder.
    Recalled { recalled: LessonSelection },
    /// A step was rated by guidelines.
    Rated { rating: StepRating },
    /// It was weighed how sure to be of the change.
    Weighed { confidence: ChangeConfidence },
    /// The run comes to its end without a verdict.
    Ending { end: EarlyEnd },
    /// An agent that changes nothing is done.
    Answered {
        /// What was found out.
        answer: ResearchAnswer,
    },
    /// The work is shared: this is the plan.
    Shared {
        dag: PlanGraph,
        /// Who the agents can be.
        roles: AgentRoles,
        /// The same as the other repositories want them, in their order.
        #[serde(rename = "roles_too", default, skip_serializing_if = "Vec::is_empty")]
        other_roles: Vec<AgentRoles>,
    },
    /// A plan was not accepted.
    PlanRefused {
        by: String,
        /// The reasons, one sentence each.
        reasons: Vec<String>,
    },
    /// The plan was changed while it runs.
    Patched {
        by: String,
        patch: PlanPatch,
        /// What it is now.
        dag: PlanGraph,
    },
    /// The plan was not changed.
    PatchRefused {
        /// Whose wish it was.
        by: String,
        reason: String,
    },
    /// An agent wanted the plan changed, and this is what it is told.
    Wished {
        /// The effect by which the agent asked.
        wish: EffectId,
        /// The step that the agent works on.
        #[serde(rename = "job")]
        step: StepId,
        /// What the agent is told.
        answer: Reply,
    },
    /// Agents know what was decided.
    Told,
    /// The planner thought about a step that failed.
    Considered {
        #[serde(rename = "job")]
        step: StepId,
    },
    /// Something happened to a step.
    #[serde(rename = "job")]
    StepChanged { change: StepTransition },
    /// An agent at work was promised this.
    Promised {
        /// The run of that agent.
        run: RunId,
        /// What it may spend.
        limits: BudgetAmounts,
    },
    /// An agent came back.
    Returned {
        #[serde(rename = "job")]
        step: StepId,
        returned: Box<AgentResult>,
    },
    /// What a step produced was held against the whole.
    Merged {
        /// The step that produced it.
        #[serde(rename = "job")]
        step: StepId,
        /// What the tests say of the whole now, where they were run.
        tests: Option<Box<ProjectTestResults>>,
        /// What did not fit, where it did not.
        candidate: Option<RejectedMerge>,
        /// Tests that passed before and failed here, and fail without the change too.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        flaky: BTreeSet<String>,
    },
    /// Several try the same: these.
    Entered {
        /// The candidates, one for each agent.
        rivals: Vec<ContestCandidate>,
    },
    /// One of them came back.
    CameBack { returned: Box<AgentResult> },
    /// The others were stopped.
    Dismissed {
        /// Those who were done before that.
        back: Vec<AgentResult>,
    },
    /// The new tests of each were run with the code of the others.
    Compared {
        /// How each does in them.
        others: BTreeMap<StepId, OthersTests>,
    },
    /// One of them was taken, or none.
    Chosen { decided: ContestDecision },
    /// A model compared the whole with the task.
    Reviewed { review: WholeReview },
    /// A person said something to the agent that works on it.
    Steered {
        /// The notes, the oldest first.
        notes: Vec<String>,
    },
    /// A fork goes on with another task text.
    Reworded { text: String },
    /// A fork goes on with another model first.
    Preferring { model: String },
    /// Something happened in a chat.
    Chat {
        /// Which thing in a row it is: no two visits of a chat are the same.
        number: u32,
        #[serde(rename = "is")]
        what: ChatEvent,
    },
    /// Something happened in the repositories of the run.
    #[serde(untagged)]
    Repository(RepositoryEvent),
}
