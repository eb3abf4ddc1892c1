//! What becomes of what people send a run, and of waits whose time has come. Pure.

use lula_protocol::{Answer, EventBody, Interrupt, Signal};

use crate::approval::{decide, objection};
use crate::progress::Progress;

fn ignored(reason: impl Into<String>) -> EventBody {
    EventBody::SignalIgnored {
        reason: reason.into(),
    }
}

/// The event a signal becomes. Every signal becomes one: what does not fit is said so.
pub fn respond(progress: &Progress, signal: &Signal, now_ms: u64) -> EventBody {
    match signal {
        Signal::Vote {
            approval,
            digest,
            by,
            role,
            decision,
        } => {
            let Some(asked) = progress.approvals.get(approval) else {
                return ignored(format!("{by} voted on {approval}, which was not asked"));
            };
            if asked.answer.is_some() {
                return ignored(format!("{by} voted on {approval}, which is decided"));
            }
            if asked.digest != *digest {
                return ignored(format!(
                    "{by} voted on {digest}, asked was {}",
                    asked.digest
                ));
            }
            if let Some(why) = objection(&asked.rule, by, role, now_ms) {
                return ignored(format!("the vote of {by} does not count: {why}"));
            }
            EventBody::Voted {
                approval: approval.clone(),
                by: by.clone(),
                role: role.clone(),
                decision: *decision,
            }
        }
        Signal::Answer {
            interrupt,
            choice,
            by,
            note,
        } => match &progress.pending {
            Some(pending)
                if pending.seq == *interrupt && pending.interrupt.options().contains(choice) =>
            {
                EventBody::Resolved {
                    interrupt: *interrupt,
                    answer: Answer::Chose {
                        choice: choice.clone(),
                        by: by.clone(),
                        note: note.clone(),
                    },
                }
            }
            _ => ignored(format!(
                "{by} answered {choice:?} to {interrupt}, which was not asked"
            )),
        },
        Signal::RaiseLimit { dimension, to, by } => match progress.ledger.limit(*dimension) {
            Some(limit) if *to > limit => EventBody::LimitRaised {
                dimension: *dimension,
                to: *to,
                by: by.clone(),
            },
            Some(limit) => ignored(format!("{by} set {dimension} to {to}, below {limit}")),
            None => ignored(format!("{by} raised {dimension}, which has no limit")),
        },
        Signal::Steer { by, text } => EventBody::Steered {
            by: by.clone(),
            text: text.clone(),
        },
        Signal::Cancel { by, reason } => EventBody::CancelRequested {
            by: by.clone(),
            reason: reason.clone(),
        },
    }
}

/// The end of the wait, if it has come.
pub fn wait_over(progress: &Progress, now_ms: u64) -> Option<EventBody> {
    let pending = progress.pending.as_ref()?;
    let answer = match &pending.interrupt {
        Interrupt::Approval { approval, rule, .. } => {
            let asked = progress.approvals.get(approval)?;
            decide(rule, &asked.votes, now_ms)?
        }
        Interrupt::Timer { at_ms } if now_ms >= *at_ms => Answer::Fired,
        Interrupt::Budget {
            dimension, asked, ..
        } if progress.ledger.free(*dimension) >= *asked => Answer::Raised,
        _ => return None,
    };
    Some(EventBody::Resolved {
        interrupt: pending.seq,
        answer,
    })
}
