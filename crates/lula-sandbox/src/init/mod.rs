//! The first process of a sandbox: it builds what stands around the commands, locks itself in, and
//! then starts, feeds and reaps them.
//!
//! It shares every restriction with the commands it starts, so that a command that took it over
//! would have gained nothing.

mod command;
pub(crate) mod family;
mod fence;
mod mounts;
mod numbers;
mod readback;
pub(crate) mod routes;
mod serve;

use std::os::fd::{AsFd, IntoRawFd, OwnedFd, RawFd};

use lula_protocol::IsolationTier;

use self::numbers::ProcessNumbers;
use crate::blueprint::SandboxBlueprint;
use crate::built_in::BuiltInProgram;
use crate::frames::{ExecServerEvent, KernelPosture, SetupStage, UnavailableProtection};
use crate::landlock::EnforcedLandlock;
use crate::sys::{descriptors, process};
use crate::zygote::{BuildStepContext, BuildStepFailure, NetworkSupply};

/// Who a sandbox is outside its user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OuterIdentity {
    /// The zygote's own user.
    Own,
    /// Another one, taken by privilege.
    Taken { uid: u32, gid: u32 },
}

/// What the zygote hands to the process it clones.
pub(crate) struct InitSite {
    /// The socket to the runner.
    pub(crate) connection: OwnedFd,
    /// The pidfd of the zygote, readable once it has died.
    pub(crate) zygote: OwnedFd,
    /// `tasks` files of v1 control groups to join.
    pub(crate) join_groups: Vec<OwnedFd>,
    /// The v2 control group that it could not be born in.
    pub(crate) join_later: Option<OwnedFd>,
    pub(crate) network: Option<NetworkSupply>,
    /// Detached trees, in the order of the blueprint.
    pub(crate) placed: Vec<OwnedFd>,
    pub(crate) layers: Vec<OwnedFd>,
    pub(crate) caches: Vec<OwnedFd>,
    pub(crate) identity: Option<OuterIdentity>,
    /// A user namespace that knows that identity and no other. It may come with the network; without
    /// one, one is made.
    pub(crate) home: Option<OwnedFd>,
    /// The `/proc` around it, where the sandbox is to write its own id map.
    pub(crate) proc: Option<OwnedFd>,
    pub(crate) held_back: Vec<UnavailableProtection>,
}

/// The descriptor of the connection while serving.
const CONNECTION: i32 = 3;

/// Builds the sandbox around this process and serves in it. Never returns.
pub(crate) fn run(
    blueprint: &SandboxBlueprint,
    site: InitSite,
    zygote_ends: &[RawFd],
    built_ins: &'static [BuiltInProgram],
) -> ! {
    // First of all: the zygote's socket must not be held open by a sandbox, or the zygote's death
    // would go unseen. The copy is closed, the zygote's own stays.
    for end in zygote_ends {
        let _ = descriptors::close_one(*end);
    }
    // A copy that outlives the site, to say what went wrong; it is closed by number with the rest.
    let reporter = rustix::io::fcntl_dupfd_cloexec(&site.connection, 64)
        .map_or(CONNECTION, IntoRawFd::into_raw_fd);
    match build(blueprint, site, built_ins) {
        Ok(server) => {
            let status = i32::from(server.serve().is_err());
            process::exit_now(status)
        }
        Err(failure) => {
            report(reporter, failure);
            process::exit_now(1)
        }
    }
}

fn build(
    blueprint: &SandboxBlueprint,
    mut site: InitSite,
    built_ins: &'static [BuiltInProgram],
) -> Result<serve::ExecServer, BuildStepFailure> {
    fence::join_groups(&site)?;
    let mut interfaces = Vec::new();
    if blueprint.tier == IsolationTier::Namespace {
        fence::name_itself(&mut site)?;
        mounts::build(blueprint, &mut site)?;
        // It may still be in the making.
        interfaces = fence::enter_network(&mut site)?;
        fence::take_identity(&site)?;
    }
    let mut held_back = std::mem::take(&mut site.held_back);
    let (connection, zygote) =
        fence::keep_only_lines(site).during(SetupStage::Limits, || "descriptors".to_owned())?;
    let locked = fence::tie_life(zygote, blueprint.tier)
        .and_then(|()| lock_in(blueprint, &connection, &interfaces));
    let mut locked = match locked {
        Ok(locked) => locked,
        Err(failure) => {
            // It stays open: the runner is told on it what went wrong.
            let _ = connection.into_raw_fd();
            return Err(failure);
        }
    };
    held_back.append(&mut locked.held_back);
    let ready = ExecServerEvent::Ready {
        posture: locked.posture,
        held_back,
    };
    let inherited = serve::CommandInheritance {
        enforced: locked.enforced,
        tier: blueprint.tier,
        numbers: locked.numbers,
        built_ins,
    };
    serve::ExecServer::new(connection, &ready, locked.refusals, inherited).map_err(|error| {
        BuildStepFailure {
            stage: SetupStage::ReadBack,
            detail: error.to_string(),
            errno: 0,
        }
    })
}

/// What this process is once it is locked in.
struct LockedInit {
    posture: KernelPosture,
    enforced: Option<EnforcedLandlock>,
    refusals: Option<OwnedFd>,
    numbers: ProcessNumbers,
    held_back: Vec<UnavailableProtection>,
}

/// Takes everything away that commands must not have, and reads back what is in force then.
fn lock_in(
    blueprint: &SandboxBlueprint,
    connection: &OwnedFd,
    interfaces: &[String],
) -> Result<LockedInit, BuildStepFailure> {
    let fence::FenceResult {
        enforced,
        mut refusals,
        was_filtered,
        held_back,
    } = fence::lock(blueprint)?;
    if blueprint.watched
        && let Some(listener) = refusals.take()
    {
        // From here on every path this process opens waits for the runner.
        serve::tell(connection, &ExecServerEvent::Locked, &[listener.as_fd()])
            .during(SetupStage::Seccomp, || "its listener".to_owned())?;
    }
    let numbers = ProcessNumbers::here();
    let mut posture = readback::own(blueprint, enforced, interfaces, numbers)?;
    if was_filtered {
        // Ours has to be one more.
        posture.seccomp_filters =
            readback::filters().during(SetupStage::ReadBack, || "filters".to_owned())?;
    }
    Ok(LockedInit {
        posture,
        enforced,
        refusals,
        numbers,
        held_back,
    })
}

/// Tells the runner why there is no sandbox. It may already be gone; then it needs no answer.
fn report(reporter: i32, failure: BuildStepFailure) {
    let event = ExecServerEvent::SetupFailed {
        stage: failure.stage,
        detail: failure.detail,
        errno: failure.errno,
    };
    let mut bytes = Vec::new();
    if event.frame(0).encode_into(&mut bytes).is_err() {
        return;
    }
    // The connection may have been moved to its final place already.
    for descriptor in [reporter, CONNECTION] {
        if process::write_number(descriptor, &bytes).is_ok() {
            return;
        }
    }
}
