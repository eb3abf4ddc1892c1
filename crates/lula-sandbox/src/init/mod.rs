//! The first process of a sandbox: it builds what stands around the commands, locks itself in, and
//! then starts, feeds and reaps them.
//!
//! It shares every restriction with the commands it starts, so that a command that took it over
//! would have gained nothing.

mod command;
pub(crate) mod family;
mod fence;
mod mounts;
mod readback;
pub(crate) mod routes;
mod serve;

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use lula_protocol::Tier;

use crate::blueprint::Blueprint;
use crate::built_in::BuiltIn;
use crate::frames::{Event, HeldBack, SetupStage};
use crate::sys::{lockdown, process};
use crate::zygote::{During, Failure, Supply};

/// Who a sandbox is outside its user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The zygote's own user.
    Own,
    /// Another one, taken by privilege.
    Taken { uid: u32, gid: u32 },
}

/// What the zygote hands to the process it clones.
pub(crate) struct Site {
    /// To the runner.
    pub(crate) connection: OwnedFd,
    /// The zygote's pidfd.
    pub(crate) zygote: OwnedFd,
    /// `tasks` files of v1 control groups to join.
    pub(crate) join_groups: Vec<OwnedFd>,
    pub(crate) network: Option<Supply>,
    /// Detached trees, in the order of the blueprint.
    pub(crate) placed: Vec<OwnedFd>,
    pub(crate) layers: Vec<OwnedFd>,
    pub(crate) caches: Vec<OwnedFd>,
    pub(crate) identity: Option<Identity>,
    /// A user namespace that knows that identity and nobody else. It may come with the network; without
    /// one, one is made.
    pub(crate) home: Option<OwnedFd>,
    pub(crate) held_back: Vec<HeldBack>,
}

/// The descriptor of the connection while serving.
const CONNECTION: i32 = 3;

/// Builds the sandbox around this process and serves in it. Never returns.
pub(crate) fn run(
    blueprint: &Blueprint,
    site: Site,
    zygote_control: &OwnedFd,
    built_ins: &'static [BuiltIn],
) -> ! {
    // First of all: the zygote's socket must not be held open by a sandbox, or the zygote's death
    // would go unseen. The copy is closed, the zygote's own stays.
    let _ = lockdown::close_one(zygote_control.as_raw_fd());
    // A copy that outlives the site, to say what went wrong; it is closed by number with the rest.
    let reporter = rustix::io::fcntl_dupfd_cloexec(&site.connection, 64)
        .map_or(CONNECTION, std::os::fd::IntoRawFd::into_raw_fd);
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
    blueprint: &Blueprint,
    mut site: Site,
    built_ins: &'static [BuiltIn],
) -> Result<serve::Server, Failure> {
    fence::join_groups(&site)?;
    let mut interfaces = Vec::new();
    if blueprint.tier == Tier::Namespace {
        fence::name_itself()?;
        mounts::build(blueprint, &mut site)?;
        // It may still be in the making.
        interfaces = fence::enter_network(&mut site)?;
        fence::take_identity(&site)?;
    }
    let held_back = std::mem::take(&mut site.held_back);
    let (connection, zygote) =
        fence::keep_only_lines(site).during(SetupStage::Limits, || "descriptors".to_owned())?;
    fence::tie_life(zygote, blueprint.tier)?;
    let fence::Locked {
        enforced,
        mut refusals,
    } = fence::lock(blueprint)?;
    if blueprint.watched
        && let Some(listener) = refusals.take()
    {
        // From here on every path this process opens waits for the runner.
        serve::tell(&connection, &Event::Locked, &[listener.as_fd()])
            .during(SetupStage::Seccomp, || "its listener".to_owned())?;
    }
    let posture = readback::own(blueprint, enforced, &interfaces)?;
    let ready = Event::Ready { posture, held_back };
    let inherited = serve::Inherited {
        enforced,
        tier: blueprint.tier,
        built_ins,
    };
    serve::Server::new(connection, &ready, refusals, inherited).map_err(|error| Failure {
        stage: SetupStage::ReadBack,
        detail: error.to_string(),
        errno: 0,
    })
}

/// Tells the runner why there is no sandbox. It may already be gone; then nobody needs to know.
fn report(reporter: i32, failure: Failure) {
    let event = Event::SetupFailed {
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
