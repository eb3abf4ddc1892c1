//! Where people answer: the same questions, whether the database is here or behind a runner.

use std::path::Path;

use lula_protocol::{ApprovalId, ApprovalToken};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::keys::ApprovalKeyring;
use super::question::StoredApproval;
use super::state::ApprovalStanding;
use super::table::{self, ApprovalsError};

/// Questions, and a way to hand in answers.
pub trait ApprovalDesk {
    type Error;

    /// Every question that people can still answer, oldest first.
    fn pending(&mut self, now_ms: u64) -> Result<Vec<StoredApproval>, Self::Error>;

    /// One question with its answers.
    fn load(&mut self, id: &ApprovalId) -> Result<StoredApproval, Self::Error>;

    /// Hands in a signed answer.
    fn vote(&mut self, token: &ApprovalToken, now_ms: u64)
    -> Result<ApprovalStanding, Self::Error>;
}

/// The desk of this machine: its own database and its own keys.
#[derive(Debug)]
pub struct LocalApprovalDesk {
    connection: Connection,
    keys: ApprovalKeyring,
}

impl LocalApprovalDesk {
    /// Opens the database at a path; tables that are missing are made.
    pub fn open(database: &Path, keys: ApprovalKeyring) -> Result<Self, ApprovalsError> {
        let connection = Connection::open(database)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        table::migrate(&connection)?;
        Ok(Self { connection, keys })
    }

    /// The keys answers are signed with here.
    pub const fn keys(&self) -> &ApprovalKeyring {
        &self.keys
    }

    /// Does something in one transaction, which counts only if it works.
    pub fn transact<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>, &ApprovalKeyring) -> Result<T, ApprovalsError>,
    ) -> Result<T, ApprovalsError> {
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&tx, &self.keys)?;
        tx.commit()?;
        Ok(done)
    }
}

impl ApprovalDesk for LocalApprovalDesk {
    type Error = ApprovalsError;

    fn pending(&mut self, now_ms: u64) -> Result<Vec<StoredApproval>, ApprovalsError> {
        self.transact(|tx, _| {
            table::expire(tx, now_ms)?;
            table::pending(tx, now_ms)
        })
    }

    fn load(&mut self, id: &ApprovalId) -> Result<StoredApproval, ApprovalsError> {
        self.transact(|tx, _| table::load(tx, id))
    }

    fn vote(
        &mut self,
        token: &ApprovalToken,
        now_ms: u64,
    ) -> Result<ApprovalStanding, ApprovalsError> {
        self.transact(|tx, keys| table::vote(tx, keys, token, now_ms))
    }
}
