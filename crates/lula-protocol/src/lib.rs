//! The words every Lula process speaks.
//!
//! This crate holds the wire types that cross a process boundary or are written to the log: ids,
//! digests, tool calls and their results, posture receipts, denials, approvals and run events,
//! together with the one canonical encoding their digests are taken over. [`units`] and [`calendar`] say
//! durations, sizes and times to people in one way everywhere.
//!
//! It must never do I/O, read a clock or draw a random number, and it depends on no other Lula
//! crate: it also compiles to `wasm32`, so that a browser can check the same digests.
//!
//! **Trust rule.** A type that reaches a gate (a call, an approval, a policy) rejects unknown
//! fields: a field that one side ignores is a field that can weaken what the other side decided.
#![forbid(unsafe_code)]

pub mod approval;
pub mod budget;
pub mod calendar;
pub mod call;
pub mod canonical;
pub mod code;
pub mod denial;
pub mod digest;
pub mod effect;
pub mod event;
pub mod exit;
pub mod failure;
pub mod id;
pub mod interrupt;
pub mod outcome;
pub mod output;
pub mod payload;
pub mod receipt;
#[cfg(feature = "schema")]
mod schema;
pub mod units;
pub mod version;

pub use approval::{ApprovalChallenge, ApprovalDecision, ApprovalToken};
pub use budget::{BudgetAmounts, BudgetDimension};
pub use call::{ToolAction, ToolCall};
pub use code::Code;
pub use denial::SandboxDenial;
pub use digest::Digest;
pub use effect::EffectClass;
pub use event::{EventBody, LogEvent};
pub use exit::RunExit;
pub use failure::{FailureDocument, FailureReport};
pub use id::{ApprovalId, EffectId, Principal, RunId, WorkspaceId};
pub use interrupt::{InterruptAnswer, RunInterrupt, RunSignal};
pub use outcome::{ToolOutcome, ToolResult};
pub use output::{TextOrigin, ToolOutput, ToolOutputDetails};
pub use payload::EventPayload;
pub use receipt::{IsolationTier, ProtectionLayer, SandboxReceipt};
pub use version::ProtocolVersion;
