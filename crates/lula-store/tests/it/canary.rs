//! A secret that everything tries to store, and every byte a backend kept, looked through.

use lula_protocol::{EventBody, RunSignal};
use lula_store::postgres::PostgresOptions;
use lula_store::redis::RedisOptions;
use lula_store::sqlite::SqliteOptions;
use lula_store::{
    Blob, Durability, LeaseClaim, LogAppend, LogHead, LogRecord, NewRun, PostgresStore, RedisStore,
    RunStore, SecretGuard, SqliteStore, StateSnapshot, StoreError, body, conformance,
};

const CANARY: &str = "canary-\"5d1e77\"-secret";
/// Without what JSON escapes.
const TRACE: &[u8] = b"5d1e77";
const MARK: &[u8] = b"nothing to hide";

fn guard() -> SecretGuard {
    SecretGuard::default().watch_for("the canary", CANARY)
}

fn note(text: &str) -> EventBody {
    EventBody::SignalIgnored {
        reason: text.to_owned(),
    }
}

/// Tries to store the secret in every way there is, then something harmless in the same ways.
async fn tempt(store: &dyn RunStore) {
    let run = conformance::fresh_run();
    let new = |text: &str| {
        let (records, head) =
            LogRecord::continue_log(&run, LogHead::empty(), 1, 1, &[note(text)]).unwrap();
        let new = NewRun {
            run: run.clone(),
            tenant: "acme".to_owned(),
            graph: format!("canary of {run}"),
            graph_version: 1,
            parent: None,
            records,
            blobs: vec![Blob::new(text.as_bytes().to_vec())],
            ledger: Vec::new(),
            epoch: 1,
            claim: Some(LeaseClaim {
                worker: "alice".to_owned(),
                now_ms: 1,
                ttl_ms: 30_000,
            }),
        };
        (new, head)
    };
    let refused = |result: Result<(), StoreError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, StoreError::Secret { .. }), "{error}");
        assert!(!error.to_string().contains("5d1e77"), "{error}");
    };
    refused(store.create(new(CANARY).0).await);
    let clean = std::str::from_utf8(MARK).unwrap();
    let (first, head) = new(clean);
    let append = |event: &str, blob: &str, snapshot: &str| {
        let (records, after) = LogRecord::continue_log(&run, head, 1, 2, &[note(event)]).unwrap();
        let mut append = LogAppend::new(run.clone(), 1, head);
        append.records = records;
        append.blobs = vec![Blob::new(blob.as_bytes().to_vec())];
        append.snapshot = Some(StateSnapshot {
            head: after,
            bytes: snapshot.as_bytes().to_vec(),
        });
        append
    };
    let both = store.create_and_append(first.clone(), append(CANARY, clean, clean));
    if store.backend() == "redis" {
        // Two commits there: the first is harmless and stays.
        refused(both.await.map(drop));
    } else {
        refused(both.await.map(drop));
        store.create(first).await.unwrap();
    }
    for (event, blob, snapshot) in [
        (CANARY, clean, clean),
        (clean, CANARY, clean),
        (clean, clean, CANARY),
    ] {
        refused(store.append(append(event, blob, snapshot)).await.map(drop));
    }
    let cancel = |reason: &str| RunSignal::Cancel {
        by: "alice".parse().unwrap(),
        reason: reason.to_owned(),
    };
    refused(store.send(&run, &cancel(CANARY)).await.map(drop));
    store.send(&run, &cancel(clean)).await.unwrap();
    store.append(append(clean, clean, clean)).await.unwrap();
}

/// Looks through what was kept, as it is and unpacked.
fn look_through(kept: &[Vec<u8>]) {
    let holds = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    let mut found = 0;
    for bytes in kept {
        let unpacked = body::unpack(bytes).unwrap_or_default();
        assert!(!holds(bytes, TRACE) && !holds(&unpacked, TRACE));
        found += usize::from(holds(bytes, MARK) || holds(&unpacked, MARK));
    }
    // Two events, a blob, a snapshot and a signal: the scan would have seen a secret there.
    assert!(found >= 4, "{found} of {} values were seen", kept.len());
}

#[tokio::test]
async fn no_row_of_sqlite_holds_a_secret() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    let options = SqliteOptions {
        guard: guard(),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(&path, options).unwrap();
    tempt(&store).await;
    let database = rusqlite::Connection::open(&path).unwrap();
    let names = |sql: &str| -> Vec<String> {
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let mut kept = Vec::new();
    for table in names("SELECT name FROM sqlite_master WHERE type='table'") {
        for column in names(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            let sql = format!("SELECT CAST(\"{column}\" AS BLOB) FROM \"{table}\"");
            let mut statement = database.prepare(&sql).unwrap();
            let rows = statement.query_map([], |row| row.get::<_, Option<Vec<u8>>>(0));
            kept.extend(rows.unwrap().filter_map(Result::unwrap));
        }
    }
    look_through(&kept);
}

#[tokio::test]
async fn no_row_of_postgres_holds_a_secret() {
    let schema = format!("canary_{}", std::process::id());
    let options = PostgresOptions {
        schema: schema.clone(),
        connections: 2,
        durability: Durability::ProcessCrash,
        guard: guard(),
        ..PostgresOptions::default()
    };
    let url = crate::postgres::url();
    tempt(&PostgresStore::connect(&url, options).await.unwrap()).await;
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let sql = "SELECT table_name, column_name, data_type FROM information_schema.columns
               WHERE table_schema=$1";
    let mut kept = Vec::new();
    for column in client.query(sql, &[&schema]).await.unwrap() {
        let (table, name): (&str, &str) = (column.get(0), column.get(1));
        let bytes = if column.get::<_, &str>(2) == "bytea" {
            format!("\"{name}\"")
        } else {
            format!("convert_to(\"{name}\"::text, 'UTF8')")
        };
        let sql = format!("SELECT {bytes} FROM \"{schema}\".\"{table}\"");
        let rows = client.query(&sql, &[]).await.unwrap();
        kept.extend(
            rows.iter()
                .filter_map(|row| row.get::<_, Option<Vec<u8>>>(0)),
        );
    }
    look_through(&kept);
}

#[tokio::test]
async fn no_key_of_redis_holds_a_secret() {
    let prefix = format!("canary_{}", std::process::id());
    let options = RedisOptions {
        prefix: prefix.clone(),
        durability: Durability::ProcessCrash,
        guard: guard(),
        ..RedisOptions::default()
    };
    let url = crate::redis::url();
    tempt(&RedisStore::connect(&url, options).await.unwrap()).await;
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut ask = async |words: &[&str]| -> redis::Value {
        let mut command = redis::cmd(words[0]);
        for word in &words[1..] {
            command.arg(word);
        }
        command.query_async(&mut connection).await.unwrap()
    };
    let keys = ask(&["KEYS", &format!("{{{prefix}}}:*")]).await;
    let mut kept = Vec::new();
    for key in redis::from_redis_value::<Vec<String>>(keys).unwrap() {
        let kind = redis::from_redis_value::<String>(ask(&["TYPE", &key]).await).unwrap();
        let value = match kind.as_str() {
            "string" => ask(&["GET", &key]).await,
            "list" => ask(&["LRANGE", &key, "0", "-1"]).await,
            "hash" => ask(&["HGETALL", &key]).await,
            "set" => ask(&["SMEMBERS", &key]).await,
            "zset" => ask(&["ZRANGE", &key, "0", "-1"]).await,
            "stream" => ask(&["XRANGE", &key, "-", "+"]).await,
            other => panic!("{key} is a {other}: nobody looks through it"),
        };
        gather(&value, &mut kept);
    }
    look_through(&kept);
}

/// Every string in an answer; an event's body comes after a heading of its own.
fn gather(value: &redis::Value, into: &mut Vec<Vec<u8>>) {
    match value {
        redis::Value::BulkString(bytes) => {
            for begin in 0..bytes.len().min(96) {
                if body::unpack(&bytes[begin..]).is_ok() {
                    into.push(bytes[begin..].to_vec());
                }
            }
            into.push(bytes.clone());
        }
        redis::Value::Array(values) => values.iter().for_each(|value| gather(value, into)),
        redis::Value::Map(pairs) => pairs.iter().for_each(|(name, value)| {
            gather(name, into);
            gather(value, into);
        }),
        _ => {}
    }
}
