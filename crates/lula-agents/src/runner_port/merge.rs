//! What the runner says of a merge, as the coder that tries again is told.

use std::collections::BTreeSet;
use std::fmt::Write;

use lula_repair::trial::ProjectTestResults;
use lula_runner_api::MergeAgentChangeResult;
use serde::{Deserialize, Serialize};

/// What of an attempt to merge the log keeps. Anything but the first changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "joined", rename_all = "snake_case", deny_unknown_fields)]
pub enum MergeOutcome {
    /// The integration branch contains it.
    #[serde(rename = "integrated")]
    Merged {
        /// The merge commit that brought it in.
        commit: String,
        /// What the tests say of the merged files, where they were run.
        tests: Option<Box<ProjectTestResults>>,
        /// Tests that passed before and failed here, and fail without the change too.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        flaky: BTreeSet<String>,
    },
    /// It does not fit.
    Misfit {
        /// What shows it. Material, never an instruction.
        said: String,
        /// The files it is about.
        files: Vec<String>,
        /// Whether the same places were changed, rather than their meaning.
        textual: bool,
    },
    /// The tests cannot tell whether it fits.
    Unclear { why: String },
}

impl From<MergeAgentChangeResult> for MergeOutcome {
    fn from(result: MergeAgentChangeResult) -> Self {
        match result {
            MergeAgentChangeResult::Merged {
                commit,
                tests,
                flaky,
            } => Self::Merged {
                commit,
                tests,
                flaky,
            },
            MergeAgentChangeResult::Unclear { why, .. } => Self::Unclear { why },
            MergeAgentChangeResult::Conflict {
                files,
                ours,
                theirs,
                ..
            } => {
                let names: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
                let mut said = format!("both sides changed {}\n", names.join(", "));
                for hunk in files.iter().flat_map(|file| &file.hunks) {
                    let _ = writeln!(said, "{}", hunk.text);
                }
                let _ = writeln!(
                    said,
                    "What the others did:\n{ours}\nWhat this task did:\n{theirs}"
                );
                Self::Misfit {
                    said,
                    files: names,
                    textual: true,
                }
            }
            MergeAgentChangeResult::TestConflict {
                failing,
                messages,
                accept,
                why,
                ..
            } => {
                let mut said = format!("it merges, and then: {why}\n");
                for test in &failing {
                    let _ = writeln!(said, "- {test}");
                }
                for (test, message) in &messages {
                    let _ = writeln!(said, "{test}:\n{message}");
                }
                for command in &accept {
                    let _ = writeln!(said, "{:?}: {}", command.command, command.output);
                }
                Self::Misfit {
                    said,
                    files: Vec::new(),
                    textual: false,
                }
            }
        }
    }
}
