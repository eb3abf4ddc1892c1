//! What was about to be done, and what came of it.
//!
//! Every effect is written down before it is tried (its intent) and after (its result), each on disk
//! before anything else happens. An id that comes again gets its stored result; one that comes again
//! with other bytes, or from a worker that was replaced, gets nothing. Reads are not written down:
//! doing them again changes nothing.
//!
//! What writes an effect's row can be called from the path of effects alone; a recovery reads here,
//! and has that path write.

mod jobs;

use std::path::{Path, PathBuf};
use std::time::Duration;

use lula_protocol::{Digest, EffectClass, EffectId, RunId, WorkspaceId};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use rustix::fs::StatVfsMountFlags;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS effects (
    effect TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    workspace TEXT NOT NULL,
    class TEXT NOT NULL,
    request BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intent', 'done', 'unknown', 'again')),
    before TEXT,
    begun_ms INTEGER NOT NULL,
    -- What people agreed to, where they did: it holds if the effect has to be done again.
    subject BLOB,
    result BLOB,
    -- The audit's entry, until the audit has it.
    audit TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS effects_audit ON effects (effect) WHERE audit IS NOT NULL;
CREATE INDEX IF NOT EXISTS effects_open ON effects (state) WHERE state <> 'done';
-- Where the agent of a workspace said it would write.
CREATE TABLE IF NOT EXISTS scopes (workspace TEXT PRIMARY KEY, patterns TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS epochs (run TEXT PRIMARY KEY, epoch INTEGER NOT NULL) STRICT;
";

/// The least that its tables, their log and the memory it shares with other runners take.
const LEAST_ROOM: u64 = 256 * 1024;

/// Why the ledger could not be used. Nothing is done without it.
#[derive(Debug, thiserror::Error)]
pub enum EffectLedgerError {
    /// The database said no.
    #[error("the ledger of effects cannot be read or written: {0}")]
    Database(#[from] rusqlite::Error),
    /// There is no room for it.
    #[error("the ledger of effects cannot be written: the disk of {} is full", .0.display())]
    Full(PathBuf),
    /// A row does not hold what was written.
    #[error("the ledger of effects is damaged at {0}")]
    Damaged(String),
}

impl EffectLedgerError {
    /// Whether it is the disk that said no: full, read-only, or broken.
    pub(crate) fn is_the_disk(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, ReadOnly, SystemIoFailure};
        let error = match self {
            Self::Database(error) => error,
            Self::Full(_) => return true,
            Self::Damaged(_) => return false,
        };
        let code = error.sqlite_error_code();
        matches!(
            code,
            Some(DiskFull | ReadOnly | SystemIoFailure | CannotOpen)
        )
    }

    /// Where the database only says that something went wrong with the disk, and hardly any room is
    /// left on it, that is what went wrong; on a read-only disk it is not.
    fn at(self, path: &Path) -> Self {
        let full = rustix::fs::statvfs(path.parent().unwrap_or(path)).is_ok_and(|disk| {
            let room = disk.f_bavail.saturating_mul(disk.f_frsize);
            room < LEAST_ROOM && !disk.f_flag.contains(StatVfsMountFlags::RDONLY)
        });
        if full && self.is_the_disk() {
            Self::Full(path.to_owned())
        } else {
            self
        }
    }
}

/// An effect as the ledger names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::service) struct EffectLedgerEntry {
    pub(in crate::service) effect: EffectId,
    pub(in crate::service) run: RunId,
    pub(in crate::service) epoch: u64,
    pub(in crate::service) workspace: WorkspaceId,
    pub(in crate::service) class: EffectClass,
    /// The runner that would do it.
    pub(in crate::service) runner: String,
    /// Digest of the whole request.
    pub(in crate::service) request: Digest,
}

/// What the ledger knows about an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KnownEffect {
    /// Nothing: it may be tried.
    Fresh,
    /// It was done, and this came of it.
    Done(Vec<u8>),
    /// The id was used for another request.
    Reused,
    /// A newer worker has the run.
    Fenced { newest: u64 },
    /// It was begun and never ended. The workspace was this snapshot before.
    Begun {
        before: Option<String>,
        /// The runner that began it.
        runner: String,
    },
    /// People agreed to it, and it was cut off and taken back. Doing just that again needs no
    /// further word.
    Again {
        /// Digest of what they agreed to.
        subject: Digest,
    },
    /// It is not known whether it happened.
    Unknown,
}

/// An effect that was begun and never ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::service) struct UnfinishedEffect {
    pub(in crate::service) effect: EffectId,
    pub(in crate::service) runner: String,
    pub(in crate::service) workspace: WorkspaceId,
    pub(in crate::service) before: Option<String>,
    pub(in crate::service) request: Digest,
}

/// The ledger of one state directory.
#[derive(Debug)]
pub(in crate::service) struct EffectLedger {
    connection: Connection,
}

/// An entry for the audit that may not be there yet, and the runner that was to put it there.
pub(in crate::service) type PendingAuditEntry = (EffectId, String, String);

impl EffectLedger {
    pub(in crate::service) fn open(path: &Path) -> Result<Self, EffectLedgerError> {
        Self::prepare(path).map_err(|error| error.at(path))
    }

    fn prepare(path: &Path) -> Result<Self, EffectLedgerError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // An intent that a power cut forgets is no intent.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(jobs::SCHEMA)?;
        add_runner(&connection)?;
        // In the same file: an approval is spent in the transaction that begins its act.
        lula_gate::approvals::migrate(&connection)
            .map_err(|error| EffectLedgerError::Damaged(error.to_string()))?;
        Ok(Self { connection })
    }

    /// Keeps what the agent of a workspace said, the last time it did.
    pub(in crate::service) fn declare(
        &self,
        id: &WorkspaceId,
        patterns: &[String],
    ) -> Result<(), EffectLedgerError> {
        if patterns.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string(patterns)
            .map_err(|error| EffectLedgerError::Damaged(error.to_string()))?;
        self.connection.execute(
            "INSERT INTO scopes (workspace, patterns) VALUES (?1, ?2) \
             ON CONFLICT (workspace) DO UPDATE SET patterns = excluded.patterns",
            params![id.as_str(), text],
        )?;
        Ok(())
    }

    /// What the agent of a workspace said; nothing where it said nothing.
    pub(in crate::service) fn declared(
        &self,
        id: &WorkspaceId,
    ) -> Result<Vec<String>, EffectLedgerError> {
        let text: Option<String> = self
            .connection
            .query_row(
                "SELECT patterns FROM scopes WHERE workspace = ?1",
                params![id.as_str()],
                |row| row.get(0),
            )
            .optional()?;
        let read = |text: String| {
            serde_json::from_str(&text)
                .map_err(|_| EffectLedgerError::Damaged(format!("the scope of {id}")))
        };
        text.map_or(Ok(Vec::new()), read)
    }

    /// One transaction, during which no other connection writes.
    pub(in crate::service) fn transaction(&mut self) -> Result<Transaction<'_>, EffectLedgerError> {
        let behavior = TransactionBehavior::Immediate;
        Ok(self.connection.transaction_with_behavior(behavior)?)
    }

    /// What is known about an effect, and who may act for its run.
    pub(super) fn look(
        &mut self,
        entry: &EffectLedgerEntry,
    ) -> Result<KnownEffect, EffectLedgerError> {
        let tx = self.transaction()?;
        let known = look(&tx, entry)?;
        tx.commit()?;
        Ok(known)
    }

    /// Writes down what came of an effect.
    pub(super) fn finish(
        &mut self,
        effect: &EffectId,
        result: &[u8],
        audit: &str,
    ) -> Result<(), EffectLedgerError> {
        let changed = self.connection.execute(
            "UPDATE effects SET state = 'done', before = NULL, result = ?, audit = ? \
             WHERE effect = ? AND state = 'intent'",
            params![result, audit, effect.as_str()],
        )?;
        if changed == 1 {
            Ok(())
        } else {
            Err(EffectLedgerError::Damaged(effect.to_string()))
        }
    }

    /// Forgets an intent whose traces were taken back: it may be tried again.
    pub(super) fn forget(&mut self, effect: &EffectId) -> Result<(), EffectLedgerError> {
        self.connection.execute(
            "UPDATE effects SET state = 'again', before = NULL \
             WHERE effect = ? AND state = 'intent' AND subject IS NOT NULL",
            [effect.as_str()],
        )?;
        self.connection.execute(
            "DELETE FROM effects WHERE effect = ? AND state = 'intent'",
            [effect.as_str()],
        )?;
        Ok(())
    }

    /// Entries that the audit may not have, the oldest first.
    pub(in crate::service) fn unaudited(
        &self,
    ) -> Result<Vec<PendingAuditEntry>, EffectLedgerError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT effect, audit, runner FROM effects WHERE audit IS NOT NULL ORDER BY rowid",
        )?;
        let rows = statement.query_map([], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, String>(2)?,
            ))
        })?;
        rows.map(|row| {
            let (effect, entry, runner) = row?;
            let damaged = |_| EffectLedgerError::Damaged(effect.clone());
            Ok((effect.parse().map_err(damaged)?, entry, runner))
        })
        .collect()
    }

    /// The entry of one effect that the audit may not have, and the runner that was to put it there.
    pub(super) fn unaudited_entry(
        &self,
        effect: &EffectId,
    ) -> Result<Option<(String, String)>, EffectLedgerError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT audit, runner FROM effects WHERE effect = ? AND audit IS NOT NULL",
        )?;
        let row = statement.query_row([effect.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(row.optional()?)
    }

    /// Has a runner give the audit what another one left; whether it was there to be had.
    pub(super) fn claim_entry(
        &mut self,
        effect: &EffectId,
        from: &str,
        to: &str,
    ) -> Result<bool, EffectLedgerError> {
        let claimed = self
            .connection
            .prepare_cached(
                "UPDATE effects SET runner = ?3 \
                 WHERE effect = ?1 AND audit IS NOT NULL AND runner = ?2",
            )?
            .execute(params![effect.as_str(), from, to])?;
        Ok(claimed == 1)
    }

    /// The audit has it.
    pub(super) fn audited(&mut self, effect: &EffectId) -> Result<(), EffectLedgerError> {
        self.connection
            .prepare_cached("UPDATE effects SET audit = NULL WHERE effect = ?")?
            .execute([effect.as_str()])?;
        Ok(())
    }

    /// Has a runner answer for an intent that another one left; whether it was there to be had.
    pub(super) fn claim(
        &mut self,
        effect: &EffectId,
        from: &str,
        to: &str,
    ) -> Result<bool, EffectLedgerError> {
        let claimed = self
            .connection
            .prepare_cached(
                "UPDATE effects SET runner = ?3 \
                 WHERE effect = ?1 AND state = 'intent' AND runner = ?2",
            )?
            .execute(params![effect.as_str(), from, to])?;
        Ok(claimed == 1)
    }

    /// Admits that it is not known whether it happened.
    pub(super) fn give_up(&mut self, effect: &EffectId) -> Result<(), EffectLedgerError> {
        self.connection.execute(
            "UPDATE effects SET state = 'unknown' WHERE effect = ? AND state = 'intent'",
            [effect.as_str()],
        )?;
        Ok(())
    }

    /// Every intent without a result, the newest first: traces are taken back in that order.
    pub(in crate::service) fn unfinished(
        &self,
    ) -> Result<Vec<UnfinishedEffect>, EffectLedgerError> {
        let mut statement = self.connection.prepare(
            "SELECT effect, workspace, before, request, runner FROM effects WHERE state = 'intent' \
             ORDER BY begun_ms DESC, rowid DESC",
        )?;
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let effect: String = row.get(0)?;
            let damaged = || EffectLedgerError::Damaged(effect.clone());
            found.push(UnfinishedEffect {
                effect: effect.parse().map_err(|_| damaged())?,
                workspace: row.get::<_, String>(1)?.parse().map_err(|_| damaged())?,
                before: row.get(2)?,
                request: Digest::from_bytes(row.get(3)?),
                runner: row.get(4)?,
            });
        }
        Ok(found)
    }
}

/// What is known about an effect. A newer epoch is remembered at once: from here on older workers
/// are fenced off, whether or not this call is done.
pub(super) fn look(
    tx: &Transaction<'_>,
    entry: &EffectLedgerEntry,
) -> Result<KnownEffect, EffectLedgerError> {
    let damaged = || EffectLedgerError::Damaged(entry.effect.to_string());
    let newest: Option<i64> = tx
        .prepare_cached("SELECT epoch FROM epochs WHERE run = ?")?
        .query_row([entry.run.as_str()], |row| row.get(0))
        .optional()?;
    let newest = newest.map_or(Ok(0), |epoch| u64::try_from(epoch).map_err(|_| damaged()))?;
    if entry.epoch < newest {
        return Ok(KnownEffect::Fenced { newest });
    }
    if entry.epoch > newest {
        tx.prepare_cached(
            "INSERT INTO epochs (run, epoch) VALUES (?1, ?2) \
             ON CONFLICT (run) DO UPDATE SET epoch = ?2",
        )?
        .execute(params![entry.run.as_str(), number(entry.epoch)])?;
    }
    let row = tx
        .prepare_cached(
            "SELECT request, state, before, result, subject, runner FROM effects WHERE effect = ?",
        )?
        .query_row([entry.effect.as_str()], |row| {
            Ok((
                row.get::<_, Vec<u8>>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, Option<String>>(2)?,
                row.get::<_, Option<Vec<u8>>>(3)?,
                row.get::<_, Option<[u8; 32]>>(4)?,
                row.get::<_, String>(5)?,
            ))
        })
        .optional()?;
    let Some((request, state, before, result, subject, runner)) = row else {
        return Ok(KnownEffect::Fresh);
    };
    if request != entry.request.as_bytes() {
        return Ok(KnownEffect::Reused);
    }
    match (state.as_str(), result) {
        ("done", Some(result)) => Ok(KnownEffect::Done(result)),
        ("intent", _) => Ok(KnownEffect::Begun { before, runner }),
        ("unknown", _) => Ok(KnownEffect::Unknown),
        ("again", _) => subject
            .map(|bytes| KnownEffect::Again {
                subject: Digest::from_bytes(bytes),
            })
            .ok_or_else(damaged),
        _ => Err(damaged()),
    }
}

/// Writes down what is about to be done, with the workspace's state before it.
pub(super) fn begin(
    tx: &Transaction<'_>,
    entry: &EffectLedgerEntry,
    before: Option<&str>,
    subject: Option<&Digest>,
    now_ms: u64,
) -> Result<(), EffectLedgerError> {
    tx.prepare_cached(
        "INSERT INTO effects \
         (effect, run, epoch, workspace, class, request, state, before, begun_ms, subject, runner) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'intent', ?7, ?8, ?9, ?10) \
         ON CONFLICT (effect) DO UPDATE SET \
         state = 'intent', epoch = ?3, before = ?7, begun_ms = ?8, subject = ?9, runner = ?10 \
         WHERE state = 'again' AND request = ?6",
    )?
    .execute(params![
        entry.effect.as_str(),
        entry.run.as_str(),
        number(entry.epoch),
        entry.workspace.as_str(),
        entry.class.name(),
        entry.request.as_bytes(),
        before,
        number(now_ms),
        subject.map(Digest::as_bytes),
        entry.runner,
    ])?;
    Ok(())
}

/// Ledgers of before several runners shared one do not say who began what.
fn add_runner(connection: &Connection) -> Result<(), EffectLedgerError> {
    let known: i64 = connection.query_row(
        "SELECT count(*) FROM pragma_table_info('effects') WHERE name = 'runner'",
        [],
        |row| row.get(0),
    )?;
    if known == 0 {
        connection
            .execute_batch("ALTER TABLE effects ADD COLUMN runner TEXT NOT NULL DEFAULT ''")?;
    }
    Ok(())
}

/// Epochs and times stay far below this; a larger one is refused where it arrives.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
