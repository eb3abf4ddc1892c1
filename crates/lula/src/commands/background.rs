//! Runs that go on away from the terminal they were begun at.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lula_config::Origin;
use lula_protocol::{Code, Exit, RunId};
use lula_store::{Status, Store};
use serde_json::json;

use crate::cli::runs::Approve;
use crate::failure::Failure;
use crate::runs::worker::is_dead;
use crate::session::Session;
use crate::term::{DIM, paint, read_text};

/// How long to wait until somebody has taken a run up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a run in the background says what went wrong.
pub(super) fn background_file(run: &RunId, session: &Session) -> Result<PathBuf, Failure> {
    let directory = session.state_directory()?.join("background");
    Ok(directory.join(format!("{run}.log")))
}

/// Lets another process go on with a run, away from this terminal, and waits until it has taken it up:
/// from then on the run can be followed, steered and cancelled.
pub(super) async fn detach(
    run: &RunId,
    approve: Option<Approve>,
    max_time: Option<Duration>,
    store: &dyn Store,
    session: &Session,
) -> Result<Exit, Failure> {
    let file = background_file(run, session)?;
    let refused = |error: std::io::Error| {
        let message = format!("{run} cannot be worked on in the background: {error}");
        Failure::new(Code::FileAccess, Exit::Environment, message)
            .remedy(format!("`lula resume {run}` works on it here"))
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
    let mut command = Command::new(program);
    command.args(["resume", run.as_str(), "--detached", "--quiet"]);
    // Flags that are settings are not inherited as variables are.
    command.args(settings_given(session));
    if approve == Some(Approve::Auto) {
        command.args(["--approve", "auto"]);
    }
    if let Some(time) = max_time {
        command.args(["--max-time", &format!("{}ms", time.as_millis())]);
    }
    let before = store.run(run).await?.map_or(0, |row| row.head.next);
    let mut other = command
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
            let text = "nobody has taken it up yet; it may take longer on a busy machine";
            session.screen.warn(text);
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&json!({"run": run, "status": "detached"}))?;
    } else {
        screen.line(run)?;
        let hint =
            format!("lula logs -f {run}   follows it; lula show {run}   tells what came of it");
        screen.note(&paint(DIM, hint));
    }
    Ok(Exit::Verified)
}

/// Whether somebody works on it, or has since.
async fn is_taken_up(run: &RunId, before: u64, store: &dyn Store) -> Result<bool, Failure> {
    let row = store.run(run).await?;
    Ok(row.is_none_or(|row| match row.status {
        Status::Running => !row.owner.as_deref().is_some_and(is_dead),
        Status::Done => true,
        _ => row.head.next > before,
    }))
}

/// Why the other process did not, in its own words.
fn not_taken_up(run: &RunId, file: &Path) -> Failure {
    let said = std::fs::read_to_string(file).unwrap_or_default();
    let last = said.rfind("error[").map_or("", |at| &said[at..]);
    let mut failure = read_text(last).unwrap_or_else(|| {
        let message = "the process that was to go on with it ended at once".to_owned();
        Failure::new(Code::EnvironmentUnfit, Exit::Environment, message)
    });
    failure.message = format!(
        "{run} was begun and nobody works on it: {}",
        failure.message
    );
    let again = format!("`lula resume {run}` goes on with it");
    failure.remedy = Some(match failure.remedy.take() {
        Some(remedy) => format!("{remedy}; then {again}"),
        None => again,
    });
    failure
}

/// The flags of this command line that stand for configuration keys, as they were given.
pub(super) fn settings_given(session: &Session) -> Vec<String> {
    let entries = session.config.entries().iter();
    let flags: Vec<&String> = entries
        .filter_map(|entry| match &entry.winner().origin {
            Origin::Flag(flag) => Some(flag),
            _ => None,
        })
        .collect();
    let mut given = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let (name, whole) = match argument.split_once('=') {
            Some((name, _)) => (name, true),
            None => (argument.as_str(), false),
        };
        if !flags.iter().any(|flag| *flag == name) {
            continue;
        }
        given.push(argument);
        if !whole {
            given.extend(arguments.next());
        }
    }
    given
}
