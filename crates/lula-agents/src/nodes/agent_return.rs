//! What the return of an agent means for its step. Pure.

use lula_protocol::RunExit;
use lula_repair::trial::excerpt;

use crate::agent_pool::AgentResult;
use crate::plan::{StepFailureReason, StepId, StepTransition};
use crate::team::SharedPlan;

/// What is expected of the agent of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepPart {
    /// It finds something out, or reviews.
    Looks,
    /// It writes, and commands say when it is done.
    Writes,
    /// It writes, and the tests of the whole judge it.
    WritesForTests,
}

impl StepPart {
    pub(super) fn of(joint: &SharedPlan, id: &StepId) -> Self {
        let step = joint.dag.steps.get(id).map(|entry| &entry.step);
        let role = step.and_then(|step| joint.roles.get(&step.role));
        match step {
            Some(step) if role.is_some_and(|role| role.writes) => {
                if step.acceptance.is_empty() {
                    Self::WritesForTests
                } else {
                    Self::Writes
                }
            }
            _ => Self::Looks,
        }
    }

    /// Whether what came back may go to the merge queue, whose tests judge it.
    fn is_done(self, returned: &AgentResult) -> bool {
        let judged = match self {
            Self::Looks => false,
            Self::Writes => returned.exit == RunExit::Verified,
            // Nothing was named that shows it: a change that no test speaks against is judged by the
            // tests of the merged files.
            Self::WritesForTests => {
                matches!(returned.exit, RunExit::Verified | RunExit::Inconclusive)
                    && !returned.files.is_empty()
            }
        };
        judged && returned.tree.is_some()
    }
}

/// Longest part of an agent's own words that is told as a reason.
const WORDS: usize = 600;

/// Why an agent did not get there: what its run says, and what it says itself.
fn not_done(returned: &AgentResult) -> StepFailureReason {
    let own = returned.said.trim();
    let mut said = returned.summary.clone();
    if !own.is_empty() && !said.contains(own) {
        said = format!("{said}; its agent said: {}", excerpt(own, WORDS));
    }
    StepFailureReason::NotDone { said }
}

/// What an agent's return means for its step. No evidence, no success.
pub(super) fn back(id: &StepId, part: StepPart, returned: &AgentResult) -> Vec<StepTransition> {
    let id = id.clone();
    let failed = |reason| {
        vec![StepTransition::Failed {
            id: id.clone(),
            reason,
        }]
    };
    if part != StepPart::Looks {
        if part.is_done(returned) {
            return vec![StepTransition::AwaitingMerge { id }];
        }
        return failed(not_done(returned));
    }
    match &returned.answer {
        Some(answer) if answer.approve == Some(false) => failed(StepFailureReason::Rejected {
            said: answer.text.clone(),
        }),
        Some(_) => vec![
            StepTransition::AwaitingMerge { id: id.clone() },
            StepTransition::Merged { id, commit: None },
        ],
        None => failed(not_done(returned)),
    }
}
