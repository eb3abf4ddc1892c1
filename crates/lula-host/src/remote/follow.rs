//! Following a run that a server drives, as if it were driven here.

use std::sync::Arc;
use std::time::Duration;

use lula_protocol::RunId;
use lula_store::RunStatus;

use super::acts::RunAccess;
use crate::drive::consent;
use crate::drive::{DriveResult, DriveStopReason, Observer, StopRequest};
use crate::error::HostError;
use crate::record::local_principal;
use crate::runs;
use crate::story::follow::RunLogFollower;

/// How often the server is asked.
const LOOK: Duration = Duration::from_millis(300);
/// A run that has no driver for so long rests. One whose driver failed gets another before.
const LEFT: Duration = Duration::from_secs(8);

/// Shows a run until it rests, and answers what it asks where a person is there to. Ctrl-C ends the looking,
/// never the run.
pub async fn follow(
    run: &RunId,
    access: &RunAccess<'_>,
    observer: &Arc<dyn Observer>,
    stop: &StopRequest,
) -> Result<DriveResult, HostError> {
    let mut follower = RunLogFollower::new(Arc::clone(&access.store), run.clone());
    let reader = runs::reader(Arc::clone(&access.store))?;
    loop {
        observer.begins(0);
        let rested = tokio::select! {
            rested = until_rest(run, access, &mut follower, observer) => rested,
            () = stop.once.cancelled() => Ok(false),
        };
        observer.rests();
        if !rested? {
            return Ok(DriveResult::Stopped(DriveStopReason::Asked));
        }
        let known = reader.show(run, None).await?;
        if let Some(question) = consent::question(&known, &local_principal()?)
            && !question.answered
            && let Some(decision) = observer
                .decide(&known, &question)
                .map_err(HostError::Answer)?
        {
            access.answer(&known, &question, decision).await?;
            taken(run, access, known.progress.next_seq).await?;
            continue;
        }
        return Ok(DriveResult::Rested(Box::new(known)));
    }
}

/// Tells what happens until the run rests.
async fn until_rest(
    run: &RunId,
    access: &RunAccess<'_>,
    follower: &mut RunLogFollower,
    observer: &Arc<dyn Observer>,
) -> Result<bool, HostError> {
    let mut left_since = None;
    loop {
        // Asked before it is read: what is written until then is read.
        let row = access.store.run(run).await?;
        let row = row.ok_or_else(|| lula_store::StoreError::NoRun(run.clone()))?;
        let told = follower.catch_up(|_, moment, teller| {
            if moment.event == "node_entered" {
                observer.visiting(&moment.node);
            }
            observer.happened(moment, teller);
        });
        told.await?;
        match row.status {
            RunStatus::Done | RunStatus::Suspended => return Ok(true),
            RunStatus::Running => left_since = None,
            RunStatus::Ready => {
                let since = *left_since.get_or_insert_with(tokio::time::Instant::now);
                if since.elapsed() > LEFT {
                    return Ok(true);
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until an answer is in the log, or a driver works on it: until then the run still seems to wait.
async fn taken(run: &RunId, access: &RunAccess<'_>, next: u64) -> Result<(), HostError> {
    let end = tokio::time::Instant::now() + LEFT;
    while tokio::time::Instant::now() < end {
        let row = access.store.run(run).await?;
        let moved = |row: lula_store::RunRow| {
            row.head.next > next || !matches!(row.status, RunStatus::Suspended)
        };
        if row.is_none_or(moved) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
