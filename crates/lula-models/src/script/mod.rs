//! The scripted model: answers written beforehand, for tests and demonstrations.
//!
//! A script is a list of turns in TOML. A request gets the first turn that is not used up and
//! whose `when` stands in its last message. The turn is written in whatever protocol was asked,
//! so that everything above the transport runs as it does with a live model.
//!
//! ```toml
//! [[turn]]
//! when = "failing tests"
//! say = "I will look at the file."
//! call = [{ name = "read_file", arguments = { path = "calc.py" } }]
//!
//! [[turn]]
//! fault = { status = 429, retry_after = 2 }
//! ```

mod play;
mod render;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use play::{ScriptPlayer, ScriptReply};

/// A call the model makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    pub name: String,
    /// Its arguments; a text is sent as it is, however broken.
    #[serde(default)]
    pub arguments: Value,
}

/// What goes wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptedFault {
    /// This status instead of an answer.
    pub status: Option<u16>,
    /// With this many seconds to wait.
    pub retry_after: Option<u64>,
    /// And this body instead of the usual one.
    pub body: Option<String>,
    /// The connection breaks after this many bytes of the body.
    pub cut_after: Option<usize>,
    /// Nothing more comes after this many bytes of the body, and the connection stays open.
    pub stall_after: Option<usize>,
    /// The body is not of the protocol.
    pub garbage: bool,
}

/// What the server counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedUsage {
    /// Tokens of the request, cached ones included.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Of those read, from the cache.
    #[serde(default)]
    pub cache_read: u64,
}

/// One answer of the scripted model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptTurn {
    /// Only for requests whose last message holds this.
    pub when: Option<String>,
    /// How often it may be given; 0 is without end.
    pub times: Option<u32>,
    /// Reasoning that comes before the answer.
    pub think: Option<String>,
    /// The words of the answer.
    pub say: Option<String>,
    /// Calls of tools, in order.
    pub call: Vec<ScriptedCall>,
    /// Why it stops: `end`, `length`, `filter`.
    pub stop: Option<String>,
    /// What the server counts; `None` counts by length.
    pub usage: Option<ScriptedUsage>,
    /// Whether the server says nothing of what it counts.
    pub uncounted: bool,
    /// How long a server takes to answer, in milliseconds.
    pub wait_ms: u64,
    /// The server answers only when a request has come that holds this.
    pub after: Option<String>,
    /// What goes wrong with the answer, if anything.
    pub fault: Option<ScriptedFault>,
}

/// A list of turns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScript {
    /// The turns, in order.
    #[serde(default)]
    pub turn: Vec<ScriptTurn>,
}

/// Why a script cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the script cannot be read: {0}")]
pub struct ScriptError(String);

impl ModelScript {
    /// Reads a script as TOML.
    pub fn parse(toml: &str) -> Result<Self, ScriptError> {
        toml::from_str(toml).map_err(|error| ScriptError(error.to_string()))
    }

    /// A script of one turn that says this, and more turns to come.
    pub fn say(text: impl Into<String>) -> Self {
        Self::default().then_say(text)
    }

    /// Adds a turn that says this.
    #[must_use]
    pub fn then_say(self, text: impl Into<String>) -> Self {
        self.then(ScriptTurn {
            say: Some(text.into()),
            ..ScriptTurn::default()
        })
    }

    /// Then calls a tool.
    #[must_use]
    pub fn then_call(self, name: impl Into<String>, arguments: Value) -> Self {
        let call = vec![ScriptedCall {
            name: name.into(),
            arguments,
        }];
        self.then(ScriptTurn {
            call,
            ..ScriptTurn::default()
        })
    }

    /// Adds a turn that goes wrong.
    #[must_use]
    pub fn then_fail(self, fault: ScriptedFault) -> Self {
        self.then(ScriptTurn {
            fault: Some(fault),
            say: Some("never whole".to_owned()),
            ..ScriptTurn::default()
        })
    }

    /// Adds a turn to the end of the script.
    #[must_use]
    pub fn then(mut self, turn: ScriptTurn) -> Self {
        self.turn.push(turn);
        self
    }
}

impl ScriptedFault {
    /// A fault that is answered with this status.
    pub fn status(status: u16) -> Self {
        Self {
            status: Some(status),
            ..Self::default()
        }
    }

    /// A break after this many bytes.
    pub fn cut_after(bytes: usize) -> Self {
        Self {
            cut_after: Some(bytes),
            ..Self::default()
        }
    }

    /// A stall after this many bytes.
    pub fn stall_after(bytes: usize) -> Self {
        Self {
            stall_after: Some(bytes),
            ..Self::default()
        }
    }
}
