//! What a coder is told of its tools: names, purposes, arguments.

use lula_models::normal::ModelTool;
use serde_json::{Value, json};

use crate::coder::submission::{self, SUBMIT};
use crate::team::PROPOSE;
use crate::work::CodingState;

/// The tools that the coder may call.
pub(in crate::coder) fn given(work: &CodingState) -> Vec<ModelTool> {
    let mut tools = offered();
    if let Some(handoff) = &work.task.handoff {
        tools.push(proposing());
        let allowed = &handoff.authority.tools;
        tools.retain(|tool| tool.name == SUBMIT || allowed.contains(&tool.name));
        if !handoff.role.writes && handoff.role_name != "reviewer" {
            tools.retain(|tool| tool.name != SUBMIT);
            tools.push(tool(
                SUBMIT,
                "Ends the work: the summary is your answer.",
                &["summary"],
                &json!({"summary": {"type": "string"}}),
            ));
        }
        if handoff.role_name == "reviewer" {
            tools.retain(|tool| tool.name != SUBMIT);
            tools.push(tool(
                SUBMIT,
                "Ends the review: whether you agree, and what is wrong where you do not.",
                &["approve", "summary"],
                &json!({"approve": {"type": "boolean"}, "summary": {"type": "string"}}),
            ));
        }
    }
    tools
}

fn tool(name: &str, description: &str, required: &[&str], properties: &Value) -> ModelTool {
    ModelTool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "required": required, "properties": properties,
            "additionalProperties": false}),
    }
}

fn proposing() -> ModelTool {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let tasks = json!({"type": "array", "items": {
        "type": "object", "required": ["id", "goal"], "additionalProperties": false,
        "properties": {
            "id": {"type": "string"}, "goal": {"type": "string"}, "needs": strings,
            "files": strings, "done_when": strings, "role": {"type": "string"},
            "repository": {"type": "string"},
        },
    }});
    let edges = json!({"type": "array", "items": {
        "type": "object", "required": ["task", "needs"], "additionalProperties": false,
        "properties": {"task": {"type": "string"}, "needs": {"type": "string"}},
    }});
    tool(
        PROPOSE,
        "Proposes a change of the plan that your task is part of: tasks to add, one that nobody has \
         begun to replace with others, tasks to cancel, and what needs what. All of it is applied or \
         nothing; the answer says why not, and shows the plan. Your own task stays as it is.",
        &[],
        &json!({
            "add": tasks,
            "replace": {"type": "object", "required": ["task", "with"],
                "additionalProperties": false,
                "properties": {"task": {"type": "string"}, "with": tasks}},
            "cancel": strings, "need": edges, "unneed": edges,
        }),
    )
}

fn offered() -> Vec<ModelTool> {
    let string = || json!({"type": "string"});
    let number = || json!({"type": "integer"});
    vec![
        tool(
            "read_file",
            "Reads a file, or the lines from one number to another.",
            &["path"],
            &json!({"path": string(), "from_line": number(), "to_line": number()}),
        ),
        tool(
            "list_files",
            "Lists files below a directory; an empty path is the top.",
            &[],
            &json!({"path": string(), "glob": string()}),
        ),
        tool(
            "search",
            "Finds lines that match a regular expression, or a text as it is with literal.",
            &["pattern"],
            &json!({"pattern": string(), "literal": {"type": "boolean"}, "glob": string()}),
        ),
        tool(
            "outline",
            "Lists the functions of a file with their lines.",
            &["path"],
            &json!({"path": string()}),
        ),
        tool(
            "edit_file",
            "Replaces lines of a file: search stands there exactly once; empty makes a new file.",
            &["path", "search", "replace"],
            &json!({"path": string(), "search": string(), "replace": string()}),
        ),
        tool(
            "write_file",
            "Writes a whole file.",
            &["path", "content"],
            &json!({"path": string(), "content": string(), "executable": {"type": "boolean"}}),
        ),
        tool(
            "run",
            "Runs a shell command at the top of the project, in a sandbox without network.",
            &["command"],
            &json!({"command": string()}),
        ),
        submission::tool(),
    ]
}
