//! The engine: it keeps the helper, the control groups and the programs, and opens sandboxes.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lula_protocol::IsolationTier;

use super::command::{FinishedCommand, SandboxCommand};
use super::door::{DoorKeeper, DoorPlan, DoorSubject, OpenedDoor};
use super::drawing::{self, PlannedFilter, PlannedSandbox, environment};
use super::first_process::FirstProcess;
use super::link::{HelperLink, HelperLinkParts};
use super::process::SandboxProcess;
use super::resources::SandboxResources;
use super::sandbox::Sandbox;
use super::session::SandboxSession;
use super::stock::CgroupStock;
use super::zygote::{BuiltSandbox, ZygoteProcess};
use crate::blueprint::WorkspacePlan;
use crate::cgroup::layout::CgroupHierarchy;
use crate::cgroup::{self, CgroupLeaf};
use crate::error::SandboxError;
use crate::helper::{EarlyHelper, HelperProgram};
use crate::mounts::{self, SystemDirectories};
use crate::policy::{LayerName, MachineCapacity, Network, ResolvedLimits};
use crate::receipt::{HostPosture, ReceiptContext};
use crate::seccomp::{RefusedCallReply, SeccompProgram, SeccompRules, SyscallAbi};
use crate::sys::socket;
use crate::tiers;
use crate::watch::DenialWatcher;

/// How long a sandbox may take to stand.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Opens sandboxes. Clones share everything.
#[derive(Debug, Clone)]
pub struct SandboxEngine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    helper: HelperProgram,
    /// Looked for when the first sandbox needs them, while the helper is at work on it.
    groups: OnceLock<CgroupStock>,
    machine: MachineCapacity,
    hierarchies: Vec<CgroupHierarchy>,
    /// Read when the first receipt needs it.
    host: OnceLock<HostPosture>,
    system: SystemDirectories,
    /// Apart from each other: the first moves into namespaces of its own.
    namespace: Mutex<Option<Arc<ZygoteProcess>>>,
    /// Its sandboxes keep the host's network, which it must not have left.
    on_host_network: Mutex<Option<Arc<ZygoteProcess>>>,
    plain: Mutex<Option<Arc<ZygoteProcess>>>,
    programs: Mutex<Vec<(SeccompRules, Arc<SeccompProgram>)>>,
    keeper: OnceLock<Arc<dyn DoorKeeper>>,
}

impl SandboxEngine {
    /// An engine whose helper is this very program; see [`crate::helper_main_if_asked`].
    pub fn start() -> Result<Self, SandboxError> {
        Self::start_with(HelperProgram::this_program())
    }

    /// An engine with another program as helper.
    pub fn start_with(helper: HelperProgram) -> Result<Self, SandboxError> {
        // Started first: it prepares itself while this process looks at the machine.
        let zygote = ZygoteProcess::start(&helper, true)?;
        Self::with_zygote(helper, zygote)
    }

    /// As [`SandboxEngine::start`], with a helper that was made ahead of time, where there is one.
    pub fn start_early(early: Option<EarlyHelper>) -> Result<Self, SandboxError> {
        match early {
            Some(early) => {
                Self::with_zygote(HelperProgram::this_program(), ZygoteProcess::early(early))
            }
            None => Self::start(),
        }
    }

    fn with_zygote(helper: HelperProgram, zygote: ZygoteProcess) -> Result<Self, SandboxError> {
        let hierarchies = cgroup::layout::of_this_process();
        Ok(Self(Arc::new(Inner {
            helper,
            groups: OnceLock::new(),
            machine: cgroup::machine(&hierarchies),
            hierarchies,
            host: OnceLock::new(),
            system: SystemDirectories::look()?,
            namespace: Mutex::new(Some(Arc::new(zygote))),
            on_host_network: Mutex::new(None),
            plain: Mutex::new(None),
            programs: Mutex::new(Vec::new()),
            keeper: OnceLock::new(),
        })))
    }

    /// Has that keeper answer for every sandbox whose policy says `network = "allowlist"`. The first one
    /// stays: what a sandbox may reach is not exchanged behind its back.
    #[must_use]
    pub fn with_door_keeper(self, keeper: Arc<dyn DoorKeeper>) -> Self {
        let _ = self.0.keeper.set(keeper);
        self
    }

    /// Opens a sandbox in the strongest tier that works here, or in the one it names. Refuses below
    /// the policy's floor and without a layer the policy requires.
    pub fn open(&self, sandbox: &Sandbox) -> Result<SandboxSession, SandboxError> {
        self.open_in(self.tier_for(sandbox)?, sandbox)
    }

    /// Runs one command in a sandbox of its own. Quicker than opening a session for it: the command is
    /// on its way while the sandbox is being built, and its very end is not waited for. When this
    /// returns, the sandbox's first process was killed and, as the kernel counts, was the only one
    /// left; it may need another moment to be gone.
    ///
    /// Nothing is given up for that. A layer that is known to be missing refuses before anything is
    /// sent, and the sandbox's first process starts nothing before it has read back every layer it
    /// was asked for.
    pub fn run(
        &self,
        sandbox: &Sandbox,
        command: &SandboxCommand,
    ) -> Result<FinishedCommand, SandboxError> {
        let (session, process) = self.start_alone(sandbox, command)?;
        let finished = process.wait()?;
        session.close()?;
        Ok(finished)
    }

    /// As [`SandboxEngine::run`], with the command's streams in hand. Nothing else can be started in the
    /// session: it ends with its one command. The caller has to wait for that command or take its
    /// output: deadline and disk limit are kept while it does.
    pub fn start_alone(
        &self,
        sandbox: &Sandbox,
        command: &SandboxCommand,
    ) -> Result<(SandboxSession, SandboxProcess), SandboxError> {
        self.start_alone_with(sandbox, command, || ())
    }

    /// As [`SandboxEngine::start_alone`]; `meanwhile` is done while the sandbox is being built.
    pub fn start_alone_with(
        &self,
        sandbox: &Sandbox,
        command: &SandboxCommand,
        meanwhile: impl FnOnce(),
    ) -> Result<(SandboxSession, SandboxProcess), SandboxError> {
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
        self.0.groups().sweep();
        meanwhile();
        // Why there is no sandbox says more than that the command could not be sent.
        finish_opening(&session, sandbox, begun)?;
        Ok((session, process?))
    }

    /// Has the helper get ready for a sandbox that is going to be opened, while the caller still
    /// makes what it needs: its layers, for one. Nothing depends on it, but what the policy shows is
    /// then looked at now, and not again when the sandbox is opened.
    pub fn expect(&self, sandbox: &mut Sandbox) {
        if !matches!(sandbox.tier, None | Some(IsolationTier::Namespace)) {
            return;
        }
        let inner = &*self.0;
        let planned = sandbox.look_around(&inner.system).and_then(|()| {
            let place = sandbox.plan()?;
            let around = sandbox.surroundings(&inner.system)?;
            around.plan(mounts::MountedWorkspace::of(&place))
        });
        // What is wrong is met again, and reported, when it is opened.
        let network = sandbox.policy.network;
        if let (Ok(plan), Ok(zygote)) = (planned, inner.zygote(IsolationTier::Namespace, network)) {
            zygote.make_ready(&plan.root);
        }
    }

    fn tier_for(&self, sandbox: &Sandbox) -> Result<IsolationTier, SandboxError> {
        let tier = match sandbox.tier {
            Some(tier) if tier < sandbox.policy.min_tier => {
                return Err(SandboxError::FloorNotMet {
                    floor: sandbox.policy.min_tier,
                    refusals: vec![tiers::TierRefusal::below_floor(tier)],
                });
            }
            Some(tier) => tier,
            None => tiers::choose(self, sandbox.policy.min_tier)?,
        };
        tracing::debug!(?tier, floor = ?sandbox.policy.min_tier, "sandbox starts");
        Ok(tier)
    }

    /// Waits until every control group of closed sandboxes is gone, and says if one is not.
    pub fn settle(&self) -> Result<(), SandboxError> {
        match self.0.groups.get() {
            Some(groups) => Ok(groups.settle()?),
            None => Ok(()),
        }
    }

    /// Has the helper remove what closed sandboxes left, for a program that is about to end: the helper
    /// has time for that when the program is gone.
    pub fn hand_over(&self) {
        let Some(groups) = self.0.groups.get() else {
            return;
        };
        let helper = self.0.namespace.lock();
        let helper = helper.unwrap_or_else(PoisonError::into_inner).clone();
        // What is not removed is swept by the next engine.
        let _ = match helper {
            Some(helper) => groups.hand_over(|name, homes| helper.remove_groups(name, homes)),
            None => groups.settle(),
        };
    }

    /// Lets go of everything, for a program that is about to end. Sessions must be closed already.
    pub fn leave(self) {
        self.hand_over();
        // Its helper hears of the end of this process and ends too. Not sooner: taking a helper's
        // namespaces apart keeps a processor busy, and the process that started this program waits for it.
        std::mem::forget(self);
    }

    pub(crate) fn helper(&self) -> &HelperProgram {
        &self.0.helper
    }

    pub(crate) fn open_in(
        &self,
        tier: IsolationTier,
        sandbox: &Sandbox,
    ) -> Result<SandboxSession, SandboxError> {
        let begun = Instant::now();
        let session = self.begin(tier, sandbox)?;
        session.link.watch_disk()?;
        self.0.groups().sweep();
        finish_opening(&session, sandbox, begun)?;
        Ok(session)
    }

    /// Has a sandbox built. It may not stand yet, and it may turn out that it never will.
    fn begin(
        &self,
        tier: IsolationTier,
        sandbox: &Sandbox,
    ) -> Result<SandboxSession, SandboxError> {
        if !tiers::is_built_here(tier) {
            return Err(SandboxError::FloorNotMet {
                floor: tier,
                refusals: vec![tiers::TierRefusal::not_built(tier)],
            });
        }
        let inner = &*self.0;
        let policy = &sandbox.policy;
        let granted = policy.limits.granted(&inner.machine);
        let workspace = sandbox.plan()?;
        let door = inner.door(tier, sandbox, &workspace)?;
        if workspace.overlay.is_some() && tier != IsolationTier::Namespace {
            return Err(SandboxError::OverlayNeedsNamespaces { tier });
        }
        let rules = sandbox.seccomp_rules(tier);
        let program = inner.program(rules)?;
        let filter = PlannedFilter {
            program: &program,
            rules: &rules,
        };
        let drawn =
            PlannedSandbox::draw(tier, sandbox, workspace, &granted, &filter, &inner.system)?;
        let mut not_applied = drawn.not_applied;

        if let Some(root) = &drawn.root
            && inner.groups.get().is_none()
        {
            inner.zygote(tier, policy.network)?.make_ready(root);
        }
        let measured = sandbox.measured(granted.disk_bytes)?;
        let mut leaf = inner.leaf(sandbox, &granted)?;
        let mut blueprint = drawn.blueprint;
        if let Some(door) = &door {
            drawing::cut_door(&mut blueprint, door)?;
        }
        let mut groups = Vec::new();
        if let Some(leaf) = &leaf {
            let unified = leaf.v2_dir_fd().map(|group| group.try_clone_to_owned());
            groups.extend(
                unified
                    .transpose()
                    .map_err(SandboxError::io("cannot hold a group"))?,
            );
            blueprint.born_in_cgroup = !groups.is_empty();
            groups.extend(leaf.join_files()?);
        }

        let (connection, theirs) =
            socket::stream_pair().map_err(SandboxError::io("cannot make a socket"))?;
        let mut descriptors = vec![theirs.as_fd()];
        descriptors.extend(groups.iter().map(AsFd::as_fd));
        let (zygote, built) = inner.build(tier, policy.network, |zygote| {
            zygote.build(&mut blueprint, drawn.root.as_ref(), &descriptors)
        })?;
        let BuiltSandbox { pid, held, network } = built;
        let first = FirstProcess::new(pid, held, Arc::clone(&zygote));
        drop(theirs);
        // From here on its first process is at work, and needs a processor more than this one did.
        let limits = leaf.as_mut().map(|leaf| {
            inner
                .groups()
                .limit(leaf, &cgroup::CgroupLimits::from(&granted));
            leaf.read_back()
        });
        // No command runs before limits were set and read, nor where nothing answers.
        let opened = limits
            .transpose()
            .map_err(SandboxError::from)
            .and_then(|limits| Ok((limits, OpenedDoor::open(door, network, &zygote)?)));
        let (limits, door) = opened.inspect_err(|_| first.kill())?;
        not_applied.extend(leaf.iter().flat_map(|leaf| leaf.not_applied().to_vec()));
        let mut environment = environment(sandbox, &drawn.home, &drawn.caches);
        environment.extend(door.variables);

        let watch = DenialWatcher {
            abi: SyscallAbi::native().ok_or(SandboxError::Processor)?,
            first: pid,
            workspace: blueprint.workspace.path.clone(),
            masks: std::mem::take(&mut blueprint.masks),
            network: policy.network,
            ports: door.ports,
            shared: (tier != IsolationTier::Namespace)
                .then(|| std::mem::take(&mut blueprint.grants)),
        };
        let link = HelperLink::new(HelperLinkParts {
            connection,
            first,
            leaf,
            rules,
            watch,
            context: ReceiptContext {
                tier,
                policy: policy.digest()?,
                granted,
                read_only: drawn.read_only,
                writable: drawn.writable,
                program: program.digest(),
                instructions: u32::try_from(program.instructions().len()).unwrap_or(u32::MAX),
                no_sockets: !rules.internet_sockets,
                watched: rules.watched,
                heard: rules.refusals == RefusedCallReply::Notify,
                clean_environment: !sandbox.without.contains(&LayerName::CleanEnvironment),
                cgroup: limits.map(|limits| (inner.groups().kind().name(), limits)),
                host: inner.host()?.clone(),
                door: door.facts,
                environment: sandbox.environment_digest(),
                not_applied,
            },
            environment: environment.into_iter().collect(),
            workspace: PathBuf::from(&blueprint.workspace.path),
            own_pids: tier == IsolationTier::Namespace,
            measured,
            keep: SandboxResources {
                _zygote: zygote,
                groups: inner.groups().clone(),
                _private: drawn.private,
                door: Mutex::new(door.open),
            },
        });
        // From here on a session that is not returned is ended by its drop.
        Ok(SandboxSession { link })
    }
}

/// Waits until the sandbox stands, and refuses it where a required layer is not in force.
fn finish_opening(
    session: &SandboxSession,
    sandbox: &Sandbox,
    begun: Instant,
) -> Result<(), SandboxError> {
    let (posture, held_back) = session.link.wait_ready(READY_WITHIN)?;
    let layers = session.link.standing_layers(&posture);
    let required = sandbox.policy.required_layers.iter().copied();
    if let Some(layer) = ReceiptContext::missing(required, &layers) {
        let reason = missing_reason(session, layer, sandbox);
        return Err(SandboxError::LayerMissing { layer, reason });
    }
    session.link.stands(begun.elapsed(), held_back);
    Ok(())
}

fn missing_reason(session: &SandboxSession, layer: LayerName, sandbox: &Sandbox) -> String {
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
    /// What answers for a sandbox, where its policy asks for that.
    fn door(
        &self,
        tier: IsolationTier,
        sandbox: &Sandbox,
        workspace: &WorkspacePlan,
    ) -> Result<Option<DoorPlan>, SandboxError> {
        if sandbox.policy.network != Network::Allowlist {
            return Ok(None);
        }
        if tier != IsolationTier::Namespace {
            return Err(SandboxError::AllowlistNeedsNamespaces { tier });
        }
        let keeper = self.keeper.get().ok_or(SandboxError::NoDoorKeeper)?;
        let plan = keeper.plan(&DoorSubject {
            name: sandbox.name.clone(),
            workspace: PathBuf::from(&workspace.path),
        });
        plan.map(Some)
            .map_err(SandboxError::io("cannot answer for a network by name"))
    }

    fn zygote(
        &self,
        tier: IsolationTier,
        network: Network,
    ) -> Result<Arc<ZygoteProcess>, SandboxError> {
        let mut slot = self
            .slot(tier, network)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(zygote) = &*slot {
            return Ok(Arc::clone(zygote));
        }
        let zygote = Arc::new(ZygoteProcess::start(
            &self.helper,
            tier == IsolationTier::Namespace && network != Network::Host,
        )?);
        *slot = Some(Arc::clone(&zygote));
        Ok(zygote)
    }

    /// Has something built by the helper, by a new one where the one there was is gone: its sandboxes died with
    /// it.
    fn build<T>(
        &self,
        tier: IsolationTier,
        network: Network,
        mut attempt: impl FnMut(&ZygoteProcess) -> Result<T, SandboxError>,
    ) -> Result<(Arc<ZygoteProcess>, T), SandboxError> {
        let zygote = self.zygote(tier, network)?;
        match attempt(&zygote) {
            Err(SandboxError::HelperGone) => {
                self.forget_zygote(tier, network);
                let zygote = self.zygote(tier, network)?;
                let built = attempt(&zygote)?;
                Ok((zygote, built))
            }
            built => Ok((zygote, built?)),
        }
    }

    fn slot(&self, tier: IsolationTier, network: Network) -> &Mutex<Option<Arc<ZygoteProcess>>> {
        match (tier, network) {
            (IsolationTier::Namespace, Network::Host) => &self.on_host_network,
            (IsolationTier::Namespace, _) => &self.namespace,
            _ => &self.plain,
        }
    }

    fn forget_zygote(&self, tier: IsolationTier, network: Network) {
        *self
            .slot(tier, network)
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn program(&self, rules: SeccompRules) -> Result<Arc<SeccompProgram>, SandboxError> {
        let abi = SyscallAbi::native().ok_or(SandboxError::Processor)?;
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = programs.iter().find(|(known, _)| *known == rules) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(SeccompProgram::compile(abi, &rules));
        programs.push((rules, Arc::clone(&program)));
        Ok(program)
    }

    fn groups(&self) -> &CgroupStock {
        self.groups
            .get_or_init(|| CgroupStock::new(&self.hierarchies))
    }

    /// What this process is in.
    fn host(&self) -> Result<&HostPosture, SandboxError> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let host = HostPosture::of_this_process()
            .map_err(SandboxError::io("cannot read /proc/self/ns"))?;
        Ok(self.host.get_or_init(|| host))
    }

    fn leaf(
        &self,
        sandbox: &Sandbox,
        granted: &ResolvedLimits,
    ) -> Result<Option<CgroupLeaf>, SandboxError> {
        if sandbox.without.contains(&LayerName::Cgroup) {
            return Ok(None);
        }
        Ok(Some(
            self.groups().take(&cgroup::CgroupLimits::from(granted))?,
        ))
    }
}
