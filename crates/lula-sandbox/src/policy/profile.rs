//! The built-in profiles: good starting points, each stated in full.

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::IsolationTier;

use super::amount::{ByteSize, CpuLimit, MemoryLimit, Percent, WallTime};
use super::{LayerName, Network, PackageCache, PolicyPaths, SandboxLimits, SandboxPolicy, names};
use serde::{Deserialize, Serialize};

names! {
    /// A named starting point for policies.
    Profile: "profile" {
        /// For code that no person has reviewed: little of everything, every layer required.
        Strict = "strict",
        /// For building and testing a repository: a share of the machine and the package caches.
        Build = "build",
        /// For headless browsers and long-lived servers under test.
        Browser = "browser",
    }
}

/// What every profile insists on, in every tier that is a boundary.
const ALWAYS: [LayerName; 4] = [
    LayerName::Seccomp,
    LayerName::NoNewPrivileges,
    LayerName::NoCapabilities,
    LayerName::CleanEnvironment,
];

impl Profile {
    /// What applies where no profile is named.
    pub const DEFAULT: Self = Self::Build;

    /// The complete policy of this profile.
    pub fn policy(self) -> SandboxPolicy {
        let (min_tier, further_layers, caches): (_, &[_], &[_]) = match self {
            Self::Strict => (IsolationTier::Namespace, LayerName::ALL, &[]),
            Self::Build => (
                IsolationTier::Landlock,
                &[LayerName::NoNetwork],
                PackageCache::ALL,
            ),
            Self::Browser => (IsolationTier::Namespace, &[LayerName::NoNetwork], &[]),
        };
        SandboxPolicy {
            profile: self,
            min_tier,
            required_layers: ALWAYS
                .iter()
                .chain(further_layers)
                .copied()
                // The other layer of the network goes with another network.
                .filter(|layer| *layer != LayerName::Egress)
                .collect(),
            network: Network::None,
            nested_userns: false,
            caches: caches.iter().copied().collect::<BTreeSet<_>>(),
            paths: PolicyPaths::default(),
            environment: BTreeMap::new(),
            limits: self.limits(),
        }
    }

    fn limits(self) -> SandboxLimits {
        match self {
            Self::Strict => SandboxLimits {
                memory: MemoryLimit::Fixed(ByteSize::mib(512)),
                cpu: CpuLimit::Millicores(500),
                pids: 256,
                disk: ByteSize::mib(1024),
                open_files: 1024,
                output: ByteSize::mib(1),
                wall: WallTime::seconds(60),
            },
            // A quarter of the memory and a tenth of the CPU stay with the person at the machine.
            Self::Build => SandboxLimits {
                memory: MemoryLimit::Share(Percent::of_machine(75)),
                cpu: CpuLimit::Share(Percent::of_machine(90)),
                pids: 4096,
                disk: ByteSize::mib(16 * 1024),
                open_files: 65_536,
                output: ByteSize::mib(16),
                wall: WallTime::seconds(600),
            },
            Self::Browser => SandboxLimits {
                memory: MemoryLimit::Share(Percent::of_machine(50)),
                cpu: CpuLimit::Share(Percent::of_machine(75)),
                pids: 2048,
                disk: ByteSize::mib(4 * 1024),
                open_files: 65_536,
                output: ByteSize::mib(16),
                wall: WallTime::seconds(1800),
            },
        }
    }
}
