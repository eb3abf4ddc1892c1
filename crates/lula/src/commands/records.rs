//! `lula replay`, `lula fork`, `lula export` and `lula verify`

use std::fs::File;
use std::path::Path;

use lula_graph::bundle;
use lula_host::remote::RunAccess;
use lula_host::replay::ReplaySummary;
use lula_host::runs;
use lula_protocol::{Code, RunExit};
use serde_json::json;

use crate::cli::runs::{ExportFlags, ForkFlags, ReplayFlags};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, paint};

pub(super) fn replay(flags: &ReplayFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let shown = runs::block_on(ReplaySummary::of(&flags.run, &session.host))?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&shown)?;
        return Ok(shown.exit());
    }
    for difference in &shown.differences {
        screen.line(format!("{} {difference}", paint(BAD, "✗")))?;
    }
    match shown.exit() {
        RunExit::Verified => screen.line(format!(
            "{} {} events, {} visits derived again, all the same",
            paint(GOOD, "✓"),
            shown.events,
            shown.visits
        ))?,
        RunExit::Inconclusive => {
            let visits = |of: &[u64], why: &str| match of.len() {
                0 => String::new(),
                count => format!("; {count} of {} visits {why}", shown.visits),
            };
            let dropped =
                "cannot be derived again: what they were told was dropped by `lula store compact`";
            let older =
                "were made by an earlier version that worked otherwise, and are taken as recorded";
            screen.line(format!(
                "? {} events, whole{}{}",
                shown.events,
                visits(&shown.dropped, dropped),
                visits(&shown.older, older)
            ))?;
        }
        _ => {}
    }
    Ok(shown.exit())
}

pub(super) fn fork(flags: &ForkFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let access = RunAccess::open(&session.host).await?;
        let run = access.named(&flags.run).await?;
        let fork = access.fork(&run, flags.at, &flags.set).await?;
        if session.screen.is_json() {
            session
                .screen
                .document(&json!({"run": fork, "parent": run, "at": flags.at}))?;
        } else {
            session.screen.line(&fork)?;
            session
                .screen
                .note(&paint(DIM, format!("lula resume {fork}   goes on with it")));
        }
        Ok(RunExit::Verified)
    })
}

pub(super) fn export(flags: &ExportFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let access = RunAccess::open(&session.host).await?;
        let run = access.named(&flags.run).await?;
        let file = File::create(&flags.output).map_err(|error| {
            let message = format!("cannot write {}: {error}", flags.output.display());
            CommandFailure::new(Code::FileAccess, RunExit::Environment, message)
        })?;
        let exported = bundle::export(&*access.store, &run, file).await?;
        if session.screen.is_json() {
            session.screen.document(
                &json!({"run": run, "head": exported.head, "file": flags.output,
                                  "dropped": exported.dropped}),
            )?;
        } else {
            session.screen.line(exported.head)?;
            if exported.dropped > 0 {
                session.screen.note(&format!(
                    "{} values are not in it: they were dropped by `lula store compact`",
                    exported.dropped
                ));
            }
            let text = format!(
                "lula verify {}   checks it anywhere",
                flags.output.display()
            );
            session.screen.note(&paint(DIM, text));
        }
        Ok(RunExit::Verified)
    })
}

pub(super) fn verify(file: &Path, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let opened = File::open(file).map_err(|error| {
        let message = format!("cannot read {}: {error}", file.display());
        CommandFailure::new(Code::FileAccess, RunExit::Usage, message)
            .remedy("name an exported run")
    })?;
    let found = bundle::verify(opened)?;
    let screen = &session.screen;
    if screen.is_json() {
        screen.document(&found)?;
        return Ok(RunExit::Verified);
    }
    screen.line(format!(
        "{} {}: {} events and {} blobs, whole up to {}",
        paint(GOOD, "✓"),
        found.run,
        found.events,
        found.blobs,
        found.head.short()
    ))?;
    if found.dropped > 0 {
        screen.line(format!(
            "  {} values are not in it: they were dropped by `lula store compact`",
            found.dropped
        ))?;
    }
    for (key, up_to) in &found.seals {
        screen.line(format!("  sealed up to event {up_to} by {key}"))?;
    }
    if let Some(summary) = &found.summary {
        screen.line(format!("  {summary}"))?;
    }
    Ok(RunExit::Verified)
}
