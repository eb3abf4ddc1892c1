//! What goes between the person's process and the driver: a JSON document on each line.

use std::io::{self, Write};

use lula_models::wire::StreamDelta;
use lula_protocol::FailureReport;
use serde::{Deserialize, Serialize};

/// What the driver is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum DriverOrder {
    /// Something was sent to the run: go on.
    Go,
    /// Something was said to the run meanwhile.
    Notice,
    /// Stop the step under way.
    StopStep,
    StopTurn,
    /// Tell the change as it is.
    Change,
    /// Put the run down and end.
    End,
}

/// What the driver tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum DriverNews {
    /// It drives the run from here on.
    Ready,
    /// The model says more.
    Words { text: String },
    /// The model thinks more.
    Thinking { text: String },
    /// The model begins to call a tool.
    Calling { tool: String },
    /// What was said last is void: the answer is asked for anew.
    Discarded,
    /// The run goes into a node.
    Visiting { node: String },
    /// Something that takes a while is done.
    Doing { what: String },
    /// Something is in the log.
    Happened {
        seq: u64,
        /// What kind of thing: `act`, `step`, `person`, `trouble`, `aside`, `end`.
        kind: String,
        event: String,
        node: String,
        name: String,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        good: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
    },
    /// Something the person should know.
    Trouble { text: String },
    /// The change as it is.
    Change { diff: String, files: Vec<String> },
    /// The run waits, or is over: its log says for what.
    Rested,
    /// It could not go on, and ends.
    Failed { error: FailureReport },
}

impl DriverNews {
    /// What a piece of an answer is to a person who watches; nothing where it is only bytes of a call.
    pub(super) fn of(delta: &StreamDelta) -> Option<Self> {
        Some(match delta {
            StreamDelta::Text(text) => Self::Words { text: text.clone() },
            StreamDelta::Reasoning(text) => Self::Thinking { text: text.clone() },
            StreamDelta::CallStarted(tool) => Self::Calling { tool: tool.clone() },
            StreamDelta::CallArguments(_) => return None,
            StreamDelta::Discarded => Self::Discarded,
        })
    }

    /// Tells it on standard output, at once. There is no other reader to tell when that is gone.
    pub fn tell(&self) {
        let Ok(mut line) = serde_json::to_vec(self) else {
            return;
        };
        line.push(b'\n');
        let mut out = io::stdout().lock();
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}
