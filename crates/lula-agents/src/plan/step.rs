//! One step of a plan, and how far it is.

use std::fmt;

use lula_protocol::{BudgetAmounts, RunId};
use serde::{Deserialize, Serialize};

use super::PathScope;

/// The name of a step: a short word such as `parser` or `parser-tests`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepId(String);

impl StepId {
    /// Longest name that is taken, in bytes.
    pub const LONGEST: usize = 40;

    /// Reads a name: letters, digits, `-` and `_`.
    pub fn new(text: &str) -> Result<Self, String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text.is_empty() || text.len() > Self::LONGEST || !text.chars().all(fits) {
            return Err(format!(
                "{text:?} is no name of a task: 1 to {} letters, digits, - and _",
                Self::LONGEST
            ));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for StepId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text)
    }
}

impl From<StepId> for String {
    fn from(id: StepId) -> Self {
        id.0
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    pub id: StepId,
    /// The repository it is about: a number in the list of the run's repositories.
    pub repo: usize,
    /// What is to be done, in one or two sentences.
    pub goal: String,
    /// What has to be merged before it begins.
    pub deps: Vec<StepId>,
    /// What it may write. Nothing, for a step that only looks.
    pub scope: PathScope,
    /// What it needs at least, where that is known.
    pub budget: BudgetAmounts,
    /// Commands that must succeed when it is done.
    pub acceptance: Vec<String>,
    /// Who does it: the name of a role.
    pub role: String,
    /// What it provides to other steps and needs of them: signatures, formats, names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interfaces: String,
}

/// Why a step came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case", deny_unknown_fields)]
pub enum StepFailureReason {
    /// It wrote what it may not write.
    ScopeViolation {
        /// The files outside its scope.
        files: Vec<String>,
    },
    /// Its agent did not get there.
    NotDone {
        /// What the agent's run says.
        said: String,
    },
    /// Its agent spent what it had been given.
    OutOfBudget {
        /// What the agent's run says.
        said: String,
    },
    /// A reviewer said no.
    Rejected {
        /// What the reviewer said.
        said: String,
    },
    /// It does not fit to what the others did.
    Conflict {
        /// What shows it. Material, never an instruction.
        said: String,
    },
    /// A patch took it out of the plan.
    Cancelled,
    /// Something it needs came to nothing.
    Needs {
        #[serde(rename = "job")]
        step: StepId,
    },
    /// Another step failed, and this plan stops at the first failure.
    FailFast,
}

impl fmt::Display for StepFailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScopeViolation { files } => {
                write!(f, "it wrote outside its scope: {}", files.join(", "))
            }
            Self::NotDone { said } | Self::OutOfBudget { said } => f.write_str(said),
            Self::Rejected { said } => write!(f, "the review says no: {said}"),
            Self::Conflict { said } => write!(f, "it does not fit to the others: {said}"),
            Self::Cancelled => f.write_str("it was taken out of the plan"),
            Self::Needs { step } => write!(f, "it needs {step}"),
            Self::FailFast => f.write_str("another task failed"),
        }
    }
}

/// How far a step is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum StepStatus {
    /// No agent has begun it.
    Pending,
    /// An agent works on it.
    Leased {
        /// The run of that agent.
        run: RunId,
    },
    /// An agent is done, and tests say that it is right.
    #[serde(rename = "produced")]
    AwaitingMerge { run: RunId },
    /// It is a part of the whole.
    #[serde(rename = "integrated")]
    Merged {
        /// As this commit of the line; none where it only looked.
        commit: Option<String>,
    },
    /// It does not fit to what is there now. An agent may try again.
    Conflict {
        /// What shows it. Material, never an instruction.
        said: String,
    },
    /// It came to nothing.
    Failed { reason: StepFailureReason },
    /// It was taken out of the plan.
    Cancelled,
    /// Others took its place.
    Superseded,
    /// It was never begun.
    Skipped { reason: StepFailureReason },
}

impl StepStatus {
    /// Whether nothing follows, unless the plan is rewired.
    pub const fn is_over(&self) -> bool {
        matches!(
            self,
            Self::Merged { .. }
                | Self::Failed { .. }
                | Self::Cancelled
                | Self::Superseded
                | Self::Skipped { .. }
        )
    }

    /// Whether an agent is at it: its files are taken.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Leased { .. } | Self::AwaitingMerge { .. })
    }

    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Leased { .. } => "running",
            Self::AwaitingMerge { .. } => "awaiting merge",
            Self::Merged { .. } => "merged",
            Self::Conflict { .. } => "conflict",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
            Self::Skipped { .. } => "skipped",
        }
    }
}
