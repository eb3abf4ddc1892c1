//! Changes to a policy. Absent means unchanged.
//!
//! The same overlay can be laid over a profile by the person who owns the machine
//! ([`Policy::changed`], which may widen) or by an author with less authority
//! ([`Policy::tightened`], which takes the stricter of both for every single grant).

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::IsolationTier;

use super::amount::{ByteSize, CpuLimit, MemoryLimit, WallTime};
use super::{
    AbsolutePath, LayerName, MachineCapacity, Network, PackageCache, PolicyPaths, Profile,
    SandboxLimits, SandboxPolicy, VariableName,
};

/// Changes to a policy, each optional, to the field of the same name in [`SandboxPolicy`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyOverlay {
    pub profile: Option<Profile>,
    pub min_tier: Option<IsolationTier>,
    pub required_layers: Option<BTreeSet<LayerName>>,
    pub network: Option<Network>,
    pub nested_userns: Option<bool>,
    pub caches: Option<BTreeSet<PackageCache>>,
    pub paths: PolicyOverlayPaths,
    pub environment: Option<BTreeMap<VariableName, String>>,
    pub limits: PolicyOverlayLimits,
}

/// Changes to the field of the same name in [`PolicyPaths`], each optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyOverlayPaths {
    pub read: Option<BTreeSet<AbsolutePath>>,
    pub write: Option<BTreeSet<AbsolutePath>>,
    pub mask: Option<BTreeSet<AbsolutePath>>,
}

/// Changes to the field of the same name in [`SandboxLimits`], each optional.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyOverlayLimits {
    pub memory: Option<MemoryLimit>,
    pub cpu: Option<CpuLimit>,
    pub pids: Option<u32>,
    pub disk: Option<ByteSize>,
    pub open_files: Option<u32>,
    pub output: Option<ByteSize>,
    pub wall: Option<WallTime>,
}

impl SandboxPolicy {
    /// The policy with the overlay's values in place of its own. This may widen it: only for
    /// overlays of the machine's owner. The overlay's `profile` is the caller's to resolve.
    #[must_use]
    pub fn changed(self, overlay: PolicyOverlay) -> Self {
        let (old, new) = (self.paths, overlay.paths);
        let paths = PolicyPaths {
            read: new.read.unwrap_or(old.read),
            write: new.write.unwrap_or(old.write),
            mask: new.mask.unwrap_or(old.mask),
        };
        let (old, new) = (self.limits, overlay.limits);
        let limits = SandboxLimits {
            memory: new.memory.unwrap_or(old.memory),
            cpu: new.cpu.unwrap_or(old.cpu),
            pids: new.pids.unwrap_or(old.pids),
            disk: new.disk.unwrap_or(old.disk),
            open_files: new.open_files.unwrap_or(old.open_files),
            output: new.output.unwrap_or(old.output),
            wall: new.wall.unwrap_or(old.wall),
        };
        // Layers that are asked for by name are meant as they stand.
        let network = overlay
            .network
            .filter(|_| overlay.required_layers.is_none());
        let changed = Self {
            profile: self.profile,
            min_tier: overlay.min_tier.unwrap_or(self.min_tier),
            required_layers: overlay.required_layers.unwrap_or(self.required_layers),
            network: overlay.network.unwrap_or(self.network),
            nested_userns: overlay.nested_userns.unwrap_or(self.nested_userns),
            caches: overlay.caches.unwrap_or(self.caches),
            environment: overlay.environment.unwrap_or(self.environment),
            paths,
            limits,
        };
        match network {
            Some(network) => changed.with_network(network),
            None => changed,
        }
    }

    /// The policy narrowed by an overlay: for every grant the stricter of both, so that the result
    /// allows nothing this policy does not allow. The machine is needed to compare `75%` with
    /// `512MiB`.
    #[must_use]
    pub fn tightened(&self, overlay: &PolicyOverlay, machine: &MachineCapacity) -> Self {
        let base = overlay
            .profile
            .map(|profile| self.meet(&profile.policy(), machine));
        let base = base.as_ref().unwrap_or(self);
        base.meet(&base.clone().changed(overlay.clone()), machine)
    }

    /// What both policies allow.
    fn meet(&self, other: &Self, machine: &MachineCapacity) -> Self {
        let (a, b) = (&self.limits, &other.limits);
        let memory = [a.memory, b.memory]
            .into_iter()
            .min_by_key(|m| m.bytes(machine));
        let cpu = [a.cpu, b.cpu]
            .into_iter()
            .min_by_key(|c| c.millicores(machine));
        let limits = SandboxLimits {
            memory: memory.unwrap_or(a.memory),
            cpu: cpu.unwrap_or(a.cpu),
            pids: a.pids.min(b.pids),
            disk: a.disk.min(b.disk),
            open_files: a.open_files.min(b.open_files),
            output: a.output.min(b.output),
            wall: a.wall.min(b.wall),
        };
        let environment = self.environment.iter();
        let network = self.network.min(other.network);
        let mut required_layers = &self.required_layers | &other.required_layers;
        if network == Network::None && required_layers.remove(&LayerName::Egress) {
            // What is reached by name only is more than nothing.
            required_layers.insert(LayerName::NoNetwork);
        }
        Self {
            profile: self.profile,
            min_tier: self.min_tier.max(other.min_tier),
            required_layers,
            network,
            nested_userns: self.nested_userns && other.nested_userns,
            caches: &self.caches & &other.caches,
            paths: self.paths.meet(&other.paths),
            environment: environment
                .filter(|(name, value)| other.environment.get(*name) == Some(*value))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            limits,
        }
    }
}

impl PolicyPaths {
    fn meet(&self, other: &Self) -> Self {
        let write = common(&self.write, &other.write);
        // What is writable for one and readable for the other is readable for both.
        let mut read = common(&(&self.read | &self.write), &(&other.read | &other.write));
        read.retain(|path| !write.iter().any(|writable| writable.covers(path)));
        Self {
            read,
            write,
            mask: &self.mask | &other.mask,
        }
    }
}

/// The places below a path of each set.
fn common(a: &BTreeSet<AbsolutePath>, b: &BTreeSet<AbsolutePath>) -> BTreeSet<AbsolutePath> {
    let within = |path: &AbsolutePath, set: &BTreeSet<AbsolutePath>| {
        set.iter().any(|grant| grant.covers(path))
    };
    let from_a = a.iter().filter(|path| within(path, b));
    let from_b = b.iter().filter(|path| within(path, a));
    from_a.chain(from_b).cloned().collect()
}
