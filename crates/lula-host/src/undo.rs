//! Taking back what a run delivered: all of it, or none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lula_protocol::{RunId, WorkspaceId};
use lula_store::RunStore;

use crate::error::HostError;
use crate::history::labels;
use crate::installation::Installation;
use crate::repository::find_git;
use crate::runner_client::{self, UndoneDelivery};
use crate::runs::reader;
use crate::workspaces;

/// What was taken back.
pub enum UndoOutcome {
    /// Files of the checkout are as before the run.
    Files {
        /// The workspace that brings the change back.
        workspace: WorkspaceId,
        /// The files that were brought back, relative to the checkout.
        files: Vec<String>,
    },
    /// Branches are gone, each of its repository.
    Branches(Vec<(PathBuf, UndoneDelivery)>),
}

/// Takes the delivery of a run back, and remembers that it was: a change that was taken back was not a
/// good one.
pub async fn undo(
    run: &RunId,
    store: Arc<dyn RunStore>,
    installation: &Installation,
) -> Result<UndoOutcome, HostError> {
    let known = reader(store)?.show(run, None).await?;
    let work = &known.state;
    let all = 0..work.repositories.len();
    let delivered: Vec<_> = all
        .filter_map(|repo| Some((Path::new(work.repository(repo)), work.delivered_of(repo)?)))
        .collect();
    let Some((_, first)) = delivered.first() else {
        return Err(HostError::NotUndone(format!("{run} delivered nothing")));
    };
    if let Some(id) = &first.workspace {
        let files = workspaces::store(installation)?.open(id)?.undo()?;
        labels::was_undone(run, installation)?;
        return Ok(UndoOutcome::Files {
            workspace: id.clone(),
            files: files.iter().map(ToString::to_string).collect(),
        });
    }
    let undone = runner_client::undo(&find_git(installation)?, &delivered)
        .map_err(|error| HostError::NotUndone(error.to_string()))?;
    labels::was_undone(run, installation)?;
    let places = delivered
        .iter()
        .map(|(repository, _)| (*repository).to_owned());
    Ok(UndoOutcome::Branches(places.zip(undone).collect()))
}
