//! The one thread that writes, and the threads that read.
//!
//! Whatever waits when the writer is free goes into one transaction: under load many appends share
//! one flush to disk, and a lone append never waits for company. Each job has a savepoint of its
//! own, so that one that is refused leaves nothing behind and the others are kept. Nobody gets an
//! answer before the commit.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failed;
use crate::error::{Result, StoreError};

/// Most events in one transaction.
const MAX_EVENTS: usize = 512;
/// Longest time jobs are collected for one transaction.
const MAX_COLLECT: Duration = Duration::from_millis(2);

trait Job: Send {
    fn weight(&self) -> usize;
    /// Does the work; `false` asks for its changes to be undone.
    fn work(&mut self, connection: &Connection) -> bool;
    fn answer(self: Box<Self>, committed: Result<(), &StoreError>);
}

struct Task<T, F> {
    weight: usize,
    work: F,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T> + Send> Job for Task<T, F> {
    fn weight(&self) -> usize {
        self.weight
    }

    fn work(&mut self, connection: &Connection) -> bool {
        let result = (self.work)(connection);
        let keep = result.is_ok();
        self.result = Some(result);
        keep
    }

    fn answer(self: Box<Self>, committed: Result<(), &StoreError>) {
        let answer = match (self.result, committed) {
            (Some(Err(refused)), _) => Err(refused),
            (Some(done), Ok(())) => done,
            (_, Err(error)) => Err(again(error)),
            (None, Ok(())) => Err(StoreError::backend("sqlite", "a job was not run")),
        };
        // Nobody waits any more where the caller was cancelled; the commit stands.
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

/// Threads with their own connections.
#[derive(Clone)]
pub(super) struct Threads {
    writes: Sender<Box<dyn Job>>,
    reads: Sender<Box<dyn Job>>,
}

fn gone() -> StoreError {
    StoreError::backend("sqlite", "the database thread has ended")
}

impl Threads {
    pub(super) fn start(writer: Connection, readers: Vec<Connection>, path: &Path) -> Result<Self> {
        let (write_queue, jobs) = channel();
        spawn(format!("write {}", path.display()), move || {
            write_loop(&writer, &jobs);
        })?;
        let (read_queue, jobs) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for reader in readers {
            let jobs = Arc::clone(&jobs);
            spawn(format!("read {}", path.display()), move || {
                read_loop(&reader, &jobs);
            })?;
        }
        Ok(Self {
            writes: write_queue,
            reads: read_queue,
        })
    }

    /// Runs a job in a transaction and returns after it is committed. It may run more than once.
    pub(super) async fn write<T, F>(&self, weight: usize, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T> + Send + 'static,
    {
        Self::ask(&self.writes, weight, work).await
    }

    /// Runs a query.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T> + Send + 'static,
    {
        Self::ask(&self.reads, 0, work).await
    }

    async fn ask<T, F>(queue: &Sender<Box<dyn Job>>, weight: usize, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Connection) -> Result<T> + Send + 'static,
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
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name)
        .spawn(body)
        .map(drop)
        .map_err(|error| StoreError::backend("sqlite", error))
}

fn read_loop(connection: &Connection, jobs: &Mutex<Receiver<Box<dyn Job>>>) {
    loop {
        let Ok(Ok(mut job)) = jobs.lock().map(|jobs| jobs.recv()) else {
            return;
        };
        job.work(connection);
        job.answer(Ok(()));
    }
}

fn write_loop(connection: &Connection, jobs: &Receiver<Box<dyn Job>>) {
    while let Ok(first) = jobs.recv() {
        let started = Instant::now();
        let mut weight = first.weight();
        let mut batch = vec![first];
        while weight < MAX_EVENTS && started.elapsed() < MAX_COLLECT {
            let Ok(job) = jobs.try_recv() else { break };
            weight += job.weight();
            batch.push(job);
        }
        let committed = transact(connection, &mut batch);
        for job in batch {
            job.answer(committed.as_ref().copied());
        }
    }
}

fn transact(connection: &Connection, batch: &mut [Box<dyn Job>]) -> Result<()> {
    let run = |sql: &str| -> Result<()> {
        let mut statement = connection.prepare_cached(sql).map_err(failed)?;
        statement.execute([]).map(drop).map_err(failed)
    };
    run("BEGIN IMMEDIATE")?;
    if let [job] = batch {
        // Alone in its transaction, a job that is refused is undone with it.
        if !job.work(connection) {
            if !connection.is_autocommit() {
                run("ROLLBACK")?;
            }
            return Ok(());
        }
        let done = run("COMMIT");
        if done.is_err() && !connection.is_autocommit() {
            let _ = run("ROLLBACK");
        }
        return done;
    }
    let work = || -> Result<()> {
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
