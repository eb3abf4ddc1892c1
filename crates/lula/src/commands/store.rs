//! `lula store`

use lula_host::maintenance::{self, StoreExamination};
use lula_host::runs;
use lula_protocol::RunExit;
use lula_store::{CompactionReport, StoreCheckReport};

use crate::cli::runs::StoreCommand;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, GOOD, paint};

pub(super) fn run(command: &StoreCommand, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let host = &session.host;
    runs::block_on(async {
        match command {
            StoreCommand::Backup { file } => {
                let found = maintenance::backup(file, host).await?;
                tell_examined(&found, &file.display().to_string(), session)
            }
            StoreCommand::Restore { file } => {
                let copied = maintenance::restore(file, host).await?;
                let what = "runs brought back; runs that were there already were left alone";
                tell_copied(&copied, what, session)
            }
            StoreCommand::Check => {
                tell_examined(&maintenance::check(host).await?, "the store", session)
            }
            StoreCommand::Compact { older_than } => {
                tell_compacted(&maintenance::compact(*older_than, host).await?, session)
            }
            StoreCommand::Migrate { from, to } => {
                let copied = maintenance::migrate(from, to, host).await?;
                tell_copied(&copied, "runs copied and verified", session)
            }
        }
    })
}

fn tell_compacted(
    report: &CompactionReport,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(report)?;
    } else {
        screen.line(format!(
            "{} values ({} bytes) of {} old runs dropped; their logs are whole",
            report.blobs, report.bytes, report.runs
        ))?;
    }
    Ok(RunExit::Verified)
}

fn tell_copied(
    copied: &StoreCheckReport,
    what: &str,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    if session.screen.is_json() {
        session.screen.document(copied)?;
    } else {
        session.screen.line(format!("{} {what}", copied.runs))?;
    }
    Ok(RunExit::Verified)
}

fn tell_examined(
    found: &StoreExamination,
    what: &str,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let screen = &session.screen;
    let checked = &found.checked;
    let whole = found.broken.is_empty();
    if screen.is_json() {
        screen.document(found)?;
    } else if whole {
        screen.line(format!(
            "{} {what}: {} runs, {} events and {} blobs are whole",
            paint(GOOD, "✓"),
            checked.runs,
            checked.events,
            checked.blobs
        ))?;
        if checked.dropped > 0 {
            screen.line(format!(
                "  {} more blobs were dropped by `lula store compact`",
                checked.dropped
            ))?;
        }
    } else {
        for error in &found.broken {
            screen.line(format!("{} {error}", paint(BAD, "✗")))?;
        }
    }
    Ok(if whole {
        RunExit::Verified
    } else {
        RunExit::Failed
    })
}
