//! Control groups: limits on a whole process tree, and a handle to kill or freeze it.

use std::os::fd::BorrowedFd;

use lula_protocol::receipt::NotApplied;

/// Limits on a process tree. `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// CPU, in thousandths of one core.
    pub cpu_millicores: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
}

/// How this machine carries limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One v2 hierarchy, at its root.
    V2Root,
    /// One v2 hierarchy, in a part of it handed to this user.
    V2Delegated,
    /// Limits in v1 hierarchies, kill and freeze in a v2 one beside them.
    Hybrid,
    /// v1 hierarchies alone.
    V1,
    /// No control group can be made.
    None,
}

impl Kind {
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
pub struct Usage {
    /// CPU time, in microseconds.
    pub cpu_us: Option<u64>,
    /// Peak memory, in bytes.
    pub peak_memory_bytes: Option<u64>,
}

/// How often a limit was met so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Events {
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
    /// The kernel refused.
    #[error("control group {group}: cannot {act}: {source}")]
    Refused {
        /// What was tried.
        act: String,
        /// On which group.
        group: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Processes outlived the kill.
    #[error("control group {group}: still has processes after kill")]
    Occupied {
        /// Which group.
        group: String,
    },
}

/// The way to make control groups on this machine, found by making one.
#[derive(Debug)]
pub struct Backend {
    kind: Kind,
    refusals: Vec<String>,
}

/// One control group, or one in each hierarchy. Dropping it does not remove it.
#[derive(Debug)]
pub struct Leaf {
    not_applied: Vec<NotApplied>,
}

impl Backend {
    /// Tries every way, best first: make a group, set a limit, read it back.
    pub fn detect() -> Self {
        Self {
            kind: Kind::None,
            refusals: Vec::new(),
        }
    }

    /// Which way it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Why each better way does not work here.
    pub fn refusals(&self) -> &[String] {
        &self.refusals
    }

    /// A new empty group with those limits. A limit that could not be set or did not read back is
    /// in [`Leaf::not_applied`].
    pub fn create(&self, name: &str, _limits: &Limits) -> Result<Leaf, CgroupError> {
        Err(CgroupError::Name(name.to_owned()))
    }

    /// Removes groups whose runner is dead, with everything in them. Returns how many.
    pub fn sweep(&self) -> usize {
        0
    }
}

impl Leaf {
    /// The v2 directory for `CLONE_INTO_CGROUP`, where there is one.
    pub fn v2_dir_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether [`Leaf::attach`] is needed beside `CLONE_INTO_CGROUP` (v1 hierarchies).
    pub fn needs_attach(&self) -> bool {
        false
    }

    /// Puts a process into every hierarchy of the group.
    pub fn attach(&self, _pid: rustix::process::Pid) -> Result<(), CgroupError> {
        Ok(())
    }

    /// What was asked for and is not in force.
    pub fn not_applied(&self) -> &[NotApplied] {
        &self.not_applied
    }

    /// The limits as the kernel reports them now.
    pub fn read_back(&self) -> Result<Limits, CgroupError> {
        Ok(Limits::default())
    }

    /// Kills every process in the group.
    pub fn kill(&self) -> Result<(), CgroupError> {
        Ok(())
    }

    /// Stops every process in the group, and waits until they stand still.
    pub fn freeze(&self) -> Result<(), CgroupError> {
        Ok(())
    }

    /// Lets a frozen group run.
    pub fn thaw(&self) -> Result<(), CgroupError> {
        Ok(())
    }

    /// What the tree used so far.
    pub fn usage(&self) -> Usage {
        Usage::default()
    }

    /// How often limits were met.
    pub fn events(&self) -> Events {
        Events::default()
    }

    /// Removes the group; its processes must be gone or killed.
    pub fn remove(self) -> Result<(), CgroupError> {
        Ok(())
    }
}
