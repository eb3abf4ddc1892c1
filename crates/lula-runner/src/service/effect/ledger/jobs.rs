//! The numbers of commands in the background: each was started once, and a restart forgets none.

use lula_protocol::{EffectId, WorkspaceId};
use rusqlite::params;

use super::{EffectLedger, EffectLedgerError};

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS jobs (
    effect TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    number INTEGER NOT NULL,
    UNIQUE (workspace, number)
) STRICT;
";

impl EffectLedger {
    /// The number of the job that an effect starts in a workspace, from 1.
    pub(in crate::service) fn job(
        &mut self,
        effect: &EffectId,
        workspace: &WorkspaceId,
    ) -> Result<u32, EffectLedgerError> {
        let transaction = self.transaction()?;
        transaction.execute(
            "INSERT OR IGNORE INTO jobs (effect, workspace, number) SELECT ?1, ?2, \
             1 + coalesce(max(number), 0) FROM jobs WHERE workspace = ?2",
            params![effect.as_str(), workspace.as_str()],
        )?;
        let number = transaction.query_row(
            "SELECT number FROM jobs WHERE effect = ?1",
            params![effect.as_str()],
            |row| row.get(0),
        )?;
        transaction.commit()?;
        Ok(number)
    }

    /// How many jobs were ever started in a workspace.
    pub(in crate::service) fn jobs(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<u32, EffectLedgerError> {
        Ok(self.connection.query_row(
            "SELECT coalesce(max(number), 0) FROM jobs WHERE workspace = ?1",
            params![workspace.as_str()],
            |row| row.get(0),
        )?)
    }
}
