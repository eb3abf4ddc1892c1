//! Several agents on one task: who they are ([`role`]), what each is handed ([`handoff`]) and knows of
//! the whole ([`shared_task`]), how far they are together ([`joint`]), and who of several that try the
//! same is taken ([`contest`]). Pure.
//!
//! Roles are data. The envelope of an agent carries its authority, which is checked against its
//! sender's when it is sent and whenever the agent begins. An agent is a run of the same graph in
//! the same store, whose name follows from its task and attempt: ordering it again finds it, and a
//! crash, a replay and a budget mean for it what they mean for any run. Agents work in workspaces
//! over the integration branch of the run; the whole is put into the run's own workspace, where the
//! executor, the verifier and the reporter find it as any change.

pub mod contest;
pub mod handoff;
pub mod joint;
pub mod notes;
pub mod review;
pub mod role;
pub mod shared_task;
pub mod wish;

use serde::{Deserialize, Serialize};

pub use contest::{CandidateContest, ContestCandidate, ContestDecision, OthersTests};
pub(crate) use handoff::BEFORE;
pub use handoff::{
    AgentHandoff, AgentInput, AuthorityExcess, RunAuthority, agent_run, repository_run,
};
pub use joint::{MissingTask, RejectedMerge, SharedPlan, SharedPlanMove};
pub use review::WholeReview;
pub use role::{AgentRole, AgentRoles, TUNED_AT};
pub use shared_task::{SharedTaskView, SiblingTask, outline_of_change};
pub use wish::{PROPOSE, PlanChangeRequest, PlanChangeRequests};

/// How several agents share a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct TeamPolicy {
    /// How many work at once.
    pub at_once: u32,
    /// Whether the run ends with its plan.
    pub plan_only: bool,
    /// Whether the first failure ends it.
    pub fail_fast: bool,
    /// Whether the delivered branch has a commit for each task; one for all in logs from before that
    /// was a choice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commit_per_task: bool,
    /// Whether a model compares the whole with the task before it is delivered; none did when older
    /// logs were written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reviewed: bool,
}
