//! The tools of the server: those of a coder, and what a client needs beside them.

use std::sync::Arc;

use lula_agents::toolset;
use lula_models::normal::ModelTool;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// A coder's tools that are offered under the names they have there.
const OF_CODERS: [&str; 7] = [
    "run",
    "job",
    "read_file",
    "search",
    "edit_file",
    "write_file",
    "apply_patch",
];

/// What a tool can do, said honestly: clients decide by it whom they ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolReach {
    /// Changes nothing at all.
    Looks,
    /// Changes the private workspace, which can be taken back.
    Workspace,
    /// Changes the operator's files or branches.
    Files,
}

impl ToolReach {
    fn of(tool: &str) -> Self {
        match tool {
            "read_file" | "search" | "diff" | "test" => Self::Looks,
            "commit" | "task" | "workspace" => Self::Files,
            _ => Self::Workspace,
        }
    }

    /// A command may reach what of the network was granted.
    fn annotations(self, tool: &str) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(self == Self::Looks)
            .destructive(self == Self::Files)
            .idempotent(self == Self::Looks)
            .open_world(tool == "run" || tool == "task")
    }
}

/// Every tool, in the order in which it is always listed.
pub(super) fn all() -> Vec<Tool> {
    let own = [diff(), test(), commit(), workspace(), task()];
    let tools = toolset::definitions(&OF_CODERS).into_iter().chain(own);
    tools.map(listed).collect()
}

fn listed(tool: ModelTool) -> Tool {
    let schema: JsonObject = match tool.parameters {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let annotations = ToolReach::of(&tool.name).annotations(&tool.name);
    Tool::new(tool.name, tool.description, Arc::new(schema)).with_annotations(annotations)
}

fn own(name: &str, description: &str, required: &[&str], properties: &Value) -> ModelTool {
    ModelTool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "required": required, "properties": properties,
            "additionalProperties": false}),
    }
}

fn diff() -> ModelTool {
    own(
        "diff",
        "Shows what the workspace changed so far, with the digest that commit asks for and what a reviewer should \
         look at twice.",
        &[],
        &json!({}),
    )
}

fn test() -> ModelTool {
    own(
        "test",
        "Runs the project's tests in a private copy of the workspace and says which pass and which fail. The test \
         command is detected; command gives another. names: of the failing tests show only these.",
        &[],
        &json!({"command": {"type": "string"}, "folder": {"type": "string"},
            "names": {"type": "array", "items": {"type": "string"}}}),
    )
}

fn commit() -> ModelTool {
    own(
        "commit",
        "Puts the change of the workspace into the user's files: exactly the one that digest names, as diff showed \
         it. paths: only these. An approver is asked first as a rule; the answer then names the approval, and the \
         same call again succeeds once it is given.",
        &["digest"],
        &json!({"digest": {"type": "string"},
            "paths": {"type": "array", "items": {"type": "string"}}}),
    )
}

fn workspace() -> ModelTool {
    own(
        "workspace",
        "What becomes of the workspace. snapshot: remembers it under a label. restore: returns it to a label. \
         discard: drops its change and begins anew. undo_commit: takes the last commit back, in the user's files. \
         status: what it is and how it stands.",
        &["action"],
        &json!({"action": {"type": "string",
                "enum": ["status", "snapshot", "restore", "discard", "undo_commit"]},
            "label": {"type": "string"}}),
    )
}

fn task() -> ModelTool {
    own(
        "task",
        "A whole task for Lula's own agents, on the last commit of the repository: it plans, edits, verifies with \
         the tests and delivers a branch. start: begins it and answers with the id of the run. look: how it stands, \
         after at most wait_s seconds (60 at most). cancel: ends it. repair: the task is that failing tests pass, \
         which needs no model. tests: the test command. accept: commands that must succeed at the end.",
        &["action"],
        &json!({"action": {"type": "string", "enum": ["start", "look", "cancel"]},
            "task": {"type": "string"}, "run": {"type": "string"}, "repair": {"type": "boolean"},
            "tests": {"type": "string"},
            "accept": {"type": "array", "items": {"type": "string"}},
            "wait_s": {"type": "integer"}}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_few_and_their_words_too() {
        let tools = all();
        assert!(tools.len() <= 12, "{}", tools.len());
        assert_eq!(
            tools.len(),
            OF_CODERS.len() + 5,
            "a coder's tool lost its name"
        );
        let text = serde_json::to_string(&tools).unwrap();
        // Three bytes are a token, about; JSON takes fewer for each.
        assert!(text.len() / 3 <= 3_000, "{} bytes", text.len());
    }

    #[test]
    fn annotations_say_what_a_tool_can_do() {
        let tools = all();
        let of = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            let notes = tool.annotations.clone().unwrap();
            (
                notes.read_only_hint.unwrap(),
                notes.destructive_hint.unwrap(),
            )
        };
        assert_eq!(of("search"), (true, false));
        assert_eq!(of("run"), (false, false));
        assert_eq!(of("commit"), (false, true));
    }
}
