//! What a sandboxed command may use: paths, variables, limits, network, and the least protection it
//! may run under.
//!
//! A policy is data. It is read from TOML ([`SandboxPolicy::from_toml`]), starts from a built-in
//! [`Profile`], can be narrowed by an [`PolicyOverlay`] that never widens it ([`SandboxPolicy::tightened`]), and
//! has a digest over its canonical form. Nothing here touches the machine.

pub mod amount;
mod limits;
mod overlay;
mod path;
mod profile;
mod reader;
mod toml;

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::IsolationTier;
use lula_protocol::canonical::CanonicalError;
use lula_protocol::digest::{Digest, DigestDomain};
use serde::{Deserialize, Serialize};

pub use amount::{ByteSize, CpuLimit, InvalidPolicyAmount, MemoryLimit, Percent, WallTime};
pub use limits::{MachineCapacity, ResolvedLimits, SandboxLimits};
pub use overlay::{PolicyOverlay, PolicyOverlayLimits, PolicyOverlayPaths};
pub use path::{AbsolutePath, VariableName};
pub use profile::Profile;
pub use toml::{PolicyMistake, SandboxPolicyError};

/// Everything a command is granted, and the least protection it may run under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxPolicy {
    /// The profile this policy started from.
    pub profile: Profile,
    /// The weakest tier it may run in. Nothing weaker is ever tried.
    pub min_tier: IsolationTier,
    /// Layers without which it must not run, whatever the tier.
    pub required_layers: BTreeSet<LayerName>,
    /// What it may reach over the network.
    pub network: Network,
    /// Whether it may make user namespaces of its own.
    pub nested_userns: bool,
    /// Package caches of the host it may read; what it adds stays private.
    pub caches: BTreeSet<PackageCache>,
    /// Paths of the host beside the system directories and the workspace.
    pub paths: PolicyPaths,
    /// Variables set in addition to the engine's own. Nothing is inherited.
    pub environment: BTreeMap<VariableName, String>,
    /// How much of each resource.
    pub limits: SandboxLimits,
}

impl SandboxPolicy {
    /// The digest that receipts, approvals and the audit log carry.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Digest::of(DigestDomain::Policy, self)
    }

    /// The policy with that network in place of its own, and the layer that goes with it required in
    /// place of the other's.
    #[must_use]
    pub fn with_network(mut self, network: Network) -> Self {
        self.network = network;
        let (layer, other) = (LayerName::NoNetwork, LayerName::Egress);
        let asked = self.required_layers.remove(&layer) | self.required_layers.remove(&other);
        match network {
            Network::None if asked => self.required_layers.insert(layer),
            Network::Allowlist => self.required_layers.insert(other),
            Network::None | Network::Host => false,
        };
        self
    }
}

/// Paths of the host, each with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyPaths {
    pub read: BTreeSet<AbsolutePath>,
    pub write: BTreeSet<AbsolutePath>,
    /// Hidden even where a grant would show them. A mask beats every grant.
    pub mask: BTreeSet<AbsolutePath>,
}

macro_rules! names {
    ($(#[$meta:meta])* $name:ident: $what:literal { $($(#[$doc:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every one there is.
            pub const ALL: &[Self] = &[$(Self::$variant),*];
            pub(crate) const WHAT: &str = $what;

            /// The name in policies and on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The one of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
pub(crate) use names;

names! {
    /// A layer of protection, by the name it has in receipts.
    LayerName: "layer" {
        /// Kernel namespaces of its own.
        Namespaces = "namespaces",
        /// A root directory of its own.
        PrivateRoot = "private_root",
        /// Rules of Landlock for the paths.
        Landlock = "landlock",
        /// A seccomp filter for the system calls.
        Seccomp = "seccomp",
        /// `no_new_privs` on every process.
        NoNewPrivileges = "no_new_privileges",
        /// No capability held or gained.
        NoCapabilities = "no_capabilities",
        /// Limits of a control group.
        Cgroup = "cgroup",
        /// Resource limits of each process.
        Rlimits = "rlimits",
        /// No network but its own loopback.
        NoNetwork = "no_network",
        /// Network by name only, through listeners of the engine.
        Egress = "egress",
        /// An environment built from nothing.
        CleanEnvironment = "clean_environment",
    }
}

names! {
    /// A package cache of the host, shown at its own path below a private layer. Where it lies follows
    /// the tool's own variables.
    PackageCache: "package cache" {
        /// `registry` and `git` of `~/.cargo`.
        Cargo = "cargo",
        /// What pip downloaded: `~/.cache/pip`.
        Pip = "pip",
        /// What npm downloaded: `~/.npm`.
        Npm = "npm",
        /// What Go downloaded and built: `~/go/pkg/mod` and `~/.cache/go-build`.
        Go = "go",
        /// What uv downloaded: `~/.cache/uv`.
        Uv = "uv",
        /// What Yarn downloaded: `~/.cache/yarn` and `~/.yarn/berry`.
        Yarn = "yarn",
        /// What pnpm downloaded: `~/.local/share/pnpm/store`.
        Pnpm = "pnpm",
        /// What Maven downloaded: `~/.m2/repository`.
        Maven = "maven",
        /// `caches`, `wrapper` and `jdks` of `~/.gradle`.
        Gradle = "gradle",
    }
}

names! {
    /// What a command may reach over the network, the least first.
    Network: "network" {
        /// Nothing but its own loopback.
        None = "none",
        /// Names that were granted, each asked for and dialled by the engine.
        Allowlist = "allowlist",
        /// Everything this machine reaches, and the machine itself. Only by a flag, never in a file.
        Host = "host",
    }
}

#[cfg(test)]
mod tests;
