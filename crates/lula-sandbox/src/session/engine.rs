//! The engine: it keeps the helper, the control groups and the programs, and opens sandboxes.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lula_protocol::Tier;
use lula_protocol::receipt::NotApplied;

use super::command::{Command, Finished};
use super::disk::{self, Measured};
use super::link::{Link, Parts, setup_error};
use super::process::Process;
use super::session::Session;
use super::stock::Stock;
use super::workspace::{Overlay, Workspace};
use crate::blueprint::{Blueprint, RootPlan, Switches, WorkspacePlan};
use crate::cgroup::{self, Leaf};
use crate::error::SandboxError;
use crate::helper::Helper;
use crate::mounts::{self, HOME, System, Toolchains};
use crate::policy::{Granted, LayerName, Machine, Policy};
use crate::receipt::{Context, Host, human};
use crate::seccomp::{Abi, Program, Refusals, Rules};
use crate::sys::socket;
use crate::tiers;
use crate::zygote::Answer;

/// How long a sandbox may take to stand.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// A sandbox to be opened: what is allowed in it, around which workspace.
#[derive(Debug, Clone)]
pub struct Sandbox {
    policy: Policy,
    workspace: Workspace,
    tier: Option<Tier>,
    toolchains: Toolchains,
    without: Vec<LayerName>,
    writable: bool,
    owned: bool,
}

impl Sandbox {
    /// A sandbox under that policy with that directory writable. Toolchains on this process's
    /// `PATH` are shown read-only.
    pub fn new(policy: Policy, workspace: impl Into<PathBuf>) -> Self {
        Self::around(policy, Workspace::Directory(workspace.into()))
    }

    /// As [`Sandbox::new`], but what is written goes to a layer of its own: the real tree is seen at
    /// its path and never changes. [`SandboxError::OverlayNeedsNamespaces`] where the tier has no
    /// mounts of its own.
    pub fn over(policy: Policy, workspace: Overlay) -> Self {
        Self::around(policy, Workspace::Overlay(workspace))
    }

    fn around(policy: Policy, workspace: Workspace) -> Self {
        Self {
            policy,
            workspace,
            tier: None,
            toolchains: Toolchains::of_this_process(),
            without: Vec::new(),
            writable: true,
            owned: false,
        }
    }

    /// Says that the workspace is a copy nobody else writes to: the policy's disk limit then holds for
    /// what it grows by as a whole. A workspace in layers is always taken so.
    #[must_use]
    pub fn owned_workspace(mut self) -> Self {
        self.owned = true;
        self
    }

    /// Shows the workspace read-only.
    #[must_use]
    pub fn read_only_workspace(mut self) -> Self {
        self.writable = false;
        self
    }

    /// Exactly this tier, or nothing. The only way to get `process`.
    #[must_use]
    pub fn tier(mut self, tier: Tier) -> Self {
        self.tier = Some(tier);
        self
    }

    /// These toolchains instead.
    #[must_use]
    pub fn toolchains(mut self, toolchains: Toolchains) -> Self {
        self.toolchains = toolchains;
        self
    }

    /// Leaves a layer out, to show that something depends on it. The receipt says so, and a policy
    /// that requires the layer refuses.
    #[cfg(feature = "test-switches")]
    #[must_use]
    pub fn without(mut self, layer: LayerName) -> Self {
        self.without.push(layer);
        self
    }

    /// A required layer that cannot be in force, by what is known before the sandbox stands.
    fn unpromised(&self, context: &Context) -> Option<LayerName> {
        let promised = |layer: LayerName| {
            let by_tier = match layer {
                LayerName::Namespaces | LayerName::PrivateRoot => context.tier == Tier::Namespace,
                LayerName::Cgroup => context
                    .cgroup
                    .is_some_and(|(_, limits)| limits != cgroup::Limits::default()),
                LayerName::Rlimits | LayerName::CleanEnvironment => true,
                _ => context.tier != Tier::Process,
            };
            by_tier && !self.without.contains(&layer)
        };
        let required = self.policy.required_layers.iter().copied();
        required.into_iter().find(|layer| !promised(*layer))
    }

    /// Whether the size of the workspace is measured while commands run.
    fn is_measured(&self) -> bool {
        self.writable && (self.owned || matches!(self.workspace, Workspace::Overlay(_)))
    }

    fn measured(&self, limit: u64) -> Result<Option<Measured>, SandboxError> {
        match &self.workspace {
            _ if !self.is_measured() => Ok(None),
            Workspace::Overlay(overlay) => Measured::whole(&overlay.upper, limit).map(Some),
            Workspace::Directory(path) => Measured::growth(path, limit).map(Some),
        }
    }

    fn switches(&self) -> Switches {
        let on = |layer| !self.without.contains(&layer);
        Switches {
            namespaces: on(LayerName::Namespaces),
            landlock: on(LayerName::Landlock),
            seccomp: on(LayerName::Seccomp),
            no_new_privileges: on(LayerName::NoNewPrivileges),
            no_capabilities: on(LayerName::NoCapabilities),
            rlimits: on(LayerName::Rlimits),
            no_network: on(LayerName::NoNetwork),
            proc_masks: on(LayerName::PrivateRoot),
        }
    }
}

/// Opens sandboxes. Clones share everything.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    helper: Helper,
    groups: Stock,
    machine: Machine,
    host: Host,
    system: System,
    /// Apart from each other: the first moves into namespaces of its own.
    namespace: Mutex<Option<Arc<Zygote>>>,
    plain: Mutex<Option<Arc<Zygote>>>,
    programs: Mutex<Vec<(Rules, Arc<Program>)>>,
}

/// A running helper.
#[derive(Debug)]
struct Zygote {
    control: Mutex<OwnedFd>,
    /// Taken when it is ended.
    child: Mutex<Option<Child>>,
}

/// What must live as long as a sandbox.
#[derive(Debug)]
pub(crate) struct Keep {
    _zygote: Arc<Zygote>,
    pub(super) groups: Stock,
    _private: Option<PrivateDirectory>,
}

/// A directory that goes away with its sandbox.
#[derive(Debug)]
struct PrivateDirectory(PathBuf);

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Whoever drops this has closed every sandbox; the helper has nothing to tidy.
        let Some(mut child) = child.take() else {
            return;
        };
        let _ = child.kill();
        // The kernel takes its namespaces apart meanwhile; nobody needs to wait for that. Where no
        // thread can be had, or this process ends first, whoever adopts it buries it.
        let _ = std::thread::Builder::new()
            .name("lula-sandbox-bury".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || child.wait());
    }
}

impl Zygote {
    fn start(helper: &Helper, namespaces: bool) -> Result<Self, SandboxError> {
        let (child, control) = helper.start(namespaces)?;
        Ok(Self {
            control: Mutex::new(control),
            child: Mutex::new(Some(child)),
        })
    }

    /// Has a sandbox begun, and does something else while the helper is at it.
    fn build(
        &self,
        blueprint: &[u8],
        descriptors: &[BorrowedFd<'_>],
        meanwhile: impl FnOnce(),
    ) -> Result<OwnedFd, SandboxError> {
        let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        socket::send(&*control, blueprint, descriptors).map_err(|_| SandboxError::HelperGone)?;
        meanwhile();
        let mut buffer = [0; 4096];
        let (length, received) =
            socket::receive(&*control, &mut buffer).map_err(|_| SandboxError::HelperGone)?;
        if length == 0 {
            return Err(SandboxError::HelperGone);
        }
        match Answer::decode(&buffer[..length])? {
            Answer::Failed(failure) => {
                Err(setup_error(failure.stage, failure.detail, failure.errno))
            }
            Answer::Cloned { .. } => received.into_iter().next().ok_or(SandboxError::HelperGone),
        }
    }
}

impl Engine {
    /// An engine whose helper is this very program; see [`crate::helper_main_if_asked`].
    pub fn start() -> Result<Self, SandboxError> {
        Self::start_with(Helper::this_program())
    }

    /// An engine with another program as helper.
    pub fn start_with(helper: Helper) -> Result<Self, SandboxError> {
        // Started first: it prepares itself while this process looks at the machine.
        let zygote = Zygote::start(&helper, true)?;
        Ok(Self(Arc::new(Inner {
            helper,
            groups: Stock::new(),
            machine: cgroup::machine(),
            host: Host::of_this_process().map_err(SandboxError::io("cannot read /proc/self/ns"))?,
            system: System::look()?,
            namespace: Mutex::new(Some(Arc::new(zygote))),
            plain: Mutex::new(None),
            programs: Mutex::new(Vec::new()),
        })))
    }

    /// Opens a sandbox in the strongest tier that works here, or in the one it names. Refuses below
    /// the policy's floor and without a layer the policy requires.
    pub fn open(&self, sandbox: &Sandbox) -> Result<Session, SandboxError> {
        self.open_in(self.tier_for(sandbox)?, sandbox)
    }

    /// Runs one command in a sandbox of its own, ended when this returns. Quicker than opening a
    /// session for it: the command is on its way while the sandbox is being built.
    ///
    /// Nothing is given up for that. A layer that is known to be missing refuses before anything is
    /// sent, and the sandbox's first process starts nothing before it has read back every layer it
    /// was asked for.
    pub fn run(&self, sandbox: &Sandbox, command: &Command) -> Result<Finished, SandboxError> {
        let (session, process) = self.start_alone(sandbox, command)?;
        let finished = process.wait()?;
        session.close()?;
        Ok(finished)
    }

    /// As [`Engine::run`], with the command's streams in hand. Nothing else can be started in the
    /// session: it ends with its one command.
    pub fn start_alone(
        &self,
        sandbox: &Sandbox,
        command: &Command,
    ) -> Result<(Session, Process), SandboxError> {
        let begun = Instant::now();
        let tier = self.tier_for(sandbox)?;
        let session = self.begin(tier, sandbox)?;
        if let Some(layer) = sandbox.unpromised(&session.link.context) {
            let reason = missing_reason(&session, layer, sandbox);
            return Err(SandboxError::LayerMissing { layer, reason });
        }
        let process = session.start(command);
        // It goes as soon as the command has gone.
        let _ = session.link.end_with_last();
        // Why there is no sandbox says more than that the command could not be sent.
        finish_opening(&session, sandbox, begun)?;
        Ok((session, process?))
    }

    fn tier_for(&self, sandbox: &Sandbox) -> Result<Tier, SandboxError> {
        let tier = match sandbox.tier {
            Some(tier) if tier < sandbox.policy.min_tier => {
                return Err(SandboxError::FloorNotMet {
                    floor: sandbox.policy.min_tier,
                    refusals: vec![tiers::Refusal::below_floor(tier)],
                });
            }
            Some(tier) => tier,
            None => tiers::choose(self, sandbox.policy.min_tier)?,
        };
        Ok(tier)
    }

    /// Waits until every control group of closed sandboxes is gone, and says if one is not.
    pub fn settle(&self) -> Result<(), SandboxError> {
        Ok(self.0.groups.settle()?)
    }

    pub(crate) fn helper(&self) -> &Helper {
        &self.0.helper
    }

    pub(crate) fn open_in(&self, tier: Tier, sandbox: &Sandbox) -> Result<Session, SandboxError> {
        let begun = Instant::now();
        let session = self.begin(tier, sandbox)?;
        finish_opening(&session, sandbox, begun)?;
        Ok(session)
    }

    /// Has a sandbox built. It may not stand yet, and it may turn out that it never will.
    fn begin(&self, tier: Tier, sandbox: &Sandbox) -> Result<Session, SandboxError> {
        if !tiers::is_built_here(tier) {
            return Err(SandboxError::FloorNotMet {
                floor: tier,
                refusals: vec![tiers::Refusal::not_built(tier)],
            });
        }
        let inner = &*self.0;
        let policy = &sandbox.policy;
        let granted = policy.limits.granted(&inner.machine);
        let workspace = sandbox.workspace.plan(sandbox.writable)?;
        if workspace.overlay.is_some() && tier != Tier::Namespace {
            return Err(SandboxError::OverlayNeedsNamespaces { tier });
        }
        let place = PathBuf::from(&workspace.path);
        let rules = Rules {
            nested_userns: policy.nested_userns,
            refusals: Refusals::Notify,
            ..if tier == Tier::Namespace {
                Rules::NAMESPACE
            } else {
                Rules::SHARED
            }
        };
        let program = inner.program(rules)?;
        let mut not_applied = Vec::new();
        let drawn = Drawn::draw(tier, sandbox, workspace, &granted, &program, &inner.system)?;
        not_applied.extend(drawn.not_applied);

        let measured = sandbox.measured(granted.disk_bytes)?;
        let leaf = inner.leaf(sandbox, &granted)?;
        let mut blueprint = drawn.blueprint;
        let mut limits = Ok(None);
        let mut join = Vec::new();
        if let Some(leaf) = &leaf {
            not_applied.extend(leaf.not_applied().iter().cloned());
            blueprint.born_in_cgroup = leaf.v2_dir_fd().is_some();
            join = leaf.join_files()?;
        }

        let (connection, theirs) =
            socket::stream_pair().map_err(SandboxError::io("cannot make a socket"))?;
        let mut descriptors = vec![theirs.as_fd()];
        descriptors.extend(leaf.as_ref().and_then(Leaf::v2_dir_fd));
        descriptors.extend(join.iter().map(AsFd::as_fd));
        let request = blueprint.encode();
        let mut zygote = inner.zygote(tier)?;
        let mut built = zygote.build(&request, &descriptors, || {
            // No command runs before these were read.
            limits = leaf.as_ref().map(Leaf::read_back).transpose();
        });
        if matches!(built, Err(SandboxError::HelperGone)) {
            // Its sandboxes died with it; new ones need a new helper.
            inner.forget_zygote(tier);
            zygote = inner.zygote(tier)?;
            built = zygote.build(&request, &descriptors, || ());
        }
        let pidfd = built?;
        drop(theirs);
        let limits = match limits {
            Ok(limits) => limits,
            Err(unreadable) => {
                let _ = rustix::process::pidfd_send_signal(&pidfd, rustix::process::Signal::KILL);
                return Err(unreadable.into());
            }
        };

        let link = Link::new(Parts {
            connection,
            pidfd,
            leaf,
            rules,
            context: Context {
                tier,
                policy: policy.digest()?,
                granted,
                read_only: drawn.read_only,
                writable: drawn.writable,
                program: program.digest(),
                instructions: u32::try_from(program.instructions().len()).unwrap_or(u32::MAX),
                no_sockets: !rules.internet_sockets,
                clean_environment: !sandbox.without.contains(&LayerName::CleanEnvironment),
                cgroup: limits.map(|limits| (inner.groups.kind().name(), limits)),
                host: inner.host.clone(),
                not_applied,
            },
            environment: environment(sandbox, &drawn.home),
            workspace: place,
            own_pids: tier == Tier::Namespace,
            keep: Keep {
                _zygote: zygote,
                groups: inner.groups.clone(),
                _private: drawn.private,
            },
        });
        // From here on a session that is not returned is ended by its drop.
        let session = Session {
            link: Arc::new(link),
        };
        if let Some(measured) = measured {
            disk::watch(&session.link, measured)?;
        }
        Ok(session)
    }
}

/// Waits until the sandbox stands, and refuses it where a required layer is not in force.
fn finish_opening(
    session: &Session,
    sandbox: &Sandbox,
    begun: Instant,
) -> Result<(), SandboxError> {
    let (posture, held_back) = session.link.wait_ready(READY_WITHIN)?;
    let layers = session.link.standing_layers(&posture);
    let required = sandbox.policy.required_layers.iter().copied();
    if let Some(layer) = Context::missing(required, &layers) {
        let reason = missing_reason(session, layer, sandbox);
        return Err(SandboxError::LayerMissing { layer, reason });
    }
    session.link.stands(begun.elapsed(), held_back);
    Ok(())
}

fn missing_reason(session: &Session, layer: LayerName, sandbox: &Sandbox) -> String {
    if sandbox.without.contains(&layer) {
        return "it was left out on purpose".to_owned();
    }
    let reasons: Vec<String> = session
        .link
        .context
        .not_applied
        .iter()
        .map(|missing| format!("{}: {}", missing.asked, missing.reason))
        .collect();
    if reasons.is_empty() {
        format!("the tier `{}` does not have it here", session.tier())
    } else {
        reasons.join("; ")
    }
}

impl Inner {
    fn zygote(&self, tier: Tier) -> Result<Arc<Zygote>, SandboxError> {
        let mut slot = self
            .slot(tier)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(zygote) = &*slot {
            return Ok(Arc::clone(zygote));
        }
        let zygote = Arc::new(Zygote::start(&self.helper, tier == Tier::Namespace)?);
        *slot = Some(Arc::clone(&zygote));
        Ok(zygote)
    }

    fn slot(&self, tier: Tier) -> &Mutex<Option<Arc<Zygote>>> {
        if tier == Tier::Namespace {
            &self.namespace
        } else {
            &self.plain
        }
    }

    fn forget_zygote(&self, tier: Tier) {
        *self
            .slot(tier)
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn program(&self, rules: Rules) -> Result<Arc<Program>, SandboxError> {
        let abi = Abi::native().ok_or(SandboxError::Processor)?;
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = programs.iter().find(|(known, _)| *known == rules) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(Program::compile(abi, &rules));
        programs.push((rules, Arc::clone(&program)));
        Ok(program)
    }

    fn leaf(&self, sandbox: &Sandbox, granted: &Granted) -> Result<Option<Leaf>, SandboxError> {
        if sandbox.without.contains(&LayerName::Cgroup) {
            return Ok(None);
        }
        Ok(Some(self.groups.take(&cgroup::Limits::from(granted))?))
    }
}

/// A blueprint and what the receipt will say about it.
struct Drawn {
    blueprint: Blueprint,
    read_only: Vec<String>,
    writable: Vec<String>,
    not_applied: Vec<NotApplied>,
    home: String,
    private: Option<PrivateDirectory>,
}

impl Drawn {
    fn draw(
        tier: Tier,
        sandbox: &Sandbox,
        workspace: WorkspacePlan,
        granted: &Granted,
        program: &Program,
        system: &System,
    ) -> Result<Self, SandboxError> {
        let mut blueprint = Blueprint {
            tier,
            root: RootPlan::default(),
            placed: Vec::new(),
            workspace,
            caches: Vec::new(),
            masks: Vec::new(),
            scratch_bytes: granted.disk_bytes,
            open_files: granted.open_files,
            file_size: Some(granted.disk_bytes),
            grants: Vec::new(),
            program: program.instructions().to_vec(),
            listened: true,
            switches: sandbox.switches(),
            born_in_cgroup: false,
        };
        let disk = disk_limit(sandbox, granted);
        let place = mounts::Workspace {
            path: Path::new(&blueprint.workspace.path),
            writable: sandbox.writable,
            overlaid: blueprint.workspace.overlay.is_some(),
        };
        if tier == Tier::Namespace {
            let plan = mounts::plan(&sandbox.policy, place, &sandbox.toolchains, system)?;
            let (read_only, writable) = (plan.read_only(), plan.writable());
            blueprint.root = plan.root;
            blueprint.placed = plan.placed;
            blueprint.caches = plan.caches;
            blueprint.masks = plan.masks;
            blueprint.grants = plan.grants;
            let missing = plan.held_back.into_iter().map(|held| NotApplied {
                asked: held.asked,
                reason: held.reason,
            });
            return Ok(Self {
                blueprint,
                read_only,
                writable,
                not_applied: missing.chain([disk]).collect(),
                home: HOME.to_owned(),
                private: None,
            });
        }
        let private = private_directory()?;
        let home = private.0.to_string_lossy().into_owned();
        blueprint.grants =
            mounts::shared_grants(&sandbox.policy, place, &sandbox.toolchains, &private.0)?;
        let mut writable = vec![home.clone()];
        if place.writable {
            writable.push(blueprint.workspace.path.clone());
        }
        Ok(Self {
            blueprint,
            read_only: Vec::new(),
            writable,
            not_applied: vec![disk],
            home,
            private: Some(private),
        })
    }
}

/// What the disk limit is not: it cannot be set on one directory of an ordinary filesystem.
fn disk_limit(sandbox: &Sandbox, granted: &Granted) -> NotApplied {
    let size = human(granted.disk_bytes);
    if sandbox.is_measured() {
        return NotApplied {
            asked: format!("disk limit {size} for the workspace at every moment"),
            reason: format!(
                "it is measured while commands run, every {} ms at best, and a command is ended once \
                 it is exceeded",
                disk::INTERVAL.as_millis()
            ),
        };
    }
    NotApplied {
        asked: format!("disk limit {size} for the workspace as a whole"),
        reason: "the workspace is written directly; the limit holds for each file and for the \
                 private directories together"
            .to_owned(),
    }
}

fn private_directory() -> Result<PrivateDirectory, SandboxError> {
    use std::os::unix::fs::DirBuilderExt;
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let base = std::env::temp_dir();
    for _ in 0..1000 {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("lula-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(PrivateDirectory(path)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(SandboxError::Path { path, source }),
        }
    }
    Err(SandboxError::Path {
        path: base,
        source: std::io::ErrorKind::AlreadyExists.into(),
    })
}

/// The whole environment, built from nothing.
fn environment(sandbox: &Sandbox, home: &str) -> Vec<(String, String)> {
    let temporary = if home == HOME { "/tmp" } else { home };
    let mut variables: BTreeMap<String, String> = [
        ("HOME", home),
        ("LANG", "C.UTF-8"),
        ("LOGNAME", "user"),
        ("SHELL", "/bin/sh"),
        ("TERM", "dumb"),
        ("TMPDIR", temporary),
        ("USER", "user"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    variables.insert("PATH".to_owned(), sandbox.toolchains.search_path());
    variables.extend(sandbox.toolchains.environment().clone());
    if sandbox.without.contains(&LayerName::CleanEnvironment) {
        variables.extend(std::env::vars());
    }
    for (name, value) in &sandbox.policy.environment {
        variables.insert(name.as_str().to_owned(), value.clone());
    }
    variables.into_iter().collect()
}
