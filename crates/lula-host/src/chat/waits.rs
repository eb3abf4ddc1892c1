//! What a chat waits for, read from its log.

use lula_agents::CodingState;
use lula_agents::chat::{ChatChoice, TurnEnd};
use lula_graph::RunState;
use lula_protocol::{ApprovalId, RunInterrupt};
use serde::Serialize;

use crate::report::{RunReport, waiting_for};

/// What a chat waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "waits_for", rename_all = "snake_case")]
pub enum ChatWait {
    /// The person says what comes next.
    YourTurn,
    /// The model asks, with answers to choose from.
    Choice {
        question: String,
        options: Vec<String>,
    },
    /// The runner asks before it does something: what is shown is what is done.
    Approval {
        approval: ApprovalId,
        /// What is to be done.
        name: String,
        reason: String,
    },
    /// The run asks before it delivers.
    Delivery { reason: String },
    /// More of a budget.
    Budget { text: String },
    /// Something else that a person has to do.
    Other { text: String },
    /// Nothing: it was put down, and goes on when it is driven.
    Driver,
    /// Nothing: it is over.
    Over,
}

/// A chat as its log tells it.
pub struct ChatView {
    pub known: RunState<CodingState>,
    pub wait: ChatWait,
}

impl ChatView {
    pub(super) fn of(known: RunState<CodingState>) -> Self {
        let wait = waits_for(&known);
        Self { known, wait }
    }

    /// What the model said last.
    pub fn words(&self) -> &str {
        self.known
            .state
            .chat
            .as_ref()
            .map_or("", |chat| &chat.words)
    }

    /// What a person is shown of what they chose last.
    pub fn shown(&self) -> Option<&str> {
        self.known.state.chat.as_ref()?.shown.as_deref()
    }

    /// How the last turn ended.
    pub fn turn_end(&self) -> Option<&TurnEnd> {
        self.known.state.chat.as_ref()?.ended.as_ref()
    }

    /// The report of the run.
    pub fn report(&self) -> RunReport {
        RunReport::of(&self.known)
    }
}

fn waits_for(known: &RunState<CodingState>) -> ChatWait {
    let progress = &known.progress;
    if progress.ended.is_some() {
        return ChatWait::Over;
    }
    let Some(pending) = &progress.pending else {
        return ChatWait::Driver;
    };
    match &pending.interrupt {
        interrupt if ChatChoice::are_offered(interrupt) => ChatWait::YourTurn,
        RunInterrupt::Operator { question, options } => ChatWait::Choice {
            question: question.clone(),
            options: options.clone(),
        },
        RunInterrupt::Held {
            approval,
            name,
            reason,
            ..
        } => ChatWait::Approval {
            approval: approval.clone(),
            name: name.clone(),
            reason: reason.clone(),
        },
        RunInterrupt::Approval { reason, .. } => ChatWait::Delivery {
            reason: reason.clone(),
        },
        interrupt @ RunInterrupt::Budget { .. } => ChatWait::Budget {
            text: waiting_for(interrupt),
        },
        interrupt @ RunInterrupt::UnknownEffect { .. } => ChatWait::Choice {
            question: waiting_for(interrupt),
            options: interrupt.options(),
        },
        interrupt => ChatWait::Other {
            text: waiting_for(interrupt),
        },
    }
}
