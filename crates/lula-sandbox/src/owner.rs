//! Whose something is: control groups and private directories are named after the process that made
//! them, so that a later one can tell that it is dead.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A process that cannot be mistaken for a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnerProcess {
    pid: u32,
    /// Start time in clock ticks since boot.
    started: u64,
    /// Inode of its pid namespace: numbers mean nothing across namespaces.
    namespace: u64,
    /// Counts within the process.
    instance: u32,
}

static INSTANCES: AtomicU32 = AtomicU32::new(0);

impl OwnerProcess {
    /// This process, in a new instance.
    pub(crate) fn this() -> Option<Self> {
        // Neither changes while this process lives.
        static BIRTH: OnceLock<Option<(u64, u64)>> = OnceLock::new();
        let pid = std::process::id();
        let birth = BIRTH.get_or_init(|| Some((started(pid)?, pid_namespace()?)));
        let (started, namespace) = (*birth)?;
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
        Some(Self {
            pid,
            started,
            namespace,
            instance,
        })
    }

    /// The owner a directory is named after.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix("runner-")?.split('-');
        let owner = Self {
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            namespace: parts.next()?.parse().ok()?,
            instance: parts.next()?.parse().ok()?,
        };
        (owner.to_string() == name).then_some(owner)
    }

    /// Whether it is certain that the owner is gone: same pid namespace, and no process of that
    /// number that started at that time.
    pub(crate) fn is_dead(self) -> bool {
        pid_namespace() == Some(self.namespace)
            && std::path::Path::new("/proc/self/stat").exists()
            && started(self.pid) != Some(self.started)
    }
}

impl fmt::Display for OwnerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid,
            started,
            namespace,
            instance,
        } = self;
        write!(f, "runner-{pid}-{started}-{namespace}-{instance}")
    }
}

fn started(pid: u32) -> Option<u64> {
    start_time(&crate::page::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Field 22 of `/proc/PID/stat`. The second field may hold anything, so count from its end.
fn start_time(stat: &str) -> Option<u64> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)?
        .parse()
        .ok()
}

fn pid_namespace() -> Option<u64> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?
        .strip_prefix("pid:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_name_reads_back() {
        let this = OwnerProcess::this().unwrap();
        assert_eq!(OwnerProcess::from_name(&this.to_string()), Some(this));
        assert!(!this.is_dead());
    }

    #[test]
    fn a_reused_number_is_not_the_old_process() {
        let this = OwnerProcess::this().unwrap();
        assert!(
            OwnerProcess {
                started: this.started + 1,
                ..this
            }
            .is_dead()
        );
    }

    #[test]
    fn another_pid_namespace_is_never_judged() {
        let this = OwnerProcess::this().unwrap();
        assert!(
            !OwnerProcess {
                namespace: 1,
                started: 1,
                ..this
            }
            .is_dead()
        );
    }

    #[test]
    fn a_process_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(start_time(stat), Some(4242));
        for wrong in [
            "runner-",
            "runner-1-2-3",
            "runner-01-2-3-4",
            "runner-1-2-3-4-5",
            "other",
        ] {
            assert_eq!(OwnerProcess::from_name(wrong), None, "{wrong}");
        }
    }
}
