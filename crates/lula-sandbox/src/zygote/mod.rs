//! The zygote: a tiny single-threaded process, started once, that clones every sandbox.
//!
//! It exists because a runner with threads and a lot of memory must not fork. It does what it is
//! asked over one socket and ends when that socket closes, and every sandbox ends with it.

mod delivery;
mod door;
mod identity;
pub(crate) mod kill;
mod lifeline;
mod namespaces;
mod network;
pub(crate) mod remains;
mod reply;
mod sockets;
mod template;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use lula_protocol::IsolationTier;
use rustix::event::{PollFd, PollFlags};

use crate::blueprint::{MOST_TEMPLATES, RootPlan, SandboxBlueprint};
use crate::built_in::BuiltInProgram;
use crate::frames::{ExecFrameError, SetupStage};
use crate::init;
use crate::sys::clone::{CloneSide, clone_process};
use crate::sys::process::NamespaceFlags;
use crate::sys::scheduling::{self, CpuAffinity};
use crate::sys::{lockdown, process, signal, socket};

pub(crate) use delivery::NetworkSupply;
pub(crate) use door::DNS;
use door::DoorSockets;
use lifeline::{Lifeline, hold_by_its_end};
use namespaces::{LentResources, SandboxNamespaces};
pub(crate) use network::PrivateNetwork;
use remains::RemovalQueue;
pub(crate) use reply::{BuildStepContext, BuildStepFailure, ZygoteReply};
pub(crate) use sockets::SocketOrder;

/// How long the zygote is idle before it makes something ahead of time.
const A_WHILE: rustix::event::Timespec = rustix::event::Timespec {
    tv_sec: 0,
    tv_nsec: 3_000_000,
};

const SIGKILL: u8 = 9;

/// The longest request: a blueprint with a few hundred paths and a seccomp program.
const LONGEST: usize = 256 * 1024;

struct Zygote {
    control: OwnedFd,
    lifeline: Lifeline,
    endings: OwnedFd,
    /// `None` until the first sandbox that needs them.
    namespaces: Option<SandboxNamespaces>,
    /// Why there are none: it failed half-way, and a second try would fail for what the first one did.
    no_namespaces: Option<BuildStepFailure>,
    /// Roots that no template was made for yet.
    announced: Vec<(u32, RootPlan)>,
    living: HashMap<i32, LentResources>,
    /// What sandboxes had that are no more, until it is put back.
    ended: Vec<LentResources>,
    remains: RemovalQueue,
    /// How many sandboxes were built so far.
    built: u64,
    built_ins: &'static [BuiltInProgram],
}

/// Serves on the socket given until the runner is gone, with namespaces made ready first where
/// asked. Sandboxes run on all the processors given: the process that made this one may have put it on some
/// of them, to begin with.
pub(crate) fn serve(
    control: OwnedFd,
    prepare: bool,
    mut affinity: Option<CpuAffinity>,
    built_ins: &'static [BuiltInProgram],
) -> io::Result<()> {
    signal::reset_dispositions();
    // A signal to the process that started this, as by Ctrl-C, goes to all its group. Not to this process:
    // it ends when they have. It fails only for one that leads a group of its own already.
    process::lead_session();
    // In gVisor there are none; a tier that depends on it finds that out for itself.
    let _ = lockdown::adopt_orphans();
    let mut zygote = Zygote {
        control,
        lifeline: Lifeline::of_this_process()?,
        endings: signal::child_endings()?,
        namespaces: None,
        no_namespaces: None,
        announced: Vec::new(),
        living: HashMap::new(),
        ended: Vec::new(),
        remains: RemovalQueue::default(),
        built: 0,
        built_ins,
    };
    if prepare {
        // A failure here is met again, and reported, by the first sandbox.
        if let Ok(namespaces) = zygote.namespaces() {
            let _ = namespaces.networks.settle(namespaces.own.as_fd());
        }
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
        if let Some(pid) = kill::asked_for(message) {
            zygote.kill(pid);
            continue;
        }
        if let Some((sandbox, order)) = SocketOrder::decode(message) {
            zygote.give_socket(sandbox, order)?;
            continue;
        }
        if let Some(all) = affinity.take() {
            all.restore()?;
        }
        if zygote.built == 1 {
            scheduling::set_sched_other();
        }
        zygote.put_back();
        let begun = zygote.build(message, descriptors);
        zygote.built += 1;
        match begun {
            Ok(begun) => {
                let (routes, sockets) = match &begun.door {
                    Some(door) => (door.routes.clone(), &door.sockets[..]),
                    None => (Vec::new(), &[][..]),
                };
                let answer = ZygoteReply::Cloned {
                    pid: begun.pid.cast_unsigned(),
                    number: zygote.built,
                    routes,
                };
                let along: Vec<_> = [&begun.held].into_iter().chain(sockets).collect();
                let along: Vec<_> = along.into_iter().map(AsFd::as_fd).collect();
                socket::send(&zygote.control, &answer.encode(), &along)?;
                // The kernel likes to leave the new process waiting behind this one, which has
                // nothing to do that is waited for.
                scheduling::sched_yield();
                zygote.remember(begun);
                if zygote.built == 1 {
                    // What it hears next is usually an end, which others have more to do with.
                    scheduling::set_sched_batch();
                }
            }
            Err(failure) => {
                socket::send(&zygote.control, &ZygoteReply::Failed(failure).encode(), &[])?;
            }
        }
    }
}

/// A sandbox whose first process was just made.
struct NewSandbox {
    pid: i32,
    /// What the engine gets to hold it by.
    held: OwnedFd,
    lent: LentResources,
    /// Listeners in its network, which are the engine's to keep.
    door: Option<DoorSockets>,
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
            if let Some(mut lent) = self.living.remove(&ended.pid) {
                lent.end = None;
                self.ended.push(lent);
            }
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
    ) -> Result<NewSandbox, BuildStepFailure> {
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
                .lifeline
                .watched
                .try_clone()
                .during(SetupStage::Lifeline, || "holding the zygote".to_owned())?,
            join_groups: descriptors.collect(),
            join_later: None,
            network: None,
            placed: Vec::new(),
            layers: Vec::new(),
            caches: Vec::new(),
            identity: None,
            home: None,
            proc: None,
            held_back: Vec::new(),
        };
        let mut apart = NamespaceFlags::NOTHING;
        let mut lent = LentResources::default();
        let mut order = None;
        let mut door = None;
        if blueprint.tier == IsolationTier::Namespace {
            apart = NamespaceFlags::MOUNT
                .and(NamespaceFlags::PID)
                .and(NamespaceFlags::UTS);
            // The one namespace a sandbox can be built without, for tests.
            if blueprint.switches.namespaces {
                apart = apart.and(NamespaceFlags::IPC);
            }
            // The number of this sandbox, once it is counted.
            let number = self.built + 1;
            let namespaces = self.namespaces()?;
            if let Some(ports) = &blueprint.door {
                let (network, sockets) = namespaces.connect_with_door(ports, &mut site)?;
                lent.door = Some((number, network));
                door = Some(sockets);
            } else if blueprint.switches.no_network {
                (lent.network, order) = namespaces.connect(&mut site)?;
            }
            lent.outside_id = namespaces.prepare(&blueprint, &mut site)?;
        }
        let cloned = clone_process(apart, group.as_ref().map(AsFd::as_fd))
            .during(SetupStage::Clone, || "the first process".to_owned());
        match cloned {
            Ok(CloneSide::Child { in_group }) => {
                // A process that holds both ends of a line never learns that the other side is gone.
                drop(order);
                site.join_later = group.filter(|_| !in_group);
                init::run(&blueprint, site, &self.own_ends(), self.built_ins)
            }
            Ok(CloneSide::Parent { pid, pidfd }) => {
                let held = match pidfd {
                    Some(pidfd) => pidfd,
                    None => hold_by_its_end(&mut lent).inspect_err(|_| {
                        let _ = signal::send(pid, SIGKILL);
                    })?,
                };
                if let (Some(order), Some(namespaces)) = (order, &mut self.namespaces) {
                    // The kernel likes to leave the new process waiting behind this one.
                    scheduling::sched_yield();
                    let made = namespaces.networks.make(namespaces.own.as_fd());
                    let id = lent.outside_id.filter(|_| site.home.is_none());
                    let home = id.and_then(|id| namespaces.identities.home(id).ok());
                    order.deliver(&made, home.as_ref());
                    lent.network = made.ok();
                }
                Ok(NewSandbox {
                    pid,
                    held,
                    lent,
                    door,
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

    /// What no sandbox may hold open: else the death of this process would go unseen.
    fn own_ends(&self) -> Vec<RawFd> {
        let lifeline = self.lifeline.held.as_ref();
        [&self.control]
            .into_iter()
            .chain(lifeline)
            .map(AsRawFd::as_raw_fd)
            .collect()
    }

    /// Kills the first process of a sandbox. As long as it is among the living it was not reaped, and its
    /// number is its own.
    fn kill(&self, pid: u32) {
        let pid = pid.cast_signed();
        if self.living.contains_key(&pid) {
            let _ = signal::send(pid, SIGKILL);
        }
    }

    /// Gives a socket in the network of a sandbox with a door, as long as that has not ended. Sandboxes are
    /// told apart by a number that no later one gets.
    fn give_socket(&self, sandbox: u64, order: SocketOrder) -> io::Result<()> {
        let mut doors = self.living.values().filter_map(|lent| lent.door.as_ref());
        let door = doors.find(|(number, _)| *number == sandbox);
        let made = match (door, &self.namespaces) {
            (Some((_, network)), Some(namespaces)) => {
                namespaces.networks.within(network.as_fd(), || order.make())
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        match made.during(SetupStage::Network, || format!("{order:?}")) {
            Ok(socket) => {
                let answer = ZygoteReply::Socket.encode();
                socket::send(&self.control, &answer, &[socket.as_fd()])
            }
            Err(failure) => {
                socket::send(&self.control, &ZygoteReply::Failed(failure).encode(), &[])
            }
        }
    }

    /// Keeps in mind what a sandbox has until it ends.
    fn remember(&mut self, begun: NewSandbox) {
        let mut lent = begun.lent;
        if begun.mounts_may_linger {
            lent.mounts = process::mount_namespace(begun.held.as_fd()).ok();
        }
        self.living.insert(begun.pid, lent);
    }

    fn namespaces(&mut self) -> Result<&mut SandboxNamespaces, BuildStepFailure> {
        if let Some(failure) = &self.no_namespaces {
            return Err(failure.clone());
        }
        if self.namespaces.is_none() {
            let made = SandboxNamespaces::prepare_zygote();
            self.namespaces =
                Some(made.inspect_err(|failure| self.no_namespaces = Some(failure.clone()))?);
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
