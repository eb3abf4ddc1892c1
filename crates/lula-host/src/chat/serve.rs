//! The driver of a chat: drives its run whenever there is something to do, and tells what happens.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lula_agents::RunnerPort;
use lula_agents::runner_port::workspace_of;
use lula_models::wire::StreamDelta;
use lula_protocol::RunId;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::news::{DriverNews, DriverOrder};
use crate::drive::{Driver, DriverKeys, Observer, StopRequest};
use crate::error::HostError;
use crate::installation::Installation;
use crate::runner_client::RunnerProcess;
use crate::runs;
use crate::store::DriverStore;
use crate::story::{StoryEvent, StoryTeller};

/// How long a driver that had the run before may take to put it down.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells what happens on standard output: each event of the log once.
#[derive(Default)]
struct Teller {
    /// Events before this one were told, or were there before.
    from: AtomicU64,
}

impl Observer for Teller {
    fn begins(&self, told: u64) {
        self.from.fetch_max(told, Ordering::Relaxed);
    }

    fn visiting(&self, node: &str) {
        let node = node.to_owned();
        DriverNews::Visiting { node }.tell();
    }

    fn doing(&self, what: &str) {
        let what = what.to_owned();
        DriverNews::Doing { what }.tell();
    }

    fn answering(&self, delta: &StreamDelta) {
        if let Some(news) = DriverNews::of(delta) {
            news.tell();
        }
    }

    fn happened(&self, moment: &StoryEvent, _: &StoryTeller) {
        if self.from.fetch_max(moment.seq + 1, Ordering::Relaxed) > moment.seq {
            return;
        }
        let kind = serde_json::to_value(moment.kind).unwrap_or_default();
        DriverNews::Happened {
            seq: moment.seq,
            kind: kind.as_str().unwrap_or_default().to_owned(),
            event: moment.event.to_owned(),
            node: moment.node.clone(),
            name: moment.name.clone(),
            text: moment.text.clone(),
            good: moment.good,
            took_ms: moment.took_ms,
        }
        .tell();
    }

    fn trouble(&self, text: &str) {
        let text = text.to_owned();
        DriverNews::Trouble { text }.tell();
    }

    fn warning(&self, text: &str) {
        self.trouble(text);
    }
}

/// Drives the run of a chat for a process that sends orders on standard input, until that process ends
/// it or is gone.
pub async fn serve(run: &str, installation: &Installation) -> Result<(), HostError> {
    let store = DriverStore::open(installation).await?;
    let run = runs::named(&*store.runs, run).await?;
    let known = runs::reader(Arc::clone(&store.runs))?
        .show(&run, None)
        .await?;
    let task = &known.state.task;
    let keys = DriverKeys::read(task, installation)?;
    let runner = RunnerProcess::for_task(task, false);
    let fenced = runner
        .start(installation)
        .await?
        .lock_in(keys, installation)?;
    // Hearing orders takes a thread, which the lock would not have held for.
    let mut orders = hear();
    let stop = StopRequest::default();
    let driver = Driver::open(
        fenced,
        store,
        Arc::new(Teller::default()),
        stop.clone(),
        installation,
    )?;
    DriverNews::Ready.tell();
    let mut going = true;
    loop {
        if going {
            stop.step.turn_begins();
            match drive(&driver, &run, &stop, &mut orders).await? {
                DriveEnd::Rested => DriverNews::Rested.tell(),
                DriveEnd::Again => continue,
                DriveEnd::Alone => return Ok(()),
            }
        }
        going = match orders.recv().await {
            None | Some(DriverOrder::End) => return Ok(()),
            Some(DriverOrder::Go) => true,
            Some(DriverOrder::Change) => {
                change(&driver, &run).await;
                false
            }
            // Nothing is under way.
            Some(DriverOrder::StopStep | DriverOrder::StopTurn | DriverOrder::Notice) => false,
        };
    }
}

/// Why the run is not driven now.
enum DriveEnd {
    Rested,
    /// Something was sent meanwhile.
    Again,
    /// There is no process any more to drive it for.
    Alone,
}

/// Drives the run until it rests.
async fn drive(
    driver: &Driver,
    run: &RunId,
    stop: &StopRequest,
    orders: &mut UnboundedReceiver<DriverOrder>,
) -> Result<DriveEnd, HostError> {
    let (mut served, mut again) = (true, false);
    let reach = patiently(driver, run);
    tokio::pin!(reach);
    loop {
        tokio::select! {
            biased;
            reached = &mut reach => {
                reached?;
                return Ok(match (served, again) {
                    (false, _) => DriveEnd::Alone,
                    (true, true) => DriveEnd::Again,
                    (true, false) => DriveEnd::Rested,
                });
            }
            order = orders.recv(), if served => match order {
                None | Some(DriverOrder::End) => {
                    served = false;
                    stop.once.cancel();
                }
                // It is driven once more: what was sent may have come too late for this time.
                Some(DriverOrder::Go) => {
                    again = true;
                    driver.engine.notice(run);
                }
                Some(DriverOrder::Notice) => driver.engine.notice(run),
                Some(DriverOrder::StopStep) => stop.step.stop_step(),
                Some(DriverOrder::StopTurn) => stop.step.stop_turn(),
                Some(DriverOrder::Change) => {
                    let (runner, run) = (driver.runner().clone(), run.clone());
                    tokio::spawn(async move { tell_change(&runner, &run).await });
                }
            },
        }
    }
}

/// Drives it, once the driver before has put it down.
async fn patiently(driver: &Driver, run: &RunId) -> Result<(), HostError> {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        match driver.reach(run, None).await {
            Err(HostError::RunBusy { .. }) if tokio::time::Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            reached => return reached.map(drop),
        }
    }
}

async fn change(driver: &Driver, run: &RunId) {
    tell_change(driver.runner(), run).await;
}

async fn tell_change(runner: &impl RunnerPort, run: &RunId) {
    match runner.change(&workspace_of(run)).await {
        Ok(taken) => DriverNews::Change {
            diff: taken.diff,
            files: taken.files,
        }
        .tell(),
        Err(error) => DriverNews::Trouble {
            text: format!("the change cannot be shown: {error}"),
        }
        .tell(),
    }
}

/// Reads orders from standard input, as they come.
fn hear() -> UnboundedReceiver<DriverOrder> {
    let (tell, orders) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            // A newer program may ask for what this one does not know.
            let Ok(order) = serde_json::from_str(&line) else {
                continue;
            };
            if tell.send(order).is_err() {
                return;
            }
        }
    });
    orders
}
