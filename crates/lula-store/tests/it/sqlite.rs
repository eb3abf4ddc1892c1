//! SQLite: the kit, and a disk that is full, a file that is locked, bytes that rot.

use std::sync::Arc;
use std::time::Duration;

use lula_protocol::event::EVENT_SCHEMA;
use lula_protocol::{EventBody, RunSignal};
use lula_store::conformance::fresh_run;
use lula_store::sqlite::SqliteOptions;
use lula_store::{
    Blob, Durability, LeaseAfterAppend, LeaseClaim, LogAppend, LogHead, LogRecord, NewRun,
    RunLease, RunStatus, RunStore, SecretGuard, SqliteStore, StoreError, check_store, copy_store,
};

async fn open() -> Arc<dyn RunStore> {
    static DIRECTORY: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| tempfile::tempdir().unwrap());
    let options = SqliteOptions {
        durability: Durability::ProcessCrash,
        busy_timeout: Duration::from_secs(30),
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open(directory.path().join("kit.db"), options).unwrap())
}

lula_store::conformance_tests!(open);

fn quick() -> SqliteOptions {
    SqliteOptions {
        durability: Durability::ProcessCrash,
        busy_timeout: Duration::from_millis(50),
        ..SqliteOptions::default()
    }
}

async fn owned(store: &dyn RunStore) -> RunLease {
    let run = fresh_run();
    let body = EventBody::RunTaken {
        worker: "alice".to_owned(),
    };
    let (records, head) = LogRecord::continue_log(&run, LogHead::empty(), 1, 1, &[body]).unwrap();
    let new = NewRun {
        run: run.clone(),
        tenant: "acme".to_owned(),
        graph: "g".to_owned(),
        graph_version: 1,
        parent: None,
        records,
        blobs: Vec::new(),
        ledger: Vec::new(),
        epoch: 1,
        claim: Some(LeaseClaim {
            worker: "alice".to_owned(),
            now_ms: 0,
            ttl_ms: 1_000,
        }),
    };
    store.create(new).await.unwrap();
    RunLease {
        run,
        epoch: 1,
        head,
    }
}

fn note(lease: &RunLease, head: LogHead, text: &str) -> LogAppend {
    let body = EventBody::SignalIgnored {
        reason: text.to_owned(),
    };
    let (records, _) = LogRecord::continue_log(&lease.run, head, lease.epoch, 2, &[body]).unwrap();
    LogAppend {
        records,
        ..LogAppend::new(lease.run.clone(), lease.epoch, head)
    }
}

#[tokio::test]
async fn a_full_disk_refuses_the_append_and_the_run_goes_on_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.db");
    let small = SqliteOptions {
        max_bytes: Some(200_000),
        ..quick()
    };
    let store = SqliteStore::open(&path, small).unwrap();
    let lease = owned(&store).await;
    let mut head = lease.head;
    let refused = loop {
        let mut append = note(&lease, head, "more");
        let noise: Vec<u8> = (0..40).flat_map(|i| blake3(head.next * 100 + i)).collect();
        append.blobs = vec![Blob::new(noise)];
        match store.append(append).await {
            Ok(next) => head = next,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, StoreError::Full(_)), "{refused:?}");
    assert_eq!(store.run(&lease.run).await.unwrap().unwrap().head, head);
    drop(store);
    let roomy = SqliteStore::open(&path, quick()).unwrap();
    let head = roomy
        .append(note(&lease, head, "room again"))
        .await
        .unwrap();
    assert_eq!(
        head.next,
        roomy.read(&lease.run, 0, 100_000).await.unwrap().len() as u64
    );
    let (_, broken) = check_store(&roomy).await.unwrap();
    assert!(broken.is_empty(), "{broken:?}");
}

fn blake3(number: u64) -> [u8; 32] {
    *lula_protocol::Digest::of_bytes(&number.to_le_bytes()).as_bytes()
}

#[tokio::test]
async fn a_locked_database_is_busy_and_then_works() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("busy.db");
    let store = SqliteStore::open(&path, quick()).unwrap();
    let lease = owned(&store).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let busy = store
        .append(note(&lease, lease.head, "blocked"))
        .await
        .unwrap_err();
    assert!(matches!(busy, StoreError::Busy(_)), "{busy:?}");
    assert!(busy.is_transient());
    other.execute_batch("ROLLBACK").unwrap();
    store
        .append(note(&lease, lease.head, "free"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_changed_blob_and_a_changed_event_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rot.db");
    let store = SqliteStore::open(&path, quick()).unwrap();
    let lease = owned(&store).await;
    let blob = Blob::new(vec![7; 10_000]);
    let mut append = note(&lease, lease.head, "with a blob");
    append.blobs = vec![blob.clone()];
    store.append(append).await.unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    let rot = lula_store::body::pack(&[8; 10_000]);
    other.execute("UPDATE blobs SET bytes=?", [rot]).unwrap();
    let found = store.blob(&blob.digest).await.unwrap_err();
    assert!(matches!(found, StoreError::CorruptBlob(_)), "{found:?}");
    other.execute("UPDATE blobs SET bytes=x'09'", []).unwrap();
    let found = store.blob(&blob.digest).await.unwrap_err();
    assert!(matches!(found, StoreError::CorruptBlob(_)), "{found:?}");

    let forged = lula_store::body::pack(br#"{"kind":"run_taken","worker":"mallory"}"#);
    other
        .execute(
            "UPDATE events SET body=? WHERE pos % 16777216 = 0",
            [forged],
        )
        .unwrap();
    let (_, broken) = check_store(&store).await.unwrap();
    assert!(
        matches!(&broken[..], [StoreError::CorruptEvent { seq: 0, .. }]),
        "{broken:?}"
    );
    other
        .execute("DELETE FROM events WHERE pos % 16777216 = 1", [])
        .unwrap();
    let (_, broken) = check_store(&store).await.unwrap();
    assert_eq!(broken.len(), 1);
}

#[tokio::test]
async fn a_secret_is_refused_wherever_it_is_hidden() {
    let directory = tempfile::tempdir().unwrap();
    let canary = "canary-\"7f3a\"-secret";
    let options = SqliteOptions {
        guard: SecretGuard::default().watch_for("the canary", canary),
        ..quick()
    };
    let store = SqliteStore::open(directory.path().join("guarded.db"), options).unwrap();
    let lease = owned(&store).await;
    let refused = store
        .append(note(&lease, lease.head, &format!("a {canary} b")))
        .await;
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("the canary") && !message.contains("7f3a"),
        "{message}"
    );
    let mut append = note(&lease, lease.head, "clean");
    append.blobs = vec![Blob::new(format!("x{canary}x").into_bytes())];
    assert!(matches!(
        store.append(append).await,
        Err(StoreError::Secret { .. })
    ));
    let signal = RunSignal::Cancel {
        by: "alice".parse().unwrap(),
        reason: canary.to_owned(),
    };
    assert!(matches!(
        store.send(&lease.run, &signal).await,
        Err(StoreError::Secret { .. })
    ));
    store
        .append(note(&lease, lease.head, "clean"))
        .await
        .unwrap();
    drop(store);
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(4).any(|window| window == b"7f3a"));
    }
}

#[tokio::test]
async fn a_signal_from_another_process_is_heard() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared.db");
    let here = SqliteStore::open(&path, quick()).unwrap();
    let there = SqliteStore::open(&path, quick()).unwrap();
    let lease = owned(&here).await;
    let mut hints = here.watch();
    let signal = RunSignal::Cancel {
        by: "alice".parse().unwrap(),
        reason: "from the other terminal".to_owned(),
    };
    there.send(&lease.run, &signal).await.unwrap();
    let heard = async {
        while hints.recv().await.unwrap() != lula_store::StoreHint::Signal(lease.run.clone()) {}
    };
    tokio::time::timeout(Duration::from_secs(20), heard)
        .await
        .expect("nobody heard it");
}

#[tokio::test]
async fn a_backup_opens_as_the_same_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path().join("live.db"), quick()).unwrap();
    let lease = owned(&store).await;
    let head = store
        .append(note(&lease, lease.head, "kept"))
        .await
        .unwrap();
    let copy = directory.path().join("backup.db");
    store.backup(&copy).await.unwrap();
    store
        .append(note(&lease, head, "after the backup"))
        .await
        .unwrap();
    let restored = SqliteStore::open(&copy, quick()).unwrap();
    assert_eq!(restored.run(&lease.run).await.unwrap().unwrap().head, head);
    assert!(restored.damage().await.unwrap().is_empty());
    assert!(
        store.backup(&copy).await.is_err(),
        "an existing file is not overwritten"
    );
}

#[tokio::test]
async fn a_copied_store_goes_on_where_the_first_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let from = SqliteStore::open(directory.path().join("from.db"), quick()).unwrap();
    let to = SqliteStore::open(directory.path().join("to.db"), quick()).unwrap();
    let done = owned(&from).await;
    let mut append = note(&done, done.head, "end");
    append.rest = LeaseAfterAppend::Done;
    from.append(append).await.unwrap();
    let live = owned(&from).await;
    let copied = copy_store(&from, &to).await.unwrap();
    assert_eq!((copied.runs, copied.events), (2, 3));
    assert_eq!(
        to.run(&done.run).await.unwrap().unwrap().status,
        RunStatus::Done
    );
    let claim = LeaseClaim {
        worker: "bob".to_owned(),
        now_ms: 0,
        ttl_ms: 1_000,
    };
    let lease = to.claim_run(&live.run, &claim).await.unwrap().unwrap();
    assert!(
        lease.epoch > live.epoch,
        "an owner from the old store stays fenced"
    );
    to.append(note(&lease, lease.head, "here")).await.unwrap();
    assert!(check_store(&to).await.unwrap().1.is_empty());
    assert_eq!(
        copy_store(&from, &to).await.unwrap().runs,
        0,
        "nothing is copied twice"
    );
}

/// Logs written by earlier programs: by the first release, and with the kinds that came since. They
/// have to be readable for ever.
const GOLDEN: [&str; 2] = [
    include_str!("../golden/schema-1.jsonl"),
    include_str!("../golden/schema-1-steered.jsonl"),
];

#[tokio::test]
async fn the_golden_logs_of_schema_1_verify_and_read() {
    let mut kinds = std::collections::BTreeSet::new();
    for golden in GOLDEN {
        let mut chain = None;
        for line in golden.lines() {
            let raw: serde_json::Value = serde_json::from_str(line).unwrap();
            let digest = |name: &str| raw[name].as_str().unwrap().parse().unwrap();
            let run: lula_protocol::RunId = raw["run"].as_str().unwrap().parse().unwrap();
            let record = LogRecord {
                run: run.clone(),
                seq: raw["seq"].as_u64().unwrap(),
                epoch: raw["epoch"].as_u64().unwrap(),
                at_ms: raw["at_ms"].as_u64().unwrap(),
                schema: u32::try_from(raw["schema"].as_u64().unwrap()).unwrap(),
                previous: digest("previous"),
                hash: digest("hash"),
                body: lula_protocol::canonical::to_vec(&raw["body"]).unwrap(),
            };
            let chain = chain.get_or_insert_with(|| lula_protocol::event::LogChain::start(run));
            LogRecord::verify(chain, std::slice::from_ref(&record)).unwrap();
            kinds.insert(record.read_body().unwrap().kind());
        }
    }
    assert_eq!(kinds.len(), 24, "one event of every kind: {kinds:?}");
    assert_eq!(
        EVENT_SCHEMA, 1,
        "add a golden log for the new schema beside these"
    );
}
