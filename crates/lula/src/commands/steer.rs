//! `lula steer` and `lula cancel`: saying something to a run, whichever process drives it.

use lula_host::drive::signals::Note;
use lula_host::remote::RunAccess;
use lula_host::runs;
use lula_protocol::RunExit;
use serde_json::json;

use crate::cli::runs::{CancelFlags, SteerFlags};
use crate::failure::CommandFailure;
use crate::session::CliSession;
use crate::term::{DIM, paint, visible};

pub(super) fn steer(flags: &SteerFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    let note = Note::new(&flags.text)?;
    runs::block_on(async {
        let access = RunAccess::open(&session.host).await?;
        let run = access.named(&flags.run).await?;
        let task = flags.task.as_deref();
        let heard = access.steer(&run, task, note).await?;
        let screen = &session.screen;
        if screen.is_json() {
            let agents = &heard.agents;
            screen.document(
                &json!({"run": run, "sent": true, "model": heard.model, "agents": agents}),
            )?;
            return Ok(RunExit::Verified);
        }
        screen.note(&format!("{run} is told with its next turn{}", heard.told()));
        if !heard.model {
            screen.warn("no model works on this run, and the built-in search reads no notes");
        }
        Ok(RunExit::Verified)
    })
}

pub(super) fn cancel(flags: &CancelFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    runs::block_on(async {
        let access = RunAccess::open(&session.host).await?;
        let run = access.named(&flags.run).await?;
        let summary = access.cancel(&run, &flags.reason).await?;
        let screen = &session.screen;
        if screen.is_json() {
            screen.document(&json!({"run": run, "summary": summary}))?;
        } else {
            screen.note(&visible(&summary));
            let text = "nothing was delivered; what was recorded stays: lula show";
            screen.note(&paint(DIM, format!("{text} {run}")));
        }
        Ok(RunExit::Verified)
    })
}
