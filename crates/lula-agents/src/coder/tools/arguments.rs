//! What a model wrote as the arguments of a call, as acts of the workspace's tools.

use lula_edit::patch::{self, FilePatch};
use lula_models::normal::ModelToolCall;
use lula_protocol::ToolAction;
use lula_protocol::call::{
    ApplyPatch, ExecCommand, JobAction, JobRequest, ListFiles, OutlineFile, ReadFile, SearchFiles,
    TextReplacement, WriteFile,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::AnswerRoom;
use super::pictures::BYTES;
use crate::nodes::shell;

fn typed<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    serde_json::from_value(arguments.clone()).map_err(|error| error.to_string())
}

pub(in crate::coder) fn text_of(arguments: &Value, name: &str) -> String {
    let text = arguments.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    pattern: String,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    globs: Vec<String>,
    #[serde(default)]
    context: Option<u32>,
    #[serde(default)]
    count: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunArguments {
    command: String,
    #[serde(default, alias = "cwd", alias = "workdir")]
    directory: Option<String>,
    #[serde(default, alias = "timeout")]
    timeout_s: Option<u32>,
    #[serde(default)]
    background: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobArguments {
    id: String,
    #[serde(default)]
    action: JobVerb,
    #[serde(default)]
    input: Option<String>,
    #[serde(default)]
    wait_s: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JobVerb {
    #[default]
    Look,
    Send,
    Stop,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveArguments {
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchArguments {
    #[serde(alias = "input", alias = "diff")]
    patch: String,
}

/// One edit of a file, under each name that models know it by.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    #[serde(alias = "search", alias = "old_string", alias = "old_str")]
    old: String,
    #[serde(alias = "replace", alias = "new_string", alias = "new_str")]
    new: String,
    #[serde(default, alias = "replace_all")]
    all: bool,
}

/// The tool of a call. A call describes an act; nothing in it speaks about permission. At most so much
/// of a file is read as can be shown.
pub(crate) fn action(call: &ModelToolCall, room: AnswerRoom) -> Result<ToolAction, String> {
    let arguments = &call.arguments;
    Ok(match call.name.as_str() {
        "read_file" => ToolAction::ReadFile(ReadFile {
            most_bytes: u32::try_from(room.bytes).ok(),
            picture_bytes: room.pictures.filter(|left| *left > 0).map(|_| BYTES),
            ..typed(arguments)?
        }),
        "list_files" => ToolAction::ListFiles(typed::<ListFiles>(arguments)?),
        "search" => ToolAction::Search(search(typed(arguments)?)),
        "outline" => ToolAction::Outline(typed::<OutlineFile>(arguments)?),
        "write_file" => ToolAction::WriteFile(typed::<WriteFile>(arguments)?),
        "edit_file" => ToolAction::ApplyPatch(edits(arguments)?),
        "apply_patch" => {
            let PatchArguments { patch } = typed(arguments)?;
            ToolAction::ApplyPatch(ApplyPatch::Any { patch })
        }
        "move_file" => {
            let MoveArguments { from, to } = typed(arguments)?;
            ToolAction::ApplyPatch(ApplyPatch::Move { from, to })
        }
        "delete_file" => {
            let DeleteArguments { path } = typed(arguments)?;
            ToolAction::ApplyPatch(ApplyPatch::Delete { path })
        }
        "run" => run(typed(arguments)?),
        "job" => ToolAction::Job(job(typed(arguments)?)?),
        other => return Err(format!("there is no tool {other:?}")),
    })
}

fn search(asked: SearchArguments) -> SearchFiles {
    SearchFiles {
        pattern: asked.pattern,
        literal: asked.literal,
        glob: asked.glob,
        globs: asked.globs,
        ignore_case: asked.ignore_case,
        context: asked.context,
        count: asked.count,
    }
}

fn run(asked: RunArguments) -> ToolAction {
    let directory = asked.directory.unwrap_or_default();
    let directory = directory.trim_end_matches('/');
    let directory = match directory {
        "." => "",
        other => other.strip_prefix("./").unwrap_or(other),
    };
    match shell(&asked.command, directory) {
        ToolAction::Exec(exec) => ToolAction::Exec(ExecCommand {
            timeout_ms: asked
                .timeout_s
                .map(|seconds| u64::from(seconds.max(1)) * 1000),
            background: asked.background,
            ..exec
        }),
        other => other,
    }
}

fn job(asked: JobArguments) -> Result<JobRequest, String> {
    let action = match (asked.action, asked.input) {
        (JobVerb::Send, Some(input)) => JobAction::Send { input },
        (JobVerb::Send, None) => return Err("to send something name it as `input`".to_owned()),
        (JobVerb::Look, _) => JobAction::Look {},
        (JobVerb::Stop, _) => JobAction::Stop {},
    };
    Ok(JobRequest {
        job: asked.id,
        action,
        wait_ms: asked.wait_s.map(|seconds| u64::from(seconds) * 1000),
    })
}

/// The edits of a call: a list, or one edit beside the path.
fn edits(arguments: &Value) -> Result<ApplyPatch, String> {
    let path = text_of(arguments, "path");
    if path.is_empty() {
        return Err("`path` is missing: which file is to be edited?".to_owned());
    }
    let edits: Vec<EditArguments> = match arguments.get("edits") {
        // Some models write a list as a text that holds one.
        Some(Value::String(text)) => {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        }
        Some(list) => typed(list)?,
        None => {
            let mut one = arguments.clone();
            if let Some(fields) = one.as_object_mut() {
                fields.remove("path");
            }
            vec![typed(&one)?]
        }
    };
    let edits = edits.into_iter().map(|edit| TextReplacement {
        old: edit.old,
        new: edit.new,
        all: edit.all,
    });
    Ok(ApplyPatch::Texts {
        path,
        edits: edits.collect(),
    })
}

/// Every path that a call would write, move or delete.
pub(super) fn written(call: &ModelToolCall) -> Result<Vec<String>, String> {
    let arguments = &call.arguments;
    Ok(match call.name.as_str() {
        "write_file" | "edit_file" | "delete_file" => vec![text_of(arguments, "path")],
        "move_file" => vec![text_of(arguments, "from"), text_of(arguments, "to")],
        "apply_patch" => {
            let PatchArguments { patch } = typed(arguments)?;
            let patches = patch::parse(&patch).map_err(|error| error.to_string())?;
            let paths = patches.iter().flat_map(FilePatch::paths);
            paths.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn room(bytes: usize) -> AnswerRoom {
        AnswerRoom {
            bytes,
            pictures: None,
        }
    }

    fn call(name: &str, arguments: Value) -> ModelToolCall {
        ModelToolCall {
            id: "1".to_owned(),
            name: name.to_owned(),
            arguments,
        }
    }

    fn texts(arguments: Value) -> Result<Vec<(String, String, bool)>, String> {
        match action(&call("edit_file", arguments), room(1000))? {
            ToolAction::ApplyPatch(ApplyPatch::Texts { edits, .. }) => Ok(edits
                .into_iter()
                .map(|edit| (edit.old, edit.new, edit.all))
                .collect()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn edits_are_taken_under_the_names_that_models_know() {
        let one = vec![("a".to_owned(), "b".to_owned(), false)];
        for arguments in [
            json!({"path": "x", "edits": [{"old": "a", "new": "b"}]}),
            json!({"path": "x", "edits": "[{\"old\": \"a\", \"new\": \"b\"}]"}),
            json!({"path": "x", "old": "a", "new": "b"}),
            json!({"path": "x", "search": "a", "replace": "b"}),
            json!({"path": "x", "old_string": "a", "new_string": "b"}),
        ] {
            assert_eq!(texts(arguments.clone()).unwrap(), one, "{arguments}");
        }
        assert!(
            texts(json!({"edits": []}))
                .unwrap_err()
                .contains("`path` is missing")
        );
        assert!(
            texts(json!({"path": "x", "old": "a"}))
                .unwrap_err()
                .contains("new")
        );
    }

    #[test]
    fn every_path_that_is_written_is_known_before_anything_is() {
        let patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n\
                     *** Add File: c.py\n+1\n*** Delete File: d.py\n*** End Patch\n";
        let paths = written(&call("apply_patch", json!({"patch": patch}))).unwrap();
        assert_eq!(paths, ["a.py", "b.py", "c.py", "d.py"]);
        let paths = written(&call("move_file", json!({"from": "a", "to": "b"}))).unwrap();
        assert_eq!(paths, ["a", "b"]);
        let paths = written(&call("delete_file", json!({"path": "a"}))).unwrap();
        assert_eq!(paths, ["a"]);
        assert!(written(&call("apply_patch", json!({"patch": "what"}))).is_err());
        assert!(
            written(&call("run", json!({"command": "rm a"})))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_command_has_a_directory_a_time_and_a_place_in_the_background() {
        let arguments = json!({"command": "make", "directory": "./web/", "timeout_s": 90,
            "background": true});
        let ToolAction::Exec(exec) = action(&call("run", arguments), room(1000)).unwrap() else {
            panic!("no command");
        };
        assert_eq!((exec.cwd.as_str(), exec.timeout_ms), ("web", Some(90_000)));
        assert!(exec.background);
        let error = action(&call("run", json!({"cmd": "ls"})), room(1000)).unwrap_err();
        assert!(error.contains("cmd"), "{error}");
    }

    #[test]
    fn a_file_is_read_as_far_as_it_can_be_shown() {
        let read = action(
            &call("read_file", json!({"path": "a", "from_line": 5})),
            room(9000),
        );
        let ToolAction::ReadFile(read) = read.unwrap() else {
            panic!("no file");
        };
        assert_eq!((read.from_line, read.most_bytes), (Some(5), Some(9000)));
    }

    #[test]
    fn files_are_searched_by_one_glob_or_by_several() {
        let arguments = json!({"pattern": "x", "glob": "*.py", "globs": ["*.md"], "context": 2});
        let ToolAction::Search(search) = action(&call("search", arguments), room(1)).unwrap()
        else {
            panic!("no search");
        };
        assert_eq!(search.glob.as_deref(), Some("*.py"));
        assert_eq!(
            (search.globs, search.context),
            (vec!["*.md".to_owned()], Some(2))
        );
    }
}
