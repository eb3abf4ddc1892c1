//! What becomes of what people send a run, and of waits whose time has come. Pure.

use lula_protocol::{EventBody, InterruptAnswer, RunInterrupt, RunSignal};

use crate::approval::{decide, objection};
use crate::progress::RunProgress;

fn ignored(reason: impl Into<String>) -> EventBody {
    EventBody::SignalIgnored {
        reason: reason.into(),
    }
}

/// The event a signal becomes. Every signal becomes one: what does not fit is said so.
pub fn respond(progress: &RunProgress, signal: &RunSignal, now_ms: u64) -> EventBody {
    match signal {
        RunSignal::Vote {
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
        RunSignal::Answer {
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
                    answer: InterruptAnswer::Chose {
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
        RunSignal::RaiseLimit { dimension, to, by } => match progress.ledger.limit(*dimension) {
            Some(limit) if *to > limit => EventBody::LimitRaised {
                dimension: *dimension,
                to: *to,
                by: by.clone(),
            },
            Some(limit) => ignored(format!("{by} set {dimension} to {to}, below {limit}")),
            None => ignored(format!("{by} raised {dimension}, which has no limit")),
        },
        RunSignal::Steer { by, text } => EventBody::Steered {
            by: by.clone(),
            text: text.clone(),
        },
        RunSignal::Cancel { by, reason } => EventBody::CancelRequested {
            by: by.clone(),
            reason: reason.clone(),
        },
    }
}

/// The end of the wait, if it has come.
pub fn wait_over(progress: &RunProgress, now_ms: u64) -> Option<EventBody> {
    let pending = progress.pending.as_ref()?;
    let answer = match &pending.interrupt {
        RunInterrupt::Approval { approval, rule, .. } => {
            let asked = progress.approvals.get(approval)?;
            decide(rule, &asked.votes, now_ms)?
        }
        RunInterrupt::Timer { at_ms } if now_ms >= *at_ms => InterruptAnswer::Fired,
        RunInterrupt::Budget {
            dimension, asked, ..
        } if progress.ledger.free(*dimension) >= *asked => InterruptAnswer::Raised,
        _ => return None,
    };
    Some(EventBody::Resolved {
        interrupt: pending.seq,
        answer,
    })
}
