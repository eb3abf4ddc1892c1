//! Runs that go on in another process, away from the one that began them.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lula_protocol::RunId;
use lula_store::{RunStatus, RunStore};

use super::worker::is_dead;
use crate::error::HostError;
use crate::installation::Installation;

/// How long to wait until another process has taken a run up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a run in the background says what went wrong.
pub fn background_file(run: &RunId, installation: &Installation) -> Result<PathBuf, HostError> {
    let directory = installation.state_directory()?.join("background");
    Ok(directory.join(format!("{run}.log")))
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
    let file = background_file(run, installation)?;
    let refused = |error: std::io::Error| HostError::Background {
        run: run.clone(),
        error,
    };
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(refused)?;
    }
    let said = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&file)
        .map_err(refused)?;
    let program = std::env::current_exe().map_err(refused)?;
    let before = store.run(run).await?.map_or(0, |row| row.head.next);
    let mut other = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .spawn()
        .map_err(refused)?;
    let end = tokio::time::Instant::now() + PATIENCE;
    while !is_taken_up(run, before, store).await? {
        let ended = other.try_wait().map_err(refused)?;
        // Looked at again: it may have come to its end in between.
        if ended.is_some() && !is_taken_up(run, before, store).await? {
            return Err(not_taken_up(run, &file));
        }
        if tokio::time::Instant::now() >= end {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(true)
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

/// Why the other process did not, in its own words.
fn not_taken_up(run: &RunId, file: &Path) -> HostError {
    let said = std::fs::read_to_string(file).unwrap_or_default();
    HostError::NotTakenUp {
        run: run.clone(),
        said: said.rfind("error[").map(|at| said[at..].to_owned()),
    }
}
