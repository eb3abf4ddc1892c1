//! What an event says happened.

use serde::{Deserialize, Serialize};

use crate::approval::ApprovalDecision;
use crate::budget::{BudgetAmounts, BudgetDimension};
use crate::digest::Digest;
use crate::effect::EffectClass;
use crate::exit::RunExit;
use crate::id::{ApprovalId, EffectId, Principal, RunId};
use crate::interrupt::{InterruptAnswer, RunInterrupt};
use crate::payload::EventPayload;

/// The run and position another run was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentRun {
    pub run: RunId,
    /// Last entry that was taken over.
    pub seq: u64,
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectResult {
    /// It was done and returned this.
    Done(EventPayload),
    /// It was tried and did not work.
    Failed(String),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How the result of an effect became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultSource {
    /// It was executed and answered.
    Executed,
    /// After a crash, evidence was found that it had been done.
    Found,
    /// A person said so.
    Operator,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnding {
    /// The graph came to its end.
    Completed,
    /// The engine stopped it: stuck, out of visits, given up.
    Halted,
    /// It was stopped on request.
    Cancelled,
}

/// What one entry of a run's log says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventBody {
    /// A task was taken.
    RunStarted {
        /// Name of the graph.
        graph: String,
        /// Version of the graph, which the run keeps.
        graph_version: u32,
        /// Version of the program that started it.
        engine: String,
        /// What random numbers are derived from, in hexadecimal digits.
        seed: String,
        /// What it may spend.
        limits: BudgetAmounts,
        /// After how many node visits it is stopped.
        max_visits: u64,
        input: EventPayload,
        /// Where it was forked from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<ParentRun>,
    },
    /// Another worker went on with the run.
    RunTaken {
        /// Name of the worker that has the run now.
        worker: String,
    },
    /// A node of the graph began. Not written for a visit that journals nothing before its end.
    NodeEntered {
        /// Name of the node.
        node: String,
        /// How often it was entered before.
        visit: u32,
    },
    /// A node looked at the clock.
    ClockRead {
        /// Position in the visit's journal.
        ordinal: u32,
        /// Unix time in milliseconds.
        now_ms: u64,
    },
    /// A node asked what the log held so far.
    HeadRead {
        /// Position in the visit's journal.
        ordinal: u32,
        /// Digest of the entry before this one.
        head: Digest,
    },
    /// A node heard what people had said.
    Heard {
        /// Position in the visit's journal.
        ordinal: u32,
        /// How many of the notes that the run had not heard, the oldest first.
        count: u32,
    },
    /// A node looked at the world.
    ReadDone {
        /// Position in the visit's journal.
        ordinal: u32,
        name: String,
        /// Digest of the request.
        request: Digest,
        /// What came of it.
        result: EffectResult,
        /// How long it took, in milliseconds: a look is committed with what follows it, and so
        /// says nothing of its time by when it was.
        #[serde(default, skip_serializing_if = "is_zero")]
        took_ms: u64,
    },
    /// An effect is about to be tried.
    EffectIntended {
        /// Position in the visit's journal.
        ordinal: u32,
        effect: EffectId,
        /// What may be done again.
        class: EffectClass,
        name: String,
        /// Digest of the request.
        request: Digest,
        /// The workspace before, for a [`EffectClass::Tree`] effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pre_tree: Option<Digest>,
        /// The most it may cost.
        #[serde(default, skip_serializing_if = "BudgetAmounts::is_empty")]
        reserve: BudgetAmounts,
        /// The approval it uses up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalId>,
    },
    /// An effect is about to be tried again after a crash.
    EffectRetried {
        effect: EffectId,
        /// How often it was tried before.
        attempt: u32,
        /// What the lost try may have cost stays charged; this is reserved anew.
        #[serde(default, skip_serializing_if = "BudgetAmounts::is_empty")]
        reserve: BudgetAmounts,
    },
    EffectSettled {
        effect: EffectId,
        /// How that is known.
        via: ResultSource,
        #[serde(default, skip_serializing_if = "BudgetAmounts::is_empty")]
        spent: BudgetAmounts,
        /// What came of it.
        result: EffectResult,
    },
    /// An effect was not tried because a budget does not allow it.
    EffectRefused {
        /// Position in the visit's journal.
        ordinal: u32,
        /// What would have been done.
        name: String,
        /// Digest of the request.
        request: Digest,
        /// The limit in the way.
        dimension: BudgetDimension,
        /// How much it might have needed.
        asked: u64,
        /// How much was left.
        free: u64,
    },
    Suspended {
        /// Position in the visit's journal.
        ordinal: u32,
        /// What the run waits for.
        interrupt: RunInterrupt,
    },
    Resolved {
        /// Sequence number of the event that asked.
        interrupt: u64,
        answer: InterruptAnswer,
    },
    Voted {
        approval: ApprovalId,
        /// The approver, from a verified identity.
        by: Principal,
        role: String,
        decision: ApprovalDecision,
    },
    /// A limit was raised.
    LimitRaised {
        dimension: BudgetDimension,
        /// The limit from now on, not the difference.
        to: u64,
        by: Principal,
    },
    /// Something was sent to the run that did not fit.
    SignalIgnored { reason: String },
    /// A person said something to the agent that works on it.
    Steered { by: Principal, text: String },
    /// The run was asked to stop.
    CancelRequested { by: Principal, reason: String },
    NodeLeft {
        /// Name of the node.
        node: String,
        /// How often it was entered before.
        visit: u32,
        /// Name of the way out that the node took.
        outcome: String,
        /// What the graph has to say.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        events: Vec<EventPayload>,
    },
    /// The run does the same thing again and again.
    StuckDetected {
        /// The node that repeats itself.
        node: String,
        /// How often that was seen in this run.
        strikes: u32,
    },
    /// A fork changed something before going on.
    Overridden {
        /// What the graph has to say.
        events: Vec<EventPayload>,
    },
    /// The run moved to another version of its graph.
    Migrated { from: u32, to: u32 },
    /// The holder of a key vouches for every entry before this one.
    Sealed {
        /// Ed25519 public key, in hexadecimal digits.
        key: String,
        /// Ed25519 signature over the digest of the entry before, in hexadecimal digits.
        signature: String,
    },
    RunEnded {
        ending: RunEnding,
        exit: RunExit,
        /// The result in one sentence, for people.
        summary: String,
    },
}

impl EventBody {
    /// The name on the wire.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::RunTaken { .. } => "run_taken",
            Self::NodeEntered { .. } => "node_entered",
            Self::ClockRead { .. } => "clock_read",
            Self::HeadRead { .. } => "head_read",
            Self::Heard { .. } => "heard",
            Self::ReadDone { .. } => "read_done",
            Self::EffectIntended { .. } => "effect_intended",
            Self::EffectRetried { .. } => "effect_retried",
            Self::EffectSettled { .. } => "effect_settled",
            Self::EffectRefused { .. } => "effect_refused",
            Self::Suspended { .. } => "suspended",
            Self::Resolved { .. } => "resolved",
            Self::Voted { .. } => "voted",
            Self::LimitRaised { .. } => "limit_raised",
            Self::SignalIgnored { .. } => "signal_ignored",
            Self::Steered { .. } => "steered",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::NodeLeft { .. } => "node_left",
            Self::StuckDetected { .. } => "stuck_detected",
            Self::Overridden { .. } => "overridden",
            Self::Migrated { .. } => "migrated",
            Self::Sealed { .. } => "sealed",
            Self::RunEnded { .. } => "run_ended",
        }
    }

    /// Every payload the event carries.
    pub fn payloads(&self) -> Vec<&EventPayload> {
        match self {
            Self::RunStarted { input, .. } => vec![input],
            Self::ReadDone { result, .. } | Self::EffectSettled { result, .. } => match result {
                EffectResult::Done(payload) => vec![payload],
                EffectResult::Failed(_) => Vec::new(),
            },
            Self::NodeLeft { events, .. } | Self::Overridden { events } => events.iter().collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kind_is_the_one_on_the_wire() {
        let body = EventBody::RunTaken {
            worker: "w".to_owned(),
        };
        assert_eq!(serde_json::to_value(&body).unwrap()["kind"], body.kind());
    }
}
