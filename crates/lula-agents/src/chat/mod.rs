//! A chat: a run whose coder a person talks with, turn by turn, over one held workspace.
//!
//! Between turns the run waits for a choice of the person, as it waits for any other ([`ChatChoice`]), so
//! everything that is said is in its log, and a process that dies loses nothing of it. What the choices
//! and turns add up to is [`ChatState`]; `nodes/chat.rs` waits and does what is chosen, `coder/chat.rs`
//! has a turn with the model.

mod state;

use lula_protocol::RunInterrupt;
use serde::{Deserialize, Serialize};

use crate::work::OpenConversation;

pub use state::ChatState;

/// What a run waits with when it is the person's turn.
pub const YOUR_TURN: &str = "it is your turn";

/// What a model is told of a step that the person stopped. Effects that were stopped say it.
pub const STOPPED: &str = "the person you work for stopped this";

/// How a chat was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatTerms {
    /// Whether nothing was said yet: the person goes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
}

/// What a person can do when it is their turn. A note beside the choice holds words, command or name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatChoice {
    /// Says something: the model has a turn.
    Say,
    /// Runs a command in the workspace; the model is told what it printed.
    Run,
    /// Runs the tests on the change as it is.
    Test,
    /// Verifies the change and delivers it.
    Commit,
    /// The same, also where nothing shows that the change does what it should.
    Deliver,
    /// Takes back what was changed last.
    Undo,
    /// Brings back what was taken back.
    Redo,
    /// Lets the search without a model mend failing tests.
    Repair,
    /// Goes on with another of the run's models.
    Model,
}

impl ChatChoice {
    pub const ALL: [Self; 9] = [
        Self::Say,
        Self::Run,
        Self::Test,
        Self::Commit,
        Self::Deliver,
        Self::Undo,
        Self::Redo,
        Self::Repair,
        Self::Model,
    ];

    /// The name in the log. Part of the format: never renamed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Say => "say",
            Self::Run => "run",
            Self::Test => "test",
            Self::Commit => "commit",
            Self::Deliver => "deliver",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Repair => "repair",
            Self::Model => "model",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }

    /// Whether a run waits with these: it is the person's turn.
    pub fn are_offered(interrupt: &RunInterrupt) -> bool {
        matches!(interrupt, RunInterrupt::Operator { question, options }
            if question == YOUR_TURN && options.first().is_some_and(|one| one == Self::Say.name()))
    }
}

/// One thing that happened in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChatEvent {
    /// The person said something.
    Said { text: String },
    /// The person ran a command.
    Ran {
        command: String,
        /// What the model is told of it.
        output: String,
        failed: bool,
    },
    /// The model's turn ended.
    TurnEnded { turn: Box<ChatTurn> },
    /// What the files were like before something changed them is kept under this name.
    Kept { snapshot: String },
    /// The files are as they were at one of the points that were kept.
    Returned {
        to: usize,
        /// The name under which the last state of all is kept, where it was not yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tip: Option<String>,
    },
    /// The change is verified and delivered.
    Committing {
        /// Also where nothing shows that it does what it should.
        unverified: bool,
    },
    /// The search without a model works on failing tests.
    Repairing,
    /// Something the person should know.
    Noted {
        text: String,
        /// Whether the model is told as well.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        told: bool,
    },
}

/// What a turn of the model came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatTurn {
    /// Everything that was said so far.
    pub conversation: OpenConversation,
    /// The model's last words.
    pub words: String,
    pub ended: TurnEnd,
    /// Whether it may have changed files.
    pub changed: bool,
}

/// Why a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum TurnEnd {
    /// The model said what it had to say.
    Answered,
    /// The person stopped it.
    Stopped,
    /// The person said no to what it wanted to do.
    Refused,
    /// Its steps ran out.
    OutOfSteps,
    /// The model could not be asked, or gave no answer that can be used.
    Failed { why: String },
}
