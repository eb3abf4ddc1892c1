//! Postgres: several engines on one database. Claims skip what others are claiming, leases are
//! fenced by epochs, NOTIFY gives hints.

mod append;
mod hints;
mod rows;
mod schema;
mod silence;
mod tls;

use async_trait::async_trait;
use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, PoolError, RecyclingMethod};
use lula_protocol::payload::BlobRef;
use lula_protocol::{ApprovalId, Digest, RunId, RunSignal};
use tokio::sync::{broadcast, mpsc};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use crate::append::{
    ApprovalRow, ApprovalState, EffectRow, EffectState, LedgerRow, LogAppend, StateSnapshot,
};
use crate::body;
use crate::error::{StoreError, StoreResult};
use crate::guard::SecretGuard;
use crate::record::{LogHead, LogRecord};
use crate::run::{Durability, LeaseClaim, NewRun, RunFilter, RunLease, RunRow, RunStatus};
use crate::store::{RunStore, StoreHint};
use crate::transport::ServerTransport;
use rows::{corrupt, int, uint};

/// How a database is used.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The schema the tables are in; letters, digits and underscores.
    pub schema: String,
    /// Most connections for queries; one more listens.
    pub connections: usize,
    /// What acknowledged data survives.
    pub durability: Durability,
    /// How the server is spoken to.
    pub transport: ServerTransport,
    /// Values that must not be stored.
    pub guard: SecretGuard,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "lula".to_owned(),
            connections: 16,
            durability: Durability::PowerLoss,
            transport: ServerTransport::default(),
            guard: SecretGuard::default(),
        }
    }
}

/// A store in a Postgres schema.
pub struct PostgresStore {
    pool: Pool,
    hints: broadcast::Sender<StoreHint>,
    notes: mpsc::UnboundedSender<StoreHint>,
    guard: SecretGuard,
}

#[allow(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn failed(error: tokio_postgres::Error) -> StoreError {
    if let Some(cause) = error.as_db_error() {
        let message = cause.message().to_owned();
        return match *cause.code() {
            SqlState::DISK_FULL => StoreError::Full(message),
            SqlState::LOCK_NOT_AVAILABLE | SqlState::T_R_DEADLOCK_DETECTED => {
                StoreError::Busy(message)
            }
            _ => StoreError::backend("postgres", cause),
        };
    }
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let cause = cause.unwrap_or_default();
    StoreError::backend("postgres", format_args!("{error} {cause}"))
}

impl PostgresStore {
    /// Connects, and brings the schema to today's version.
    pub async fn connect(url: &str, options: PostgresOptions) -> StoreResult<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if options.schema.is_empty() || !options.schema.chars().all(plain) {
            return Err(StoreError::backend(
                "postgres",
                format_args!(
                    "{:?} is no schema name: use letters, digits and _",
                    options.schema
                ),
            ));
        }
        let (mut config, tls) = tls::read_address(url, &options.transport)?;
        let path = format!("-c search_path={} -c synchronous_commit=on", options.schema);
        config.options(&path);
        config.application_name("lula");
        silence::notice(&mut config);
        let manager_config = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(config.clone(), tls.clone(), manager_config);
        let pool = Pool::builder(manager)
            .max_size(options.connections.max(1))
            .build()
            .map_err(|error| StoreError::backend("postgres", error))?;
        let mut client = get(&pool).await?;
        if options.durability == Durability::PowerLoss {
            let row = client.query_one("SHOW fsync", &[]).await.map_err(failed)?;
            if row.get::<_, &str>(0) != "on" {
                return Err(StoreError::NotDurable(
                    "this Postgres runs with fsync=off and forgets data when the power fails: \
                     turn it on, or set store.durability = \"process-crash\""
                        .to_owned(),
                ));
            }
        }
        schema::migrate(&mut client, &options.schema).await?;
        drop(client);
        let (sender, _) = broadcast::channel(1024);
        let channel = format!("lula_{}", options.schema);
        let (notes, queue) = mpsc::unbounded_channel();
        tokio::spawn(hints::send(pool.clone(), channel.clone(), queue));
        tokio::spawn(hints::listen(config, tls, channel, sender.downgrade()));
        Ok(Self {
            pool,
            hints: sender,
            notes,
            guard: options.guard,
        })
    }

    async fn query(&self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> StoreResult<Vec<Row>> {
        let client = get(&self.pool).await?;
        let statement = client.prepare_cached(sql).await.map_err(failed)?;
        client.query(&statement, params).await.map_err(failed)
    }

    async fn query_opt(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> StoreResult<Option<Row>> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    async fn key(&self, run: &RunId) -> StoreResult<i64> {
        let row = self
            .query_opt("SELECT id FROM runs WHERE run_id=$1", &[&run.as_str()])
            .await?;
        row.map(|row| row.get(0))
            .ok_or_else(|| StoreError::NoRun(run.clone()))
    }

    fn hint(&self, hint: StoreHint) {
        // Fails only when the runtime is going down.
        let _ = self.notes.send(hint);
    }
}

async fn get(pool: &Pool) -> StoreResult<Client> {
    pool.get().await.map_err(|error| match error {
        // Why a connection cannot be made stands one level deeper.
        PoolError::Backend(error) => failed(error),
        other => StoreError::backend("postgres", other),
    })
}

#[async_trait]
impl RunStore for PostgresStore {
    fn backend(&self) -> &'static str {
        "postgres"
    }

    async fn create(&self, run: NewRun) -> StoreResult<()> {
        self.guard.check_new(&run)?;
        let mut client = get(&self.pool).await?;
        let tx = client.transaction().await.map_err(failed)?;
        append::create(&tx, &run).await?;
        tx.commit().await.map_err(failed)?;
        // A run in the queue is news for workers, like a signal.
        let news = if run.claim.is_none() {
            StoreHint::Signal
        } else {
            StoreHint::Run
        };
        self.hint(news(run.run));
        Ok(())
    }

    async fn create_and_append(&self, run: NewRun, append: LogAppend) -> StoreResult<LogHead> {
        self.guard.check_new(&run)?;
        append.check_limits()?;
        self.guard.check_append(&append)?;
        let mut client = get(&self.pool).await?;
        let tx = client.transaction().await.map_err(failed)?;
        append::create(&tx, &run).await?;
        let head = append::append(&tx, &append).await?;
        tx.commit().await.map_err(failed)?;
        self.hint(StoreHint::Run(run.run));
        Ok(head)
    }

    async fn append(&self, append: LogAppend) -> StoreResult<LogHead> {
        append.check_limits()?;
        self.guard.check_append(&append)?;
        let mut client = get(&self.pool).await?;
        let tx = client.transaction().await.map_err(failed)?;
        let head = append::append(&tx, &append).await?;
        tx.commit().await.map_err(failed)?;
        self.hint(StoreHint::Run(append.run));
        Ok(head)
    }

    async fn read(&self, run: &RunId, from: u64, limit: u32) -> StoreResult<Vec<LogRecord>> {
        let id = self.key(run).await?;
        // The entry before the first one asked for brings the digest that one continues.
        let first = int(from.saturating_sub(1));
        let count = i64::from(limit) + i64::from(from > 0);
        let sql = "SELECT seq,epoch,at_ms,schema,hash,body FROM events
                   WHERE run=$1 AND seq>=$2 ORDER BY seq LIMIT $3";
        let mut previous = LogHead::empty().hash;
        let mut records = Vec::new();
        for row in self.query(sql, &[&id, &first, &count]).await? {
            let seq = uint(row.get(0));
            let hash = rows::digest(row.get(4))?;
            if seq >= from {
                let body = body::unpack(row.get(5)).map_err(|error| StoreError::CorruptEvent {
                    run: run.clone(),
                    seq,
                    why: error.to_string(),
                })?;
                records.push(LogRecord {
                    run: run.clone(),
                    seq,
                    epoch: uint(row.get(1)),
                    at_ms: uint(row.get(2)),
                    schema: u32::try_from(row.get::<_, i32>(3)).map_err(corrupt)?,
                    previous,
                    hash,
                    body,
                });
            }
            previous = hash;
        }
        Ok(records)
    }

    async fn run(&self, run: &RunId) -> StoreResult<Option<RunRow>> {
        let sql = format!("SELECT {} FROM runs WHERE run_id=$1", rows::RUN);
        let row = self.query_opt(&sql, &[&run.as_str()]).await?;
        row.as_ref().map(rows::run).transpose()
    }

    async fn runs(&self, filter: &RunFilter) -> StoreResult<Vec<RunRow>> {
        let sql = format!(
            "SELECT {} FROM runs
             WHERE ($1::text IS NULL OR tenant=$1) AND ($2::text IS NULL OR status=$2)
               AND ($3::text IS NULL OR run_id>$3 COLLATE \"C\")
             ORDER BY run_id COLLATE \"C\" LIMIT $4",
            rows::RUN
        );
        let status = filter.status.map(RunStatus::name);
        let after = filter.after.as_ref().map(RunId::as_str);
        let limit = filter.limit.map(i64::from);
        let found = self
            .query(&sql, &[&filter.tenant, &status, &after, &limit])
            .await?;
        found.iter().map(rows::run).collect()
    }

    async fn claim(
        &self,
        graph: &str,
        claim: &LeaseClaim,
        limit: u32,
    ) -> StoreResult<Vec<RunLease>> {
        let sql = format!(
            "UPDATE runs SET epoch=epoch+1, status='running', owner=$1, due_ms=$2
             WHERE id IN (
               SELECT id FROM runs WHERE graph=$3 AND due_ms<=$4
               ORDER BY due_ms LIMIT $5 FOR UPDATE SKIP LOCKED
             ) {}",
            rows::LEASE
        );
        let (until, now) = (int(claim.until_ms()), int(claim.now_ms));
        let limit = i64::from(limit);
        let found = self
            .query(&sql, &[&claim.worker, &until, &graph, &now, &limit])
            .await?;
        found.iter().map(rows::lease).collect()
    }

    async fn claim_run(&self, run: &RunId, claim: &LeaseClaim) -> StoreResult<Option<RunLease>> {
        self.key(run).await?;
        let sql = format!(
            "UPDATE runs SET epoch=epoch+1, status='running', owner=$1, due_ms=$2
             WHERE run_id=$3 AND due_ms<=$4 {}",
            rows::LEASE
        );
        let (until, now) = (int(claim.until_ms()), int(claim.now_ms));
        let row = self
            .query_opt(&sql, &[&claim.worker, &until, &run.as_str(), &now])
            .await?;
        row.as_ref().map(rows::lease).transpose()
    }

    async fn renew(&self, lease: &RunLease, until_ms: u64) -> StoreResult<bool> {
        let sql = "UPDATE runs SET due_ms=$1 WHERE run_id=$2 AND epoch=$3 AND status='running'
                   RETURNING EXISTS(SELECT 1 FROM signals WHERE signals.run=runs.id)";
        let params: &[&(dyn ToSql + Sync)] =
            &[&int(until_ms), &lease.run.as_str(), &int(lease.epoch)];
        match self.query_opt(sql, params).await? {
            Some(row) => Ok(row.get(0)),
            None => Err(StoreError::Fenced {
                run: lease.run.clone(),
                epoch: lease.epoch,
            }),
        }
    }

    async fn send(&self, run: &RunId, signal: &RunSignal) -> StoreResult<u64> {
        let text = serde_json::to_string(signal).map_err(corrupt)?;
        self.guard.check_text("a signal", &text)?;
        let mut client = get(&self.pool).await?;
        let tx = client.transaction().await.map_err(failed)?;
        let lock = "SELECT id FROM runs WHERE run_id=$1 FOR UPDATE";
        let row = tx.query_opt(lock, &[&run.as_str()]).await.map_err(failed)?;
        let id: i64 = row.ok_or_else(|| StoreError::NoRun(run.clone()))?.get(0);
        let insert = "INSERT INTO signals(run,body) VALUES ($1,$2) RETURNING id";
        let sent: i64 = tx
            .query_one(insert, &[&id, &text])
            .await
            .map_err(failed)?
            .get(0);
        let wake = "UPDATE runs SET status='ready', due_ms=0 WHERE id=$1 AND status='suspended'";
        tx.execute(wake, &[&id]).await.map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        self.hint(StoreHint::Signal(run.clone()));
        Ok(uint(sent))
    }

    async fn signals(&self, run: &RunId) -> StoreResult<Vec<(u64, RunSignal)>> {
        let id = self.key(run).await?;
        let sql = "SELECT id,body FROM signals WHERE run=$1 ORDER BY id";
        let found = self.query(sql, &[&id]).await?;
        let read = |row: &Row| {
            let signal = serde_json::from_str(row.get(1)).map_err(corrupt)?;
            Ok((uint(row.get(0)), signal))
        };
        found.iter().map(read).collect()
    }

    async fn blob(&self, digest: &Digest) -> StoreResult<Vec<u8>> {
        let sql = "SELECT bytes, fate=2 FROM blobs WHERE hash=$1";
        let row = self
            .query_opt(sql, &[&digest.as_bytes().as_slice()])
            .await?;
        let row = row.ok_or(StoreError::NoBlob(*digest))?;
        if row.get(1) {
            return Err(StoreError::Dropped(*digest));
        }
        body::unpack_blob(digest, row.get(0))
    }

    async fn condemn_blobs(&self, blobs: &[BlobRef]) -> StoreResult<()> {
        let hashes: Vec<&[u8]> = blobs
            .iter()
            .map(|b| b.digest.as_bytes().as_slice())
            .collect();
        let sql = "UPDATE blobs SET fate=1 WHERE hash=ANY($1) AND fate=0";
        self.query(sql, &[&hashes]).await.map(drop)
    }

    async fn drop_blobs(&self, blobs: &[BlobRef]) -> StoreResult<Vec<BlobRef>> {
        let hashes: Vec<&[u8]> = blobs
            .iter()
            .map(|b| b.digest.as_bytes().as_slice())
            .collect();
        let sizes: Vec<i64> = blobs.iter().map(|blob| int(blob.size)).collect();
        let sql = "INSERT INTO blobs(hash,size,bytes,fate)
                   SELECT hash,size,''::bytea,2 FROM unnest($1::bytea[],$2::bigint[]) AS b(hash,size)
                   ON CONFLICT(hash) DO UPDATE SET bytes=''::bytea, fate=2 WHERE blobs.fate=1
                   RETURNING hash";
        let rows = self.query(sql, &[&hashes, &sizes]).await?;
        let gone: std::collections::BTreeSet<&[u8]> = rows.iter().map(|row| row.get(0)).collect();
        let dropped = |blob: &&BlobRef| gone.contains(blob.digest.as_bytes().as_slice());
        Ok(blobs.iter().filter(dropped).copied().collect())
    }

    async fn effects(&self, run: &RunId) -> StoreResult<Vec<EffectRow>> {
        let id = self.key(run).await?;
        let sql = format!(
            "SELECT {} FROM effects WHERE run=$1 ORDER BY intent_seq,effect",
            rows::EFFECT
        );
        self.query(&sql, &[&id])
            .await?
            .iter()
            .map(rows::effect)
            .collect()
    }

    async fn effects_in(&self, state: EffectState) -> StoreResult<Vec<(RunId, EffectRow)>> {
        let sql = format!(
            "SELECT {},run_id FROM effects JOIN runs ON runs.id=effects.run
             WHERE state=$1 ORDER BY run_id,intent_seq",
            rows::EFFECT
        );
        let found = self.query(&sql, &[&state.name()]).await?;
        let read = |row: &Row| {
            let run = row.get::<_, &str>(8).parse().map_err(corrupt)?;
            Ok((run, rows::effect(row)?))
        };
        found.iter().map(read).collect()
    }

    async fn approval(&self, approval: &ApprovalId) -> StoreResult<Option<ApprovalRow>> {
        let sql = format!("{} WHERE approval=$1", rows::APPROVALS);
        let row = self.query_opt(&sql, &[&approval.as_str()]).await?;
        row.as_ref().map(rows::approval).transpose()
    }

    async fn approvals_in(&self, state: ApprovalState) -> StoreResult<Vec<ApprovalRow>> {
        let sql = format!("{} WHERE state=$1 ORDER BY approval", rows::APPROVALS);
        self.query(&sql, &[&state.name()])
            .await?
            .iter()
            .map(rows::approval)
            .collect()
    }

    async fn ledger(&self, run: &RunId) -> StoreResult<Vec<LedgerRow>> {
        let id = self.key(run).await?;
        let sql =
            "SELECT dimension,cap,reserved,settled FROM ledger WHERE run=$1 ORDER BY dimension";
        self.query(sql, &[&id])
            .await?
            .iter()
            .map(rows::ledger)
            .collect()
    }

    async fn snapshot(&self, run: &RunId) -> StoreResult<Option<StateSnapshot>> {
        let id = self.key(run).await?;
        let sql = "SELECT next,hash,body FROM snapshots WHERE run=$1";
        let Some(row) = self.query_opt(sql, &[&id]).await? else {
            return Ok(None);
        };
        // Only a cache: one that cannot be read is as good as none.
        let Ok(bytes) = body::unpack(row.get(2)) else {
            return Ok(None);
        };
        Ok(Some(StateSnapshot {
            head: LogHead {
                next: uint(row.get(0)),
                hash: rows::digest(row.get(1))?,
            },
            bytes,
        }))
    }

    async fn drop_snapshots(&self, run: &RunId) -> StoreResult<()> {
        let id = self.key(run).await?;
        self.query("DELETE FROM snapshots WHERE run=$1", &[&id])
            .await
            .map(drop)
    }

    fn watch(&self) -> broadcast::Receiver<StoreHint> {
        self.hints.subscribe()
    }
}
