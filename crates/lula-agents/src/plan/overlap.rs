//! Which steps are kept apart, and what a step waits for.
//!
//! Two steps that may write the same file are worked on one after the other, with one exception: the
//! merge queue can judge the result where both name the file (no pattern), git merges what both did,
//! and tests say what passed before. So a plan whose project has tests that ran lets two steps share
//! up to [`SHARED_FILES`] files. Whatever meets by a pattern waits.

use std::fmt;

use super::{MAX_ATTEMPTS, PlanGraph, PlanStepEntry, StepId, StepStatus};

/// So many files may two steps share that are worked on at once, where tests judge the merge.
pub const SHARED_FILES: u32 = 2;

/// What a step waits for that no agent works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepWait {
    /// These have to be merged first.
    Needs(Vec<StepId>),
    /// An agent is at files that it may write too.
    Files {
        /// The step of that agent.
        of: StepId,
        /// What both may write, as this step has it.
        files: Vec<String>,
    },
    /// As many agents work as may.
    Turn,
}

impl fmt::Display for StepWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs(steps) => {
                let names: Vec<&str> = steps.iter().map(StepId::as_str).collect();
                write!(f, "waits for {}", names.join(", "))
            }
            Self::Files { of, files } => {
                write!(
                    f,
                    "waits for {of}, which may write {} too",
                    files.join(", ")
                )
            }
            Self::Turn => f.write_str("waits for its turn"),
        }
    }
}

impl PlanGraph {
    /// Whether two steps are not worked on at once.
    pub(super) fn keeps_apart(&self, one: &PlanStepEntry, other: &PlanStepEntry) -> bool {
        if one.step.repo != other.step.repo {
            return false;
        }
        let most = usize::try_from(self.shared_files).unwrap_or(usize::MAX);
        let common = one.step.scope.files_in_common(&other.step.scope);
        common.is_none_or(|files| files.len() > most)
    }

    /// What comes before a step, in a few words: what it waits for while agents work, or what it
    /// needs.
    pub fn order_told(&self, id: &StepId) -> String {
        let wait = self.waits(id).filter(|_| self.running().next().is_some());
        if let Some(wait @ (StepWait::Files { .. } | StepWait::Turn)) = wait {
            return wait.to_string();
        }
        let deps = self.steps.get(id).map(|entry| &entry.step.deps);
        let names: Vec<&str> = deps.into_iter().flatten().map(StepId::as_str).collect();
        if names.is_empty() {
            String::new()
        } else {
            format!("after {}", names.join(", "))
        }
    }

    /// What a step waits for; nothing where it does not wait.
    pub fn waits(&self, id: &StepId) -> Option<StepWait> {
        let entry = self.steps.get(id)?;
        match entry.status {
            StepStatus::Pending => {}
            StepStatus::Conflict { .. } if entry.attempts < MAX_ATTEMPTS => {}
            _ => return None,
        }
        let open = |dep: &&StepId| {
            let status = self.steps.get(*dep).map(|entry| &entry.status);
            !matches!(
                status,
                Some(StepStatus::Merged { .. } | StepStatus::Superseded)
            )
        };
        let needs: Vec<StepId> = entry.step.deps.iter().filter(open).cloned().collect();
        if !needs.is_empty() {
            return Some(StepWait::Needs(needs));
        }
        let mut busy = self.steps.values().filter(|other| other.status.is_busy());
        let Some(other) = busy.find(|other| self.keeps_apart(entry, other)) else {
            return Some(StepWait::Turn);
        };
        let files = entry.step.scope.meeting(&other.step.scope);
        Some(StepWait::Files {
            of: other.step.id.clone(),
            files: files.into_iter().map(str::to_owned).collect(),
        })
    }
}
