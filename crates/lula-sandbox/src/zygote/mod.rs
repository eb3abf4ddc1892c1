//! The zygote: a tiny single-threaded process, started once, that clones every sandbox.
//!
//! It exists because a runner with threads and a lot of memory must not fork. It does what it is
//! asked over one socket and ends when that socket closes, and every sandbox ends with it.

mod delivery;
mod identity;
mod network;
pub(crate) mod remains;
mod template;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use lula_protocol::IsolationTier;
use rustix::event::{PollFd, PollFlags};

use crate::blueprint::{MOST_TEMPLATES, RootPlan, SandboxBlueprint};
use crate::built_in::BuiltInProgram;
use crate::frames::{ExecFrameError, FrameReader, FrameWriter, SetupStage};
use crate::init;
use crate::processors::Processors;
use crate::sys::process::{CloneSide, NamespaceFlags};
use crate::sys::{lockdown, process, signal, socket};

use delivery::NetworkRequest;
pub(crate) use delivery::NetworkSupply;
use identity::Identities;
pub(crate) use network::PrivateNetwork;
use network::PrivateNetworkPool;
use remains::RemovalQueue;
use template::RootTemplates;

/// How long the zygote is idle before it makes something ahead of time.
const A_WHILE: rustix::event::Timespec = rustix::event::Timespec {
    tv_sec: 0,
    tv_nsec: 3_000_000,
};

/// The longest request: a blueprint with a few hundred paths and a seccomp program.
const LONGEST: usize = 256 * 1024;

/// A step that failed, what it was about, and what the kernel said.
#[derive(Debug)]
pub(crate) struct BuildStepFailure {
    pub(crate) stage: SetupStage,
    pub(crate) detail: String,
    pub(crate) errno: u32,
}

/// Names the step an error happened in.
pub(crate) trait BuildStepContext<T> {
    fn during(
        self,
        stage: SetupStage,
        detail: impl FnOnce() -> String,
    ) -> Result<T, BuildStepFailure>;
}

impl<T> BuildStepContext<T> for io::Result<T> {
    fn during(
        self,
        stage: SetupStage,
        detail: impl FnOnce() -> String,
    ) -> Result<T, BuildStepFailure> {
        self.map_err(|error| BuildStepFailure {
            stage,
            detail: match error.raw_os_error() {
                Some(_) => detail(),
                None => format!("{}: {error}", detail()),
            },
            errno: error
                .raw_os_error()
                .and_then(|number| u32::try_from(number).ok())
                .unwrap_or(0),
        })
    }
}

/// What the zygote answers to a request.
#[derive(Debug)]
pub(crate) enum ZygoteReply {
    /// The first process of the sandbox runs; a descriptor for it comes along.
    Cloned { pid: u32 },
    /// It does not.
    Failed(BuildStepFailure),
}

impl ZygoteReply {
    fn encode(&self) -> Vec<u8> {
        let mut writer = FrameWriter::new();
        match self {
            Self::Cloned { pid } => {
                writer.u8(0).u32(*pid);
            }
            Self::Failed(failure) => {
                writer
                    .u8(1)
                    .u8(failure.stage.number())
                    .u32(failure.errno)
                    .text(&failure.detail);
            }
        }
        writer.bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, crate::frames::ExecFrameError> {
        let mut reader = FrameReader::new(bytes);
        if reader.u8("answer")? == 0 {
            return Ok(Self::Cloned {
                pid: reader.u32("pid")?,
            });
        }
        let number = reader.u8("stage")?;
        Ok(Self::Failed(BuildStepFailure {
            stage: SetupStage::from_number(number).ok_or(
                crate::frames::ExecFrameError::Unknown {
                    what: "stage",
                    value: number.into(),
                },
            )?,
            errno: reader.u32("errno")?,
            detail: reader.text("detail")?,
        }))
    }
}

/// What a zygote with namespaces keeps ready.
struct Namespaces {
    /// This process's own `/proc/…/ns`, held so that it stays reachable after the root is gone.
    own: OwnedFd,
    templates: RootTemplates,
    networks: PrivateNetworkPool,
    identities: Identities,
}

/// What a living sandbox gives back when it ends.
#[derive(Default)]
struct Lent {
    outside_id: Option<u32>,
    network: Option<PrivateNetwork>,
    /// Its mount namespace, which is then taken apart here and not while the runner waits for the end
    /// of its first process.
    mounts: Option<OwnedFd>,
}

struct Zygote {
    control: OwnedFd,
    /// Readable once this process has died; every init checks it after tying its life to ours.
    itself: OwnedFd,
    endings: OwnedFd,
    /// `None` until the first sandbox that needs them.
    namespaces: Option<Namespaces>,
    /// Roots that no template was made for yet.
    announced: Vec<(u32, RootPlan)>,
    living: HashMap<i32, Lent>,
    /// What sandboxes had that are no more, until it is put back.
    ended: Vec<Lent>,
    remains: RemovalQueue,
    /// Sandboxes so far.
    built: u64,
    built_ins: &'static [BuiltInProgram],
}

/// Serves on the socket given until the runner is gone, with namespaces made ready first where
/// asked. Sandboxes run on all the processors given: the process that made this one may have put it on some
/// of them, to begin with.
pub(crate) fn serve(
    control: OwnedFd,
    prepare: bool,
    mut processors: Option<Processors>,
    built_ins: &'static [BuiltInProgram],
) -> io::Result<()> {
    signal::reset_dispositions();
    // A signal to the process that started this, as by Ctrl-C, goes to all its group. Not to this process:
    // it ends when they have. It fails only for one that leads a group of its own already.
    let _ = rustix::process::setsid();
    lockdown::adopt_orphans()?;
    let own_pid = rustix::process::getpid();
    let itself = rustix::process::pidfd_open(own_pid, rustix::process::PidfdFlags::empty())?;
    let mut zygote = Zygote {
        control,
        itself,
        endings: signal::child_endings()?,
        namespaces: None,
        announced: Vec::new(),
        living: HashMap::new(),
        ended: Vec::new(),
        remains: RemovalQueue::default(),
        built: 0,
        built_ins,
    };
    if prepare {
        // A failure here is met again, and reported, by the first sandbox.
        let _ = zygote.namespaces();
    }
    let mut buffer = vec![0; LONGEST];
    loop {
        let (asked, ended) = zygote.wait()?;
        if !asked && !ended {
            zygote.rest();
        }
        if ended {
            zygote.bury()?;
        }
        if !asked {
            continue;
        }
        let (length, descriptors) = socket::receive(&zygote.control, &mut buffer)?;
        if length == 0 {
            return zygote.leave();
        }
        let message = &buffer[..length];
        let descriptors = match zygote.remains.take_over(message, descriptors) {
            Ok(()) => {
                zygote.remains.remove();
                continue;
            }
            Err(descriptors) => descriptors,
        };
        if let Some(announced) = RootPlan::announced(message) {
            zygote.make_ready(announced);
            continue;
        }
        if let Some(all) = processors.take() {
            all.take_all()?;
        }
        if zygote.built == 1 {
            process::take_turns();
        }
        zygote.put_back();
        let begun = zygote.build(message, descriptors);
        zygote.built += 1;
        match begun {
            Ok(begun) => {
                let answer = ZygoteReply::Cloned {
                    pid: begun.pid.cast_unsigned(),
                };
                socket::send(&zygote.control, &answer.encode(), &[begun.pidfd.as_fd()])?;
                // The kernel likes to leave the new process waiting behind this one, which has
                // nothing to do that is waited for.
                rustix::thread::sched_yield();
                zygote.remember(begun);
                if zygote.built == 1 {
                    // What it hears next is usually an end, which others have more to do with.
                    process::give_way();
                }
            }
            Err(failure) => {
                socket::send(&zygote.control, &ZygoteReply::Failed(failure).encode(), &[])?;
            }
        }
    }
}

/// A sandbox whose first process was just made.
struct Begun {
    pid: i32,
    pidfd: OwnedFd,
    lent: Lent,
    /// Whether its mounts may be taken apart later than its first process ends.
    mounts_may_linger: bool,
    /// What the new process has copies of.
    _site: init::InitSite,
    _blueprint: SandboxBlueprint,
}

impl Zygote {
    /// Whether there is a request, and whether a child has ended. Neither, where something could be
    /// done meanwhile: not at once, when the engine is just busy with a sandbox on the same processors.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut waiting = [
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::new(&self.endings, PollFlags::IN),
        ];
        // One sandbox alone needs nothing beyond its own.
        let short = self.built != 1
            && self
                .namespaces
                .as_ref()
                .is_some_and(|namespaces| namespaces.networks.is_short());
        let due = short || !self.ended.is_empty();
        match rustix::event::poll(&mut waiting, due.then_some(&A_WHILE)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok((
            !waiting[0].revents().is_empty(),
            !waiting[1].revents().is_empty(),
        ))
    }

    /// Reaps what has ended. An orphan that reaches us lost its init and has no business living.
    fn bury(&mut self) -> io::Result<()> {
        signal::drain(self.endings.as_fd());
        while let Some(ended) = process::reap()? {
            if let Some(namespaces) = &mut self.namespaces {
                namespaces.identities.reaped(ended.pid);
                namespaces.templates.reaped(ended.pid);
            }
            self.ended.extend(self.living.remove(&ended.pid));
        }
        self.remains.remove();
        // After the first, this process usually ends too: nothing is kept for another sandbox then, and
        // the process that waits for the end has the processors to itself.
        if self.built > 1 {
            self.put_back();
        }
        // With a pid namespace nothing outlives its init.
        if self.namespaces.is_none() {
            init::family::kill_children_except(&self.living);
        }
        Ok(())
    }

    /// Puts back what ended sandboxes had.
    fn put_back(&mut self) {
        for lent in self.ended.drain(..) {
            if let Some(namespaces) = &mut self.namespaces {
                namespaces.take_back(lent);
            }
        }
    }

    /// Nothing to do for a while: the next sandbox finds everything in its place, a network and a user
    /// namespace ready.
    fn rest(&mut self) {
        self.put_back();
        if self.built != 1
            && let Some(namespaces) = &mut self.namespaces
        {
            namespaces.networks.refill(namespaces.own.as_fd());
            namespaces.identities.house_the_next();
        }
    }

    /// Removes what was handed over as far as that can be done soon.
    fn leave(&mut self) -> io::Result<()> {
        const SOON: Duration = Duration::from_secs(1);
        const MOMENT: rustix::event::Timespec = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 1_000_000,
        };
        let patience = Instant::now() + SOON;
        while !self.remains.is_empty() && Instant::now() < patience {
            let mut waiting = [PollFd::new(&self.endings, PollFlags::IN)];
            let _ = rustix::event::poll(&mut waiting, Some(&MOMENT));
            self.bury()?;
        }
        Ok(())
    }

    /// Builds a template before it is needed. What goes wrong is met again, and reported, by the
    /// sandbox that needs it.
    fn make_ready(&mut self, announced: Result<(u32, RootPlan), ExecFrameError>) {
        let Ok((number, plan)) = announced else {
            return;
        };
        if self.announced.len() >= MOST_TEMPLATES {
            self.announced.remove(0);
        }
        self.announced.push((number, plan));
        if let Ok(namespaces) = self.namespaces() {
            let _ = namespaces.templates.enter(number, namespaces.own.as_fd());
        }
    }

    fn build(
        &mut self,
        request: &[u8],
        descriptors: Vec<OwnedFd>,
    ) -> Result<Begun, BuildStepFailure> {
        let blueprint = SandboxBlueprint::decode(request).map_err(|error| BuildStepFailure {
            stage: SetupStage::Request,
            detail: error.to_string(),
            errno: 0,
        })?;
        let mut descriptors = descriptors.into_iter();
        let Some(connection) = descriptors.next() else {
            return Err(BuildStepFailure {
                stage: SetupStage::Request,
                detail: "no socket came with the request".to_owned(),
                errno: 0,
            });
        };
        let group = if blueprint.born_in_cgroup {
            descriptors.next()
        } else {
            None
        };
        let mut site = init::InitSite {
            connection,
            zygote: self
                .itself
                .try_clone()
                .during(SetupStage::Lifeline, || "holding the zygote".to_owned())?,
            join_groups: descriptors.collect(),
            network: None,
            placed: Vec::new(),
            layers: Vec::new(),
            caches: Vec::new(),
            identity: None,
            home: None,
            held_back: Vec::new(),
        };
        let mut apart = NamespaceFlags::NOTHING;
        let mut lent = Lent::default();
        let mut order = None;
        if blueprint.tier == IsolationTier::Namespace {
            apart = NamespaceFlags::MOUNT
                .and(NamespaceFlags::PID)
                .and(NamespaceFlags::UTS);
            // The one namespace a sandbox can be built without, for tests.
            if blueprint.switches.namespaces {
                apart = apart.and(NamespaceFlags::IPC);
            }
            let namespaces = self.namespaces()?;
            if blueprint.switches.no_network {
                (lent.network, order) = namespaces.connect(&mut site)?;
            }
            lent.outside_id = namespaces.prepare(&blueprint, &mut site)?;
        }
        let cloned = process::clone_process(apart, group.as_ref().map(AsFd::as_fd))
            .during(SetupStage::Clone, || "the first process".to_owned());
        match cloned {
            Ok(CloneSide::Child) => {
                // A process that holds both ends of a line never learns that the other side is gone.
                drop(order);
                init::run(&blueprint, site, &self.control, self.built_ins)
            }
            Ok(CloneSide::Parent { pid, pidfd }) => {
                if let (Some(order), Some(namespaces)) = (order, &mut self.namespaces) {
                    // The kernel likes to leave the new process waiting behind this one.
                    rustix::thread::sched_yield();
                    let made = namespaces.networks.make(namespaces.own.as_fd());
                    let id = lent.outside_id.filter(|_| site.home.is_none());
                    let home = id.and_then(|id| namespaces.identities.home(id).ok());
                    order.deliver(&made, home.as_ref());
                    lent.network = made.ok();
                }
                Ok(Begun {
                    pid,
                    pidfd,
                    lent,
                    mounts_may_linger: blueprint.tier == IsolationTier::Namespace
                        && !blueprint.is_flushed(),
                    _site: site,
                    _blueprint: blueprint,
                })
            }
            Err(failure) => {
                if let Some(namespaces) = &mut self.namespaces {
                    namespaces.take_back(lent);
                }
                Err(failure)
            }
        }
    }

    /// Keeps in mind what a sandbox has until it ends.
    fn remember(&mut self, begun: Begun) {
        let mut lent = begun.lent;
        if begun.mounts_may_linger {
            lent.mounts = process::mount_namespace(begun.pidfd.as_fd()).ok();
        }
        self.living.insert(begun.pid, lent);
    }

    fn namespaces(&mut self) -> Result<&mut Namespaces, BuildStepFailure> {
        if self.namespaces.is_none() {
            self.namespaces = Some(Namespaces::prepare_zygote()?);
        }
        let namespaces = self.namespaces.as_mut().ok_or_else(|| BuildStepFailure {
            stage: SetupStage::MountNamespace,
            detail: "no namespaces".to_owned(),
            errno: 0,
        })?;
        for (number, plan) in self.announced.drain(..) {
            namespaces.templates.announce(number, plan);
        }
        Ok(namespaces)
    }
}

impl Namespaces {
    /// Moves the zygote itself into a mount namespace of its own, with a user namespace first where
    /// it has no privileges.
    fn prepare_zygote() -> Result<Self, BuildStepFailure> {
        let own = rustix::fs::open(
            "/proc/self/ns",
            rustix::fs::OFlags::RDONLY
                | rustix::fs::OFlags::DIRECTORY
                | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .map_err(io::Error::from)
        .during(SetupStage::MountNamespace, || "/proc/self/ns".to_owned())?;
        let original = hold_namespace(own.as_fd(), "mnt")
            .during(SetupStage::MountNamespace, || "the host's tree".to_owned())?;
        let mut identities = Identities::take_over()?;
        let networks = PrivateNetworkPool::new(own.as_fd(), identities.privileged())
            .during(SetupStage::Network, || "a private network".to_owned())?;
        let mut templates =
            RootTemplates::new(own.as_fd(), identities.privileged().then_some(original))?;
        // The first sandbox is on its way; what it needs is made while its request is.
        templates.get_ready(own.as_fd());
        identities.get_ready();
        Ok(Self {
            own,
            templates,
            networks,
            identities,
        })
    }

    /// Puts back what a sandbox that is no more had.
    fn take_back(&mut self, lent: Lent) {
        if let Some(id) = lent.outside_id {
            self.identities.give_back(id);
            // Only a sandbox with an id of its own had no way at all to change its network: where it
            // runs as the engine's user, the network's settings belong to that user too.
            if let Some(network) = lent.network {
                self.networks.give_back(network);
            }
        }
        drop(lent.mounts);
    }

    /// Gives a sandbox a network, or the promise of one. Returns what to take back when it ends, and
    /// where one is still to be delivered.
    fn connect(
        &mut self,
        site: &mut init::InitSite,
    ) -> Result<(Option<PrivateNetwork>, Option<NetworkRequest>), BuildStepFailure> {
        let failed = || "a private network".to_owned();
        if let Some(network) = self.networks.take() {
            let copy = network.try_clone().during(SetupStage::Network, failed)?;
            site.network = Some(NetworkSupply::Here(copy));
            return Ok((Some(network), None));
        }
        let (order, supply) = NetworkRequest::place().during(SetupStage::Network, failed)?;
        site.network = Some(supply);
        Ok((None, Some(order)))
    }

    /// Takes everything else out of the stores that one sandbox needs. Returns the outside id to give
    /// back when it ends.
    fn prepare(
        &mut self,
        blueprint: &SandboxBlueprint,
        site: &mut init::InitSite,
    ) -> Result<Option<u32>, BuildStepFailure> {
        let refusing = self.identities.refusing();
        match self.identify_and_mount(blueprint, site) {
            // A filesystem was found out not to map ids: the second try does without.
            Err(_) if self.identities.refusing() > refusing => {
                site.placed.clear();
                site.layers.clear();
                site.caches.clear();
                self.identify_and_mount(blueprint, site)
            }
            other => other,
        }
    }

    fn identify_and_mount(
        &mut self,
        blueprint: &SandboxBlueprint,
        site: &mut init::InitSite,
    ) -> Result<Option<u32>, BuildStepFailure> {
        let (identity, given) = self.identities.choose(blueprint, &mut site.held_back)?;
        site.identity = Some(identity);
        site.home = None;
        // Where the network comes later, this does too.
        let late = matches!(site.network, Some(NetworkSupply::Comes(_)));
        let soon = given.filter(|id| !late || self.identities.has_home(*id));
        let housed = soon.map_or(Ok(()), |id| {
            let home = self.identities.home(id);
            site.home = Some(home.during(SetupStage::UserNamespace, || format!("of user {id}"))?);
            Ok(())
        });
        let mounted = housed
            .and_then(|()| {
                let host = &mut self.templates;
                host.mount_from_host(blueprint, &mut self.identities, identity, site)
            })
            .and_then(|()| self.templates.enter(blueprint.template, self.own.as_fd()));
        match mounted {
            Ok(()) => Ok(given),
            Err(failure) => {
                if let Some(id) = given {
                    self.identities.give_back(id);
                }
                Err(failure)
            }
        }
    }
}

/// Holds one of this process's namespaces.
fn hold_namespace(own: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        own,
        name,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?)
}
