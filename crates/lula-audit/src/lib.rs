//! The record of what was done, that every reader can check.
//!
//! One line of canonical JSON for each act, each with the hash of the line before it, sealed with
//! an Ed25519 signature now and then. Writers share the log under a lock; what a crash tore off is
//! kept aside and recorded; a log that was edited, cut, reordered or extended by another program is
//! found out by [`verify()`], with the place.
//!
//! It must never drop or change an entry, and never write a secret: every free text goes through
//! the redaction that [`AuditLog::open`] is given. A holder of the key file can write another history;
//! keep the public key and a head elsewhere where that matters. It depends on `lula-protocol` alone.
#![forbid(unsafe_code)]

mod bundle;
mod entry;
mod error;
mod key;
mod line;
mod log;
mod show;
#[cfg(test)]
mod tests;
pub mod verify;

pub use bundle::{export, verify_bundle};
pub use entry::{AuditDecision, AuditEnding, AuditEntry, AuditVerdict};
pub use error::AuditError;
pub use key::{AuditPublicKey, AuditSealKey};
pub use line::{AuditHead, AuditLineBody};
pub use log::{AuditLog, AuditOptions};
pub use show::{AuditFilter, NumberedAuditEntry, show};
pub use verify::{AuditCheckReport, AuditFault, AuditProblem, verify};
