//! A runner that is started anew when it dies. The driver cannot do that itself: it has locked itself
//! out of what a runner needs.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lula_protocol::RunExit;

use crate::error::HostError;

/// One that dies again within this time is not started for ever.
const SETTLED: Duration = Duration::from_secs(10);
/// A runner that was killed so often in a row is not started again.
const MOST: u32 = 20;
/// How long the last one may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// Keeps a runner running, which this very program is with these arguments, until standard input
/// ends. Then the private directory of its socket is removed, and `over` ends this process.
pub fn supervise(
    arguments: &[OsString],
    listen: Option<&str>,
    over: impl FnOnce() + Send + 'static,
) -> Result<RunExit, HostError> {
    let current: Arc<Mutex<Option<Child>>> = Arc::default();
    let watched = Arc::clone(&current);
    let place = listen
        .and_then(|address| address.strip_prefix("unix:"))
        .and_then(|path| Path::new(path).parent())
        .map(Path::to_owned);
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        // Held to the end: no other one is started from here on.
        let mut current = watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = current.as_mut() {
            end(child);
        }
        if let Some(place) = place {
            // The driver that made it may have removed it already.
            let _ = std::fs::remove_dir_all(place);
        }
        over();
    });
    let mut deaths = 0;
    loop {
        let begun = Instant::now();
        *current.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(start(arguments).map_err(HostError::Supervisor)?);
        let status = loop {
            let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = current.as_mut().map(Child::try_wait).transpose();
            if let Some(status) = ended.map_err(HostError::Supervisor)?.flatten() {
                break status;
            }
            drop(current);
            std::thread::sleep(Duration::from_millis(20));
        };
        // One that ends by itself has said why.
        if let Some(code) = status.code() {
            return Ok(if code == 0 {
                RunExit::Verified
            } else {
                RunExit::Environment
            });
        }
        tracing::warn!(%status, "the runner died and is started anew");
        deaths = if begun.elapsed() < SETTLED {
            deaths + 1
        } else {
            1
        };
        if deaths > MOST {
            return Err(HostError::RunnerKilled {
                times: deaths,
                status,
            });
        }
    }
}

fn start(arguments: &[OsString]) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn()
}

fn end(child: &mut Child) {
    drop(child.stdin.take());
    let begun = Instant::now();
    while begun.elapsed() < ENDING {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}
