//! What people were asked and said.

use lula_protocol::{BudgetDimension, EventBody, InterruptAnswer, RunInterrupt};

use super::{StoryEventKind, Words, words};
use crate::report::waiting_for;
use crate::text::usd;

/// What people were asked and said.
pub(super) fn said_by_people(body: &EventBody) -> Words {
    match body {
        EventBody::Suspended { interrupt, .. } => {
            let kind = match interrupt {
                RunInterrupt::Timer { .. } => StoryEventKind::Aside,
                _ => StoryEventKind::Person,
            };
            words(kind, "waits", waiting_for(interrupt))
        }
        EventBody::Resolved { answer, .. } => {
            let (text, good) = match answer {
                InterruptAnswer::Approved => ("approved".to_owned(), Some(true)),
                InterruptAnswer::Rejected { reason } => {
                    (format!("rejected: {reason}"), Some(false))
                }
                InterruptAnswer::Chose { choice, by, note } => {
                    (format!("{by} chose {choice} {note}"), None)
                }
                InterruptAnswer::Fired => ("the time has come".to_owned(), None),
                InterruptAnswer::Raised => ("there is more to spend".to_owned(), None),
            };
            let mut said = words(StoryEventKind::Person, "answer", text);
            said.good = good;
            said
        }
        EventBody::Voted {
            by, role, decision, ..
        } => {
            let decision = format!("{decision:?}").to_lowercase();
            words(
                StoryEventKind::Person,
                "vote",
                format!("{by} as {role}: {decision}"),
            )
        }
        EventBody::LimitRaised { dimension, to, by } => {
            let to = match dimension {
                BudgetDimension::MicroUsd => usd(*to),
                _ => to.to_string(),
            };
            words(
                StoryEventKind::Person,
                "budget",
                format!("{by} raised {dimension} to {to}"),
            )
        }
        EventBody::SignalIgnored { reason } => words(StoryEventKind::Trouble, "ignored", reason),
        EventBody::Steered { by, text } => {
            words(StoryEventKind::Person, "note", format!("{by}: {text}"))
        }
        EventBody::CancelRequested { by, reason } => {
            words(StoryEventKind::Person, "cancel", format!("{by}: {reason}"))
        }
        EventBody::EffectRefused {
            name,
            dimension,
            asked,
            free,
            ..
        } => words(
            StoryEventKind::Trouble,
            name,
            format!("may need {asked} of {dimension}, {free} are left"),
        ),
        other => words(StoryEventKind::Aside, other.kind(), ""),
    }
}
