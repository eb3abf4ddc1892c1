//! The hands of a run in this very process: a private copy of the repository for each run, tools on
//! it, a sandbox around every command, and delivery into the user's repository.

mod deliver;
mod room;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use lula_agents::hands::{Change, Consignment, Delivered, Place, Said, workspace_of};
use lula_agents::{Hands, HandsError};
use lula_protocol::{Digest, RunId, ToolCall, WorkspaceId};
use lula_repair::Ground;
use lula_sandbox::Engine;
use lula_sandbox::policy::Policy;
use lula_workspace::{Git, Project};

use crate::ground::SandboxedGround;
pub(crate) use deliver::{Undone, undo};
use room::Room;

/// Hands that work in the state directory.
#[derive(Clone)]
pub(crate) struct LocalHands {
    inner: Arc<Inner>,
}

struct Inner {
    state: PathBuf,
    git: Git,
    policy: Policy,
    /// Started with the first command.
    engine: Mutex<Option<Engine>>,
}

fn failed(error: impl std::fmt::Display) -> HandsError {
    HandsError::Failed(error.to_string())
}

impl LocalHands {
    pub(crate) fn new(state: &Path, git: Git, policy: Policy) -> Self {
        Self {
            inner: Arc::new(Inner {
                state: state.to_owned(),
                git,
                policy,
                engine: Mutex::new(None),
            }),
        }
    }

    /// Gives the space of a run back that is over. Nothing is lost: its change is in its log, and
    /// what was delivered is in the repository.
    pub(crate) fn clear(&self, run: &RunId) -> Result<(), HandsError> {
        match self.inner.room(&workspace_of(run)) {
            Ok(room) => room.clear(),
            // It was never opened.
            Err(_) => Ok(()),
        }
    }

    /// Does something that blocks, away from the thread that drives runs.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, HandsError> + Send + 'static,
    ) -> Result<T, HandsError> {
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || work(&inner))
            .await
            .map_err(|error| HandsError::Lost(error.to_string()))?
    }
}

impl Inner {
    fn room(&self, workspace: &WorkspaceId) -> Result<Room, HandsError> {
        Room::find(&self.state, workspace, &self.git)
    }

    fn engine(&self) -> Result<Engine, HandsError> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = &*engine {
            return Ok(engine.clone());
        }
        let started = Engine::start().map_err(failed)?;
        *engine = Some(started.clone());
        Ok(started)
    }
}

#[async_trait]
impl Hands for LocalHands {
    async fn open(&self, run: &RunId, repository: &str) -> Result<Place, HandsError> {
        let (workspace, repository) = (workspace_of(run), PathBuf::from(repository));
        self.blocking(move |inner| {
            let room = Room::open(&inner.state, &workspace, &repository, None, &inner.git)?;
            Ok(room.place())
        })
        .await
    }

    async fn adopt(&self, run: &RunId, of: &WorkspaceId) -> Result<(), HandsError> {
        let (workspace, of) = (workspace_of(run), of.clone());
        self.blocking(move |inner| {
            let parent = inner.room(&of)?;
            let commit = Some(parent.commit());
            Room::open(
                &inner.state,
                &workspace,
                parent.repository(),
                commit,
                &inner.git,
            )?;
            Ok(())
        })
        .await
    }

    async fn files(&self, workspace: &WorkspaceId) -> Result<Vec<String>, HandsError> {
        let workspace = workspace.clone();
        self.blocking(move |inner| inner.room(&workspace)?.tree()?.files().map_err(failed))
            .await
    }

    async fn fetch(
        &self,
        workspace: &WorkspaceId,
        path: &str,
    ) -> Result<Option<String>, HandsError> {
        let (workspace, path) = (workspace.clone(), path.to_owned());
        self.blocking(move |inner| {
            let bytes = inner.room(&workspace)?.tree()?.read(&path).ok();
            Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
        })
        .await
    }

    async fn call(&self, call: &ToolCall) -> Result<Said, HandsError> {
        let call = call.clone();
        self.blocking(move |inner| tools::call(inner, &call)).await
    }

    async fn snapshot(&self, workspace: &WorkspaceId) -> Result<Digest, HandsError> {
        let workspace = workspace.clone();
        self.blocking(move |inner| Ok(inner.room(&workspace)?.snapshot()?.0))
            .await
    }

    async fn restore(&self, workspace: &WorkspaceId, to: Option<Digest>) -> Result<(), HandsError> {
        let workspace = workspace.clone();
        self.blocking(move |inner| inner.room(&workspace)?.restore(to))
            .await
    }

    async fn change(&self, workspace: &WorkspaceId) -> Result<Change, HandsError> {
        let workspace = workspace.clone();
        self.blocking(move |inner| inner.room(&workspace)?.change())
            .await
    }

    async fn ground(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<Arc<dyn Ground + Send + Sync>, HandsError> {
        let workspace = workspace.clone();
        self.blocking(move |inner| {
            let project = Project::at(inner.room(&workspace)?.tree_path()).map_err(failed)?;
            let policy = inner.policy.clone();
            let ground = SandboxedGround::on(inner.engine()?, project, policy);
            Ok(Arc::new(ground.map_err(failed)?) as Arc<dyn Ground + Send + Sync>)
        })
        .await
    }

    async fn deliver(&self, order: &Consignment) -> Result<Delivered, HandsError> {
        let order = order.clone();
        self.blocking(move |inner| {
            let room = inner.room(&order.workspace)?;
            deliver::deliver(&room, &order, &inner.state)
        })
        .await
    }

    async fn delivered(&self, order: &Consignment) -> Result<Option<Delivered>, HandsError> {
        let order = order.clone();
        self.blocking(move |inner| {
            let room = inner.room(&order.workspace)?;
            deliver::delivered(&room, &order, &inner.state)
        })
        .await
    }
}
