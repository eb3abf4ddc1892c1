//! What an agent knows of the whole that its task is part of. Pure: a plan and what came back of it
//! in, short texts out.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::SharedPlan;
use crate::plan::{PlanStepEntry, StepId, StepStatus};

/// Longest goal of a sibling that is told.
const GOAL: usize = 160;
/// Most lines of definitions that are told of one change, and most files.
const DEFINITIONS: usize = 24;
const FILES: usize = 40;
/// Longest line that is told.
const LINE: usize = 160;

/// The whole that an agent's task is part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedTaskView {
    /// What the person asked for, in their words.
    pub text: String,
    /// The other tasks of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub siblings: Vec<SiblingTask>,
    /// What the plan agreed on between tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<(StepId, String)>,
    /// What merged tasks changed, in the repository that the agent works in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<(StepId, String)>,
}

/// Another task of the same plan, in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiblingTask {
    pub id: StepId,
    /// What is to be done, as far as it fits.
    pub goal: String,
    /// What it may write, as patterns.
    pub files: String,
    /// How far it is.
    pub state: String,
}

impl SharedTaskView {
    /// The whole as the agent of a step is told it.
    pub fn of(text: &str, joint: &SharedPlan, own: &PlanStepEntry) -> Self {
        let wanted = |entry: &&PlanStepEntry| {
            !matches!(entry.status, StepStatus::Superseded | StepStatus::Cancelled)
        };
        let tasks = joint.dag.in_order();
        let tasks: Vec<&PlanStepEntry> = tasks.into_iter().filter(wanted).collect();
        let others = tasks.iter().filter(|entry| entry.step.id != own.step.id);
        let said = tasks
            .iter()
            .filter(|entry| !entry.step.interfaces.is_empty());
        let merged = others.clone().filter(|entry| {
            entry.step.repo == own.step.repo
                && matches!(entry.status, StepStatus::Merged { commit: Some(_) })
        });
        let done = merged.filter_map(|entry| {
            let returned = joint.returned.get(&entry.step.id)?;
            Some((entry.step.id.clone(), returned.outline.clone()))
        });
        Self {
            text: text.to_owned(),
            siblings: others.clone().map(|entry| sibling(entry)).collect(),
            interfaces: said
                .map(|entry| (entry.step.id.clone(), entry.step.interfaces.clone()))
                .collect(),
            done: done.filter(|(_, outline)| !outline.is_empty()).collect(),
        }
    }
}

fn sibling(entry: &PlanStepEntry) -> SiblingTask {
    let files = entry.step.scope.patterns().join(", ");
    SiblingTask {
        id: entry.step.id.clone(),
        goal: first_line(&entry.step.goal, GOAL),
        files: if files.is_empty() {
            "nothing".to_owned()
        } else {
            files
        },
        state: entry.status.name().to_owned(),
    }
}

/// The first line of a text, and a mark where more was said.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    let trimmed = text.trim();
    let line = trimmed.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(most).collect();
    if short.len() < trimmed.len() {
        short.push('…');
    }
    short
}

/// What a change comes to in a few lines: the files with the lines that each gains and loses, and
/// the first lines of definitions that are new.
pub fn outline_of_change(diff: &str) -> String {
    let mut files: Vec<(String, usize, usize)> = Vec::new();
    let mut definitions: Vec<&str> = Vec::new();
    let mut in_hunk = false;
    for line in diff.lines() {
        if let Some(paths) = line.strip_prefix("diff --git a/") {
            let path = paths.split_once(" b/").map_or(paths, |(_, after)| after);
            files.push((path.to_owned(), 0, 0));
            in_hunk = false;
        } else if line.starts_with("@@") {
            in_hunk = true;
        } else if in_hunk && let Some((_, gained, lost)) = files.last_mut() {
            if let Some(added) = line.strip_prefix('+') {
                *gained += 1;
                if defines(added) {
                    definitions.push(added);
                }
            } else if line.starts_with('-') {
                *lost += 1;
            }
        }
    }
    let mut text = String::new();
    for (path, gained, lost) in files.iter().take(FILES) {
        let _ = writeln!(text, "  {path} +{gained} -{lost}");
    }
    left_out(&mut text, files.len(), FILES, "files");
    for line in definitions.iter().take(DEFINITIONS) {
        let line: String = line.chars().take(LINE).collect();
        let _ = writeln!(text, "  | {}", line.trim_end());
    }
    left_out(&mut text, definitions.len(), DEFINITIONS, "definitions");
    text
}

fn left_out(text: &mut String, all: usize, most: usize, what: &str) {
    if let Some(more) = all.checked_sub(most).filter(|more| *more > 0) {
        let _ = writeln!(text, "  … and {more} more {what}");
    }
}

/// Whether a line looks like the first of a definition, in most languages.
fn defines(line: &str) -> bool {
    const BEFORE: [&str; 12] = [
        "pub",
        "pub(crate)",
        "export",
        "default",
        "async",
        "public",
        "private",
        "protected",
        "static",
        "abstract",
        "final",
        "const",
    ];
    const WORDS: [&str; 12] = [
        "def",
        "class",
        "fn",
        "func",
        "function",
        "interface",
        "type",
        "struct",
        "enum",
        "trait",
        "module",
        "impl",
    ];
    let mut words = line.split_whitespace();
    let word = words.find(|word| !BEFORE.contains(word));
    word.is_some_and(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_change_is_told_by_its_files_and_what_they_define() {
        let diff = "diff --git a/shop/cart.py b/shop/cart.py\n--- a/shop/cart.py\n+++ \
                    b/shop/cart.py\n@@ -1 +1,4 @@\n-old\n+class Cart:\n+    def total(self) -> int:\n\
                    +        return 1\n+async def load():\n";
        let text = outline_of_change(diff);
        assert!(text.contains("shop/cart.py +4 -1"), "{text}");
        assert!(text.contains("| class Cart:"), "{text}");
        assert!(text.contains("|     def total(self) -> int:"), "{text}");
        assert!(text.contains("| async def load():"), "{text}");
        assert!(!text.contains("return 1"), "{text}");
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let mut diff = "diff --git a/a.py b/a.py\n@@ -0,0 +1,40 @@\n".to_owned();
        for number in 0..40 {
            let _ = writeln!(diff, "+def f{number}():");
        }
        let text = outline_of_change(&diff);
        assert!(text.ends_with("… and 16 more definitions\n"), "{text}");
    }

    proptest! {
        #[test]
        fn an_outline_stays_short_whatever_the_change(diff in "(diff --git a/x b/x\n|@@\n|[+-]def x{0,40}\n|.{0,300}\n){0,200}") {
            prop_assert!(outline_of_change(&diff).len() < 40_000);
        }
    }
}
