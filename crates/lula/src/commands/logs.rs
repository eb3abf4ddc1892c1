//! `lula logs`

use std::sync::Arc;

use lula_protocol::{Exit, RunId};
use lula_store::{Record, SecretGuard, Status, Store};
use serde::Serialize;

use super::background::background_file;
use crate::cli::runs::LogsFlags;
use crate::failure::Failure;
use crate::record::spoken_time;
use crate::runs::follow::Follower;
use crate::runs::story::{Kind, Moment};
use crate::runs::view::spend;
use crate::runs::worker::is_dead;
use crate::runs::{self, store};
use crate::session::Session;
use crate::term::{BAD, DIM, GOOD, STRONG, WARN, human, paint};

/// One event, for programs.
#[derive(Serialize)]
struct Line<'a> {
    run: &'a RunId,
    #[serde(flatten)]
    moment: &'a Moment,
    hash: String,
}

pub(super) fn run(flags: &LogsFlags, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let run = runs::named(&*store, &flags.run).await?;
        let mut follower = Follower::new(Arc::clone(&store), run.clone());
        let mut hints = store.watch();
        let mut warned = false;
        loop {
            let mut printed = Ok(());
            // Asked before it is read: what is written until then is read.
            let over = is_over(&*store, &run).await?;
            follower
                .catch_up(|record, moment, _| {
                    if printed.is_ok() {
                        printed = print(&run, record, moment, session);
                    }
                })
                .await?;
            printed?;
            if !flags.follow || over == Standing::Over {
                return Ok(Exit::Verified);
            }
            if over == Standing::Left && !warned {
                warned = true;
                say_left(&run, session)?;
            }
            Follower::wait(&mut hints).await;
        }
    })
}

#[derive(PartialEq, Eq)]
enum Standing {
    Over,
    UnderWay,
    /// Nobody works on it now.
    Left,
}

async fn is_over(store: &dyn Store, run: &RunId) -> Result<Standing, Failure> {
    let row = store.run(run).await?;
    Ok(match row {
        Some(row) if row.status == Status::Done => Standing::Over,
        Some(row) if row.status == Status::Running => {
            if row.owner.as_deref().is_some_and(is_dead) {
                Standing::Left
            } else {
                Standing::UnderWay
            }
        }
        Some(_) => Standing::Left,
        None => Standing::Over,
    })
}

/// Somebody may take it up any time, so whoever follows goes on following.
fn say_left(run: &RunId, session: &Session) -> Result<(), Failure> {
    let screen = &session.screen;
    screen.note(&paint(
        WARN,
        format!("nobody works on it now: `lula resume {run}` goes on with it"),
    ));
    let said = std::fs::read_to_string(background_file(run, session)?).unwrap_or_default();
    for line in said.lines().rev().take(8).collect::<Vec<_>>().iter().rev() {
        screen.note(&paint(DIM, crate::term::visible(line)));
    }
    Ok(())
}

fn print(run: &RunId, record: &Record, moment: &Moment, session: &Session) -> Result<(), Failure> {
    let screen = &session.screen;
    if screen.is_json() {
        let hash = record.hash.to_string();
        return screen.json_line(&Line { run, moment, hash });
    }
    screen.line(line(moment))
}

fn line(moment: &Moment) -> String {
    let (mark, style) = match (moment.kind, moment.good) {
        (_, Some(false)) => ("✗", BAD),
        (_, Some(true)) => ("✓", GOOD),
        (Kind::Trouble, None) => ("!", WARN),
        (Kind::Person, None) => ("»", STRONG),
        (Kind::Step | Kind::End, None) => ("•", GOOD),
        (Kind::Act | Kind::Aside, None) => (" ", DIM),
    };
    let mut more = Vec::new();
    if let Some(took) = moment.took_ms.filter(|took| *took > 0) {
        more.push(human(std::time::Duration::from_millis(took)));
    }
    more.extend(spend(&moment.spent));
    let more = if more.is_empty() {
        String::new()
    } else {
        paint(DIM, format!(" ({})", more.join(", ")))
    };
    let place = if moment.kind == Kind::Step {
        ""
    } else {
        &moment.node
    };
    let name = format!("{place:<15} {:<12}", moment.name);
    let name = if moment.kind == Kind::Aside {
        paint(DIM, name)
    } else {
        paint(STRONG, name)
    };
    let text = if moment.kind == Kind::Aside {
        paint(DIM, &moment.text)
    } else {
        moment.text.clone()
    };
    let time = spoken_time(moment.at_ms);
    format!(
        "{} {} {name} {text}{more}",
        paint(DIM, &time[11..19]),
        paint(style, mark)
    )
    .trim_end()
    .to_owned()
}
