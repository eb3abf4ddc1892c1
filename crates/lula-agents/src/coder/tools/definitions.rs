//! What a coder is told of its tools: names, purposes, arguments.

use lula_models::normal::ModelTool;
use serde_json::{Value, json};

use crate::coder::submission::{self, SUBMIT};
use crate::team::PROPOSE;
use crate::work::CodingState;

/// The tools that the coder may call; `pictures` where its model takes them.
pub(in crate::coder) fn given(work: &CodingState, pictures: bool) -> Vec<ModelTool> {
    let mut tools = offered();
    if let Some(read) = tools
        .iter_mut()
        .find(|tool| pictures && tool.name == "read_file")
    {
        read.description
            .push_str(" A picture (PNG, JPEG, GIF, WebP) is shown as one.");
    }
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

/// A tool whose arguments are also taken under names that models know from elsewhere.
fn lenient(name: &str, description: &str, required: &[&str], properties: &Value) -> ModelTool {
    ModelTool {
        parameters: json!({"type": "object", "required": required, "properties": properties}),
        ..tool(name, description, required, properties)
    }
}

fn proposing() -> ModelTool {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let tasks = json!({"type": "array", "items": {
        "type": "object", "required": ["id", "goal"], "additionalProperties": false,
        "properties": {
            "id": {"type": "string"}, "goal": {"type": "string"}, "needs": strings,
            "files": strings, "done_when": strings, "role": {"type": "string"},
            "interfaces": {"type": "string"}, "repository": {"type": "string"},
        },
    }});
    let edges = json!({"type": "array", "items": {
        "type": "object", "required": ["task", "needs"], "additionalProperties": false,
        "properties": {"task": {"type": "string"}, "needs": {"type": "string"}},
    }});
    tool(
        PROPOSE,
        "Proposes a change of the plan that your task is part of: tasks to add, one that nobody has \
         begun to replace with others, tasks to cancel, and what needs what; and asks for files that \
         your own task has to write beside its own (`want_files`, one by one). All of it is applied or \
         nothing; the answer says what changed, or why nothing did.",
        &[],
        &json!({
            "add": tasks,
            "replace": {"type": "object", "required": ["task", "with"],
                "additionalProperties": false,
                "properties": {"task": {"type": "string"}, "with": tasks}},
            "cancel": strings, "need": edges, "unneed": edges, "want_files": strings,
        }),
    )
}

/// Every tool of a coder that works alone.
pub(crate) fn offered() -> Vec<ModelTool> {
    let mut tools = looking();
    tools.extend(reviewing());
    tools.extend(writing());
    tools.extend(running());
    tools.push(submission::tool());
    tools
}

fn string() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "integer"})
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

fn strings() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

/// The tools that look at files.
pub(crate) fn looking() -> Vec<ModelTool> {
    vec![
        tool(
            "read_file",
            "Reads a file from its first line, or from one line to another. Each line is shown after \
             its number; the first line of the answer says which of how many lines these are, the last \
             one how to read on.",
            &["path"],
            &json!({"path": string(), "from_line": number(), "to_line": number()}),
        ),
        tool(
            "list_files",
            "Lists files below a directory; an empty path is the top.",
            &[],
            &json!({"path": string(), "glob": string(), "depth": number()}),
        ),
        tool(
            "search",
            "Finds lines that match a regular expression, or a text as it is with literal: each after \
             its number, below the path of its file. glob, globs: only files that match one of these \
             (\"*.py\", \"src/**\"). context: so many lines around each. count: only how many lines \
             match in each file.",
            &["pattern"],
            &json!({"pattern": string(), "literal": boolean(), "ignore_case": boolean(),
                "glob": string(), "globs": strings(), "context": number(), "count": boolean()}),
        ),
        tool(
            "outline",
            "Lists the functions of a file with their lines.",
            &["path"],
            &json!({"path": string()}),
        ),
    ]
}

/// The tools that tell how far the work is.
fn reviewing() -> Vec<ModelTool> {
    vec![
        tool(
            "diff",
            "Shows the change so far, against the commit that the work began on.",
            &[],
            &json!({}),
        ),
        tool(
            "test",
            "Runs the tests of the project as the verifier does, on the files as they are now, and \
             says which fail that did not fail before. All tests are run; names: of those that fail \
             show only these.",
            &[],
            &json!({"names": strings()}),
        ),
        tool(
            "todo",
            "Writes down your plan, for the person to follow. Give the whole list each time.",
            &["items"],
            &json!({"items": {"type": "array", "items": {
                "type": "object", "required": ["text", "done"], "additionalProperties": false,
                "properties": {"text": string(), "done": boolean()},
            }}}),
        ),
    ]
}

/// The tools that change files.
fn writing() -> Vec<ModelTool> {
    let edit = json!({
        "type": "object",
        "properties": {"old": string(), "new": string(), "all": boolean()},
    });
    vec![
        lenient(
            "edit_file",
            "Replaces texts of one file. old is any text that stands in the file exactly once, part of \
             a line or many lines, without line numbers; new is what it becomes; all: true replaces it \
             wherever it stands. The edits are made one after the other, all or none; the answer shows \
             the changed lines. A file that would no longer parse is not written. One edit may stand \
             beside path as old and new. An empty old makes a new file.",
            &["path"],
            &json!({"path": string(), "edits": {"type": "array", "items": edit},
                "old": string(), "new": string()}),
        ),
        tool(
            "apply_patch",
            "Changes, makes, moves and deletes any number of files, all or none. The patch begins with \
             \"*** Begin Patch\" and ends with \"*** End Patch\". Between them stand \"*** Update File: \
             PATH\" (with \"*** Move to: PATH\" below it to move it), \"*** Add File: PATH\" and \"*** \
             Delete File: PATH\". Lines of an update begin with a blank where they stay, - where they \
             go and + where they come, with about three lines around each change; a line \"@@ class or \
             function\" says where, if that is not clear. Each line of an added file begins with +. A \
             unified diff is taken too.",
            &["patch"],
            &json!({"patch": string()}),
        ),
        tool(
            "write_file",
            "Writes a whole file.",
            &["path", "content"],
            &json!({"path": string(), "content": string(), "executable": boolean()}),
        ),
        tool(
            "move_file",
            "Gives a file another path, where nothing is yet. A folder is moved with run.",
            &["from", "to"],
            &json!({"from": string(), "to": string()}),
        ),
        tool(
            "delete_file",
            "Deletes a file.",
            &["path"],
            &json!({"path": string()}),
        ),
    ]
}

/// The tools that run commands.
fn running() -> Vec<ModelTool> {
    vec![
        tool(
            "run",
            "Runs a shell command in a sandbox without network, at the top of the project or in a \
             directory below it. The answer begins with the exit status. timeout_s: end it after so \
             many seconds (at most what the policy allows, which is also what it gets by itself). \
             background: true starts it and answers at once with the name of a job. git works here \
             (status, diff, log, blame, show, stash) in a private copy: no remotes, and commits there \
             are not delivered.",
            &["command"],
            &json!({"command": string(), "directory": string(), "timeout_s": number(),
                "background": boolean()}),
        ),
        tool(
            "job",
            "A command in the background. look: whether it runs, and what it wrote since you last \
             looked; wait_s waits up to so many seconds (at most 60) for news. send: gives it input \
             (end a line with a newline). stop: ends it with everything it started.",
            &["id", "action"],
            &json!({"id": string(), "action": {"type": "string", "enum": ["look", "send", "stop"]},
                "input": string(), "wait_s": number()}),
        ),
    ]
}
