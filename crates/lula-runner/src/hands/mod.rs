//! Everything the runner does, without HTTP: workspaces, tools, commits, and the ledger that makes
//! each effect happen once.

mod before;
mod checkouts;
pub mod clock;
mod commit;
mod effect;
mod exec;
mod gate;
mod git;
mod integrate;
mod ledger;
mod lines;
mod proposal;
mod recovery;
mod refusal;
mod room;
mod runner;
mod scope;
mod sessions;
mod snapshots;
mod together;
mod toolbox;
mod trials;
mod views;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lula_protocol::{
    Action, EffectId, Outcome, ProtocolVersion, ToolCall, ToolResult, WorkspaceId,
};
use lula_sandbox::policy::Policy;
use lula_sandbox::{Engine, Sandbox};
use lula_workspace::{Git, Store, Wanted, Workspace};

pub use commit::Gated;
use gate::Gate;
pub use gate::RulesFile;
pub use refusal::Refusal;
use room::Room;
pub(crate) use room::no_overlay;
use runner::Runner;
use sessions::Sessions;
pub use sessions::{Heard, Started};

use crate::api::{Capabilities, OpenWorkspace, WorkspaceList, WorkspaceView};
use crate::halt::Halts;
use crate::toolbox::frame::{Answer, Ask};
use ledger::Ledger;

/// Most workspaces with a sandbox at one time.
const ROOMS: usize = 256;

/// How the hands are set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Where workspaces and the ledger are kept.
    pub state: PathBuf,
    /// Workspaces can be opened below these directories.
    pub roots: Vec<PathBuf>,
    /// What commands are granted.
    pub policy: Policy,
    /// Whether receipts say which paths commands were denied. It slows down those that open many files.
    pub explain: bool,
    /// Most bytes of all workspaces together.
    pub max_bytes: u64,
    /// The person's home, which no workspace may hold: credentials are there.
    pub home: Option<PathBuf>,
    /// Rules files of whoever runs this, beside the built-in ones.
    pub rules: Vec<RulesFile>,
    /// Whether whoever starts this agrees to what the rules let them agree to beforehand.
    pub beforehand: bool,
    /// The git for commits of repositories; without one only directories can be opened.
    pub git: Option<Git>,
}

/// The hands.
#[derive(Debug)]
pub struct Hands {
    setup: Setup,
    engine: Engine,
    tier: lula_protocol::Tier,
    store: Store,
    ledger: Mutex<Ledger>,
    gate: Gate,
    rooms: Mutex<BTreeMap<WorkspaceId, Arc<Room>>>,
    sessions: Sessions,
    halts: Halts,
    runner: Runner,
    /// Held while a commit is laid out.
    laying: Mutex<()>,
}

impl Hands {
    /// Finds out that sandboxes work here, opens the ledger, and puts right what an earlier runner
    /// left half done.
    pub fn new(mut setup: Setup) -> Result<Self, Refusal> {
        let bad = |path: &Path, error: &std::io::Error| {
            Refusal::BadRequest(format!("cannot use {}: {error}", path.display()))
        };
        for root in &mut setup.roots {
            *root = root.canonicalize().map_err(|error| bad(root, &error))?;
        }
        std::fs::create_dir_all(&setup.state).map_err(|error| bad(&setup.state, &error))?;
        setup.state = setup
            .state
            .canonicalize()
            .map_err(|error| bad(&setup.state, &error))?;
        let engine = Engine::start()?;
        let tier = match setup.roots.first() {
            Some(root) => engine
                .open(&Sandbox::new(setup.policy.clone(), root).read_only_workspace())?
                .tier(),
            None => return Err(Refusal::BadRequest("no root: name one with --root".into())),
        };
        let hands = Self {
            store: Store::at(&setup.state, setup.max_bytes),
            gate: Gate::open(&setup.state, setup.rules.clone())?,
            ledger: Mutex::new(Ledger::open(&setup.state.join("hands.db"))?),
            rooms: Mutex::default(),
            sessions: Sessions::default(),
            halts: Halts::default(),
            runner: Runner::begin(&setup.state)?,
            laying: Mutex::default(),
            setup,
            engine,
            tier,
        };
        lula_workspace::fork::sweep(&hands.forks());
        hands.set_aside()?;
        hands.recover()?;
        Ok(hands)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rooms(&self) -> MutexGuard<'_, BTreeMap<WorkspaceId, Arc<Room>>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this runner is and gives.
    pub fn capabilities(&self) -> Result<Capabilities, Refusal> {
        views::capabilities(&self.setup, self.tier, self.gate.version()?)
    }

    fn is_below_a_root(&self, path: &Path) -> bool {
        self.setup.roots.iter().any(|root| path.starts_with(root))
    }

    /// The directory that a request names.
    fn directory(&self, given: &str) -> Result<PathBuf, Refusal> {
        let outside = || Refusal::OutsideRoots(given.chars().take(200).collect());
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
    pub fn open(&self, asked: &OpenWorkspace) -> Result<WorkspaceView, Refusal> {
        let path = self.directory(&asked.path)?;
        if self.rooms().len() >= ROOMS {
            return Err(Refusal::Busy(format!("{ROOMS} workspaces are open")));
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
            return Err(Refusal::TooWide(path.display().to_string()));
        }
        let workspace = self.store.create(&path, Wanted::Overlay, &asked.title)?;
        self.ledger().declare(workspace.id(), &asked.write_scope)?;
        let view = views::workspace(workspace.record());
        let room = self.furnish(workspace)?;
        self.rooms().insert(room.id.clone(), room);
        Ok(view)
    }

    fn furnish(&self, workspace: Workspace) -> Result<Arc<Room>, Refusal> {
        let base = self.belongs_to(&workspace.record().base());
        let rules = self.gate.policy(&base)?;
        let invariants = scope::invariants(&self.ledger().declared(workspace.id())?)?;
        let engine = self.engine.clone();
        let stand_in = self.stand_in(&workspace.record().base());
        let policy = self.setup.policy.clone();
        let explain = self.setup.explain;
        let room = Room::new(
            engine,
            policy,
            explain,
            (rules, invariants),
            workspace,
            stand_in,
        );
        Ok(Arc::new(room))
    }

    /// The workspace of that id, also one that an earlier runner opened.
    fn room(&self, id: &WorkspaceId) -> Result<Arc<Room>, Refusal> {
        let mut rooms = self.rooms();
        if let Some(room) = rooms.get(id) {
            return Ok(Arc::clone(room));
        }
        let workspace = self.store.open(id).map_err(|error| match error {
            lula_workspace::WorkspaceError::Unknown(_) => Refusal::NoWorkspace(id.clone()),
            error => error.into(),
        })?;
        if !self.is_below_a_root(&self.belongs_to(&workspace.record().base())) {
            return Err(Refusal::NoWorkspace(id.clone()));
        }
        if rooms.len() >= ROOMS {
            return Err(Refusal::Busy(format!("{ROOMS} workspaces are open")));
        }
        let room = self.furnish(workspace)?;
        rooms.insert(id.clone(), Arc::clone(&room));
        Ok(room)
    }

    /// Every workspace below the roots.
    pub fn list(&self) -> Result<WorkspaceList, Refusal> {
        let mut records = self.store.list()?;
        records.retain(|record| self.is_below_a_root(&self.belongs_to(&record.base())));
        records.reverse();
        let view = |record| self.with_origin(views::workspace(record));
        Ok(WorkspaceList {
            workspaces: records.iter().map(view).collect(),
        })
    }

    /// One workspace.
    pub fn view(&self, id: &WorkspaceId) -> Result<WorkspaceView, Refusal> {
        let room = match self.room(id) {
            Err(Refusal::NoWorkspace(id)) => return self.view_cleared(&id),
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

    /// Ends every sandbox.
    pub fn shut_down(&self) {
        let rooms = std::mem::take(&mut *self.rooms());
        for room in rooms.values() {
            room.close();
        }
        self.gate.seal();
    }
}

/// Looks, and changes nothing.
fn read(room: &Room, action: &Action) -> Result<Outcome, Refusal> {
    if let Action::Git(git) = action {
        let live = room.live()?;
        return git::run(git, &live).map(|(outcome, _)| outcome);
    }
    match room.ask(Ask::Do(action.clone()))? {
        Ok(Answer::Output(output)) => Ok(Outcome::Done { output }),
        Ok(_) => Err(Refusal::ToolBroke("an answer of another kind".to_owned())),
        Err(failure) => Ok(exec::failed(failure.code, failure.message)),
    }
}

fn result(
    call: &ToolCall,
    outcome: Outcome,
    receipt: Option<lula_protocol::Receipt>,
) -> ToolResult {
    ToolResult {
        protocol: ProtocolVersion,
        effect: call.effect.clone(),
        outcome,
        receipt,
    }
}
