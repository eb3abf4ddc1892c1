//! What a person can do about a step of building that failed: the one setting that is known to cause it.

use std::path::Path;

use super::keeper::{Keeper, Setting};
use crate::frames::SetupStage;
use crate::sys::lockdown;

/// What stands around this process.
struct Around<'a> {
    /// Reads a setting of the kernel.
    setting: &'a dyn Fn(&str) -> Option<String>,
    keeper: Keeper,
    /// Whether a seccomp profile does.
    filtered: bool,
    /// Whether this process is called root.
    is_root: bool,
}

const EPERM: u32 = 1;
const ENOSPC: u32 = 28;
const ENOSYS: u32 = 38;

/// It is a kernel of its own, and not one that sandboxes can be built on.
const GVISOR: &str = "gVisor has neither Landlock nor the calls that mounts are made with: it is the \
                      boundary itself, and inside it only the tier `process` works, which has to be \
                      named (`lula exec --tier process`); or use another runtime";

/// What a person can do about a failed step, from the settings that are known to cause it.
pub(crate) fn remedy(stage: SetupStage, errno: u32) -> Option<String> {
    let setting = |path: &str| std::fs::read_to_string(Path::new("/proc/sys").join(path)).ok();
    let around = Around {
        setting: &setting,
        keeper: Keeper::of_this_process(),
        filtered: lockdown::is_filtered(),
        is_root: rustix::process::geteuid().is_root(),
    };
    around.remedy(stage, errno)
}

impl Around<'_> {
    fn remedy(&self, stage: SetupStage, errno: u32) -> Option<String> {
        use SetupStage as Stage;
        if self.keeper == Keeper::Gvisor {
            return Some(GVISOR.to_owned());
        }
        match stage {
            Stage::UserNamespace | Stage::MountNamespace | Stage::Identity => {
                self.namespaces(errno).or_else(|| self.calls(errno))
            }
            Stage::Proc if errno == EPERM => Some(format!(
                "the /proc of this container is masked: {}",
                self.keeper.line(Setting::OpenProc)
            )),
            Stage::Landlock => Some(
                "Landlock is off: boot with `landlock` in the kernel's lsm= list (Linux 5.13 or later)"
                    .to_owned(),
            ),
            Stage::Network if errno == ENOSPC => {
                Some("raise `sysctl user.max_net_namespaces`".to_owned())
            }
            Stage::Root
            | Stage::Clone
            | Stage::Mounts
            | Stage::Network
            | Stage::Workspace
            | Stage::Cgroup => self.calls(errno),
            _ => None,
        }
    }

    /// What keeps user namespaces from a process that makes the right calls.
    fn namespaces(&self, errno: u32) -> Option<String> {
        let is =
            |path: &str, value: &str| (self.setting)(path).is_some_and(|text| text.trim() == value);
        if is("kernel/apparmor_restrict_unprivileged_userns", "1") && errno != ENOSPC {
            return Some(
                "AppArmor forbids user namespaces to this program: install deploy/apparmor/lula, or \
                 `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
                    .to_owned(),
            );
        }
        if is("kernel/unprivileged_userns_clone", "0") {
            return Some("`sysctl kernel.unprivileged_userns_clone=1`".to_owned());
        }
        if is("user/max_user_namespaces", "0") || errno == ENOSPC {
            return Some("raise `sysctl user.max_user_namespaces`".to_owned());
        }
        None
    }

    /// What keeps calls from a process that the kernel would allow them to.
    fn calls(&self, errno: u32) -> Option<String> {
        match errno {
            EPERM | ENOSYS if self.filtered => Some(format!(
                "the seccomp profile around it keeps back calls that this tier needs: {}",
                self.keeper.line(Setting::SystemCalls)
            )),
            EPERM if self.is_root => Some(
                "the kernel takes no id map from a root that lacks CAP_SETFCAP: run it as an ordinary \
                 user (`--user 1000`), or with that capability (`--cap-add SETFCAP`)"
                    .to_owned(),
            ),
            EPERM => Some(
                "a security module or a changed root forbids user namespaces: run it outside, or as a \
                 user that may make them"
                    .to_owned(),
            ),
            ENOSYS => Some(
                "the kernel is too old: sandboxes need Linux 5.13 or later, with Landlock".to_owned(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(keeper: Keeper, filtered: bool) -> Around<'static> {
        Around {
            setting: &|_| None,
            keeper,
            filtered,
            is_root: false,
        }
    }

    #[test]
    fn the_exact_knob_is_named() {
        let cases: [(&str, &str, u32, &str); 4] = [
            (
                "kernel/apparmor_restrict_unprivileged_userns",
                "1",
                13,
                "apparmor_restrict",
            ),
            (
                "kernel/unprivileged_userns_clone",
                "0",
                1,
                "unprivileged_userns_clone=1",
            ),
            ("user/max_user_namespaces", "0", 28, "max_user_namespaces"),
            ("nothing", "", 1, "security module"),
        ];
        for (path, value, errno, expected) in cases {
            let setting = |asked: &str| (asked == path).then(|| format!("{value}\n"));
            let around = Around {
                setting: &setting,
                ..around(Keeper::Machine, false)
            };
            let remedy = around.remedy(SetupStage::UserNamespace, errno).unwrap();
            assert!(remedy.contains(expected), "{remedy}");
        }
    }

    #[test]
    fn a_masked_proc_is_recognised_by_the_step_that_failed() {
        let docker = around(Keeper::Docker, true);
        let remedy = docker.remedy(SetupStage::Proc, EPERM).unwrap();
        assert!(
            remedy.contains("--security-opt systempaths=unconfined"),
            "{remedy}"
        );
        assert_eq!(docker.remedy(SetupStage::Proc, 12), None);
    }

    #[test]
    fn a_seccomp_profile_is_blamed_only_where_there_is_one() {
        for stage in [
            SetupStage::UserNamespace,
            SetupStage::Root,
            SetupStage::Mounts,
        ] {
            for errno in [EPERM, ENOSYS] {
                let remedy = around(Keeper::Kubernetes, true)
                    .remedy(stage, errno)
                    .unwrap();
                assert!(remedy.contains("localhostProfile"), "{remedy}");
                let other = around(Keeper::Machine, false).remedy(stage, errno).unwrap();
                assert!(!other.contains("seccomp"), "{other}");
            }
        }
    }
}
