//! The conversations of `eval/coder`: what a model says, for one agent and for the other.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

/// What an agent with a shell is ended by.
const END: &str = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// A project, a task, and what a model says about it.
#[derive(Debug, Clone)]
pub(super) struct RecordedConversation {
    pub(super) name: String,
    /// The folder of the project's files.
    pub(super) project: PathBuf,
    pub(super) text: ConversationText,
}

/// What stands in `conversation.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationText {
    pub(super) task: String,
    /// A command that succeeds where the work was done.
    pub(super) check: String,
    turn: Vec<ConversationTurn>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConversationTurn {
    say: String,
    calls: Vec<TurnCall>,
    bash: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnCall {
    tool: String,
    arguments: Value,
}

/// One answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelAnswer {
    pub(super) say: String,
    /// Tools with their arguments.
    pub(super) calls: Vec<(String, Value)>,
}

impl RecordedConversation {
    /// All of them, by name.
    pub(super) fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let file = path.join("conversation.toml");
            if !file.is_file() {
                continue;
            }
            let text = std::fs::read_to_string(&file)?;
            let text = toml::from_str(&text).with_context(|| file.display().to_string())?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            found.push(Self {
                name: name.into_owned(),
                project: path.join("project"),
                text,
            });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// What Lula is answered.
    pub(super) fn for_lula(&self) -> Vec<ModelAnswer> {
        let turns = self.text.turn.iter().map(|turn| ModelAnswer {
            say: turn.say.clone(),
            calls: turn
                .calls
                .iter()
                .map(|call| (call.tool.clone(), call.arguments.clone()))
                .collect(),
        });
        let end = ModelAnswer {
            say: "That is all.".to_owned(),
            calls: vec![("submit".to_owned(), json!({"summary": "done"}))],
        };
        turns.chain([end]).collect()
    }

    /// What an agent with nothing but a shell is answered.
    pub(super) fn for_shell(&self) -> Vec<ModelAnswer> {
        let bash = |command: &str| ("bash".to_owned(), json!({"command": command}));
        let turns = self.text.turn.iter().map(|turn| ModelAnswer {
            say: turn.say.clone(),
            calls: vec![bash(&turn.bash)],
        });
        let end = ModelAnswer {
            say: "That is all.".to_owned(),
            calls: vec![bash(END)],
        };
        turns.chain([end]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_conversation_has_the_same_turns_for_both() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../eval/coder");
        let all = RecordedConversation::all(&folder).unwrap();
        assert!(all.len() >= 3);
        for one in all {
            let (ours, theirs) = (one.for_lula(), one.for_shell());
            assert_eq!(ours.len(), theirs.len(), "{}", one.name);
            let said = |answers: &[ModelAnswer]| -> Vec<String> {
                answers.iter().map(|answer| answer.say.clone()).collect()
            };
            assert_eq!(said(&ours), said(&theirs));
            // Tests take their own time, which is no time of an agent's.
            let is_test = |name: &str| name == "test";
            let mut calls = ours.iter().flat_map(|answer| &answer.calls);
            assert!(!calls.any(|(name, _)| is_test(name)), "{}", one.name);
            assert!(one.project.join("tests").is_dir());
        }
    }
}
