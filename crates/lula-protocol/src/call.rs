//! Tool calls: everything an agent can ask the runner to do.
//!
//! Each tool has its own typed input that rejects unknown fields. There is deliberately no field
//! that speaks about approval, policy or trust: a call describes an act, and the gate decides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::canonical::CanonicalError;
use crate::digest::{Digest, DigestDomain};
use crate::id::{EffectId, RunId, WorkspaceId};
use crate::version::ProtocolVersion;

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Version of the protocol that the caller speaks.
    pub protocol: ProtocolVersion,
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller; an older one than already seen is fenced off.
    pub epoch: u64,
    /// The run on whose behalf the call is made.
    pub run: RunId,
    /// The workspace it acts on.
    pub workspace: WorkspaceId,
    pub action: ToolAction,
}

impl ToolCall {
    /// Digest of the act. The epoch is no part of it: it says who asks, and a worker that takes a
    /// run over asks for the same act.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        #[derive(Serialize)]
        struct Act<'a> {
            protocol: ProtocolVersion,
            effect: &'a EffectId,
            run: &'a RunId,
            workspace: &'a WorkspaceId,
            action: &'a ToolAction,
        }
        let act = Act {
            protocol: self.protocol,
            effect: &self.effect,
            run: &self.run,
            workspace: &self.workspace,
            action: &self.action,
        };
        Digest::of(DigestDomain::Call, &act)
    }
}

/// The tools and their inputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "tool",
    content = "input",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum ToolAction {
    /// Read a file or a range of its lines.
    ReadFile(ReadFile),
    /// List files below a directory.
    ListFiles(ListFiles),
    /// Search the contents of files.
    Search(SearchFiles),
    /// The symbols of a file.
    Outline(OutlineFile),
    /// Create or replace a file.
    WriteFile(WriteFile),
    /// Change files by a patch, all or nothing.
    ApplyPatch(ApplyPatch),
    /// Run a command in the sandbox.
    Exec(ExecCommand),
    /// Look at a command in the background, tell it something or end it.
    Job(JobRequest),
    /// Ask or tell git.
    Git(GitAction),
    /// Remember the state of the workspace.
    Snapshot(TakeWorkspaceSnapshot),
    /// Return to an earlier state.
    Undo(UndoToSnapshot),
}

impl ToolAction {
    /// Name of the tool, as on the wire.
    pub const fn tool(&self) -> &'static str {
        match self {
            Self::ReadFile(_) => "read_file",
            Self::ListFiles(_) => "list_files",
            Self::Search(_) => "search",
            Self::Outline(_) => "outline",
            Self::WriteFile(_) => "write_file",
            Self::ApplyPatch(_) => "apply_patch",
            Self::Exec(_) => "exec",
            Self::Job(_) => "job",
            Self::Git(_) => "git",
            Self::Snapshot(_) => "snapshot",
            Self::Undo(_) => "undo",
        }
    }

    /// Whether the act can change the workspace or anything else.
    pub const fn mutates(&self) -> bool {
        match self {
            Self::ReadFile(_)
            | Self::ListFiles(_)
            | Self::Search(_)
            | Self::Outline(_)
            | Self::Snapshot(_) => false,
            Self::Job(job) => !matches!(job.action, JobAction::Look {}),
            Self::Git(git) => matches!(git, GitAction::Commit { .. }),
            Self::WriteFile(_) | Self::ApplyPatch(_) | Self::Exec(_) | Self::Undo(_) => true,
        }
    }
}

/// Read a file or a range of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Path inside the workspace.
    pub path: String,
    /// First line, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_line: Option<u32>,
    /// Last line, counted from 1 and included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_line: Option<u32>,
    /// No more lines than fit into so many bytes, each with its number; as many as there are room
    /// for otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_bytes: Option<u32>,
    /// Return a picture, where the file is one of no more than so many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture_bytes: Option<u32>,
}

/// List files below a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListFiles {
    /// Directory inside the workspace; empty for its root.
    #[serde(default)]
    pub path: String,
    /// Only names that match this glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// How deep to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}

/// Search the contents of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchFiles {
    /// Regular expression, or plain text with `literal`.
    pub pattern: String,
    /// Take the pattern as it is.
    #[serde(default)]
    pub literal: bool,
    /// Only files that match this glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// Only files that match one of these, or the one above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// Take capital and small letters as the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
    /// So many lines before and after each line that is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Only how many lines match in each file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub count: bool,
}

/// The symbols of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutlineFile {
    /// Path inside the workspace.
    pub path: String,
}

/// Create or replace a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Path inside the workspace.
    pub path: String,
    /// The whole new content.
    pub content: String,
    /// Whether the file is a program.
    #[serde(default)]
    pub executable: bool,
}

/// Change files by a patch, all or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "format", rename_all = "snake_case", deny_unknown_fields)]
pub enum ApplyPatch {
    /// A unified diff over any number of files.
    UnifiedDiff { diff: String },
    /// Passages to find and their replacements.
    SearchReplace {
        /// Applied in order, to all files or to none.
        edits: Vec<PatchEdit>,
    },
    /// A patch over any number of files, as a unified diff or between `*** Begin Patch` and
    /// `*** End Patch`. What would no longer parse is not written.
    Any { patch: String },
    /// Texts of one file and what they become. What would no longer parse is not written.
    Texts {
        /// Path inside the workspace.
        path: String,
        /// Applied one after the other, or none of them.
        edits: Vec<TextReplacement>,
    },
    /// A file gets another path.
    Move {
        /// Its path as it is now.
        from: String,
        /// Where it is to be; nothing may be there.
        to: String,
    },
    /// A file goes away.
    Delete {
        /// Path inside the workspace.
        path: String,
    },
}

/// A text that stands in a file, and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TextReplacement {
    /// Text that stands there now; empty for a file that is to be made.
    pub old: String,
    pub new: String,
    /// Replace it wherever it stands, and not in the one place only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// One passage and its replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PatchEdit {
    /// Path inside the workspace.
    pub path: String,
    /// Text that stands there now, exactly once.
    pub search: String,
    /// Text to put in its place.
    pub replace: String,
}

/// Run a command in the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExecCommand {
    /// Program and arguments; no shell is added.
    pub argv: Vec<String>,
    /// Directory inside the workspace; empty for its root.
    #[serde(default)]
    pub cwd: String,
    /// Variables beside those the profile sets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Text for standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// A shorter deadline than the policy's. A longer one changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Do not wait for its end: the answer names the job that it runs as.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

/// Look at a command in the background, tell it something or end it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JobRequest {
    /// The job, as the answer to its start names it.
    pub job: String,
    pub action: JobAction,
    /// Wait so long for new output or its end, at most a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// What is done with a job. Each answer holds what it wrote since the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum JobAction {
    /// Nothing. With braces, because a variant without them would take any field beside it.
    Look {},
    /// It gets this on its standard input.
    Send { input: String },
    /// It ends, with everything it started.
    Stop {},
}

/// Ask or tell git.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum GitAction {
    /// Changed files. With braces, because a variant without them would take any field beside it.
    Status {},
    /// The last commits, the newest first.
    Log {
        /// How many commits to show.
        count: u32,
    },
    /// The change of the working tree, or of one path.
    Diff {
        /// A path to show the change of; without one, all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Who last changed each line.
    Blame {
        /// Path inside the workspace.
        path: String,
    },
    /// Record the change of the workspace.
    Commit { message: String },
}

/// Remember the state of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TakeWorkspaceSnapshot {
    /// What to call it.
    pub label: String,
}

/// Return to an earlier state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UndoToSnapshot {
    /// The snapshot to return to; the last one where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn call_json(action: &Value) -> Value {
        json!({
            "protocol": 1,
            "effect": EffectId::from_parts(1, [1; 10]),
            "epoch": 1,
            "run": RunId::from_parts(1, [2; 10]),
            "workspace": WorkspaceId::from_parts(1, [3; 10]),
            "action": action,
        })
    }

    fn parse(value: Value) -> Result<ToolCall, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn a_call_survives_the_wire() {
        let exec = json!({"tool": "exec", "input": {"argv": ["pytest", "-q"]}});
        let call = parse(call_json(&exec)).unwrap();
        assert_eq!(call.action.tool(), "exec");
        let again = parse(serde_json::to_value(&call).unwrap()).unwrap();
        assert_eq!(again.digest().unwrap(), call.digest().unwrap());
    }

    #[test]
    fn no_field_of_a_call_can_switch_a_gate_off() {
        let smuggled = [
            "skip_approval",
            "auto_approve",
            "trusted",
            "policy",
            "sandbox",
        ];
        let actions = [
            json!({"tool": "exec", "input": {"argv": ["true"]}}),
            json!({"tool": "write_file", "input": {"path": "a", "content": ""}}),
            json!({"tool": "apply_patch", "input": {"format": "unified_diff", "diff": ""}}),
            json!({"tool": "git", "input": {"command": "commit", "message": "m"}}),
            json!({"tool": "undo", "input": {}}),
        ];
        for field in smuggled {
            for action in &actions {
                let mut beside = call_json(action);
                beside[field] = json!(true);
                assert!(parse(beside).is_err(), "{field} beside the call");

                let mut in_action = action.clone();
                in_action[field] = json!(true);
                assert!(
                    parse(call_json(&in_action)).is_err(),
                    "{field} in {in_action}"
                );

                let mut in_input = action.clone();
                in_input["input"][field] = json!(true);
                assert!(
                    parse(call_json(&in_input)).is_err(),
                    "{field} in {in_input}"
                );
            }
        }
    }

    #[test]
    fn another_protocol_version_is_refused_by_name() {
        let mut call = call_json(&json!({"tool": "undo", "input": {}}));
        call["protocol"] = json!(2);
        let error = parse(call).unwrap_err().to_string();
        assert!(error.contains("version 2 is not supported"), "{error}");
    }

    #[test]
    fn one_changed_byte_changes_the_digest() {
        let write = |content: &str| {
            let input = json!({"path": "a.py", "content": content});
            parse(call_json(&json!({"tool": "write_file", "input": input}))).unwrap()
        };
        assert_ne!(
            write("x = 1\n").digest().unwrap(),
            write("x = 2\n").digest().unwrap()
        );
    }

    #[test]
    fn whoever_takes_a_run_over_asks_for_the_same_act() {
        let exec = json!({"tool": "exec", "input": {"argv": ["true"]}});
        let call = parse(call_json(&exec)).unwrap();
        let later = ToolCall {
            epoch: 7,
            ..call.clone()
        };
        assert_eq!(call.digest().unwrap(), later.digest().unwrap());
    }

    #[test]
    fn a_field_left_out_and_its_default_are_the_same_call() {
        let short = json!({"tool": "exec", "input": {"argv": ["true"]}});
        let long = json!({"tool": "exec", "input": {"argv": ["true"], "cwd": "", "env": {}}});
        let digest = |action| parse(call_json(&action)).unwrap().digest().unwrap();
        assert_eq!(digest(short), digest(long));
    }
}
