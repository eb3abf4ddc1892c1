//! The drivers of runs: each a process of its own, as `lula resume` in the background is, with its own
//! runner and its own lock. So many at one time; others wait in a queue that is bounded.
//!
//! A driver does not end with the server: what it drives goes on, and the next server finds it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lula_host::drive::background;
use lula_host::drive::worker::RunActivity;
use lula_host::history::listing::is_driven;
use lula_host::record::now_ms;
use lula_protocol::RunId;
use lula_store::{RunFilter, RunStatus, RunStore};
use tokio::sync::Notify;

use crate::metrics::ServerMetrics;
use crate::problem::ApiResult;
use crate::records::ServerRecords;
use crate::repositories::Repositories;

/// How often it is looked for runs that are due and have no driver.
const LOOK: Duration = Duration::from_secs(2);
/// A run whose driver ends so often without bringing it to rest is left to a person.
const PATIENCE: u32 = 3;
/// How long drivers may take to put their runs down when the server ends.
const ENDING: Duration = Duration::from_secs(25);

/// What starts drivers, and knows those at work.
pub(crate) struct Drivers {
    at_once: usize,
    longest_queue: usize,
    /// Flags of the command line that hold for drivers too.
    settings: Vec<OsString>,
    place: Mutex<DriverQueue>,
    news: Notify,
    metrics: Arc<ServerMetrics>,
}

#[derive(Default)]
struct DriverQueue {
    waiting: VecDeque<RunId>,
    /// Runs with a driver, and the process where it was started here.
    driven: HashMap<RunId, Option<u32>>,
    /// Runs that were sent something while their driver may have been about to end.
    again: HashSet<RunId>,
    /// How often in a row the driver of a run ended too early.
    failures: HashMap<RunId, u32>,
    ending: bool,
}

impl DriverQueue {
    fn waits(&self, run: &RunId) -> bool {
        self.waiting.contains(run)
    }
}

/// What drivers work with.
pub(crate) struct DriverGround {
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) records: Arc<ServerRecords>,
    pub(crate) repositories: Arc<Repositories>,
}

impl Drivers {
    pub(crate) fn new(
        at_once: usize,
        longest_queue: usize,
        settings: Vec<String>,
        metrics: Arc<ServerMetrics>,
    ) -> Self {
        Self {
            at_once,
            longest_queue,
            settings: settings.into_iter().map(OsString::from).collect(),
            place: Mutex::default(),
            news: Notify::new(),
            metrics,
        }
    }

    fn queue(&self) -> MutexGuard<'_, DriverQueue> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another run can wait.
    pub(crate) fn has_room(&self) -> bool {
        let queue = self.queue();
        // A run that is about to be driven waits for a moment: both count together.
        let taken = queue.driven.len() + queue.waiting.len();
        !queue.ending && taken < self.at_once.saturating_add(self.longest_queue)
    }

    /// Has a run driven: now, or when a driver is free. What waits already waits once.
    pub(crate) fn drive(&self, run: &RunId) {
        let mut queue = self.queue();
        queue.failures.remove(run);
        if queue.driven.contains_key(run) {
            queue.again.insert(run.clone());
        } else if !queue.waits(run) {
            queue.waiting.push_back(run.clone());
        }
        drop(queue);
        self.news.notify_one();
    }

    /// How many are driven and how many wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let queue = self.queue();
        (queue.driven.len(), queue.waiting.len())
    }

    /// Whether a run waits for a driver, or has one.
    pub(crate) fn has(&self, run: &RunId) -> bool {
        let queue = self.queue();
        queue.waits(run) || queue.driven.contains_key(run)
    }

    /// Starts drivers until the server ends.
    pub(crate) async fn work(self: Arc<Self>, ground: Arc<DriverGround>) {
        loop {
            while let Some(run) = self.next() {
                let (drivers, ground) = (Arc::clone(&self), Arc::clone(&ground));
                tokio::spawn(async move { drivers.see_through(run, &ground).await });
            }
            if self.queue().ending {
                return;
            }
            if tokio::time::timeout(LOOK, self.news.notified())
                .await
                .is_err()
                && let Err(refusal) = self.look(&ground).await
            {
                tracing::warn!(code = %refusal.code(), "runs that are due cannot be looked for");
            }
        }
    }

    fn next(&self) -> Option<RunId> {
        let mut queue = self.queue();
        if queue.ending || queue.driven.len() >= self.at_once {
            return None;
        }
        let run = queue.waiting.pop_front()?;
        queue.driven.insert(run.clone(), None);
        Some(run)
    }

    /// Finds the runs of this server that could go on and that nothing drives: after a restart, when a
    /// time has come, or when they were sent something from elsewhere.
    async fn look(&self, ground: &DriverGround) -> ApiResult<()> {
        let open = ground.records.open_runs()?;
        if open.is_empty() {
            return Ok(());
        }
        let rows = ground.store.runs(&RunFilter::default()).await?;
        let rows: HashMap<_, _> = rows.into_iter().map(|row| (row.run.clone(), row)).collect();
        for (run, _) in open {
            let Some(row) = rows.get(&run) else { continue };
            let due = match row.status {
                RunStatus::Done => {
                    ground.records.over(&run)?;
                    false
                }
                RunStatus::Suspended => row.due_ms.is_some_and(|due| due <= now_ms()),
                RunStatus::Ready | RunStatus::Running => !is_driven(row),
            };
            let given_up = self.queue().failures.get(&run).copied().unwrap_or(0) >= PATIENCE;
            if due && !given_up && !self.has(&run) {
                self.queue().waiting.push_back(run);
                self.news.notify_one();
            }
        }
        Ok(())
    }

    /// One driver, from its start to its end.
    async fn see_through(&self, run: RunId, ground: &DriverGround) {
        let brought_to_rest = match self.start(&run, ground) {
            Ok(child) => {
                self.queue().driven.insert(run.clone(), Some(child.id()));
                self.metrics.drivers_started.inc();
                self.wait(&run, child, ground).await
            }
            Err(why) => {
                tracing::error!(%run, why, "no driver could be started");
                false
            }
        };
        let mut queue = self.queue();
        queue.driven.remove(&run);
        let again = queue.again.remove(&run);
        let failures = if brought_to_rest {
            queue.failures.remove(&run);
            0
        } else {
            self.metrics.drivers_failed.inc();
            let failures = queue.failures.entry(run.clone()).or_default();
            *failures += 1;
            *failures
        };
        if again && failures < PATIENCE && !queue.ending {
            queue.waiting.push_back(run);
        }
        drop(queue);
        self.news.notify_one();
    }

    fn start(&self, run: &RunId, ground: &DriverGround) -> Result<Child, String> {
        let open = ground.records.open_runs();
        let open = open.map_err(|_| "the records of the server cannot be read".to_owned())?;
        let name = open.iter().find(|(known, _)| known == run);
        let repository = name.and_then(|(_, name)| ground.repositories.get(name));
        let repository = repository.ok_or("its repository is not registered any more")?;
        let line = ["resume", run.as_str(), "--detached", "--quiet"];
        let mut line: Vec<OsString> = line.iter().map(OsString::from).collect();
        line.extend(self.settings.iter().cloned());
        let place = &repository.path;
        let started = background::start(run, &line, place, &repository.installation);
        started.map_err(|error| error.to_string())
    }

    /// Waits for the end of a driver. Tells whether it brought its run to rest.
    async fn wait(&self, run: &RunId, mut child: Child, ground: &DriverGround) -> bool {
        let ended = tokio::task::spawn_blocking(move || child.wait()).await;
        let status = ended.ok().and_then(Result::ok);
        let Ok(Some(row)) = ground.store.run(run).await else {
            return false;
        };
        match row.status {
            RunStatus::Done => {
                let _ = ground.records.over(run);
                self.metrics.run_ended(run, &ground.store).await;
                true
            }
            RunStatus::Suspended => true,
            // Another process may have been asked for it.
            RunStatus::Ready | RunStatus::Running => {
                let activity = RunActivity::of(run, &*ground.store).await;
                let elsewhere = matches!(activity, Ok(RunActivity::UnderWay));
                if !elsewhere && !self.queue().ending {
                    tracing::warn!(%run, ?status, "a driver ended before its run rested");
                }
                elsewhere
            }
        }
    }

    /// Asks every driver to put its run down and waits for that, for a while. A driver that takes longer
    /// goes on, as it does where the server dies.
    pub(crate) async fn end(&self) {
        let asked: Vec<u32> = {
            let mut queue = self.queue();
            queue.ending = true;
            queue.waiting.clear();
            queue.driven.values().filter_map(|pid| *pid).collect()
        };
        self.news.notify_one();
        for pid in asked {
            if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
            }
        }
        let end = tokio::time::Instant::now() + ENDING;
        while self.counts().0 > 0 && tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u8) -> RunId {
        RunId::from_parts(1, [number; 10])
    }

    fn drivers(at_once: usize, queue: usize) -> Drivers {
        Drivers::new(
            at_once,
            queue,
            Vec::new(),
            Arc::new(ServerMetrics::default()),
        )
    }

    #[test]
    fn so_many_are_driven_and_so_many_wait() {
        let drivers = drivers(1, 1);
        drivers.drive(&run(1));
        assert_eq!(drivers.next(), Some(run(1)));
        assert!(drivers.has_room());
        drivers.drive(&run(2));
        drivers.drive(&run(2));
        assert_eq!(drivers.next(), None);
        assert_eq!(drivers.counts(), (1, 1));
        assert!(!drivers.has_room());
    }

    #[test]
    fn a_run_that_is_not_driven_yet_takes_its_place_at_once() {
        let drivers = drivers(1, 0);
        drivers.drive(&run(1));
        assert!(!drivers.has_room());
        assert_eq!(drivers.next(), Some(run(1)));
        assert!(!drivers.has_room());
    }

    #[test]
    fn a_run_that_is_driven_is_driven_again_where_something_came() {
        let drivers = drivers(1, 1);
        drivers.drive(&run(1));
        drivers.next();
        drivers.drive(&run(1));
        assert!(drivers.queue().again.contains(&run(1)));
        assert_eq!(drivers.counts(), (1, 0));
    }
}
