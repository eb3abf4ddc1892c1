//! SQLite: the embedded default. One file, one writer with group commit, readers beside it, and no thread
//! before there is work for one.

mod ahead;
mod neighbours;
mod queue;
mod read;
mod schema;
mod values;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use lula_protocol::payload::BlobRef;
use lula_protocol::{ApprovalId, Digest, RunId, RunSignal};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::broadcast;

use crate::append::{
    ApprovalRow, ApprovalState, Blob, EffectRow, EffectState, LedgerRow, LogAppend, StateSnapshot,
};
use crate::body;
use crate::error::{StoreError, StoreResult};
use crate::guard::SecretGuard;
use crate::record::{LogHead, LogRecord};
use crate::run::{Durability, LeaseClaim, NewRun, RunFilter, RunLease, RunRow};
use crate::store::{RunStore, StoreHint};
use ahead::WalPreallocator;
use neighbours::NeighbourWatch;
use writer::{SqliteThreads, SqliteWriter};

const READERS: usize = 2;
const HINTS: usize = 1024;
const PAGE_BYTES: u64 = 4096;
/// The same pages change again and again; copying them back less often costs 16 MB of disk.
const CHECKPOINT_PAGES: u32 = 4096;

/// How a database is opened.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// What acknowledged data survives.
    pub durability: Durability,
    /// How long to wait for another process that writes.
    pub busy_timeout: Duration,
    /// The file grows no further than this.
    pub max_bytes: Option<u64>,
    /// Values that must not be stored.
    pub guard: SecretGuard,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Durability::PowerLoss,
            busy_timeout: Duration::from_secs(5),
            max_bytes: None,
            guard: SecretGuard::default(),
        }
    }
}

/// A store in one file.
pub struct SqliteStore {
    path: PathBuf,
    threads: SqliteThreads,
    neighbours: NeighbourWatch,
    hints: broadcast::Sender<StoreHint>,
    calls: broadcast::Sender<StoreHint>,
    guard: SecretGuard,
}

pub(crate) fn failed(error: rusqlite::Error) -> StoreError {
    if let rusqlite::Error::SqliteFailure(failure, message) = &error {
        let message = message.clone().unwrap_or_else(|| failure.to_string());
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
                return StoreError::Busy(message);
            }
            ErrorCode::DiskFull => return StoreError::Full(message),
            _ => {}
        }
    }
    StoreError::backend("sqlite", error)
}

pub(crate) fn corrupt(what: impl std::fmt::Display) -> StoreError {
    StoreError::backend("sqlite", format_args!("a row cannot be read: {what}"))
}

impl SqliteStore {
    /// Opens a database, creates it where there is none, and brings it to today's schema.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> StoreResult<Self> {
        let path = path.as_ref().to_owned();
        let writer = Connection::open(&path).map_err(failed)?;
        writer.busy_timeout(options.busy_timeout).map_err(failed)?;
        let mode: String = writer
            .query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))
            .map_err(failed)?;
        if mode != "wal" {
            return Err(StoreError::backend(
                "sqlite",
                format_args!(
                    "{} cannot use write-ahead logging (it is {mode})",
                    path.display()
                ),
            ));
        }
        let synchronous = match options.durability {
            Durability::PowerLoss => "FULL",
            Durability::ProcessCrash => "NORMAL",
        };
        writer
            .execute_batch(&format!(
                "PRAGMA synchronous={synchronous}; PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}"
            ))
            .map_err(failed)?;
        if let Some(max) = options.max_bytes {
            let pages = (max / PAGE_BYTES).max(1);
            let _: i64 = writer
                .query_row(&format!("PRAGMA max_page_count={pages}"), [], |row| {
                    row.get(0)
                })
                .map_err(failed)?;
        }
        writer.set_prepared_statement_cache_capacity(64);
        schema::migrate(&writer)?;
        let readers = (0..READERS)
            .map(|_| {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let reader = Connection::open_with_flags(&path, flags).map_err(failed)?;
                reader.busy_timeout(options.busy_timeout).map_err(failed)?;
                reader.set_prepared_statement_cache_capacity(64);
                Ok(reader)
            })
            .collect::<StoreResult<Vec<_>>>()?;
        let pen = SqliteWriter {
            connection: writer,
            ahead: (options.durability == Durability::PowerLoss)
                .then(|| WalPreallocator::of(&path)),
        };
        let threads = SqliteThreads::new(pen, readers, &path);
        let (hints, _) = broadcast::channel(HINTS);
        let (calls, _) = broadcast::channel(HINTS);
        Ok(Self {
            neighbours: NeighbourWatch::of(&path)?,
            path,
            threads,
            hints,
            calls,
            guard: options.guard,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a copy of the whole database, taken at one moment, into a file that must not exist.
    pub async fn backup(&self, to: &Path) -> StoreResult<()> {
        let to = to.to_string_lossy().into_owned();
        self.threads
            .read(move |db| db.execute("VACUUM INTO ?", [&to]).map(drop).map_err(failed))
            .await
    }

    /// What SQLite itself finds wrong with the file.
    pub async fn damage(&self) -> StoreResult<Vec<String>> {
        self.threads
            .read(|db| {
                let mut statement = db.prepare("PRAGMA integrity_check").map_err(failed)?;
                let rows = statement.query_map([], |row| row.get(0)).map_err(failed)?;
                let found: Vec<String> = rows.collect::<rusqlite::Result<_>>().map_err(failed)?;
                Ok(found.into_iter().filter(|line| line != "ok").collect())
            })
            .await
    }

    /// Checks what can be checked without the database, and packs.
    fn admit(&self, append: LogAppend) -> StoreResult<write::PackedAppend> {
        append.check_limits()?;
        self.guard.check_append(&append)?;
        let (bodies, blobs) = pack_all(&append.records, &append.blobs);
        Ok(write::PackedAppend {
            append,
            bodies,
            blobs,
        })
    }

    fn hint(&self, hint: StoreHint) {
        // Sending fails only where there is no receiver.
        if !matches!(hint, StoreHint::Run(_)) {
            let _ = self.calls.send(hint.clone());
        }
        let _ = self.hints.send(hint);
    }
}

fn pack_all(records: &[LogRecord], blobs: &[Blob]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let bodies = records
        .iter()
        .map(|record| body::pack(&record.body))
        .collect();
    let blobs = blobs.iter().map(|blob| body::pack(&blob.bytes)).collect();
    (bodies, blobs)
}

#[async_trait]
impl RunStore for SqliteStore {
    fn backend(&self) -> &'static str {
        "sqlite"
    }

    async fn create(&self, run: NewRun) -> StoreResult<()> {
        self.guard.check_new(&run)?;
        let (bodies, blobs) = pack_all(&run.records, &run.blobs);
        // A run in the queue is news for workers, like a signal.
        let news = if run.claim.is_none() {
            StoreHint::Signal
        } else {
            StoreHint::Run
        };
        let news = news(run.run.clone());
        let weight = run.records.len();
        self.threads
            .write(weight, move |db| {
                write::create(db, &run, &bodies, &blobs).map(drop)
            })
            .await?;
        self.hint(news);
        Ok(())
    }

    async fn create_and_append(&self, run: NewRun, append: LogAppend) -> StoreResult<LogHead> {
        self.guard.check_new(&run)?;
        let packed = self.admit(append)?;
        let (bodies, blobs) = pack_all(&run.records, &run.blobs);
        let news = StoreHint::Run(run.run.clone());
        let weight = run.records.len() + packed.bodies.len();
        let head = self
            .threads
            .write(weight, move |db| {
                write::create_and_append(db, &run, &bodies, &blobs, &packed)
            })
            .await?;
        self.hint(news);
        Ok(head)
    }

    async fn append(&self, append: LogAppend) -> StoreResult<LogHead> {
        let run = append.run.clone();
        let packed = self.admit(append)?;
        let weight = packed.bodies.len();
        let head = self
            .threads
            .write(weight, move |db| write::append(db, &packed))
            .await?;
        self.hint(StoreHint::Run(run));
        Ok(head)
    }

    async fn read(&self, run: &RunId, from: u64, limit: u32) -> StoreResult<Vec<LogRecord>> {
        let run = run.clone();
        self.threads
            .read(move |db| read::read(db, &run, from, limit))
            .await
    }

    async fn run(&self, run: &RunId) -> StoreResult<Option<RunRow>> {
        let run = run.clone();
        self.threads.read(move |db| read::run(db, &run)).await
    }

    async fn runs(&self, filter: &RunFilter) -> StoreResult<Vec<RunRow>> {
        let filter = filter.clone();
        self.threads.read(move |db| read::runs(db, &filter)).await
    }

    async fn claim(
        &self,
        graph: &str,
        claim: &LeaseClaim,
        limit: u32,
    ) -> StoreResult<Vec<RunLease>> {
        let (graph, claim) = (graph.to_owned(), claim.clone());
        self.threads
            .write(1, move |db| queue::claim(db, &graph, &claim, limit))
            .await
    }

    async fn claim_run(&self, run: &RunId, claim: &LeaseClaim) -> StoreResult<Option<RunLease>> {
        let (run, claim) = (run.clone(), claim.clone());
        self.threads
            .write(1, move |db| queue::claim_run(db, &run, &claim))
            .await
    }

    async fn renew(&self, lease: &RunLease, until_ms: u64) -> StoreResult<bool> {
        let lease = lease.clone();
        self.threads
            .write(1, move |db| queue::renew(db, &lease, until_ms))
            .await
    }

    async fn send(&self, run: &RunId, signal: &RunSignal) -> StoreResult<u64> {
        let text = serde_json::to_string(signal).map_err(corrupt)?;
        self.guard.check_text("a signal", &text)?;
        let id = run.clone();
        let sent = self
            .threads
            .write(1, move |db| queue::send(db, &id, &text))
            .await?;
        self.hint(StoreHint::Signal(run.clone()));
        Ok(sent)
    }

    async fn signals(&self, run: &RunId) -> StoreResult<Vec<(u64, RunSignal)>> {
        let run = run.clone();
        self.threads.read(move |db| read::signals(db, &run)).await
    }

    async fn blob(&self, digest: &Digest) -> StoreResult<Vec<u8>> {
        let digest = *digest;
        self.threads.read(move |db| read::blob(db, &digest)).await
    }

    async fn condemn_blobs(&self, blobs: &[BlobRef]) -> StoreResult<()> {
        let blobs = blobs.to_vec();
        self.threads
            .write(1, move |db| write::condemn_blobs(db, &blobs))
            .await
    }

    async fn drop_blobs(&self, blobs: &[BlobRef]) -> StoreResult<Vec<BlobRef>> {
        let blobs = blobs.to_vec();
        self.threads
            .write(1, move |db| write::drop_blobs(db, &blobs))
            .await
    }

    async fn shrink(&self) -> StoreResult<()> {
        self.threads.shrink().await
    }

    async fn effects(&self, run: &RunId) -> StoreResult<Vec<EffectRow>> {
        let run = run.clone();
        self.threads.read(move |db| read::effects(db, &run)).await
    }

    async fn effects_in(&self, state: EffectState) -> StoreResult<Vec<(RunId, EffectRow)>> {
        self.threads
            .read(move |db| read::effects_in(db, state))
            .await
    }

    async fn approval(&self, approval: &ApprovalId) -> StoreResult<Option<ApprovalRow>> {
        let approval = approval.clone();
        self.threads
            .read(move |db| read::approval(db, &approval))
            .await
    }

    async fn approvals_in(&self, state: ApprovalState) -> StoreResult<Vec<ApprovalRow>> {
        self.threads
            .read(move |db| read::approvals_in(db, state))
            .await
    }

    async fn ledger(&self, run: &RunId) -> StoreResult<Vec<LedgerRow>> {
        let run = run.clone();
        self.threads.read(move |db| read::ledger(db, &run)).await
    }

    async fn snapshot(&self, run: &RunId) -> StoreResult<Option<StateSnapshot>> {
        let run = run.clone();
        self.threads.read(move |db| read::snapshot(db, &run)).await
    }

    async fn drop_snapshots(&self, run: &RunId) -> StoreResult<()> {
        let run = run.clone();
        self.threads
            .write(1, move |db| write::drop_snapshots(db, &run))
            .await
    }

    fn watch(&self) -> broadcast::Receiver<StoreHint> {
        let hints = self.hints.subscribe();
        self.neighbours.begin(&self.hints, &self.calls);
        hints
    }

    fn watch_signals(&self) -> broadcast::Receiver<StoreHint> {
        let calls = self.calls.subscribe();
        self.neighbours.begin(&self.hints, &self.calls);
        calls
    }
}
