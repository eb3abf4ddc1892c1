//! How much of the machine this process may use: what shares in a policy are taken of.

use super::dir::CgroupDirectory;
use super::layout::{CgroupController, CgroupHierarchy, CgroupVersion};
use super::limits::{keyed, read};
use crate::page;
use crate::policy::MachineCapacity;

/// The machine as this process may use it: within the memory limits of its own control groups, and
/// on the CPUs it is allowed to run on.
pub fn machine(hierarchies: &[CgroupHierarchy]) -> MachineCapacity {
    let total = memory_total(&page::read("/proc/meminfo").unwrap_or_default());
    let limits = hierarchies.iter().filter_map(smallest_limit);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    MachineCapacity {
        memory_bytes: limits.chain(total).min().unwrap_or(1 << 30),
        cpu_millicores: u64::try_from(cores).unwrap_or(1) * 1_000,
    }
}

fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes = keyed(
        &format!("total {}", line.trim().strip_suffix(" kB")?),
        "total",
    )?;
    kibibytes.checked_mul(1024)
}

/// The smallest memory limit on the way from the mount point to this process.
fn smallest_limit(hierarchy: &CgroupHierarchy) -> Option<u64> {
    if hierarchy.version == CgroupVersion::V1
        && !hierarchy.controllers.contains(&CgroupController::Memory)
    {
        return None;
    }
    let mut dir = CgroupDirectory::open(&hierarchy.mount_point).ok()?;
    let limit = |dir: &CgroupDirectory| {
        read(dir, hierarchy.version, CgroupController::Memory)
            .ok()
            .flatten()
    };
    let mut smallest = limit(&dir);
    for name in &hierarchy.own {
        dir = dir.child(name).ok()?;
        smallest = smallest.into_iter().chain(limit(&dir)).min();
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_memory_and_a_cpu() {
        let machine = machine(&crate::cgroup::layout::of_this_process());
        assert!(machine.memory_bytes > 16 << 20);
        assert!(machine.cpu_millicores >= 1_000);
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(
            memory_total("MemTotal:       24682000 kB\nMemFree: 1 kB\n"),
            Some(24_682_000 * 1024)
        );
        assert_eq!(memory_total("nothing"), None);
    }
}
