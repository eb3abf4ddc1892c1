//! Several agents on one task: who they are ([`role`]), what each is handed ([`handoff`]), how far
//! they are together ([`joint`]), and who of several that try the same is taken ([`contest`]). Pure.

pub mod contest;
pub mod handoff;
pub mod joint;
pub mod role;
pub mod wish;

use serde::{Deserialize, Serialize};

pub use contest::{Contest, Decided, Rival};
pub use handoff::{Authority, Excess, Handoff, Input, Start, agent_run, site_run};
pub use joint::{Candidate, Joint, Next};
pub use role::{Role, Roles, TUNED_AT};
pub use wish::{PROPOSE, Wish, Wishes};

/// How several agents share a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Team {
    /// How many work at once.
    pub at_once: u32,
    /// Whether the run ends with its plan.
    pub plan_only: bool,
    /// Whether the first failure ends it.
    pub fail_fast: bool,
}
