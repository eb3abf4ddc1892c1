//! The workspace of a run: a private copy of a repository at one commit.

use lula_protocol::{RunId, WorkspaceId};
use lula_runner_api::{CheckoutOriginView, CheckoutRequest, OpenWorkspace, WorkspaceView};
use serde::{Deserialize, Serialize};

use super::{RunnerPortError, workspace_of};

/// A workspace: a private copy of a repository at one commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWorkspace {
    pub workspace: WorkspaceId,
    /// Where it came from.
    #[serde(flatten)]
    pub origin: CheckoutOriginView,
}

impl AgentWorkspace {
    /// A workspace that was opened.
    pub fn of(view: WorkspaceView) -> Result<Self, RunnerPortError> {
        let WorkspaceView { id, origin, .. } = view;
        match origin {
            Some(origin) => Ok(Self {
                workspace: id,
                origin,
            }),
            None => Err(RunnerPortError::Failed(format!(
                "{id} is not the workspace of a commit"
            ))),
        }
    }
}

/// What opens the workspace of a run, or finds it again: of this commit, or of the one that is
/// checked out.
pub fn opening(run: &RunId, repository: &str, commit: Option<String>) -> OpenWorkspace {
    OpenWorkspace {
        path: repository.to_owned(),
        title: format!("lula run {run}"),
        write_scope: Vec::new(),
        checkout: Some(CheckoutRequest {
            id: workspace_of(run),
            commit,
        }),
    }
}
