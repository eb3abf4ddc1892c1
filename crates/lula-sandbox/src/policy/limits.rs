//! How much of each resource a command may use, and what that is on a given machine.

use lula_protocol::receipt;
use serde::{Deserialize, Serialize};

use super::amount::{ByteSize, CpuLimit, MemoryLimit, WallTime};

/// Resource limits of one sandbox. Every resource has one: there is no "unlimited".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxLimits {
    /// Memory of the whole tree.
    pub memory: MemoryLimit,
    /// CPU of the whole tree.
    pub cpu: CpuLimit,
    /// Processes and threads of the whole tree.
    pub pids: u32,
    /// Bytes written to the workspace layer and to private directories.
    pub disk: ByteSize,
    /// Open files of each process.
    pub open_files: u32,
    /// Output kept of each stream; the rest is counted and dropped.
    pub output: ByteSize,
    /// Wall clock of each command.
    pub wall: WallTime,
}

/// What shares are taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineCapacity {
    /// Memory available to this process and its children, in bytes.
    pub memory_bytes: u64,
    /// CPU available, in thousandths of one core.
    pub cpu_millicores: u64,
}

/// The limits in numbers, for one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedLimits {
    /// Memory of the whole tree, in bytes.
    pub memory_bytes: u64,
    /// CPU of the whole tree, in thousandths of one core.
    pub cpu_millicores: u64,
    /// Processes and threads at one time.
    pub pids: u64,
    /// Bytes that a command may write.
    pub disk_bytes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Output kept of each stream, in bytes.
    pub output_bytes: u64,
    /// Wall clock of each command, in milliseconds.
    pub wall_ms: u64,
}

impl SandboxLimits {
    /// The limits in numbers on that machine.
    pub fn granted(&self, machine: &MachineCapacity) -> ResolvedLimits {
        ResolvedLimits {
            memory_bytes: self.memory.bytes(machine),
            cpu_millicores: self.cpu.millicores(machine),
            pids: self.pids.into(),
            disk_bytes: self.disk.bytes(),
            open_files: self.open_files.into(),
            output_bytes: self.output.bytes(),
            wall_ms: self.wall.millis(),
        }
    }
}

impl MemoryLimit {
    /// The number of bytes on that machine.
    pub fn bytes(self, machine: &MachineCapacity) -> u64 {
        match self {
            Self::Fixed(size) => size.bytes(),
            Self::Share(percent) => percent.of(machine.memory_bytes),
        }
    }
}

impl CpuLimit {
    /// Thousandths of one core on that machine.
    pub fn millicores(self, machine: &MachineCapacity) -> u64 {
        match self {
            Self::Millicores(millis) => millis.into(),
            Self::Share(percent) => percent.of(machine.cpu_millicores),
        }
        .max(super::amount::LEAST_MILLICORES.into())
    }
}

impl From<ResolvedLimits> for receipt::ReceiptLimits {
    fn from(granted: ResolvedLimits) -> Self {
        Self {
            memory_bytes: Some(granted.memory_bytes),
            cpu_millicores: Some(granted.cpu_millicores),
            pids: Some(granted.pids),
            disk_bytes: Some(granted.disk_bytes),
            wall_ms: Some(granted.wall_ms),
            output_bytes: Some(granted.output_bytes),
        }
    }
}
