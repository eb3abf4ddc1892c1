//! Where runs are kept.
//!
//! One [`RunStore`] trait and three backends: SQLite (embedded, the default), Postgres (several
//! engines on one database) and Redis. A store keeps, per run, an append-only log in which each
//! entry carries the digest of the one before, and beside it what has to change in the same
//! transaction: blobs, effect states, approvals, the budget ledger, the lease and the queue.
//!
//! It must never let two owners append to one run (every append names the head and the epoch it
//! believes in), never acknowledge before the data is as durable as was configured, and never
//! interpret what a graph says. It depends on `lula-protocol` alone.
//!
//! Stored event bodies are the canonical bytes their digests were taken over (compressed), so a
//! log written by an older program verifies without knowing that program's types.
#![forbid(unsafe_code)]

mod append;
pub mod body;
mod columns;
mod compact;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod guard;
pub mod postgres;
mod record;
pub mod redis;
mod run;
pub mod sqlite;
mod store;
mod transfer;
mod transport;
pub mod upcast;

pub use append::{
    ApprovalChange, ApprovalRow, ApprovalState, Blob, EffectRow, EffectState, LeaseAfterAppend,
    LedgerRow, LogAppend, StateSnapshot,
};
pub use compact::{CompactionReport, ValueRetention, compact_store};
pub use error::{StoreError, StoreResult};
pub use guard::SecretGuard;
pub use postgres::PostgresStore;
pub use record::{LogHead, LogRecord};
pub use redis::RedisStore;
pub use run::{Durability, LeaseClaim, NewRun, RunFilter, RunLease, RunRow, RunStatus};
pub use sqlite::SqliteStore;
pub use store::{RunStore, StoreHint};
pub use transfer::{StoreCheckReport, check_run, check_store, copy_store};
pub use transport::ServerTransport;
