//! Control groups: limits on a whole process tree, and a handle to kill or freeze it.
//!
//! Machines carry them in four ways, so this module finds the way by doing: make a group, set a
//! limit, read it back ([`CgroupBackend::detect`]). A limit that the kernel did not report back is not in
//! force, and is named with the reason ([`CgroupLeaf::not_applied`]). Directories are held by handle, and
//! names are checked before they become part of a path.

mod backend;
mod dir;
pub mod layout;
mod leaf;
mod limits;
mod machine;

pub use backend::{CgroupBackend, CgroupRefusal};
pub use leaf::CgroupLeaf;
pub use machine::machine;

/// Limits on a process tree. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupLimits {
    /// Memory of the whole tree, in bytes.
    pub memory_bytes: Option<u64>,
    /// CPU, in thousandths of one core.
    pub cpu_millicores: Option<u64>,
    /// Processes and threads of the whole tree.
    pub pids: Option<u64>,
}

impl From<&crate::policy::ResolvedLimits> for CgroupLimits {
    fn from(granted: &crate::policy::ResolvedLimits) -> Self {
        Self {
            memory_bytes: Some(granted.memory_bytes),
            cpu_millicores: Some(granted.cpu_millicores),
            pids: Some(granted.pids),
        }
    }
}

/// How this machine carries limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupKind {
    /// One v2 hierarchy, held by root.
    V2Root,
    /// One v2 hierarchy, in a part of it handed to this user.
    V2Delegated,
    /// Limits in v1 hierarchies, kill and freeze in a v2 one beside them.
    Hybrid,
    /// v1 hierarchies without a v2 one beside them.
    V1,
    /// No control group can be made.
    None,
}

impl CgroupKind {
    /// The name in receipts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2Root | Self::V2Delegated => "v2",
            Self::Hybrid => "hybrid",
            Self::V1 => "v1",
            Self::None => "none",
        }
    }
}

/// CPU and memory used by a tree so far, where the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupUsage {
    /// CPU time, in microseconds.
    pub cpu_us: Option<u64>,
    /// Peak memory, in bytes.
    pub peak_memory_bytes: Option<u64>,
}

/// How often a limit was met so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CgroupLimitEvents {
    /// Processes killed for memory.
    pub oom_kills: u64,
    /// Forks refused for the number of processes.
    pub pids_refused: u64,
}

/// Why a control group operation failed.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// A name that could mean another place.
    #[error("{0:?} is not a control group name: use 1 to 64 of a-z, 0-9, - and _")]
    Name(String),
    /// The kernel refused an operation on a group.
    #[error("control group {group}: cannot {act}: {source}")]
    Refused {
        act: String,
        /// Path of the group.
        group: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Processes outlived the kill, or did not stand still.
    #[error("control group {group}: cannot {act}: its processes did not follow in time")]
    Slow {
        act: &'static str,
        /// Path of the group.
        group: String,
    },
    /// There is no control group to do it with.
    #[error("no control group can {act} on this machine: {reason}")]
    Absent {
        act: &'static str,
        /// Why there is none.
        reason: String,
    },
}

#[cfg(test)]
mod tests;
