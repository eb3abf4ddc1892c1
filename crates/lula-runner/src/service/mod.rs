//! Everything the runner does, without HTTP: workspaces, tools, commits, and the ledger that makes
//! each effect happen once.
//!
//! A `RunnerWorkspace` is one open workspace with the sandbox around it; a command, git and the toolbox are
//! processes of the same sandbox. Effects on one workspace take turns; reads do not wait and are
//! not recorded. A session in the background is one effect: that it was started. What it writes
//! later is judged when the workspace is committed; commits are judged by the same rules as writes,
//! because commands write without asking.
//!
//! Several runners may share a state directory, one for each active run. Each is known by a lock
//! (`runner.rs`); what a living runner works on is not taken back by another.

mod agent_commit;
mod before;
mod branches;
mod call;
mod checkouts;
pub mod clock;
mod commit;
mod deliver;
mod deliver_all;
mod effect;
mod exec;
mod fill;
mod gate;
mod git;
#[cfg(test)]
mod in_process;
mod jobs;
mod merge;
mod proposal;
mod recovery;
mod refusal;
mod room;
mod rulings;
mod runner;
mod running;
mod scope;
mod sessions;
mod snapshots;
mod strays;
mod task_history;
mod test_runs;
mod toolbox;
mod views;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lula_protocol::{
    EffectId, IsolationTier, ProtocolVersion, ToolAction, ToolCall, ToolOutcome, ToolResult,
    WorkspaceId,
};
use lula_sandbox::policy::SandboxPolicy;
use lula_sandbox::{DoorKeeper, Sandbox, SandboxEngine};
use lula_workspace::{GitProgram, LayerPreference, Workspace, WorkspaceStore};

use effect::EffectLedger;
pub use effect::GatedAct;
use gate::EffectGate;
pub use gate::RunnerRulesFile;
pub use refusal::RequestRefusal;
use room::RunnerWorkspace;
pub(crate) use room::no_overlay;
use runner::RunnerRegistration;
pub use running::CommandListener;
use sessions::CommandSessions;
pub use sessions::StartedCommand;

use crate::environments::{EnvironmentChoice, EnvironmentSource};
use crate::halt::EffectStopper;
use crate::toolbox::frame::{ToolboxAnswer, ToolboxQuestion};
use lula_runner_api::{OpenWorkspace, RunnerCapabilities, WorkspaceList, WorkspaceView};

/// Most workspaces with a sandbox at one time.
const ROOMS: usize = 256;

/// How the service is set up.
#[derive(Debug, Clone)]
pub struct RunnerSetup {
    /// Where workspaces and the ledger are kept.
    pub state: PathBuf,
    /// Workspaces can be opened below these directories.
    pub roots: Vec<PathBuf>,
    /// What commands are granted.
    pub policy: SandboxPolicy,
    /// Whether receipts say which paths commands were denied. It slows down those that open many files.
    pub explain: bool,
    /// Most bytes of all workspaces together.
    pub max_bytes: u64,
    /// The person's home, which no workspace may hold: credentials are there.
    pub home: Option<PathBuf>,
    /// Rules files of the operator, beside the built-in ones.
    pub rules: Vec<RunnerRulesFile>,
    /// Whether the operator who starts this agrees to what the rules let them agree to beforehand.
    pub beforehand: bool,
    /// Which environments commands and tests get.
    pub environment: EnvironmentChoice,
    /// What answers for the network of commands, where the policy gives them one by name.
    pub door: Option<Arc<dyn DoorKeeper>>,
    /// The git for commits of repositories; without one only directories can be opened.
    pub git: Option<GitProgram>,
}

/// What the runner does, apart from speaking HTTP.
#[derive(Debug)]
pub struct RunnerService {
    setup: RunnerSetup,
    engine: SandboxEngine,
    tier: IsolationTier,
    store: WorkspaceStore,
    ledger: Mutex<EffectLedger>,
    gate: EffectGate,
    rooms: Mutex<BTreeMap<WorkspaceId, Arc<RunnerWorkspace>>>,
    sessions: CommandSessions,
    halts: EffectStopper,
    runner: RunnerRegistration,
    /// Held while a commit is laid out.
    laying: Mutex<()>,
}

impl RunnerService {
    /// Finds out that sandboxes work here, opens the ledger, and puts right what an earlier runner
    /// left half done.
    pub fn new(mut setup: RunnerSetup) -> Result<Self, RequestRefusal> {
        let bad = |path: &Path, error: &std::io::Error| {
            RequestRefusal::BadRequest(format!("cannot use {}: {error}", path.display()))
        };
        for root in &mut setup.roots {
            *root = root.canonicalize().map_err(|error| bad(root, &error))?;
        }
        std::fs::create_dir_all(&setup.state).map_err(|error| bad(&setup.state, &error))?;
        setup.state = setup
            .state
            .canonicalize()
            .map_err(|error| bad(&setup.state, &error))?;
        let mut engine = SandboxEngine::start()?;
        if let Some(door) = &setup.door {
            engine = engine.with_door_keeper(Arc::clone(door));
        }
        let tier = match setup.roots.first() {
            Some(root) => engine
                .open(&Sandbox::new(setup.policy.clone(), root).read_only_workspace())?
                .tier(),
            None => {
                return Err(RequestRefusal::BadRequest(
                    "no root: name one with --root".into(),
                ));
            }
        };
        Self::with(setup, engine, tier)
    }

    /// Opens what is kept, and puts right what an earlier runner left half done.
    fn with(
        setup: RunnerSetup,
        engine: SandboxEngine,
        tier: IsolationTier,
    ) -> Result<Self, RequestRefusal> {
        let service = Self {
            store: WorkspaceStore::at(&setup.state, setup.max_bytes),
            gate: EffectGate::open(&setup.state, setup.rules.clone())?,
            ledger: Mutex::new(EffectLedger::open(&setup.state.join("hands.db"))?),
            rooms: Mutex::default(),
            sessions: CommandSessions::default(),
            halts: EffectStopper::default(),
            runner: RunnerRegistration::begin(&setup.state)?,
            laying: Mutex::default(),
            setup,
            engine,
            tier,
        };
        lula_workspace::fork::sweep(&service.forks());
        service.set_aside()?;
        service.recover()?;
        Ok(service)
    }

    fn ledger(&self) -> MutexGuard<'_, EffectLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rooms(&self) -> MutexGuard<'_, BTreeMap<WorkspaceId, Arc<RunnerWorkspace>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this runner is and gives.
    pub fn capabilities(&self) -> Result<RunnerCapabilities, RequestRefusal> {
        views::capabilities(&self.setup, self.tier, self.gate.version()?)
    }

    /// Where environments come from.
    pub(crate) fn environments(&self) -> EnvironmentSource {
        EnvironmentSource::new(&self.setup.state, self.setup.environment.clone())
    }

    fn is_below_a_root(&self, path: &Path) -> bool {
        self.setup.roots.iter().any(|root| path.starts_with(root))
    }

    /// The directory that a request names.
    fn directory(&self, given: &str) -> Result<PathBuf, RequestRefusal> {
        let outside = || RequestRefusal::OutsideRoots(given.chars().take(200).collect());
        if !Path::new(given).is_absolute() || given.contains('\0') {
            return Err(outside());
        }
        let path = Path::new(given).canonicalize().map_err(|_| outside())?;
        if !path.is_dir() || !self.is_below_a_root(&path) {
            return Err(outside());
        }
        Ok(path)
    }

    /// Where forks of workspaces lie.
    fn forks(&self) -> PathBuf {
        self.setup.state.join("forks")
    }

    /// Opens a private view of a directory.
    pub fn open(&self, asked: &OpenWorkspace) -> Result<WorkspaceView, RequestRefusal> {
        let path = self.directory(&asked.path)?;
        if self.rooms().len() >= ROOMS {
            return Err(RequestRefusal::Busy(format!("{ROOMS} workspaces are open")));
        }
        // Before anything is made: patterns that are none must leave nothing behind.
        scope::invariants(&asked.write_scope)?;
        if let Some(wanted) = &asked.checkout {
            // Commands see what is committed there, and nothing else of the directory.
            return self.open_checkout(&path, asked, wanted);
        }
        let home = self
            .setup
            .home
            .as_ref()
            .and_then(|home| home.canonicalize().ok());
        if path == Path::new("/") || home.is_some_and(|home| home.starts_with(&path)) {
            return Err(RequestRefusal::TooWide(path.display().to_string()));
        }
        let workspace = self
            .store
            .create(&path, LayerPreference::Overlay, &asked.title)?;
        self.ledger().declare(workspace.id(), &asked.write_scope)?;
        let view = views::workspace(workspace.record());
        let room = self.furnish(workspace)?;
        self.rooms().insert(room.id.clone(), room);
        Ok(view)
    }

    fn furnish(&self, workspace: Workspace) -> Result<Arc<RunnerWorkspace>, RequestRefusal> {
        let base = self.belongs_to(&workspace.record().base());
        let rules = self.gate.policy(&base)?;
        let invariants = scope::invariants(&self.ledger().declared(workspace.id())?)?;
        let engine = self.engine.clone();
        let stand_in = self.stand_in(&workspace.record().base());
        let policy = self.setup.policy.clone();
        let explain = self.setup.explain;
        let room = RunnerWorkspace::new(
            engine,
            (policy, self.environments()),
            explain,
            (rules, invariants),
            workspace,
            stand_in,
        );
        Ok(Arc::new(room))
    }

    /// The workspace of that id, also one that an earlier runner opened.
    fn room(&self, id: &WorkspaceId) -> Result<Arc<RunnerWorkspace>, RequestRefusal> {
        let mut rooms = self.rooms();
        if let Some(room) = rooms.get(id) {
            return Ok(Arc::clone(room));
        }
        let workspace = self.store.open(id).map_err(|error| match error {
            lula_workspace::WorkspaceError::Unknown(_) => RequestRefusal::NoWorkspace(id.clone()),
            error => error.into(),
        })?;
        if !self.is_below_a_root(&self.belongs_to(&workspace.record().base())) {
            return Err(RequestRefusal::NoWorkspace(id.clone()));
        }
        if rooms.len() >= ROOMS {
            return Err(RequestRefusal::Busy(format!("{ROOMS} workspaces are open")));
        }
        let room = self.furnish(workspace)?;
        rooms.insert(id.clone(), Arc::clone(&room));
        Ok(room)
    }

    /// Every workspace below the roots.
    pub fn list(&self) -> Result<WorkspaceList, RequestRefusal> {
        let mut records = self.store.list()?;
        records.retain(|record| self.is_below_a_root(&self.belongs_to(&record.base())));
        records.reverse();
        let view = |record| self.with_origin(views::workspace(record));
        Ok(WorkspaceList {
            workspaces: records.iter().map(view).collect(),
        })
    }

    /// One workspace, also if it was cleared away.
    pub fn view(&self, id: &WorkspaceId) -> Result<WorkspaceView, RequestRefusal> {
        let room = match self.room(id) {
            Err(RequestRefusal::NoWorkspace(id)) => return self.view_cleared(&id),
            room => room?,
        };
        let workspace = room.workspace();
        Ok(self.with_origin(views::workspace(workspace.record())))
    }

    /// How many workspaces are in use, and how many sessions there are.
    pub fn counts(&self) -> (u64, u64) {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        (number(self.rooms().len()), number(self.sessions.count()))
    }

    /// Ends what runs for an effect, and what would. Returns when nothing of it is left.
    pub fn stop_effect(&self, effect: &EffectId) {
        self.halts.stop(effect);
    }

    /// Ends every sandbox, with the commands in it.
    pub fn shut_down(&self) {
        let rooms = std::mem::take(&mut *self.rooms());
        for room in rooms.values() {
            room.close();
        }
        self.gate.seal();
    }
}

/// Looks, and changes nothing.
fn read(room: &RunnerWorkspace, action: &ToolAction) -> Result<ToolOutcome, RequestRefusal> {
    if let ToolAction::Git(git) = action {
        let live = room.live()?;
        return git::run(git, &live).map(|(outcome, _)| outcome);
    }
    match room.ask(ToolboxQuestion::Do(action.clone()))? {
        Ok(ToolboxAnswer::Output(output)) => Ok(ToolOutcome::Done { output }),
        Ok(_) => Err(RequestRefusal::ToolBroke(
            "an answer of another kind".to_owned(),
        )),
        Err(failure) => Ok(exec::failed(failure.code, failure.message)),
    }
}

fn result(
    call: &ToolCall,
    outcome: ToolOutcome,
    receipt: Option<lula_protocol::SandboxReceipt>,
) -> ToolResult {
    ToolResult {
        protocol: ProtocolVersion,
        effect: call.effect.clone(),
        outcome,
        receipt,
    }
}
