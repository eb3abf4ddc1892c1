//! One connection that writes, a few that read, and who works with them.
//!
//! A job that finds a connection free is done at once by the caller: handing it to a thread and
//! waking up again costs more than most jobs. While others write, jobs queue for the writer's
//! thread, and whatever waits when it is free goes into one transaction: under load many appends
//! share one flush to disk, and a lone append never waits for company. Each job has a savepoint of
//! its own, so that one that is refused leaves nothing behind and the others are kept. No caller gets
//! an answer before the commit.
//!
//! Threads begin with the first job that has to wait for one: a process that only reads, one job after
//! the other, has none, and can still lock itself in.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::ahead::WalPreallocator;
use super::failed;
use crate::error::{StoreError, StoreResult};

/// Most events in one transaction.
const MAX_EVENTS: usize = 512;
/// Longest time jobs are collected for one transaction.
const MAX_COLLECT: Duration = Duration::from_millis(2);

trait Job: Send {
    fn weight(&self) -> usize;
    /// Does the work; `false` asks for its changes to be undone.
    fn work(&mut self, connection: &Connection) -> bool;
    fn answer(self: Box<Self>, committed: StoreResult<(), &StoreError>);
}

struct Task<T, F> {
    weight: usize,
    work: F,
    result: Option<StoreResult<T>>,
    reply: oneshot::Sender<StoreResult<T>>,
}

impl<T: Send, F: FnMut(&Connection) -> StoreResult<T> + Send> Job for Task<T, F> {
    fn weight(&self) -> usize {
        self.weight
    }

    fn work(&mut self, connection: &Connection) -> bool {
        let result = (self.work)(connection);
        let keep = result.is_ok();
        self.result = Some(result);
        keep
    }

    fn answer(self: Box<Self>, committed: StoreResult<(), &StoreError>) {
        let answer = match (self.result, committed) {
            (Some(Err(refused)), _) => Err(refused),
            (Some(done), Ok(())) => done,
            (_, Err(error)) => Err(again(error)),
            (None, Ok(())) => Err(StoreError::backend("sqlite", "a job was not run")),
        };
        // A caller that was cancelled does not wait any more; the commit stands.
        let _ = self.reply.send(answer);
    }
}

/// The same error for another job of the same transaction.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy(message) => StoreError::Busy(message.clone()),
        StoreError::Full(message) => StoreError::Full(message.clone()),
        other => StoreError::backend("sqlite", other),
    }
}

/// The connections, and the threads that work with them.
pub(super) struct SqliteThreads {
    writer: Arc<Writer>,
    readers: Arc<[Mutex<Connection>]>,
    path: PathBuf,
    /// Where jobs wait, once one had to.
    queues: Mutex<Option<JobQueues>>,
}

/// Jobs on their way to the threads, which end with it.
#[derive(Clone)]
struct JobQueues {
    writes: Sender<Box<dyn Job>>,
    reads: Sender<Box<dyn Job>>,
}

/// The one connection that writes, and the room before it.
pub(super) struct SqliteWriter {
    pub(super) connection: Connection,
    /// Where commits are flushed one by one.
    pub(super) ahead: Option<WalPreallocator>,
}

impl SqliteWriter {
    fn begin(&mut self) -> StoreResult<()> {
        run(&self.connection, "BEGIN IMMEDIATE")?;
        if let Some(ahead) = &mut self.ahead {
            ahead.look();
        }
        Ok(())
    }
}

struct Writer {
    pen: Mutex<SqliteWriter>,
    /// Writes asked for and not yet answered.
    pending: AtomicUsize,
}

fn gone() -> StoreError {
    StoreError::backend("sqlite", "the database thread has ended")
}

/// A panic leaves no transaction open that a later job could continue: `BEGIN` would refuse.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(shared: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match shared.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl SqliteThreads {
    pub(super) fn new(pen: SqliteWriter, readers: Vec<Connection>, path: &Path) -> Self {
        Self {
            writer: Arc::new(Writer {
                pen: Mutex::new(pen),
                pending: AtomicUsize::new(0),
            }),
            readers: readers.into_iter().map(Mutex::new).collect(),
            path: path.to_owned(),
            queues: Mutex::new(None),
        }
    }

    /// The queues of the threads, which are started where there are none yet.
    fn queues(&self) -> StoreResult<JobQueues> {
        let mut queues = lock(&self.queues);
        if let Some(queues) = &*queues {
            return Ok(queues.clone());
        }
        let started = self.start()?;
        *queues = Some(started.clone());
        Ok(started)
    }

    fn start(&self) -> StoreResult<JobQueues> {
        let path = self.path.display();
        let (writes, jobs) = channel();
        let shared = Arc::clone(&self.writer);
        spawn(format!("write {path}"), move || {
            write_loop(&shared.pen, &jobs);
        })?;
        let (reads, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for number in 0..self.readers.len() {
            let (jobs, readers) = (Arc::clone(&jobs), Arc::clone(&self.readers));
            spawn(format!("read {path}"), move || {
                read_loop(&readers[number], &jobs);
            })?;
        }
        Ok(JobQueues { writes, reads })
    }

    /// Runs a job in a transaction and returns after it is committed. It may run more than once.
    pub(super) async fn write<T, F>(&self, weight: usize, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> StoreResult<T> + Send + 'static,
    {
        let pending = PendingWrite::add(&self.writer.pending);
        if pending.alone
            && let Some(mut pen) = try_lock(&self.writer.pen)
        {
            return alone(&mut pen, work);
        }
        ask(&self.queues()?.writes, weight, work).await
    }

    /// Writes the file anew without its unused room. No transaction may be open, so this is
    /// not a job: it waits for the writer and keeps it.
    pub(super) async fn shrink(&self) -> StoreResult<()> {
        let writer = Arc::clone(&self.writer);
        let done = tokio::task::spawn_blocking(move || {
            let connection = &lock(&writer.pen).connection;
            connection.execute_batch("VACUUM").map_err(failed)?;
            // The room is the machine's again when the log of changes is copied back.
            connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .map_err(failed)
        });
        done.await
            .map_err(|error| StoreError::backend("sqlite", error))?
    }

    /// Runs a query on a connection that only reads.
    pub(super) async fn read<T, F>(&self, mut work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> StoreResult<T> + Send + 'static,
    {
        if let Some(connection) = self.readers.iter().find_map(try_lock) {
            return work(&connection);
        }
        ask(&self.queues()?.reads, 0, work).await
    }
}

/// One write among those not yet answered; given up when dropped, also by cancellation.
struct PendingWrite<'a> {
    count: &'a AtomicUsize,
    alone: bool,
}

impl<'a> PendingWrite<'a> {
    fn add(count: &'a AtomicUsize) -> Self {
        let alone = count.fetch_add(1, Ordering::Relaxed) == 0;
        Self { count, alone }
    }
}

impl Drop for PendingWrite<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn ask<T, F>(queue: &Sender<Box<dyn Job>>, weight: usize, work: F) -> StoreResult<T>
where
    T: Send + 'static,
    F: FnMut(&Connection) -> StoreResult<T> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    let task = Task {
        weight,
        work,
        result: None,
        reply,
    };
    queue.send(Box::new(task)).map_err(|_| gone())?;
    answer.await.map_err(|_| gone())?
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> StoreResult<()> {
    std::thread::Builder::new()
        .name(name)
        .spawn(body)
        .map(drop)
        .map_err(|error| StoreError::backend("sqlite", error))
}

fn read_loop(connection: &Mutex<Connection>, jobs: &Mutex<Receiver<Box<dyn Job>>>) {
    loop {
        let Ok(Ok(mut job)) = jobs.lock().map(|jobs| jobs.recv()) else {
            return;
        };
        job.work(&lock(connection));
        job.answer(Ok(()));
    }
}

fn write_loop(pen: &Mutex<SqliteWriter>, jobs: &Receiver<Box<dyn Job>>) {
    while let Ok(first) = jobs.recv() {
        let mut pen = lock(pen);
        let started = Instant::now();
        let mut weight = first.weight();
        let mut batch = vec![first];
        while weight < MAX_EVENTS && started.elapsed() < MAX_COLLECT {
            let Ok(job) = jobs.try_recv() else { break };
            weight += job.weight();
            batch.push(job);
        }
        let committed = transact(&mut pen, &mut batch);
        drop(pen);
        for job in batch {
            job.answer(committed.as_ref().copied());
        }
    }
}

fn run(connection: &Connection, sql: &str) -> StoreResult<()> {
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    statement.execute([]).map(drop).map_err(failed)
}

/// One job in a transaction of its own; refused, it is undone with it.
fn alone<T>(
    pen: &mut SqliteWriter,
    mut work: impl FnMut(&Connection) -> StoreResult<T>,
) -> StoreResult<T> {
    pen.begin()?;
    let connection = &pen.connection;
    let done = work(connection).and_then(|value| {
        run(connection, "COMMIT")?;
        Ok(value)
    });
    if done.is_err() && !connection.is_autocommit() {
        run(connection, "ROLLBACK")?;
    }
    done
}

fn transact(pen: &mut SqliteWriter, batch: &mut [Box<dyn Job>]) -> StoreResult<()> {
    pen.begin()?;
    let connection = &pen.connection;
    if let [job] = batch {
        // Without a savepoint: refused, it is undone with the transaction.
        let done = if job.work(connection) {
            run(connection, "COMMIT")
        } else if connection.is_autocommit() {
            Ok(())
        } else {
            run(connection, "ROLLBACK")
        };
        if done.is_err() && !connection.is_autocommit() {
            let _ = run(connection, "ROLLBACK");
        }
        return done;
    }
    let run = |sql: &str| run(connection, sql);
    let work = || -> StoreResult<()> {
        for job in batch.iter_mut() {
            run("SAVEPOINT job")?;
            if !job.work(connection) {
                if connection.is_autocommit() {
                    // SQLite gave up the whole transaction (disk full, I/O error).
                    return Err(StoreError::Full(
                        "the transaction was rolled back".to_owned(),
                    ));
                }
                run("ROLLBACK TO job")?;
            }
            run("RELEASE job")?;
        }
        run("COMMIT")
    };
    let done = { work }();
    if done.is_err() && !connection.is_autocommit() {
        let _ = run("ROLLBACK");
    }
    done
}
