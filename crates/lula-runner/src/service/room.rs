//! One open workspace: its private layer, the sandbox around it, and whose turn it is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use lula_gate::invariants::ActInvariants;
use lula_gate::rules::RuleSet as Rules;
use lula_protocol::WorkspaceId;
use lula_runner_api::START;
use lula_sandbox::policy::{AbsolutePath, SandboxPolicy};
use lula_sandbox::{
    HostToolchains, OverlayWorkspace, Sandbox, SandboxEngine, SandboxError, SandboxSession,
};
use lula_workspace::checkout::WorkspaceGit;
use lula_workspace::{
    Checkout, IgnoredLayers, LayerDirectories, PathReplacement, Workspace, WorkspaceError,
    WorkspaceLayer,
};

use super::jobs::WorkspaceJobs;
use super::refusal::RequestRefusal;
use super::toolbox::ToolboxLink;
use crate::environments::EnvironmentSource;
use crate::toolbox::ToolFailure;
use crate::toolbox::frame::{ToolboxAnswer, ToolboxQuestion};

/// How long the processes of an earlier runner may take to let go of a layer.
const LETTING_GO: Duration = Duration::from_secs(5);

/// A checkout of a person's that the files of a workspace stand in for.
#[derive(Debug)]
pub(crate) struct CheckoutStandIn {
    pub(crate) checkout: Checkout,
    /// What git ignores there, where it can be shown.
    pub(crate) below: Option<IgnoredLayers>,
}

impl CheckoutStandIn {
    /// The policy of commands in a copy of the files, which links to what is installed beside them.
    fn policy(&self, mut policy: SandboxPolicy, copy: &Path) -> SandboxPolicy {
        self.checkout.link_dependencies(copy);
        let repository = &self.checkout.origin().repository;
        let shown = lula_workspace::fork::dependencies(repository);
        let shown = shown
            .iter()
            .filter_map(|path| path.to_str()?.parse::<AbsolutePath>().ok());
        policy.paths.read.extend(shown);
        policy
    }
}

/// A workspace that is open here, with its sandbox once there is one.
#[derive(Debug)]
pub(crate) struct RunnerWorkspace {
    pub(crate) id: WorkspaceId,
    /// When to ask, here.
    pub(crate) rules: Rules,
    /// What must hold for every act here. An agent may be given more files to write.
    invariants: RwLock<ActInvariants>,
    engine: SandboxEngine,
    policy: SandboxPolicy,
    environments: EnvironmentSource,
    /// Whether receipts say which paths commands were denied.
    explain: bool,
    /// Held by the call that changes the workspace: effects happen one after the other. Whether the
    /// workspace was removed meanwhile.
    turn: Mutex<bool>,
    workspace: Mutex<Workspace>,
    stand_in: Option<CheckoutStandIn>,
    live: Mutex<Option<Arc<LiveSandbox>>>,
    /// Commands in the background.
    pub(super) jobs: WorkspaceJobs,
}

/// A sandbox that stands around the workspace.
#[derive(Debug)]
pub(crate) struct LiveSandbox {
    // Before the layer: the sandbox ends before its directories are let go.
    pub(crate) session: SandboxSession,
    toolbox: Mutex<Option<ToolboxLink>>,
    shown: PathBuf,
    _layer: WorkspaceLayer,
}

impl LiveSandbox {
    /// The workspace's directory as commands see it.
    pub(crate) fn shown(&self) -> &Path {
        &self.shown
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic left behind is checked where it is used: by digests, journals and the ledger.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunnerWorkspace {
    pub(crate) fn new(
        engine: SandboxEngine,
        (policy, environments): (SandboxPolicy, EnvironmentSource),
        explain: bool,
        (rules, invariants): (Rules, ActInvariants),
        workspace: Workspace,
        stand_in: Option<CheckoutStandIn>,
    ) -> Self {
        Self {
            id: workspace.id().clone(),
            rules,
            invariants: RwLock::new(invariants),
            engine,
            policy,
            environments,
            explain,
            turn: Mutex::new(false),
            workspace: Mutex::new(workspace),
            stand_in,
            live: Mutex::new(None),
            jobs: WorkspaceJobs::default(),
        }
    }

    /// What must hold for every act here.
    pub(crate) fn invariants(&self) -> ActInvariants {
        let invariants = self.invariants.read();
        invariants.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Holds every act from here on to these.
    pub(crate) fn hold_to(&self, invariants: ActInvariants) {
        let held = self.invariants.write();
        *held.unwrap_or_else(PoisonError::into_inner) = invariants;
    }

    /// Waits until no other call changes the workspace. There may be none any more by then.
    pub(crate) fn turn(&self) -> Result<MutexGuard<'_, bool>, RequestRefusal> {
        let turn = lock(&self.turn);
        if *turn {
            return Err(RequestRefusal::NoWorkspace(self.id.clone()));
        }
        Ok(turn)
    }

    pub(crate) fn workspace(&self) -> MutexGuard<'_, Workspace> {
        lock(&self.workspace)
    }

    /// Takes the workspace as it is on disk, where another runner changed it.
    pub(crate) fn replace_workspace(&self, workspace: Workspace) {
        *self.workspace() = workspace;
    }

    /// The sandbox, built where there is none.
    pub(crate) fn live(&self) -> Result<Arc<LiveSandbox>, RequestRefusal> {
        let mut live = lock(&self.live);
        if let Some(live) = &*live {
            return Ok(Arc::clone(live));
        }
        let opened = Arc::new(self.build()?);
        *live = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn build(&self) -> Result<LiveSandbox, RequestRefusal> {
        let mut workspace = self.workspace();
        let begun = Instant::now();
        let mut git = self.own_git();
        loop {
            let layer = match workspace.layer() {
                Err(WorkspaceError::InUse(_)) if begun.elapsed() < LETTING_GO => {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                layer => layer?,
            };
            let (sandbox, shown) = self.around(&layer.place, git.as_ref())?;
            let mut sandbox = sandbox.named(self.id.to_string());
            if self.explain {
                sandbox = sandbox.watch_paths();
            }
            match self.engine.open(&sandbox) {
                Ok(session) => {
                    return Ok(LiveSandbox {
                        session,
                        toolbox: Mutex::new(None),
                        shown,
                        _layer: layer,
                    });
                }
                // Commands work without git where its directory cannot be shown.
                Err(SandboxError::Setup { source, .. })
                    if git.is_some() && source.kind() != std::io::ErrorKind::ResourceBusy =>
                {
                    drop(layer);
                    git = None;
                }
                // Where the kernel or the tier has no overlay, and only there, a copy serves.
                Err(error) if is_fresh_overlay(&layer.place, &workspace) && no_overlay(&error) => {
                    drop(layer);
                    workspace.fall_back_to_copy(&error.to_string())?;
                }
                Err(SandboxError::Setup { source, .. })
                    if source.kind() == std::io::ErrorKind::ResourceBusy
                        && begun.elapsed() < LETTING_GO =>
                {
                    drop(layer);
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The git directory that commands see, where the workspace is one of a commit.
    fn own_git(&self) -> Option<WorkspaceGit> {
        let made = self.stand_in.as_ref()?.checkout.workspace_git();
        made.unwrap_or_else(|error| {
            tracing::warn!(%error, "commands have no git");
            None
        })
    }

    /// A sandbox around the layer, and where the workspace is seen in it.
    fn around(
        &self,
        place: &LayerDirectories,
        git: Option<&WorkspaceGit>,
    ) -> Result<(Sandbox, PathBuf), RequestRefusal> {
        let policy = self.policy.clone();
        match place {
            LayerDirectories::Overlay { lower, upper, work } => {
                let point = git.map(|git| git.point.clone());
                let mut lowers: Vec<PathBuf> = point.into_iter().chain([lower.clone()]).collect();
                let below = self.stand_in.as_ref().and_then(|one| one.below.as_ref());
                lowers.extend(below.map(IgnoredLayers::layers).unwrap_or_default());
                let shown = lowers.last().unwrap_or(lower).clone();
                let toolchains = self.environments.toolchains(lower, &shown, &shown)?;
                let overlay = OverlayWorkspace {
                    lowers,
                    upper: upper.clone(),
                    work: work.clone(),
                };
                let mut sandbox = Sandbox::over(policy, overlay).toolchains(toolchains);
                if let Some(git) = git {
                    sandbox = sandbox.showing_within(&git.directory, ".git", true);
                    for (store, at) in &git.objects {
                        sandbox = sandbox.showing_within(store, at, false);
                    }
                }
                Ok((sandbox, shown))
            }
            LayerDirectories::Copy { directory } => {
                let sandbox = match &self.stand_in {
                    Some(stand_in) => Sandbox::new(stand_in.policy(policy, directory), directory)
                        .copy_of(&stand_in.checkout.origin().repository),
                    None => Sandbox::new(policy, directory),
                };
                let toolchains = HostToolchains::for_project(directory, directory);
                Ok((sandbox.toolchains(toolchains), directory.clone()))
            }
        }
    }

    /// What is shown below the workspace's files, where something is.
    pub(crate) fn below(&self) -> Option<&IgnoredLayers> {
        self.stand_in.as_ref()?.below.as_ref()
    }

    /// Asks the toolbox. One that broke is ended and replaced at the next call.
    pub(crate) fn ask(
        &self,
        ask: ToolboxQuestion,
    ) -> Result<Result<ToolboxAnswer, ToolFailure>, RequestRefusal> {
        let live = self.live()?;
        let mut slot = lock(&live.toolbox);
        let mut toolbox = match slot.take() {
            Some(toolbox) if !toolbox.has_ended() => toolbox,
            Some(ended) => {
                ended.end();
                self.start_toolbox(&live)?
            }
            None => self.start_toolbox(&live)?,
        };
        let answered = toolbox.ask(ask);
        if answered.is_ok() || matches!(answered, Err(RequestRefusal::BadRequest(_))) {
            *slot = Some(toolbox);
        } else {
            toolbox.end();
        }
        drop(slot);
        // A sandbox that ended takes nothing any more; the next call builds another.
        if let Err(RequestRefusal::Sandbox(_)) = &answered {
            self.close();
        }
        answered
    }

    fn start_toolbox(&self, live: &LiveSandbox) -> Result<ToolboxLink, RequestRefusal> {
        let started = ToolboxLink::start(&live.session, &live.shown.to_string_lossy());
        if started.is_err() {
            self.close();
        }
        started
    }

    /// Ends the sandbox with everything in it. The next call builds another.
    pub(crate) fn close(&self) {
        // A call that still holds it finds that it has ended.
        let live = lock(&self.live).take();
        if let Some(live) = live.and_then(Arc::into_inner) {
            let _ = live.session.close();
        }
    }

    /// Puts the layer back as it was in a snapshot.
    pub(crate) fn restore(&self, label: &str) -> Result<(), RequestRefusal> {
        self.still(|workspace| workspace.restore(label))?;
        // At the beginning nothing was done with git either.
        if let Some(stand_in) = self.stand_in.as_ref().filter(|_| label == START)
            && let Err(error) = stand_in.checkout.forget_workspace_git()
        {
            tracing::warn!(%error, "what commands did with git stays");
        }
        Ok(())
    }

    /// Writes a change that is known file by file into the layer.
    pub(crate) fn lay(&self, pieces: &[PathReplacement]) -> Result<(), RequestRefusal> {
        self.still(|workspace| workspace.lay(pieces))
    }

    /// Does what no sandbox may stand around for.
    fn still(
        &self,
        act: impl Fn(&mut Workspace) -> Result<(), WorkspaceError>,
    ) -> Result<(), RequestRefusal> {
        self.close();
        let begun = Instant::now();
        loop {
            match act(&mut self.workspace()) {
                Err(WorkspaceError::InUse(_)) if begun.elapsed() < LETTING_GO => {}
                done => return Ok(done?),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn is_fresh_overlay(place: &LayerDirectories, workspace: &Workspace) -> bool {
    let LayerDirectories::Overlay { upper, .. } = place else {
        return false;
    };
    workspace.record().snapshots.is_empty()
        && std::fs::read_dir(upper).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether the kernel or the tier has no overlay, so that a copy has to serve.
pub(crate) fn no_overlay(error: &SandboxError) -> bool {
    matches!(
        error,
        SandboxError::OverlayNeedsNamespaces { .. } | SandboxError::Setup { .. }
    )
}
