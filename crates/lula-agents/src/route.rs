//! Which lane a task takes. Pure, and asked before any model.

use serde::{Deserialize, Serialize};

/// How a task is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskLane {
    /// One step, no planner.
    Interactive,
    /// A planner thinks first.
    DeepPlanning,
    /// A failed attempt is followed by another. Only a failure leads here.
    Recovery,
}

impl TaskLane {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::DeepPlanning => "deep_planning",
            Self::Recovery => "recovery",
        }
    }
}

/// More named files than this are planned for.
const FEW_FILES: usize = 3;

/// The lane of a fresh task.
pub fn route(text: &str) -> TaskLane {
    if named_files(text) > FEW_FILES || clauses(text) > 1 {
        TaskLane::DeepPlanning
    } else {
        TaskLane::Interactive
    }
}

/// How many files a task names.
fn named_files(text: &str) -> usize {
    let is_file = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.rsplit_once('.').is_some_and(|(stem, kind)| {
            !stem.is_empty()
                && (1..=4).contains(&kind.len())
                && kind.chars().all(char::is_alphanumeric)
                && kind.chars().any(char::is_alphabetic)
        })
    };
    text.split_whitespace().filter(is_file).count()
}

const IMPERATIVES: [&str; 24] = [
    "add",
    "build",
    "change",
    "convert",
    "create",
    "delete",
    "document",
    "drop",
    "extract",
    "fix",
    "implement",
    "introduce",
    "make",
    "migrate",
    "move",
    "port",
    "refactor",
    "remove",
    "rename",
    "replace",
    "rewrite",
    "split",
    "update",
    "write",
];

/// How many things a task asks for: clauses that begin with an imperative.
fn clauses(text: &str) -> usize {
    let text = text.to_lowercase();
    let parts = text
        .split(['.', ';', '\n', ','])
        .flat_map(|part| part.split(" and "))
        .flat_map(|part| part.split(" then "));
    parts
        .filter(|part| {
            let first = part
                .split(|c: char| !c.is_alphanumeric())
                .find(|word| !word.is_empty() && *word != "also" && *word != "please");
            first.is_some_and(|word| IMPERATIVES.contains(&word))
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_done_at_once_and_several_are_planned() {
        for text in [
            "fix the failing tests",
            "fix the rounding in cart.py and tests",
            "Add a --verbose flag to the command line.",
        ] {
            assert_eq!(route(text), TaskLane::Interactive, "{text}");
        }
        for text in [
            "add a cache and remove the old one",
            "Rename Foo to Bar. Update the docs.",
            "look at a.py, b.py, c.py, d.py for the leak",
            "fix the parser; then write tests",
        ] {
            assert_eq!(route(text), TaskLane::DeepPlanning, "{text}");
        }
    }
}
