//! What the server remembers beside the logs of runs: who began which, and requests that were sent twice.
//! A small database of its own, in the state directory.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lula_host::record::now_ms;
use lula_protocol::{Code, Digest, Principal, RunId};
use rusqlite::{Connection, OptionalExtension, params};

use crate::problem::{ApiRefusal, ApiResult};

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS begun (
        run TEXT PRIMARY KEY,
        principal TEXT NOT NULL,
        repository TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        key TEXT,
        request TEXT NOT NULL,
        is_over INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE UNIQUE INDEX IF NOT EXISTS begun_by_key ON begun (principal, key) WHERE key IS NOT NULL;
    CREATE INDEX IF NOT EXISTS begun_open ON begun (is_over) WHERE is_over = 0;
";
/// How long a repeated request finds what the first one began.
const REMEMBERED: Duration = Duration::from_hours(24);

/// The database of the server.
#[derive(Debug)]
pub(crate) struct ServerRecords(Mutex<Connection>);

/// A run that is to begin.
#[derive(Debug)]
pub(crate) struct RunReservation<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) by: &'a Principal,
    pub(crate) repository: &'a str,
    /// What makes a repeated request the same one, as its sender says.
    pub(crate) key: Option<&'a str>,
    /// Digest of the request.
    pub(crate) request: Digest,
}

impl From<rusqlite::Error> for ApiRefusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::new(
            503,
            Code::StoreUnusable,
            format!("the records of the server: {error}"),
        )
    }
}

impl ServerRecords {
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let database = Connection::open(path)?;
        database.busy_timeout(Duration::from_secs(5))?;
        database.execute_batch(SCHEMA)?;
        Ok(Self(Mutex::new(database)))
    }

    fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> ApiResult<T> {
        let database = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(work(&database)?)
    }

    /// Takes a place for a run, or finds the run that the same request began before.
    pub(crate) fn reserve(&self, asked: &RunReservation<'_>) -> ApiResult<Option<RunId>> {
        let since = now_ms().saturating_sub(u64::try_from(REMEMBERED.as_millis()).unwrap_or(0));
        let known = self.with(|database| {
            database.execute(
                "UPDATE begun SET key = NULL WHERE key IS NOT NULL AND at_ms < ?",
                [i64::try_from(since).unwrap_or(0)],
            )?;
            let known: Option<(String, String)> = database
                .query_row(
                    "SELECT run, request FROM begun WHERE principal = ? AND key = ?",
                    params![asked.by.as_str(), asked.key],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            if known.is_none() {
                database.execute(
                    "INSERT INTO begun (run, principal, repository, at_ms, key, request) \
                     VALUES (?,?,?,?,?,?)",
                    params![
                        asked.run.as_str(),
                        asked.by.as_str(),
                        asked.repository,
                        i64::try_from(now_ms()).unwrap_or(i64::MAX),
                        asked.key,
                        asked.request.to_string(),
                    ],
                )?;
            }
            Ok(known)
        })?;
        match known {
            None => Ok(None),
            Some((run, request)) if request == asked.request.to_string() => run
                .parse()
                .map(Some)
                .map_err(|error| ApiRefusal::internal(&error)),
            Some(_) => Err(ApiRefusal::new(
                422,
                Code::EffectReused,
                "this Idempotency-Key was sent with another request",
            )
            .remedy("use a fresh key for each request, and the same one to repeat it")),
        }
    }

    /// Gives the place of a run back that did not begin.
    pub(crate) fn release(&self, run: &RunId) -> ApiResult<()> {
        self.with(|database| database.execute("DELETE FROM begun WHERE run = ?", [run.as_str()]))?;
        Ok(())
    }

    /// Takes over a run that was begun elsewhere: from here on it is driven here.
    pub(crate) fn adopt(&self, run: &RunId, by: &Principal, repository: &str) -> ApiResult<()> {
        self.with(|database| {
            database.execute(
                "INSERT INTO begun (run, principal, repository, at_ms, request) VALUES (?,?,?,?,'') \
                 ON CONFLICT (run) DO UPDATE SET is_over = 0",
                params![
                    run.as_str(),
                    by.as_str(),
                    repository,
                    i64::try_from(now_ms()).unwrap_or(i64::MAX)
                ],
            )
        })?;
        Ok(())
    }

    /// Who began a run here.
    pub(crate) fn begun_by(&self, run: &RunId) -> ApiResult<Option<Principal>> {
        let found: Option<String> = self.with(|database| {
            database
                .query_row(
                    "SELECT principal FROM begun WHERE run = ?",
                    [run.as_str()],
                    |row| row.get(0),
                )
                .optional()
        })?;
        Ok(found.and_then(|name| name.parse().ok()))
    }

    /// The runs of this server that are not known to be over, with their repositories.
    pub(crate) fn open_runs(&self) -> ApiResult<Vec<(RunId, String)>> {
        let found: Vec<(String, String)> = self.with(|database| {
            let mut asked =
                database.prepare_cached("SELECT run, repository FROM begun WHERE is_over = 0")?;
            let rows = asked.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })?;
        let named = |(run, repository): (String, String)| Some((run.parse().ok()?, repository));
        Ok(found.into_iter().filter_map(named).collect())
    }

    /// Remembers that a run is over.
    pub(crate) fn over(&self, run: &RunId) -> ApiResult<()> {
        let over = "UPDATE begun SET is_over = 1 WHERE run = ?";
        self.with(|database| database.execute(over, [run.as_str()]))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> (tempfile::TempDir, ServerRecords) {
        let directory = tempfile::tempdir().unwrap();
        let records = ServerRecords::open(&directory.path().join("server.db")).unwrap();
        (directory, records)
    }

    fn reserve(
        records: &ServerRecords,
        number: u8,
        who: &str,
        key: Option<&str>,
        body: &[u8],
    ) -> ApiResult<Option<RunId>> {
        records.reserve(&RunReservation {
            run: &RunId::from_parts(1, [number; 10]),
            by: &who.parse().unwrap(),
            repository: "work",
            key,
            request: Digest::of_bytes(body),
        })
    }

    #[test]
    fn the_same_request_with_the_same_key_begins_one_run() {
        let (_directory, records) = records();
        assert!(
            reserve(&records, 1, "ada", Some("k"), b"x")
                .unwrap()
                .is_none()
        );
        let again = reserve(&records, 2, "ada", Some("k"), b"x").unwrap();
        assert_eq!(again, Some(RunId::from_parts(1, [1; 10])));
        let other = reserve(&records, 3, "ada", Some("k"), b"y").unwrap_err();
        assert_eq!((other.status(), other.code()), (422, Code::EffectReused));
        // Keys of one person are no business of another's.
        assert!(
            reserve(&records, 4, "bob", Some("k"), b"y")
                .unwrap()
                .is_none()
        );
        assert!(reserve(&records, 5, "ada", None, b"x").unwrap().is_none());
        assert!(reserve(&records, 6, "ada", None, b"x").unwrap().is_none());
    }

    #[test]
    fn a_run_that_did_not_begin_leaves_its_key_free() {
        let (_directory, records) = records();
        reserve(&records, 1, "ada", Some("k"), b"x").unwrap();
        records.release(&RunId::from_parts(1, [1; 10])).unwrap();
        assert!(
            reserve(&records, 2, "ada", Some("k"), b"y")
                .unwrap()
                .is_none()
        );
        assert_eq!(records.open_runs().unwrap().len(), 1);
        records.over(&RunId::from_parts(1, [2; 10])).unwrap();
        assert!(records.open_runs().unwrap().is_empty());
    }
}
