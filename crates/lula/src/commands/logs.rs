//! `lula logs`

use std::sync::Arc;

use lula_host::drive::worker::RunActivity;
use lula_host::remote::RunAccess;
use lula_host::runs;
use lula_host::story::facts::spend;
use lula_host::story::follow::RunLogFollower;
use lula_host::story::{StoryEvent, StoryEventKind};
use lula_protocol::calendar::utc_text;
use lula_protocol::{RunExit, RunId};
use lula_store::LogRecord;
use serde::Serialize;

use crate::cli::runs::LogsFlags;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{BAD, DIM, GOOD, STRONG, WARN, paint, rough_duration, visible};

/// One event, for programs.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a RunId,
    #[serde(flatten)]
    moment: &'a StoryEvent,
    hash: String,
}

pub(super) fn run(flags: &LogsFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let access = RunAccess::open(&session.host).await?;
        let run = access.named(&flags.run).await?;
        let store = Arc::clone(&access.store);
        let mut follower = RunLogFollower::new(Arc::clone(&store), run.clone());
        let mut hints = store.watch();
        let mut warned = false;
        loop {
            let mut printed = Ok(());
            // Asked before it is read: what is written until then is read.
            let activity = RunActivity::of(&run, &*store).await?;
            follower
                .catch_up(|record, moment, _| {
                    if printed.is_ok() {
                        printed = print(&run, record, moment, session);
                    }
                })
                .await?;
            printed?;
            if !flags.follow || activity == RunActivity::Over {
                return Ok(RunExit::Verified);
            }
            if activity == RunActivity::Left && !warned {
                warned = true;
                say_left(&run, &access, session)?;
            }
            RunLogFollower::wait(&mut hints).await;
        }
    })
}

/// A driver may take it up any time, so `lula logs` goes on following.
fn say_left(
    run: &RunId,
    access: &RunAccess<'_>,
    session: &CliSession,
) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    screen.note(&paint(
        WARN,
        format!("no driver works on it now: `lula resume {run}` goes on with it"),
    ));
    if let Some(report) = access.driver_failure(run)? {
        let lines = report.message.lines().chain(report.remedy.as_deref());
        for line in lines {
            screen.note(&paint(DIM, visible(line)));
        }
    }
    Ok(())
}

fn print(
    run: &RunId,
    record: &LogRecord,
    moment: &StoryEvent,
    session: &CliSession,
) -> Result<(), CommandFailure> {
    let screen = &session.screen;
    if screen.is_json() {
        let hash = record.hash.to_string();
        return screen.json_line(&Line { run, moment, hash });
    }
    screen.line(line(moment))
}

fn line(moment: &StoryEvent) -> String {
    let (mark, style) = match (moment.kind, moment.good) {
        (_, Some(false)) => ("✗", BAD),
        (_, Some(true)) => ("✓", GOOD),
        (StoryEventKind::Trouble, None) => ("!", WARN),
        (StoryEventKind::Person, None) => ("»", STRONG),
        (StoryEventKind::Step | StoryEventKind::End, None) => ("•", GOOD),
        (StoryEventKind::Act | StoryEventKind::Aside, None) => (" ", DIM),
    };
    let mut more = Vec::new();
    if let Some(took) = moment.took_ms.filter(|took| *took > 0) {
        more.push(rough_duration(std::time::Duration::from_millis(took)));
    }
    more.extend(spend(&moment.spent));
    let more = if more.is_empty() {
        String::new()
    } else {
        paint(DIM, format!(" ({})", more.join(", ")))
    };
    let place = if moment.kind == StoryEventKind::Step {
        ""
    } else {
        &moment.node
    };
    let name = format!("{place:<15} {:<12}", moment.name);
    let name = if moment.kind == StoryEventKind::Aside {
        paint(DIM, name)
    } else {
        paint(STRONG, name)
    };
    let text = if moment.kind == StoryEventKind::Aside {
        paint(DIM, &moment.text)
    } else {
        moment.text.clone()
    };
    let time = utc_text(moment.at_ms);
    format!(
        "{} {} {name} {text}{more}",
        paint(DIM, &time[11..19]),
        paint(style, mark)
    )
    .trim_end()
    .to_owned()
}
