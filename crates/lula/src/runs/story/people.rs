//! What people were asked and said.

use lula_protocol::{Answer, Dimension, EventBody, Interrupt};

use super::{Kind, Words, words};
use crate::runs::report::{usd, waiting_for};

/// What people were asked and said.
pub(super) fn said_by_people(body: &EventBody) -> Words {
    match body {
        EventBody::Suspended { interrupt, .. } => {
            let kind = match interrupt {
                Interrupt::Timer { .. } => Kind::Aside,
                _ => Kind::Person,
            };
            words(kind, "waits", waiting_for(interrupt))
        }
        EventBody::Resolved { answer, .. } => {
            let (text, good) = match answer {
                Answer::Approved => ("approved".to_owned(), Some(true)),
                Answer::Rejected { reason } => (format!("rejected: {reason}"), Some(false)),
                Answer::Chose { choice, by, note } => (format!("{by} chose {choice} {note}"), None),
                Answer::Fired => ("the time has come".to_owned(), None),
                Answer::Raised => ("there is more to spend".to_owned(), None),
            };
            let mut said = words(Kind::Person, "answer", text);
            said.good = good;
            said
        }
        EventBody::Voted {
            by, role, decision, ..
        } => {
            let decision = format!("{decision:?}").to_lowercase();
            words(Kind::Person, "vote", format!("{by} as {role}: {decision}"))
        }
        EventBody::LimitRaised { dimension, to, by } => {
            let to = match dimension {
                Dimension::MicroUsd => usd(*to),
                _ => to.to_string(),
            };
            words(
                Kind::Person,
                "budget",
                format!("{by} raised {dimension} to {to}"),
            )
        }
        EventBody::SignalIgnored { reason } => words(Kind::Trouble, "ignored", reason),
        EventBody::Steered { by, text } => words(Kind::Person, "note", format!("{by}: {text}")),
        EventBody::CancelRequested { by, reason } => {
            words(Kind::Person, "cancel", format!("{by}: {reason}"))
        }
        EventBody::EffectRefused {
            name,
            dimension,
            asked,
            free,
            ..
        } => words(
            Kind::Trouble,
            name,
            format!("may need {asked} of {dimension}, {free} are left"),
        ),
        other => words(Kind::Aside, other.kind(), ""),
    }
}
