//! The built-in profiles: good starting points, each stated in full.

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::Tier;

use super::amount::{ByteSize, Cpu, Memory, Percent, Wall};
use super::{LayerName, Limits, Network, PackageCache, Paths, Policy, names};
use serde::{Deserialize, Serialize};

names! {
    /// A named starting point for policies.
    Profile: "profile" {
        /// For code nobody has looked at: little of everything, every layer required.
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
    /// What applies where nobody named one.
    pub const DEFAULT: Self = Self::Build;

    /// The complete policy of this profile.
    pub fn policy(self) -> Policy {
        let (min_tier, further_layers, caches): (_, &[_], &[_]) = match self {
            Self::Strict => (Tier::Namespace, LayerName::ALL, &[]),
            Self::Build => (Tier::Landlock, &[LayerName::NoNetwork], PackageCache::ALL),
            Self::Browser => (Tier::Namespace, &[LayerName::NoNetwork], &[]),
        };
        Policy {
            profile: self,
            min_tier,
            required_layers: ALWAYS.iter().chain(further_layers).copied().collect(),
            network: Network::None,
            nested_userns: false,
            caches: caches.iter().copied().collect::<BTreeSet<_>>(),
            paths: Paths::default(),
            environment: BTreeMap::new(),
            limits: self.limits(),
        }
    }

    fn limits(self) -> Limits {
        match self {
            Self::Strict => Limits {
                memory: Memory::Fixed(ByteSize::mib(512)),
                cpu: Cpu::Millicores(500),
                pids: 256,
                disk: ByteSize::mib(1024),
                open_files: 1024,
                output: ByteSize::mib(1),
                wall: Wall::seconds(60),
            },
            // A quarter of the memory and a tenth of the CPU stay with the person at the machine.
            Self::Build => Limits {
                memory: Memory::Share(Percent::of_machine(75)),
                cpu: Cpu::Share(Percent::of_machine(90)),
                pids: 4096,
                disk: ByteSize::mib(16 * 1024),
                open_files: 65_536,
                output: ByteSize::mib(16),
                wall: Wall::seconds(600),
            },
            Self::Browser => Limits {
                memory: Memory::Share(Percent::of_machine(50)),
                cpu: Cpu::Share(Percent::of_machine(75)),
                pids: 2048,
                disk: ByteSize::mib(4 * 1024),
                open_files: 65_536,
                output: ByteSize::mib(16),
                wall: Wall::seconds(1800),
            },
        }
    }
}
