//! Limits as the control files spell them.

use super::dir::CgroupDirectory;
use super::layout::{CgroupController, CgroupVersion};
use super::{CgroupError, CgroupLimits};

/// The length over which CPU time is granted, in microseconds.
const PERIOD_US: u64 = 100_000;
/// v1 reports "no limit" as the largest multiple of a page; nothing real comes near.
const V1_UNLIMITED: u64 = 1 << 62;

/// A limit of one controller: the name people know, what was asked, and how it is written.
pub(super) struct CgroupSetting {
    pub(super) name: &'static str,
    pub(super) asked: u64,
    pub(super) files: Vec<(&'static str, String)>,
}

/// How the limits of a controller are written, `None` where none is asked.
pub(super) fn setting(
    version: CgroupVersion,
    controller: CgroupController,
    limits: &CgroupLimits,
) -> Option<CgroupSetting> {
    let of = |name, asked: u64, files| CgroupSetting { name, asked, files };
    Some(match (controller, version) {
        (CgroupController::Memory, CgroupVersion::V2) => {
            let bytes = limits.memory_bytes?;
            of("memory", bytes, vec![("memory.max", bytes.to_string())])
        }
        (CgroupController::Memory, CgroupVersion::V1) => {
            let bytes = limits.memory_bytes?;
            of(
                "memory",
                bytes,
                vec![("memory.limit_in_bytes", bytes.to_string())],
            )
        }
        (CgroupController::Pids, _) => {
            let pids = limits.pids?;
            of("pids", pids, vec![("pids.max", pids.to_string())])
        }
        (CgroupController::Cpu, CgroupVersion::V2) => {
            let cpu = limits.cpu_millicores?;
            of(
                "cpu",
                cpu,
                vec![("cpu.max", format!("{} {PERIOD_US}", quota(cpu)))],
            )
        }
        (CgroupController::Cpu, CgroupVersion::V1) => {
            let cpu = limits.cpu_millicores?;
            let files = vec![
                ("cpu.cfs_period_us", PERIOD_US.to_string()),
                ("cpu.cfs_quota_us", quota(cpu).to_string()),
            ];
            of("cpu", cpu, files)
        }
        (CgroupController::CpuAccounting | CgroupController::Freezer, _) => return None,
    })
}

fn quota(millicores: u64) -> u64 {
    millicores.saturating_mul(PERIOD_US / 1_000)
}

/// Swap would let a tree grow past its memory: it is closed where the kernel can.
pub(super) fn close_swap(
    version: CgroupVersion,
    limits: &CgroupLimits,
) -> Option<(&'static str, String)> {
    let bytes = limits.memory_bytes?;
    Some(match version {
        CgroupVersion::V2 => ("memory.swap.max", "0".to_owned()),
        CgroupVersion::V1 => ("memory.memsw.limit_in_bytes", bytes.to_string()),
    })
}

/// The limit of a controller as the kernel reports it, in the units of [`Limits`].
pub(super) fn read(
    dir: &CgroupDirectory,
    version: CgroupVersion,
    controller: CgroupController,
) -> Result<Option<u64>, CgroupError> {
    Ok(match (controller, version) {
        (CgroupController::Memory, CgroupVersion::V2) => number(&dir.read_often("memory.max")?),
        (CgroupController::Memory, CgroupVersion::V1) => {
            number(&dir.read_often("memory.limit_in_bytes")?).filter(|bytes| *bytes < V1_UNLIMITED)
        }
        (CgroupController::Pids, _) => number(&dir.read_often("pids.max")?),
        (CgroupController::Cpu, CgroupVersion::V2) => cpu_max(&dir.read_often("cpu.max")?),
        (CgroupController::Cpu, CgroupVersion::V1) => {
            let quota = number(&dir.read_often("cpu.cfs_quota_us")?);
            let period = number(&dir.read_often("cpu.cfs_period_us")?);
            quota
                .zip(period)
                .and_then(|(quota, period)| share(quota, period))
        }
        (CgroupController::CpuAccounting | CgroupController::Freezer, _) => None,
    })
}

/// Whether the kernel's figure is the asked one. Memory is kept in whole pages, rounded down.
pub(super) fn agrees(controller: CgroupController, asked: u64, reported: Option<u64>) -> bool {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    match (controller, reported) {
        (CgroupController::Memory, Some(reported)) => reported <= asked && asked - reported < page,
        (_, reported) => reported == Some(asked),
    }
}

/// A number, or nothing for `max` and for v1's `-1`.
pub(super) fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn cpu_max(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    share(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

fn share(quota: u64, period: u64) -> Option<u64> {
    quota.checked_mul(1_000)?.checked_div(period)
}

/// The value of a key in a file of `key value` lines.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| number(line.strip_prefix(key)?.strip_prefix(' ')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_the_kernel_writes_them() {
        assert_eq!(number("512\n"), Some(512));
        assert_eq!(number("max\n"), None);
        assert_eq!(number("-1\n"), None);
        assert_eq!(cpu_max("50000 100000\n"), Some(500));
        assert_eq!(cpu_max("max 100000\n"), None);
        assert_eq!(cpu_max("1 0\n"), None);
        assert_eq!(keyed("low 0\noom 2\noom_kill 3\n", "oom_kill"), Some(3));
        assert_eq!(keyed("low 0\noom 2\n", "oom_kill"), None);
    }

    #[test]
    fn memory_agrees_up_to_a_page_and_nothing_else_does() {
        assert!(agrees(CgroupController::Memory, 10_000, Some(8192)));
        assert!(!agrees(CgroupController::Memory, 10_000, Some(12_288)));
        assert!(!agrees(CgroupController::Memory, 10_000, None));
        assert!(!agrees(CgroupController::Pids, 10, Some(9)));
    }

    #[test]
    fn a_fake_tree_with_v2_files_takes_and_returns_limits() {
        let tree = tempfile::tempdir().unwrap();
        for file in ["memory.max", "pids.max", "cpu.max"] {
            std::fs::write(tree.path().join(file), "").unwrap();
        }
        let dir = CgroupDirectory::open(tree.path().to_str().unwrap()).unwrap();
        let limits = CgroupLimits {
            memory_bytes: Some(8 << 20),
            cpu_millicores: Some(500),
            pids: Some(7),
        };
        for controller in [
            CgroupController::Memory,
            CgroupController::Pids,
            CgroupController::Cpu,
        ] {
            let setting = setting(CgroupVersion::V2, controller, &limits).unwrap();
            for (file, value) in &setting.files {
                dir.write(file, value).unwrap();
            }
            let reported = read(&dir, CgroupVersion::V2, controller).unwrap();
            assert!(
                agrees(controller, setting.asked, reported),
                "{}",
                setting.name
            );
        }
        assert_eq!(
            std::fs::read_to_string(tree.path().join("cpu.max")).unwrap(),
            "50000 100000"
        );
    }

    #[test]
    fn a_plain_directory_takes_no_limit() {
        let tree = tempfile::tempdir().unwrap();
        let dir = CgroupDirectory::open(tree.path().to_str().unwrap()).unwrap();
        assert!(!dir.is_control_group());
        assert!(dir.write("memory.max", "1").is_err());
        assert!(std::fs::read_dir(tree.path()).unwrap().next().is_none());
    }

    #[test]
    fn links_and_names_that_climb_are_refused() {
        let tree = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", tree.path().join("out")).unwrap();
        let dir = CgroupDirectory::open(tree.path().to_str().unwrap()).unwrap();
        for name in ["out", "..", ".", "", "a/b"] {
            assert!(dir.child(name).is_err(), "{name:?}");
        }
    }
}
