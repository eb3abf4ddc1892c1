//! `lula run` and `lula resume` of a run that a server drives

use std::sync::Arc;

use lula_host::HostError;
use lula_host::drive::{DriveResult, Observer};
use lula_host::remote::{RunAccess, ServerClient, create_run, follow};
use lula_host::runs;
use lula_protocol::{RunExit, RunId};

use super::talk::rested;
use super::watching::Terminal;
use super::{ApprovalSource, on_interrupt};
use crate::cli::runs::{ApproveMode, LimitFlags, ResumeFlags, RunFlags};
use crate::commands::background::say_detached;
use crate::commands::run::{limits, request};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, WARN, paint};

fn refuse_time(limits: &LimitFlags) -> Result<(), HostError> {
    if limits.max_time.is_none() {
        return Ok(());
    }
    Err(HostError::TaskRefused {
        why: "--max-time is for a driver of this machine, and the server drives the run".to_owned(),
        remedy: "leave it out; Ctrl-C ends the following, `lula cancel` ends the run",
    })
}

pub(in crate::commands) fn run(
    flags: &RunFlags,
    server: &ServerClient,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    refuse_time(&flags.limits)?;
    let body = create_run(&request(flags), &limits(&flags.limits))?;
    runs::block_on(async {
        let run = server.begin(&body).await?;
        if flags.detach {
            return say_detached(&run, session);
        }
        let text = format!("{} {run} at {}", paint(DIM, "run"), server.url());
        session.screen.note(&text);
        watch(&run, flags.approve, session).await
    })
}

pub(in crate::commands) fn resume(
    flags: &ResumeFlags,
    server: &ServerClient,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    refuse_time(&flags.limits)?;
    runs::block_on(async {
        let run = RunAccess::open(&session.host)
            .await?
            .named(&flags.run)
            .await?;
        server
            .go_on(&run, flags.answer.as_deref(), &limits(&flags.limits))
            .await?;
        if flags.detach {
            return say_detached(&run, session);
        }
        watch(&run, flags.approve, session).await
    })
}

async fn watch(
    run: &RunId,
    approve: Option<ApproveMode>,
    session: &CliSession,
) -> Result<RunExit, CommandFailure> {
    let access = RunAccess::open(&session.host).await?;
    let terminal = Terminal::new(session.screen.clone(), ApprovalSource::from(approve));
    let terminal: Arc<dyn Observer> = Arc::new(terminal);
    match follow(run, &access, &terminal, &on_interrupt()?).await? {
        DriveResult::Rested(known) => rested(&known, session),
        DriveResult::Stopped(_) => {
            let text = format!("the server goes on with it: `lula logs -f {run}` follows it");
            session.screen.note(&paint(WARN, text));
            Ok(RunExit::Inconclusive)
        }
    }
}
