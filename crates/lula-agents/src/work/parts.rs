//! What a run collects on its way: as its events carry it and its state keeps it.

use lula_protocol::Digest;
use lula_repair::BrokenEnvironment;
use serde::{Deserialize, Serialize};

use crate::recovery::RetryTarget;
use crate::verdict::{RunVerdict, VerificationEvidence};

/// What a coder is told about the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoderBrief {
    /// Files of the project, as many as fit.
    pub files: Vec<String>,
    /// How many more there are.
    pub more: usize,
    /// Files that matter most, the likeliest first.
    pub likely: Vec<String>,
    /// The map: what the project defines that matters for the task.
    pub map: String,
    /// What the project says to those who change it: files with their beginnings.
    pub instructions: Vec<(String, String)>,
    /// Where words of the task stand.
    pub hits: Vec<String>,
}

/// What a coder made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoderProposal {
    /// Who: the name of a model, or `repairer`.
    pub by: String,
    pub summary: String,
    /// The change, as a unified diff.
    pub diff: String,
    /// The files it touches.
    pub files: Vec<String>,
    /// The state of the workspace.
    pub tree: Digest,
}

/// A change of which nothing showed whether it does what it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndecidedChange {
    /// The state of the workspace.
    pub tree: Digest,
    /// What was seen of it.
    pub evidence: VerificationEvidence,
}

impl UndecidedChange {
    /// A change that was judged, where the verdict leaves it open.
    pub(super) fn of(
        proposal: Option<&CoderProposal>,
        evidence: &VerificationEvidence,
        verdict: &RunVerdict,
    ) -> Option<Box<Self>> {
        let open = matches!(verdict, RunVerdict::Inconclusive { .. });
        let proposal = proposal.filter(|_| open)?;
        Some(Box::new(Self {
            tree: proposal.tree,
            evidence: evidence.clone(),
        }))
    }
}

/// What an agent found out that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResearchAnswer {
    /// Who: the name of a model.
    pub by: String,
    pub text: String,
    /// Whether a reviewer agrees.
    pub approve: Option<bool>,
}

/// Something that rules will want a person's word on, known before anything was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeseenQuestion {
    /// The act: a command as the operator wrote it, or the delivery.
    pub act: String,
    /// Why the rules ask, with the rule.
    pub reason: String,
    /// Whether the run will wait for the answer. Tests and acceptance commands run in private forks,
    /// of which nothing stays, without one.
    pub waits: bool,
}

/// The try that follows a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    pub target: RetryTarget,
    /// Whether another model should try.
    #[serde(rename = "another_mind")]
    pub another_model: bool,
}

/// Why a run ends before a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum EarlyEnd {
    /// The task cannot be worked on as it is.
    Rejected { why: String },
    /// It was given up.
    Halted { why: String },
    /// The coder says that it cannot go on, and why.
    Blocked { by: String, why: String },
    /// Nothing that can be seen would decide about a change.
    Unclear { why: String },
    /// It needs a model, and none is configured.
    NeedsModel {
        /// What it would need a model for.
        why: String,
    },
    /// This machine cannot do it is.
    Environment {
        why: String,
        /// What the tests lack, where that is it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        broken: Option<Box<BrokenEnvironment>>,
    },
    /// The tests did not end in time, so nothing is known of them.
    OutOfTime {
        /// How long they had, and what to do.
        why: String,
    },
    /// A plan was asked for, and there it is.
    Planned {
        /// How many tasks it has.
        tasks: usize,
    },
    /// There was nothing to do: no test fails that was meant. That is no success of anything.
    NothingToDo {
        /// How many tests pass.
        passing: usize,
        /// The tests that were meant, where some were named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        named: Vec<String>,
    },
}
