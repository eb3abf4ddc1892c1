//! Runs that go on in another process, away from the one that began them.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lula_protocol::{FailureReport, RunId};
use lula_store::{RunStatus, RunStore};

use super::worker::is_dead;
use crate::diagnosis;
use crate::error::HostError;
use crate::installation::Installation;

/// How long to wait until another process has taken a run up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The files of a driver that has no terminal.
struct BackgroundFiles {
    /// Its diagnostic log, which is its standard error.
    log: PathBuf,
    /// What came of the run, or why it was not driven, as JSON: its standard output.
    report: PathBuf,
}

impl BackgroundFiles {
    fn of(run: &RunId, installation: &Installation) -> Result<Self, HostError> {
        let directory = installation.state_directory()?.join("background");
        Ok(Self {
            log: directory.join(format!("{run}.log")),
            report: directory.join(format!("{run}.json")),
        })
    }
}

/// Why the last driver of a run in the background did not drive it to its end.
pub fn failure(
    run: &RunId,
    installation: &Installation,
) -> Result<Option<FailureReport>, HostError> {
    Ok(reported(&BackgroundFiles::of(run, installation)?.report))
}

/// Lets this very program go on with a run in another process, with these arguments, and waits until
/// it has taken it up: from then on the run can be followed, steered and cancelled. Tells whether it
/// has within a while.
pub async fn detach(
    run: &RunId,
    arguments: &[OsString],
    store: &dyn RunStore,
    installation: &Installation,
) -> Result<bool, HostError> {
    let refused = |error: std::io::Error| HostError::Background {
        run: run.clone(),
        error,
    };
    let before = store.run(run).await?.map_or(0, |row| row.head.next);
    let here = Path::new(".");
    let mut other = start(run, arguments, here, installation)?;
    let report = BackgroundFiles::of(run, installation)?.report;
    let end = tokio::time::Instant::now() + PATIENCE;
    while !is_taken_up(run, before, store).await? {
        let ended = other.try_wait().map_err(refused)?;
        // Looked at again: it may have come to its end in between.
        if ended.is_some() && !is_taken_up(run, before, store).await? {
            return Err(not_taken_up(run, &report));
        }
        if tokio::time::Instant::now() >= end {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(true)
}

/// Starts this very program with these arguments in a directory to go on with a run, its log and its
/// report in the state directory.
pub fn start(
    run: &RunId,
    arguments: &[OsString],
    directory: &Path,
    installation: &Installation,
) -> Result<Child, HostError> {
    let files = BackgroundFiles::of(run, installation)?;
    let refused = |error: std::io::Error| HostError::Background {
        run: run.clone(),
        error,
    };
    if let Some(place) = files.log.parent() {
        std::fs::create_dir_all(place).map_err(refused)?;
    }
    let log = private(File::options().append(true), &files.log).map_err(refused)?;
    // Of this driver alone: what an earlier one reported is no news.
    let report = private(File::options().write(true).truncate(true), &files.report);
    let report = report.map_err(refused)?;
    let program = std::env::current_exe().map_err(refused)?;
    Command::new(program)
        .args(arguments)
        .arg("--json")
        .current_dir(directory)
        .envs(diagnosis::variables())
        .stdin(Stdio::null())
        .stdout(report)
        .stderr(log)
        .spawn()
        .map_err(refused)
}

/// Whether a process works on it, or has since.
async fn is_taken_up(run: &RunId, before: u64, store: &dyn RunStore) -> Result<bool, HostError> {
    let row = store.run(run).await?;
    Ok(row.is_none_or(|row| match row.status {
        RunStatus::Running => !row.owner.as_deref().is_some_and(is_dead),
        RunStatus::Done => true,
        _ => row.head.next > before,
    }))
}

/// Why the other process did not, as it reported it.
fn not_taken_up(run: &RunId, report: &Path) -> HostError {
    HostError::NotTakenUp {
        run: run.clone(),
        report: reported(report).map(Box::new),
    }
}

fn reported(report: &Path) -> Option<FailureReport> {
    FailureReport::find(&std::fs::read(report).ok()?)
}

fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.create(true).mode(0o600).open(path)
}
