//! What happened in a chat, in a line.

use lula_agents::chat::{ChatEvent, TurnEnd};

use crate::story::facts::first_line;

/// What happened, and whether it went well where that can be said.
pub(super) fn summary(event: &ChatEvent) -> (String, Option<bool>) {
    match event {
        ChatEvent::Said { text } => (format!("said: {}", first_line(text)), None),
        ChatEvent::Ran {
            command, failed, ..
        } => (format!("ran {}", first_line(command)), Some(!failed)),
        ChatEvent::TurnEnded { turn } => match &turn.ended {
            TurnEnd::Answered => (first_line(&turn.words).to_owned(), None),
            TurnEnd::Stopped => ("the turn was stopped".to_owned(), None),
            TurnEnd::Refused => ("a person said no".to_owned(), None),
            TurnEnd::OutOfSteps => ("the turn has no steps left".to_owned(), None),
            TurnEnd::Failed { why } => (first_line(why).to_owned(), Some(false)),
        },
        ChatEvent::Kept { .. } => (String::new(), None),
        ChatEvent::Returned { to, .. } => (
            format!("the files are as they were at point {}", to + 1),
            None,
        ),
        ChatEvent::Committing { unverified: false } => ("to be delivered".to_owned(), None),
        ChatEvent::Committing { unverified: true } => {
            ("to be delivered, with proof or without".to_owned(), None)
        }
        ChatEvent::Repairing => ("the search without a model is asked".to_owned(), None),
        ChatEvent::Noted { text, .. } => (first_line(text).to_owned(), None),
    }
}
