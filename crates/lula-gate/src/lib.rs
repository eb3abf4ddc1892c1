//! What may happen, and who has to agree.
//!
//! Before the runner acts, this crate says whether a rule forbids the act or wants a person asked
//! ([`rules`]), binds the person's answer to the exact bytes that were shown ([`approvals`]), labels
//! text that deserves a second look ([`findings`]), checks what must hold before and after an act
//! ([`invariants`]) and keeps secrets out of what is written down ([`redact`]).
//!
//! It must never act itself: it starts nothing, opens no workspace and no network. The only files it
//! touches are its keys, the only database the caller's, inside the caller's transaction. Rules
//! decide when to ask; isolation is the boundary. It depends on `lula-protocol` alone.
//!
//! Rules: the strictest match wins, and each rule carries examples that run when its file loads.
//! What `shell` cannot tell is a doubt, and a doubt asks. `approvals` is a pure state machine with
//! its tables and keys as edges: every database function works in the caller's transaction, so that
//! spending an approval and recording the effect are one commit. An approval token carries the
//! decision, so that a rejection is as authentic as an approval.
#![forbid(unsafe_code)]

pub mod approvals;
pub mod findings;
pub mod globs;
pub mod invariants;
pub mod redact;
pub mod rules;
pub mod shell;
