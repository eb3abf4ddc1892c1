//! The posture receipt: what really stood between a command and the machine.
//!
//! Everything in a receipt was read back after it was applied. What was asked for and could not be
//! applied is listed beside it, so that no reader has to infer an absence.

use serde::{Deserialize, Serialize};

use crate::denial::SandboxDenial;
use crate::digest::Digest;

/// An isolation tier. The order is the order of strength: a floor is met by itself and by
/// everything greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IsolationTier {
    /// Clean environment, own session, resource limits. Not a boundary: only by name.
    Process,
    /// Landlock, seccomp and no-new-privileges, without namespaces.
    Landlock,
    /// Namespaces, a private root, Landlock, seccomp and cgroup limits.
    Namespace,
    /// A kernel in user space, between the command and the machine's own.
    Gvisor,
    /// A virtual machine of its own.
    Microvm,
}

impl IsolationTier {
    /// Every tier, weakest first.
    pub const ALL: [Self; 5] = [
        Self::Process,
        Self::Landlock,
        Self::Namespace,
        Self::Gvisor,
        Self::Microvm,
    ];

    /// The name on the command line and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Landlock => "landlock",
            Self::Namespace => "namespace",
            Self::Gvisor => "gvisor",
            Self::Microvm => "microvm",
        }
    }

    /// The tier of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

impl std::fmt::Display for IsolationTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// One layer of protection with the parameters that were read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "layer", rename_all = "snake_case", deny_unknown_fields)]
pub enum ProtectionLayer {
    /// Kernel namespaces that differ from the caller's.
    Namespaces {
        /// `user`, `mount`, `pid`, `net`, `ipc`, `uts`, `cgroup`: each compared by inode.
        separate: Vec<String>,
    },
    /// A root directory that is not the host's.
    PrivateRoot {
        /// What is visible read-only.
        read_only: Vec<String>,
        /// What is visible and writable.
        writable: Vec<String>,
    },
    /// Landlock, enforced on the command.
    Landlock {
        /// ABI version of the kernel in use.
        abi: u32,
        /// Path rules in force.
        rules: u32,
    },
    /// A seccomp filter, as reported by the kernel.
    Seccomp {
        /// Digest of the program.
        program: Digest,
        /// Length of the program, in instructions.
        instructions: u32,
    },
    /// `no_new_privs`, read back from the kernel.
    NoNewPrivileges,
    /// No capability is held, and none can be gained.
    NoCapabilities,
    /// Control group limits in force.
    Cgroup {
        /// Which hierarchy carries them: `v2`, `v1`, `hybrid`.
        backend: String,
        /// The limits as the kernel reports them.
        limits: ReceiptLimits,
    },
    /// Per-process resource limits in force.
    Rlimits {
        /// Most files a process may hold open.
        open_files: u64,
        /// Largest file, in bytes.
        file_size: Option<u64>,
    },
    /// No network but the sandbox's own loopback.
    NoNetwork,
    /// A network whose every address leads to a listener of the engine, which lets out what the policy
    /// names.
    Egress {
        /// Digest of what may be reached.
        policy: Digest,
        /// Every interface of that network.
        interfaces: Vec<String>,
        /// Its routes for every address.
        routes: Vec<String>,
        /// What listens in it, as `tcp 0.0.0.0:443`.
        listening: Vec<String>,
        /// Servers inside that were published, as `127.0.0.1:3000 -> 8080`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        published: Vec<String>,
    },
    /// An environment built from nothing.
    CleanEnvironment {
        /// Names that were set.
        names: Vec<String>,
    },
}

impl ProtectionLayer {
    /// The name used in policies (`required_layers`) and on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Namespaces { .. } => "namespaces",
            Self::PrivateRoot { .. } => "private_root",
            Self::Landlock { .. } => "landlock",
            Self::Seccomp { .. } => "seccomp",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::NoCapabilities => "no_capabilities",
            Self::Cgroup { .. } => "cgroup",
            Self::Rlimits { .. } => "rlimits",
            Self::NoNetwork => "no_network",
            Self::Egress { .. } => "egress",
            Self::CleanEnvironment { .. } => "clean_environment",
        }
    }
}

/// What writing to the workspace does, as it was read back inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceMode {
    /// It changes the real tree.
    Direct,
    /// It goes to a layer of its own; the real tree below stays as it is.
    Overlay,
    /// It is refused: the tree is only read.
    ReadOnly,
}

impl WorkspaceMode {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Overlay => "overlay",
            Self::ReadOnly => "read_only",
        }
    }
}

/// Resource limits. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReceiptLimits {
    /// Memory of the whole tree, in bytes.
    pub memory_bytes: Option<u64>,
    /// CPU share in thousandths of one core.
    pub cpu_millicores: Option<u64>,
    /// Processes and threads at one time.
    pub pids: Option<u64>,
    /// Bytes the command may write.
    pub disk_bytes: Option<u64>,
    /// Wall clock, in milliseconds.
    pub wall_ms: Option<u64>,
    /// Output kept, in bytes, for each stream.
    pub output_bytes: Option<u64>,
}

/// Something the policy asked for that is not in force, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UnappliedProtection {
    /// What was asked for.
    pub asked: String,
    /// Why it is not there.
    pub reason: String,
}

/// What the command used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CommandUsage {
    /// Time to build the sandbox, in microseconds.
    pub setup_us: u64,
    /// Wall clock of the command, in microseconds.
    pub wall_us: u64,
    /// CPU time of the whole tree, in microseconds, where it could be read.
    pub cpu_us: Option<u64>,
    /// Peak memory of the whole tree, in bytes, where it could be read.
    pub peak_memory_bytes: Option<u64>,
    /// Bytes the command wrote to its standard output, kept or not.
    pub stdout_bytes: u64,
    /// Bytes the command wrote to its standard error, kept or not.
    pub stderr_bytes: u64,
}

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "how", rename_all = "snake_case", deny_unknown_fields)]
pub enum CommandEnding {
    /// It exited by itself.
    Exited { status: u8 },
    /// A signal ended it.
    Signalled {
        /// Number of the signal.
        signal: u8,
    },
    /// Its wall clock ran out and the whole tree was killed.
    TimedOut,
    /// A limit ended it.
    LimitReached {
        /// Name of the limit: `memory`, `disk`, …
        limit: String,
    },
}

/// Proof of what stood around one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SandboxReceipt {
    /// Tier that was used.
    pub tier: IsolationTier,
    /// Layers in force, each read back.
    pub layers: Vec<ProtectionLayer>,
    /// Asked for and not in force.
    pub not_applied: Vec<UnappliedProtection>,
    /// What writing to the workspace did.
    pub workspace: WorkspaceMode,
    /// Digest of the policy that was applied.
    pub policy: Digest,
    /// Digest of the project's environment, where one that was built is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Digest>,
    /// How the command ended.
    pub ended: CommandEnding,
    pub usage: CommandUsage,
    /// What was refused to it.
    pub denials: Vec<SandboxDenial>,
    /// Refusals that nothing here can see: none of them being among the denials means nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_observed: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_met_by_every_stronger_tier() {
        assert!(IsolationTier::Namespace >= IsolationTier::Landlock);
        assert!(IsolationTier::Process < IsolationTier::Landlock);
        assert!(IsolationTier::ALL.is_sorted());
    }

    #[test]
    fn every_tier_is_found_by_its_name() {
        for tier in IsolationTier::ALL {
            assert_eq!(IsolationTier::from_name(tier.name()), Some(tier));
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.name());
        }
    }

    #[test]
    fn layer_names_match_the_wire() {
        for layer in [
            ProtectionLayer::NoNewPrivileges,
            ProtectionLayer::NoCapabilities,
            ProtectionLayer::NoNetwork,
        ] {
            assert_eq!(serde_json::to_value(&layer).unwrap()["layer"], layer.name());
        }
    }
}
