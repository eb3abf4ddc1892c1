//! What a zygote with namespaces keeps ready, and what one sandbox gets of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::delivery::{NetworkRequest, NetworkSupply};
use super::door::DoorSockets;
use super::identity::Identities;
use super::network::{PrivateNetwork, PrivateNetworkPool};
use super::reply::{BuildStepContext, BuildStepFailure};
use super::template::RootTemplates;
use crate::blueprint::SandboxBlueprint;
use crate::frames::SetupStage;
use crate::init;

/// What a zygote with namespaces keeps ready.
pub(super) struct SandboxNamespaces {
    /// This process's own `/proc/…/ns`, held so that it stays reachable after the root is gone.
    pub(super) own: OwnedFd,
    pub(super) templates: RootTemplates,
    pub(super) networks: PrivateNetworkPool,
    pub(super) identities: Identities,
}

/// What a living sandbox gives back when it ends.
#[derive(Default)]
pub(super) struct LentResources {
    pub(super) outside_id: Option<u32>,
    pub(super) network: Option<PrivateNetwork>,
    /// Its number and its network, where that has listeners: sockets are made in it while it stands.
    pub(super) door: Option<(u64, OwnedFd)>,
    /// Its mount namespace, which is then taken apart here and not while the runner waits for the end
    /// of its first process.
    pub(super) mounts: Option<OwnedFd>,
    /// Closed with the end of its first process, where the engine cannot hold that itself.
    pub(super) end: Option<OwnedFd>,
}

impl SandboxNamespaces {
    /// Moves the zygote itself into a mount namespace of its own, with a user namespace first where
    /// it has no privileges.
    pub(super) fn prepare_zygote() -> Result<Self, BuildStepFailure> {
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
    pub(super) fn take_back(&mut self, lent: LentResources) {
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

    /// Gives a sandbox a network of its own with listeners on those ports. Returns a handle on the network
    /// too.
    pub(super) fn connect_with_door(
        &mut self,
        ports: &[u16],
        site: &mut init::InitSite,
    ) -> Result<(OwnedFd, DoorSockets), BuildStepFailure> {
        let made = self.networks.make_with_door(self.own.as_fd(), ports);
        let made = made.and_then(|(network, door)| {
            let held = network.namespace.try_clone()?;
            Ok((held, network, door))
        });
        let (held, network, door) = made.during(SetupStage::Network, || {
            format!("a network with listeners on the ports {ports:?}")
        })?;
        site.network = Some(NetworkSupply::Here(network));
        Ok((held, door))
    }

    /// Gives a sandbox a network, or the promise of one. Returns what to take back when it ends, and
    /// where one is still to be delivered.
    pub(super) fn connect(
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
    pub(super) fn prepare(
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
        site.proc = self
            .identities
            .proc_for(identity)
            .during(SetupStage::Identity, || "/proc".to_owned())?;
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
pub(super) fn hold_namespace(own: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        own,
        name,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?)
}
