//! The tables, and how an older database becomes a newer one.

use rusqlite::Connection;

use super::failed;
use crate::error::{StoreError, StoreResult};

/// Each entry brings a database from its index to the next version; none is ever edited.
const MIGRATIONS: &[&str] = &[V1, V2, V3];

/// `events.pos` is `run * 2^24 + seq`: the log of a run is one range of the primary key and needs
/// no second index. It is a rowid table because bodies of a kilobyte in the leaves of a
/// `WITHOUT ROWID` table spill into overflow pages and triple the size.
const V1: &str = "
CREATE TABLE runs(
  id INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  graph TEXT NOT NULL,
  graph_version INTEGER NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('ready','running','suspended','done')),
  epoch INTEGER NOT NULL,
  owner TEXT,
  due_ms INTEGER,
  head_next INTEGER NOT NULL,
  head_hash BLOB NOT NULL,
  parent_run TEXT,
  parent_seq INTEGER
);
CREATE INDEX runs_due ON runs(graph, due_ms) WHERE due_ms IS NOT NULL;
CREATE TABLE events(
  pos INTEGER PRIMARY KEY,
  epoch INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  schema INTEGER NOT NULL,
  hash BLOB NOT NULL,
  body BLOB NOT NULL
);
CREATE TABLE blobs(hash BLOB PRIMARY KEY, size INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE effects(
  run INTEGER NOT NULL,
  effect TEXT NOT NULL,
  intent_seq INTEGER NOT NULL,
  class TEXT NOT NULL,
  state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  request BLOB NOT NULL,
  result BLOB,
  PRIMARY KEY(run, effect)
) WITHOUT ROWID;
CREATE INDEX effects_open ON effects(state) WHERE state <> 'settled';
CREATE TABLE approvals(
  approval TEXT PRIMARY KEY,
  run INTEGER NOT NULL,
  digest BLOB NOT NULL,
  state TEXT NOT NULL,
  nonce TEXT NOT NULL,
  expires_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE ledger(
  run INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  cap INTEGER,
  reserved INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  PRIMARY KEY(run, dimension),
  CHECK(cap IS NULL OR reserved + settled <= cap)
) WITHOUT ROWID;
CREATE TABLE signals(id INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX signals_run ON signals(run);
CREATE TABLE snapshots(
  run INTEGER PRIMARY KEY,
  next INTEGER NOT NULL,
  hash BLOB NOT NULL,
  body BLOB NOT NULL
);
";

/// A blob is kept (0), condemned (1) or dropped (2); of a dropped one the row stays, without bytes.
const V2: &str = "ALTER TABLE blobs ADD COLUMN fate INTEGER NOT NULL DEFAULT 0";

/// Every effect is intended before it is settled; only those whose end is not known are ever
/// looked for. An index of these costs the others nothing.
const V3: &str = "
DROP INDEX effects_open;
CREATE INDEX effects_unknown ON effects(state) WHERE state = 'unknown';
";

/// Brings a database to today's version, or refuses one from the future.
pub(super) fn migrate(connection: &Connection) -> StoreResult<()> {
    migrate_with(connection, MIGRATIONS)
}

fn migrate_with(connection: &Connection, steps: &[&str]) -> StoreResult<()> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    loop {
        // Taken anew inside the transaction: another process may have migrated meanwhile.
        connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(failed)?;
        let found: u32 = connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(failed)?;
        let Some(step) = steps.get(found as usize) else {
            connection.execute_batch("ROLLBACK").map_err(failed)?;
            if found == known {
                return Ok(());
            }
            return Err(StoreError::Newer {
                what: "the database",
                found,
                known,
            });
        };
        let next = found + 1;
        let script = format!("{step}; PRAGMA user_version = {next}; COMMIT");
        if let Err(error) = connection.execute_batch(&script) {
            let _ = connection.execute_batch("ROLLBACK");
            return Err(failed(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_database_is_brought_forward_and_keeps_its_rows() {
        let connection = Connection::open_in_memory().unwrap();
        let first = "CREATE TABLE notes(text TEXT)";
        let second = "ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'unknown'";
        migrate_with(&connection, &[first]).unwrap();
        connection
            .execute("INSERT INTO notes VALUES ('kept')", [])
            .unwrap();

        migrate_with(&connection, &[first, second]).unwrap();

        let row: (String, String) = connection
            .query_row("SELECT text, author FROM notes", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(row, ("kept".to_owned(), "unknown".to_owned()));
    }

    #[test]
    fn the_first_version_becomes_todays_with_its_blobs() {
        let connection = Connection::open_in_memory().unwrap();
        migrate_with(&connection, &[V1]).unwrap();
        let row = "INSERT INTO blobs(hash,size,bytes) VALUES (x'01', 3, x'00aabb')";
        connection.execute(row, []).unwrap();
        migrate(&connection).unwrap();
        let kept: (Vec<u8>, i64) = connection
            .query_row("SELECT bytes, fate FROM blobs", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(kept, (vec![0, 0xaa, 0xbb], 0));
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let connection = Connection::open_in_memory().unwrap();
        migrate_with(
            &connection,
            &["CREATE TABLE a(x)", "CREATE TABLE b(x); CREATE TABLE a(x)"],
        )
        .unwrap_err();
        let tables: u32 = connection
            .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }

    #[test]
    fn a_database_of_a_newer_program_is_refused_untouched() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("PRAGMA user_version = 9").unwrap();
        let error = migrate(&connection).unwrap_err();
        assert!(error.to_string().contains("schema 9"), "{error}");
    }
}
