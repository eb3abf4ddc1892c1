//! The tables, and how an older database becomes a newer one. The same shape as SQLite's.

use deadpool_postgres::Client;

use super::failed;
use crate::error::{StoreError, StoreResult};

/// Each entry brings a database from its index to the next version; none is ever edited.
const MIGRATIONS: &[&str] = &[V1, V2];

const V1: &str = "
CREATE TABLE runs(
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  tenant TEXT NOT NULL,
  graph TEXT NOT NULL,
  graph_version INT NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('ready','running','suspended','done')),
  epoch BIGINT NOT NULL,
  owner TEXT,
  due_ms BIGINT,
  head_next BIGINT NOT NULL,
  head_hash BYTEA NOT NULL,
  parent_run TEXT,
  parent_seq BIGINT
);
CREATE INDEX runs_due ON runs(graph, due_ms) WHERE due_ms IS NOT NULL;
CREATE TABLE events(
  run BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  at_ms BIGINT NOT NULL,
  schema INT NOT NULL,
  hash BYTEA NOT NULL,
  body BYTEA NOT NULL,
  PRIMARY KEY(run, seq)
);
CREATE TABLE blobs(hash BYTEA PRIMARY KEY, size BIGINT NOT NULL, bytes BYTEA NOT NULL);
CREATE TABLE effects(
  run BIGINT NOT NULL,
  effect TEXT NOT NULL,
  intent_seq BIGINT NOT NULL,
  class TEXT NOT NULL,
  state TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  request BYTEA NOT NULL,
  result BYTEA,
  PRIMARY KEY(run, effect)
);
CREATE INDEX effects_open ON effects(state) WHERE state <> 'settled';
CREATE TABLE approvals(
  approval TEXT PRIMARY KEY,
  run BIGINT NOT NULL,
  digest BYTEA NOT NULL,
  state TEXT NOT NULL,
  nonce TEXT NOT NULL,
  expires_ms BIGINT NOT NULL
);
CREATE TABLE ledger(
  run BIGINT NOT NULL,
  dimension TEXT NOT NULL,
  cap BIGINT,
  reserved BIGINT NOT NULL,
  settled BIGINT NOT NULL,
  PRIMARY KEY(run, dimension),
  CHECK(cap IS NULL OR reserved + settled <= cap)
);
CREATE TABLE signals(
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run BIGINT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX signals_run ON signals(run);
CREATE TABLE snapshots(
  run BIGINT PRIMARY KEY,
  next BIGINT NOT NULL,
  hash BYTEA NOT NULL,
  body BYTEA NOT NULL
);
ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE events ALTER COLUMN body SET STORAGE EXTERNAL;
";

/// A blob is kept (0), condemned (1) or dropped (2); of a dropped one the row stays, without bytes.
const V2: &str = "ALTER TABLE blobs ADD COLUMN fate SMALLINT NOT NULL DEFAULT 0";

/// Brings a schema to today's version, or refuses one from the future. Several processes may do
/// this at once; one of them does the work.
pub(super) async fn migrate(client: &mut Client, schema: &str) -> StoreResult<()> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let transaction = client.transaction().await.map_err(failed)?;
    transaction
        .batch_execute(&format!(
            "SELECT pg_advisory_xact_lock(hashtext('lula schema {schema}'));
             CREATE SCHEMA IF NOT EXISTS \"{schema}\";
             CREATE TABLE IF NOT EXISTS lula_schema(version INT NOT NULL);"
        ))
        .await
        .map_err(failed)?;
    let row = transaction
        .query_opt("SELECT version FROM lula_schema", &[])
        .await
        .map_err(failed)?;
    let found: i32 = row.map_or(0, |row| row.get(0));
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    if found > known {
        return Err(StoreError::Newer {
            what: "the database",
            found,
            known,
        });
    }
    for step in &MIGRATIONS[found as usize..] {
        transaction.batch_execute(step).await.map_err(failed)?;
    }
    if found < known {
        let script = format!("DELETE FROM lula_schema; INSERT INTO lula_schema VALUES ({known})");
        transaction.batch_execute(&script).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}
