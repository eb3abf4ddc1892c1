//! A runner that is started anew when it dies. Whoever asked for it cannot do that itself: it has
//! locked itself out of what a runner needs.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lula_protocol::{Code, Exit};

use crate::failure::Failure;

/// One that dies again within this time is not started for ever.
const SETTLED: Duration = Duration::from_secs(10);
/// So often.
const MOST: u32 = 20;
/// How long the last one may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// Keeps a runner running until standard input ends, then removes the private directory of its
/// socket.
pub(super) fn run(listen: Option<&str>) -> Result<Exit, Failure> {
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
            // Whoever made it may have removed it already.
            let _ = std::fs::remove_dir_all(place);
        }
        std::process::exit(0);
    });
    let mut deaths = 0;
    loop {
        let begun = Instant::now();
        *current.lock().unwrap_or_else(PoisonError::into_inner) = Some(start()?);
        let status = loop {
            let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(status) = current.as_mut().map(Child::try_wait).transpose()?.flatten() {
                break status;
            }
            drop(current);
            std::thread::sleep(Duration::from_millis(20));
        };
        // One that ends by itself has said why.
        if let Some(code) = status.code() {
            return Ok(if code == 0 {
                Exit::Verified
            } else {
                Exit::Environment
            });
        }
        deaths = if begun.elapsed() < SETTLED {
            deaths + 1
        } else {
            1
        };
        if deaths > MOST {
            let message = format!("the runner was killed {deaths} times in a row ({status})");
            return Err(Failure::new(
                Code::EnvironmentUnfit,
                Exit::Environment,
                message,
            ));
        }
    }
}

/// The same command line, without this.
fn start() -> io::Result<Child> {
    let arguments = std::env::args_os().skip(1);
    Command::new("/proc/self/exe")
        .args(arguments.filter(|argument| argument != "--supervised"))
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
