//! The runner process of a run, and what becomes of its work once the run is over.

mod process;
pub mod secrets;
pub mod supervisor;

use std::path::Path;

use lula_agents::RunnerPortError;
use lula_agents::runner_port::workspace_of;
use lula_config::keys;
use lula_protocol::RunId;
use lula_runner_api::DeliveredView;
use lula_workspace::checkout;
pub use lula_workspace::checkout::UndoneDelivery;
use lula_workspace::{Checkout, GitProgram, WorkspaceStore};

pub use process::{ConnectedRunner, FencedDriver, RunnerProcess};

use crate::installation::Installation;

/// Takes deliveries to these repositories back, if nobody has built on any of them: all, or none.
pub fn undo(
    git: &GitProgram,
    delivered: &[(&Path, &DeliveredView)],
) -> Result<Vec<UndoneDelivery>, RunnerPortError> {
    let branch = |(repository, delivered): &(&Path, &DeliveredView)| {
        let (name, commit) = (delivered.branch.as_ref()?, delivered.commit.as_ref()?);
        Some(checkout::BranchUpdate::named(repository, name, commit))
    };
    let branches: Option<Vec<_>> = delivered.iter().map(branch).collect();
    let Some(branches) = branches else {
        let message = "the run delivered nothing that could be taken back";
        return Err(RunnerPortError::Failed(message.to_owned()));
    };
    checkout::undo(git, &branches).map_err(|error| RunnerPortError::Failed(error.to_string()))
}

/// Gives the space of a run back that is over and that no runner works on, in this process.
pub fn clear_here(
    run: &RunId,
    git: &GitProgram,
    installation: &Installation,
) -> Result<(), RunnerPortError> {
    let failed = |error: &dyn std::fmt::Display| RunnerPortError::Failed(error.to_string());
    let state = installation
        .state_directory()
        .map_err(|error| failed(&error))?;
    let id = workspace_of(run);
    let store = WorkspaceStore::at(&state, installation.config.get(&keys::WORKSPACE_MAX_BYTES));
    if let Ok(workspace) = store.open(&id) {
        workspace.discard(true).map_err(|error| failed(&error))?;
    }
    match Checkout::find(&state, &id, git) {
        Ok(checkout) => checkout.clear().map_err(|error| failed(&error)),
        Err(_) => Ok(()),
    }
}
