//! Runs that go on away from the terminal they were begun at.

use std::ffi::OsString;
use std::time::Duration;

use lula_host::drive::background;
use lula_protocol::{RunExit, RunId};
use lula_store::RunStore;
use serde_json::json;

use crate::cli::runs::ApproveMode;
use crate::cli::{ENV, NET, NO_ENV};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, paint};

/// The flag of the configuration that a short one stands for.
fn environment_flag(argument: &str) -> Option<String> {
    if argument == NO_ENV {
        return Some("--environment-use=none".to_owned());
    }
    let rest = argument.strip_prefix(ENV)?;
    (rest.is_empty() || rest.starts_with('=')).then(|| format!("--environment-use{rest}"))
}

/// Lets another process go on with a run, away from this terminal.
pub(super) async fn detach(
    run: &RunId,
    approve: Option<ApproveMode>,
    max_time: Option<Duration>,
    store: &dyn RunStore,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let mut line: Vec<String> = ["resume", run.as_str(), "--detached", "--quiet"]
        .map(str::to_owned)
        .into();
    // Flags that are settings are not inherited as variables are.
    let given = std::env::args().skip(1).map(|argument| {
        let list = argument.strip_prefix(NET);
        let list = list.filter(|rest| rest.is_empty() || rest.starts_with('='));
        let list = list.map(|rest| format!("--network-allow{rest}"));
        list.or_else(|| environment_flag(&argument))
            .unwrap_or(argument)
    });
    line.extend(session.host.flags_given(given));
    if approve == Some(ApproveMode::Auto) {
        line.extend(["--approve".to_owned(), "auto".to_owned()]);
    }
    if let Some(time) = max_time {
        line.extend(["--max-time".to_owned(), format!("{}ms", time.as_millis())]);
    }
    let line: Vec<OsString> = line.into_iter().map(OsString::from).collect();
    let screen = &session.screen;
    if !background::detach(run, &line, store, &session.host).await? {
        screen.warn("no process has taken it up yet; it may take longer on a busy machine");
    }
    if screen.is_json() {
        screen.document(&json!({"run": run, "status": "detached"}))?;
    } else {
        screen.line(run)?;
        let hint =
            format!("lula logs -f {run}   follows it; lula show {run}   tells what came of it");
        screen.note(&paint(DIM, hint));
    }
    Ok(RunExit::Verified)
}
