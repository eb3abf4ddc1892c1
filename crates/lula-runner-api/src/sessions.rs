//! Several calls at once, and commands whose output is streamed.

use lula_protocol::{ToolCall, ToolResult, WorkspaceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::service::RunnerProblem;

/// Several calls at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCallBatch {
    /// The calls, at most 50.
    #[schemars(length(min = 1, max = 50))]
    pub calls: Vec<ToolCall>,
    /// How they are done.
    pub mode: ToolCallBatchMode,
}

/// How a batch is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallBatchMode {
    /// One after the other; the first that is not done ends the batch.
    Ordered,
    /// All of them, several at a time. Calls that change the same workspace still take turns.
    Parallel,
}

/// What came of a batch, in the order of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCallBatchResult {
    /// One for each call that was tried.
    pub results: Vec<ToolCallBatchItem>,
}

/// What came of one call of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ToolCallBatchItem {
    /// The answer of the tool.
    Result(Box<ToolResult>),
    /// Why there is none.
    Problem(RunnerProblem),
}

/// Starts a command whose output is streamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartSession {
    /// The command: a call of `exec`.
    pub call: ToolCall,
    /// Whether it goes on when no client listens. Its effect is then that it was started.
    #[serde(default)]
    pub background: bool,
    /// A terminal of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Whether standard input stays open for more.
    #[serde(default)]
    pub open_input: bool,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Height, in lines of text.
    #[schemars(range(min = 1, max = 1000))]
    pub rows: u16,
    /// Width, in columns of text.
    #[schemars(range(min = 1, max = 1000))]
    pub columns: u16,
}

/// One line of a session's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum SessionEvent {
    /// The command was started.
    Started {
        /// How to reach it: `/v1/sessions/{session}`.
        session: String,
    },
    /// The command wrote something.
    Output {
        /// The stream it wrote to.
        stream: StreamName,
        /// What; bytes that are no UTF-8 are replaced.
        text: String,
    },
    /// It ended; the last line.
    Ended {
        /// What came of it.
        result: Box<ToolResult>,
    },
}

/// Where a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    /// Standard output, or the terminal.
    Stdout,
    /// Standard error, where there is no terminal.
    Stderr,
}

/// A command that was started and not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionView {
    /// How to reach it.
    pub session: String,
    /// The workspace in which it runs.
    pub workspace: WorkspaceId,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether a client listens to its stream.
    pub attached: bool,
}

/// Every command that was started and not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionList {
    /// In order, the oldest first.
    pub sessions: Vec<SessionView>,
}

/// Something for a running command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum SessionControl {
    /// Text for its standard input.
    Input { text: String },
    /// The end of its standard input.
    EndInput,
    /// A signal for it and its process group.
    Signal {
        /// Number of the signal, from 1.
        #[schemars(range(min = 1, max = 64))]
        signal: u8,
    },
    /// Another size of its terminal.
    Resize { size: TerminalSize },
}
