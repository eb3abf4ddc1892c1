//! Workspaces that wait for a person's decision, and the lines that agents of runs built on.

use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_workspace::{
    Checkout, ExcludedChanges, GitProgram, IntegrationBranch, LayerBackend, Workspace,
    WorkspaceDiff, WorkspaceError, WorkspacePath, WorkspaceRecord, WorkspaceStatus, WorkspaceStore,
    integration_branch,
};
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;
use crate::repository;
use crate::sandbox;

/// The workspaces below the state directory of the installation.
pub fn store(installation: &Installation) -> Result<WorkspaceStore, HostError> {
    let most = installation.config.get(&keys::WORKSPACE_MAX_BYTES);
    Ok(WorkspaceStore::at(&installation.state_directory()?, most))
}

/// The directory that workspaces made here belong to.
pub fn base() -> Result<PathBuf, HostError> {
    let home = std::env::var_os("HOME");
    sandbox::workspace(None, home.as_deref().map(Path::new))
}

/// The workspace of that id, or the latest of this directory that waits.
pub fn open(store: &WorkspaceStore, id: Option<&str>) -> Result<Workspace, HostError> {
    let id = match id.filter(|given| *given != "last") {
        Some(given) => store.find(given)?,
        None => latest(store, &base()?)?.id,
    };
    Ok(store.open(&id)?)
}

fn latest(store: &WorkspaceStore, base: &Path) -> Result<WorkspaceRecord, HostError> {
    let waits = |record: &WorkspaceRecord| {
        record.state == WorkspaceStatus::Pending && record.base() == base
    };
    let mut records = store.list()?.into_iter();
    records
        .find(waits)
        .ok_or_else(|| HostError::NothingWaits(base.to_owned()))
}

/// Paths as given on the command line, relative to where the person is, made relative to the top.
pub fn inside(record: &WorkspaceRecord, given: &[String]) -> Result<Vec<WorkspacePath>, HostError> {
    let base = record.base();
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let below = here
        .ok()
        .and_then(|here| here.strip_prefix(&base).map(Path::to_owned).ok());
    let inside = |given: &String| {
        let path = Path::new(given);
        let path = match path.strip_prefix(&base) {
            Ok(path) => path.to_owned(),
            Err(_) => below.as_deref().unwrap_or(Path::new("")).join(path),
        };
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => drop(plain.pop()),
                std::path::Component::CurDir => {}
                part => plain.push(part),
            }
        }
        WorkspacePath::from_path(&plain)
            .map_err(|error| HostError::from(WorkspaceError::from(error)))
    };
    given.iter().map(inside).collect()
}

/// What a command left in a workspace, for scripts.
#[derive(Debug, Serialize)]
pub struct HeldWorkspaceView<'a> {
    pub workspace: &'a str,
    /// The directory it is over.
    pub base: String,
    /// How its layer is kept.
    pub backend: &'a LayerBackend,
    #[serde(flatten)]
    pub diff: &'a WorkspaceDiff,
    /// Files that git ignores: they are not listed.
    pub left_aside: usize,
}

impl<'a> HeldWorkspaceView<'a> {
    /// Of a workspace with these changes.
    pub fn new(workspace: &'a Workspace, diff: &'a WorkspaceDiff, aside: &ExcludedChanges) -> Self {
        Self {
            workspace: workspace.id().as_str(),
            base: workspace.record().base().display().to_string(),
            backend: &workspace.record().backend,
            diff,
            left_aside: aside.files(),
        }
    }
}

/// A workspace, for scripts.
#[derive(Debug, Serialize)]
pub struct WorkspaceRow<'a> {
    id: &'a str,
    state: WorkspaceStatus,
    base: String,
    title: &'a str,
    backend: &'a LayerBackend,
    changes: u64,
    bytes: u64,
    opened_ms: u64,
}

impl<'a> From<&'a WorkspaceRecord> for WorkspaceRow<'a> {
    fn from(record: &'a WorkspaceRecord) -> Self {
        Self {
            id: record.id.as_str(),
            state: record.state,
            base: record.base().display().to_string(),
            title: &record.title,
            backend: &record.backend,
            changes: record.changes,
            bytes: record.bytes,
            opened_ms: record.opened_ms,
        }
    }
}

/// Changes that are not reviewed, as build output is.
pub fn aside(
    installation: &Installation,
    workspace: &Workspace,
    diff: &WorkspaceDiff,
) -> ExcludedChanges {
    workspace.aside(diff, || {
        find_git(&installation.config.get(&keys::GIT_PROGRAM))
    })
}

/// Git, which is asked what it tracks. Where there is none, nothing that it may track is left aside.
pub fn find_git(configured: &str) -> Option<GitProgram> {
    GitProgram::find(configured, std::env::var_os("PATH").as_deref()).ok()
}

/// What agents of runs built on together.
#[derive(Debug, Serialize)]
pub struct IntegrationBranches {
    #[serde(rename = "lines")]
    pub branches: Vec<IntegrationBranchFacts>,
    /// Below `quarantine/` of the state directory.
    pub quarantined: Vec<String>,
}

/// What there is to know of one integration branch.
#[derive(Debug, Serialize)]
pub struct IntegrationBranchFacts {
    #[serde(rename = "line")]
    pub branch: String,
    pub run: String,
    pub repository: String,
    /// How many commits agents made for it.
    #[serde(rename = "produced")]
    pub commits: usize,
    /// How many of them are in it.
    #[serde(rename = "integrated")]
    pub merged: usize,
    /// Whether its space was given back.
    pub archived: bool,
    /// Bytes on the disk.
    pub bytes: u64,
}

fn row(branch: &IntegrationBranch) -> IntegrationBranchFacts {
    let commits = branch.agent_commits().unwrap_or_default();
    let is_in =
        |one: &&integration_branch::AgentCommit| branch.contains(&one.commit).unwrap_or(false);
    IntegrationBranchFacts {
        branch: branch.name().to_string(),
        run: branch.run().to_string(),
        repository: branch.repository().display().to_string(),
        merged: commits.iter().filter(is_in).count(),
        commits: commits.len(),
        archived: branch.is_archived(),
        bytes: branch.bytes(),
    }
}

impl IntegrationBranches {
    /// All there are, and what was set aside.
    pub fn of(installation: &Installation) -> Result<Self, HostError> {
        let state = installation.state_directory()?;
        let found = IntegrationBranch::list(&state, &repository::find_git(installation)?);
        Ok(Self {
            branches: found.iter().map(row).collect(),
            quarantined: integration_branch::quarantined(&state),
        })
    }
}

/// Puts the commits of the integration branches of a run into one file each, and gives their space back.
pub fn archive(run: &str, installation: &Installation) -> Result<(), HostError> {
    let state = installation.state_directory()?;
    let git = repository::find_git(installation)?;
    let store = store(installation)?;
    let of_run = |branch: &IntegrationBranch| branch.run().as_str() == run;
    let found: Vec<IntegrationBranch> = IntegrationBranch::list(&state, &git)
        .into_iter()
        .filter(of_run)
        .collect();
    if found.is_empty() {
        return Err(HostError::NoBranches(run.to_owned()));
    }
    for branch in &found {
        let mut over = Vec::new();
        for record in store.list()? {
            let Ok(checkout) = Checkout::find(&state, &record.id, &git) else {
                continue;
            };
            if checkout.origin().line.as_deref() == Some(branch.name().as_str()) {
                over.push((store.open(&record.id)?, checkout));
            }
        }
        // Refused while an agent is at work in one of them, before anything is changed.
        for (workspace, _) in &over {
            drop(workspace.layer()?);
        }
        let turn = branch.turn()?;
        branch.archive()?;
        drop(turn);
        for (workspace, checkout) in over {
            workspace.discard(true)?;
            checkout.clear()?;
        }
    }
    Ok(())
}
