//! The steps that take things away, in the order in which they must happen.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use lula_protocol::IsolationTier;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit};

use super::{CONNECTION, InitSite, OuterIdentity};
use crate::blueprint::{INSIDE_ID, SandboxBlueprint};
use crate::frames::{SetupStage, UnavailableProtection};
use crate::idmap;
use crate::landlock::{self, EnforcedLandlock};
use crate::sys::mount::hold_host;
use crate::sys::process::{NamespaceFlags, become_ids, enter, lead_session, own_number, unshare};
use crate::sys::ways::is_missing;
use crate::sys::{descriptors, lockdown, refusals, signal};
use crate::zygote::{BuildStepContext, BuildStepFailure};

/// Joins v1 control groups by writing `0` into each `tasks` file: a thread that moves itself takes
/// none of the global locks that moving another process takes. The v2 group is joined in the same way where
/// no process can be born in one.
pub(super) fn join_groups(site: &InitSite) -> Result<(), BuildStepFailure> {
    if let Some(group) = &site.join_later {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(group, "cgroup.procs", flags, Mode::empty())
            .and_then(|processes| rustix::io::write(&processes, b"0"))
            .map_err(io::Error::from)
            .during(SetupStage::Cgroup, || "the v2 hierarchy".to_owned())?;
    }
    for tasks in &site.join_groups {
        rustix::io::write(tasks, b"0")
            .map_err(io::Error::from)
            .during(SetupStage::Cgroup, || "a v1 hierarchy".to_owned())?;
    }
    Ok(())
}

/// The cgroup namespace is made here and not at birth: its root is the group this process is in.
pub(super) fn name_itself(site: &mut InitSite) -> Result<(), BuildStepFailure> {
    unshare(NamespaceFlags::CGROUP).during(SetupStage::Cgroup, || "its namespace".to_owned())?;
    match rustix::system::sethostname(b"lula") {
        // The kernel allows it to the owner of the namespace, so this is a container engine's filter. The
        // host's own name still cannot be changed from here.
        Err(error) if is_missing(&error.into()) => {
            site.held_back.push(UnavailableProtection {
                asked: "a host name of its own".to_owned(),
                reason:
                    "a seccomp profile around it refuses `sethostname`: the name of the machine or \
                         container can be read"
                        .to_owned(),
            });
            Ok(())
        }
        named => named
            .map_err(io::Error::from)
            .during(SetupStage::Identity, || "host name".to_owned()),
    }
}

/// Enters the network of its own, where there is one, and takes what came along. Tells what the network
/// consists of.
pub(super) fn enter_network(site: &mut InitSite) -> Result<Vec<String>, BuildStepFailure> {
    let Some(supply) = site.network.take() else {
        return Ok(Vec::new());
    };
    let entered = supply.wait().and_then(|(network, home)| {
        enter(network.namespace.as_fd(), NamespaceFlags::NET)?;
        site.home = site.home.take().or(home);
        Ok(network.interfaces)
    });
    entered.during(SetupStage::Network, || "the private network".to_owned())
}

/// Becomes the sandbox's user, in a user namespace that holds this one id and owns no other
/// namespace: whatever a command becomes inside, it has power over nothing.
pub(super) fn take_identity(site: &InitSite) -> Result<(), BuildStepFailure> {
    let stage = SetupStage::Identity;
    let outside = match site.identity {
        Some(OuterIdentity::Taken { uid, gid }) => {
            become_ids(uid, gid).during(stage, || format!("user {uid}"))?;
            lockdown::raise_permitted().during(stage, || "its privileges".to_owned())?;
            // Changing ids hides /proc/self from the process itself.
            lockdown::set_dumpable(true).during(stage, || "/proc/self".to_owned())?;
            (uid, gid)
        }
        Some(OuterIdentity::Own) | None => (0, 0),
    };
    let its_own = || "the sandbox's".to_owned();
    if let Some(home) = &site.home {
        return enter(home.as_fd(), NamespaceFlags::USER)
            .during(SetupStage::UserNamespace, its_own);
    }
    unshare(NamespaceFlags::USER).during(SetupStage::UserNamespace, its_own)?;
    // The view of /proc inside may be read-only.
    let own = match &site.proc {
        Some(proc) => {
            rustix::fs::openat(proc, "self", HELD, Mode::empty()).map_err(io::Error::from)
        }
        None => hold_host(Path::new("/proc/self")),
    };
    own.and_then(|own| write_maps(&own, outside))
        .during(stage, || "its id map".to_owned())
}

const HELD: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn write_maps(own: &OwnedFd, (uid, gid): (u32, u32)) -> io::Result<()> {
    for (name, text) in [
        ("setgroups", "deny".to_owned()),
        ("gid_map", idmap::line(INSIDE_ID, gid)),
        ("uid_map", idmap::line(INSIDE_ID, uid)),
    ] {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(own, name, flags, Mode::empty())?;
        rustix::io::write(&file, text.as_bytes())?;
    }
    Ok(())
}

/// Closes every descriptor but the connection and the zygote's, and gives nothing for the standard
/// streams.
pub(super) fn keep_only_lines(site: InitSite) -> io::Result<(OwnedFd, OwnedFd)> {
    // Out of the way of the places they are going to.
    let connection = rustix::io::fcntl_dupfd_cloexec(&site.connection, 64)?;
    let zygote = rustix::io::fcntl_dupfd_cloexec(&site.zygote, 64)?;
    let null = descriptors::nothing(64)?;
    // Everything this process ever held is closed by number below. The owners of those numbers are
    // forgotten, so that no destructor closes a number that means something else by then.
    std::mem::forget(site);
    for stream in 0..3 {
        descriptors::place_descriptor(null.as_raw_fd(), stream, true)?;
    }
    descriptors::place_descriptor(connection.as_raw_fd(), CONNECTION, false)?;
    descriptors::place_descriptor(zygote.as_raw_fd(), CONNECTION + 1, false)?;
    std::mem::forget((connection, zygote, null));
    descriptors::close_from(CONNECTION + 2)?;
    Ok((own_number(CONNECTION)?, own_number(CONNECTION + 1)?))
}

/// From here on this process dies with the zygote; if that has happened already, now. Without a pid
/// namespace it must not be killed before it has killed what it started: there the end of the
/// connection tells it.
pub(super) fn tie_life(zygote: OwnedFd, tier: IsolationTier) -> Result<(), BuildStepFailure> {
    let stage = SetupStage::Lifeline;
    // A cloned process may already lead a session where it is pid 1.
    lead_session();
    if tier == IsolationTier::Namespace {
        lockdown::die_with_parent().during(stage, || "parent".to_owned())?;
    }
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut waiting = [PollFd::new(&zygote, PollFlags::IN)];
    rustix::event::poll(&mut waiting, Some(&now))
        .map_err(io::Error::from)
        .during(stage, || "the zygote".to_owned())?;
    if !waiting[0].revents().is_empty() {
        return Err(BuildStepFailure {
            stage,
            detail: "the zygote died while the sandbox was being built".to_owned(),
            errno: 0,
        });
    }
    drop(zygote);
    Ok(())
}

/// What came of locking.
pub(super) struct FenceResult {
    pub(super) enforced: Option<EnforcedLandlock>,
    /// Where refused calls wait for an answer.
    pub(super) refusals: Option<OwnedFd>,
    /// Whether another seccomp program stood around this process before.
    pub(super) was_filtered: bool,
    pub(super) held_back: Vec<UnavailableProtection>,
}

/// Limits, capabilities, no new privileges, Landlock, and seccomp last.
pub(super) fn lock(blueprint: &SandboxBlueprint) -> Result<FenceResult, BuildStepFailure> {
    let on = blueprint.switches;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    if on.rlimits {
        limits(blueprint).during(SetupStage::Limits, || "resource limits".to_owned())?;
    }
    let boundary = blueprint.tier != IsolationTier::Process;
    if on.no_capabilities && boundary {
        drop_capabilities(blueprint.tier)
            .during(SetupStage::Capabilities, || "every set".to_owned())?;
    }
    if on.no_new_privileges && boundary {
        lockdown::no_new_privileges()
            .during(SetupStage::Capabilities, || "no_new_privs".to_owned())?;
    }
    let mut held_back = Vec::new();
    if blueprint.tier != IsolationTier::Namespace {
        match lockdown::adopt_orphans() {
            // gVisor's kernel hands them to another process. What is no boundary may go on without.
            Err(error)
                if blueprint.tier == IsolationTier::Process
                    && error.raw_os_error() == Some(libc::EINVAL) =>
            {
                held_back.push(UnavailableProtection {
                    asked: "an end for processes that leave their command".to_owned(),
                    reason: "the kernel hands them to another process".to_owned(),
                });
            }
            adopted => adopted.during(SetupStage::Lifeline, || "orphans".to_owned())?,
        }
    }
    let enforced = if on.landlock && boundary {
        Some(
            landlock::enforce(&blueprint.grants, blueprint.landlock_abi)
                .during(SetupStage::Landlock, || "path rules".to_owned())?,
        )
    } else {
        None
    };
    // Commands have this user too: they must not look into the process that starts them.
    lockdown::set_dumpable(false).during(SetupStage::Lifeline, || "dumpable".to_owned())?;
    let mut refusals = None;
    let was_filtered = lockdown::is_filtered();
    if let Some(key) = blueprint.signal_key {
        signal::carry_key(key);
    }
    if on.seccomp && boundary {
        let installed = if blueprint.listened {
            refusals::install_with_listener(&blueprint.program).map(|one| refusals = Some(one))
        } else {
            lockdown::install_seccomp(&blueprint.program)
        };
        installed.during(SetupStage::Seccomp, || "the program".to_owned())?;
    }
    Ok(FenceResult {
        enforced,
        refusals,
        was_filtered,
        held_back,
    })
}

/// An unprivileged process may not shrink its bounding set; with no capability to begin with and
/// `no_new_privs` it can gain none either.
fn drop_capabilities(tier: IsolationTier) -> io::Result<()> {
    match lockdown::drop_capabilities() {
        Err(error)
            if tier == IsolationTier::Landlock && error.raw_os_error() == Some(libc::EPERM) =>
        {
            lockdown::clear_capability_sets()
        }
        other => other,
    }
}

fn limits(blueprint: &SandboxBlueprint) -> io::Result<()> {
    let set = |resource, value| {
        // An unprivileged process can lower a limit, never raise it.
        let most = rustix::process::getrlimit(resource).maximum;
        let value = most.map_or(value, |most| most.min(value));
        rustix::process::setrlimit(
            resource,
            Rlimit {
                current: Some(value),
                maximum: Some(value),
            },
        )
    };
    set(Resource::Nofile, blueprint.open_files)?;
    set(Resource::Core, 0)?;
    if let Some(size) = blueprint.file_size {
        set(Resource::Fsize, size)?;
    }
    Ok(())
}
