//! `lula steer` and `lula cancel`: saying something to a run, whichever process drives it.

use std::sync::Arc;
use std::time::Duration;

use lula_agents::{Coding, NoWorld, Work};
use lula_graph::{Engine, Options, RunState};
use lula_protocol::{Code, Exit, RunId, Signal};
use lula_store::{SecretGuard, Status, Store};
use serde_json::json;

use super::run::find_git;
use crate::cli::runs::{CancelFlags, SteerFlags};
use crate::failure::Failure;
use crate::hands;
use crate::record::local_principal;
use crate::runs::worker::{self, Held};
use crate::runs::{self, store};
use crate::session::Session;
use crate::term::{DIM, paint, visible};

/// Longest note. It is paid for with every turn that follows.
const LONGEST: usize = 4000;
/// How long to wait for whoever drives the run.
const PATIENCE: Duration = Duration::from_secs(20);

fn over(run: &RunId) -> Failure {
    let message = format!("{run} is over");
    Failure::new(Code::RunRefused, Exit::Failed, message)
        .remedy("`lula show` tells what came of it; `lula fork` goes on otherwise")
}

async fn known(run: &RunId, store: &Arc<dyn Store>) -> Result<RunState<Work>, Failure> {
    let known = runs::reader(Arc::clone(store))?.show(run, None).await?;
    if known.progress.ended.is_some() {
        return Err(over(run));
    }
    Ok(known)
}

pub(super) fn steer(flags: &SteerFlags, session: &Session) -> Result<Exit, Failure> {
    let text = flags.text.trim().to_owned();
    let refuse = |message: String| {
        Failure::new(Code::BadCommandLine, Exit::Usage, message)
            .remedy("say in a few sentences what whoever works on it should know")
    };
    if text.is_empty() {
        return Err(refuse("the note is empty".to_owned()));
    }
    if text.chars().count() > LONGEST {
        return Err(refuse(format!(
            "the note is longer than {LONGEST} characters"
        )));
    }
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let run = runs::named(&*store, &flags.run).await?;
        let known = known(&run, &store).await?;
        let by = local_principal()?;
        store.send(&run, &Signal::Steer { by, text }).await?;
        let screen = &session.screen;
        let heard_by_model = !known.state.task.models.is_empty();
        if screen.is_json() {
            screen.document(&json!({"run": run, "sent": true, "model": heard_by_model}))?;
            return Ok(Exit::Verified);
        }
        screen.note(&format!("{run} is told with its next turn"));
        if !heard_by_model {
            screen.warn("no model works on this run, and the built-in search reads no notes");
        }
        Ok(Exit::Verified)
    })
}

pub(super) fn cancel(flags: &CancelFlags, session: &Session) -> Result<Exit, Failure> {
    runs::block_on(async {
        let store = store::open(session, SecretGuard::default()).await?;
        let run = runs::named(&*store, &flags.run).await?;
        known(&run, &store).await?;
        let (by, reason) = (local_principal()?, flags.reason.clone());
        store.send(&run, &Signal::Cancel { by, reason }).await?;
        let end = tokio::time::Instant::now() + PATIENCE;
        while !ended(&run, &store, session).await? {
            if tokio::time::Instant::now() >= end {
                let message = format!("{run} was asked to end and has not ended yet");
                return Err(Failure::new(Code::RunBusy, Exit::Failed, message)
                    .remedy(format!("`lula logs -f {run}` shows when it does")));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let known = runs::reader(Arc::clone(&store))?.show(&run, None).await?;
        end_agents(&known, &store, session).await?;
        let summary = known
            .progress
            .ended
            .map(|ended| ended.summary)
            .unwrap_or_default();
        let screen = &session.screen;
        if screen.is_json() {
            screen.document(&json!({"run": run, "summary": summary}))?;
        } else {
            screen.note(&visible(&summary));
            let text = "nothing was delivered; what was recorded stays: lula show";
            screen.note(&paint(DIM, format!("{text} {run}")));
        }
        Ok(Exit::Verified)
    })
}

/// Ends the agents of a run that is over, where whoever drove it did not.
async fn end_agents(
    known: &RunState<Work>,
    store: &Arc<dyn Store>,
    session: &Session,
) -> Result<(), Failure> {
    for agent in &known.state.agents_at_work() {
        let Some(row) = store.run(agent).await? else {
            continue;
        };
        if row.status == Status::Done {
            continue;
        }
        let (by, reason) = (local_principal()?, "the run it worked for ended".to_owned());
        store.send(agent, &Signal::Cancel { by, reason }).await?;
        ended(agent, store, session).await?;
    }
    Ok(())
}

/// Whether the run is over. One that nobody drives is ended here: that needs no hands.
async fn ended(run: &RunId, store: &Arc<dyn Store>, session: &Session) -> Result<bool, Failure> {
    let Some(row) = store.run(run).await? else {
        return Ok(true);
    };
    if row.status == Status::Done {
        return Ok(true);
    }
    if let Held::Free = worker::release_dead(&**store, &row).await? {
        let options = Options {
            worker: worker::name(),
            seal: Some(runs::seal_key(session)?),
            ..Options::default()
        };
        let engine = Engine::new(Coding, Arc::clone(store), Arc::new(NoWorld), options)?;
        // Somebody may have been faster; then it is looked at again.
        if engine.resume(run).await?.is_some() {
            // Space, not correctness.
            let _ = hands::clear_here(run, &find_git(session)?, session);
        }
    }
    Ok(false)
}
