//! Who made the surroundings of this process, and with which line it would make others.

use std::path::Path;

/// What started this process, as far as that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    Docker,
    Podman,
    Kubernetes,
    GithubActions,
    Systemd,
    /// Another sandbox of ours.
    Lula,
    Gvisor,
    /// The machine itself, or something that left no sign.
    Machine,
}

/// What a keeper can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    /// A seccomp profile with the calls that the `namespace` tier needs.
    SystemCalls,
    /// A `/proc` without masks.
    OpenProc,
}

/// What signs are looked for in.
pub(super) struct Signs<'a> {
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(super) exists: &'a dyn Fn(&str) -> bool,
    pub(super) kernel: &'a str,
    pub(super) host_name: &'a str,
}

impl Keeper {
    /// The keeper of this process.
    pub(super) fn of_this_process() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::from_signs(&Signs {
            variable: &|name| std::env::var(name).ok(),
            exists: &|path| Path::new(path).exists(),
            kernel: &read("/proc/version"),
            host_name: read("/proc/sys/kernel/hostname").trim(),
        })
    }

    /// The outermost that says what to do comes first: a pod is made by an engine that leaves its own signs.
    pub(super) fn from_signs(signs: &Signs<'_>) -> Self {
        let set = |name: &str| (signs.variable)(name).is_some();
        let kept_by = |name: &str| (signs.variable)("container").is_some_and(|by| by == name);
        if signs.kernel.contains("gVisor") || signs.kernel.contains(GVISOR_BUILT) {
            Self::Gvisor
        } else if signs.host_name == "lula"
            && (signs.variable)("HOME").is_some_and(|home| is_ours(&home))
        {
            Self::Lula
        } else if set("KUBERNETES_SERVICE_HOST") || (signs.exists)("/var/run/secrets/kubernetes.io")
        {
            Self::Kubernetes
        } else if set("GITHUB_ACTIONS") {
            Self::GithubActions
        } else if (signs.exists)("/run/.containerenv") || kept_by("podman") {
            Self::Podman
        } else if (signs.exists)("/.dockerenv") || kept_by("docker") {
            Self::Docker
        } else if set("INVOCATION_ID") {
            Self::Systemd
        } else {
            Self::Machine
        }
    }

    /// A line to copy, which gives a process that setting.
    pub(super) const fn line(self, setting: Setting) -> &'static str {
        match (self, setting) {
            (Self::Docker, Setting::SystemCalls) => {
                "`docker run --security-opt seccomp=lula-namespace.json …` (deploy/seccomp)"
            }
            (Self::Docker, Setting::OpenProc) => {
                "`docker run --security-opt systempaths=unconfined …`"
            }
            (Self::Podman, Setting::SystemCalls) => {
                "`podman run --security-opt seccomp=lula-namespace.json …` (deploy/seccomp)"
            }
            (Self::Podman, Setting::OpenProc) => "`podman run --security-opt unmask=ALL …`",
            (Self::Kubernetes, Setting::SystemCalls) => {
                "`securityContext: {seccompProfile: {type: Localhost, localhostProfile: \
                 lula-namespace.json}}` (deploy/seccomp)"
            }
            (Self::Kubernetes, Setting::OpenProc) => {
                "`hostUsers: false` for the pod and `securityContext: {procMount: Unmasked}` for the \
                 container"
            }
            (Self::GithubActions, Setting::SystemCalls) => {
                "`container: {options: --security-opt seccomp=lula-namespace.json}` (deploy/seccomp)"
            }
            (Self::GithubActions, Setting::OpenProc) => {
                "`container: {options: --security-opt systempaths=unconfined}`"
            }
            (Self::Systemd, Setting::SystemCalls) => {
                "`RestrictNamespaces=no` and `SystemCallFilter=@system-service @mount sethostname \
                 setns unshare` in the unit"
            }
            (Self::Systemd, Setting::OpenProc) => {
                "`ProtectKernelTunables=no`, `ProtectKernelLogs=no` and `ProcSubset=all` in the unit"
            }
            (Self::Lula, Setting::SystemCalls) => {
                "none does inside a sandbox of Lula, whose Landlock rules forbid every mount; the tier \
                 `landlock` works there"
            }
            (Self::Gvisor, Setting::SystemCalls) => {
                "run it in another runtime: this one has no such calls"
            }
            (Self::Machine, Setting::SystemCalls) => {
                "allow the calls of deploy/seccomp/lula-namespace.json in the seccomp profile around it"
            }
            (Self::Lula | Self::Gvisor | Self::Machine, Setting::OpenProc) => {
                "run it with a /proc in which nothing is mounted over"
            }
        }
    }
}

/// When gVisor says, in every version, that its kernel was built.
const GVISOR_BUILT: &str = "#1 SMP Sun Jan 10 15:06:54 PST 2016";

/// The home of a sandbox's user.
fn is_ours(home: &str) -> bool {
    home == crate::mounts::HOME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeper(variables: &[(&str, &str)], files: &[&str]) -> Keeper {
        Keeper::from_signs(&Signs {
            variable: &|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            },
            exists: &|path| files.contains(&path),
            kernel: "Linux version 6.18",
            host_name: "worker-3",
        })
    }

    #[test]
    fn each_keeper_is_known_by_what_it_leaves() {
        let expected = |variable, file: &'static str, expected| {
            let found = keeper(&[(variable, "1")], &[file]);
            assert_eq!(found, expected, "{variable} {file}");
        };
        expected("", "", Keeper::Machine);
        expected("", "/.dockerenv", Keeper::Docker);
        expected("", "/run/.containerenv", Keeper::Podman);
        expected("INVOCATION_ID", "", Keeper::Systemd);
        expected("GITHUB_ACTIONS", "/.dockerenv", Keeper::GithubActions);
        expected(
            "KUBERNETES_SERVICE_HOST",
            "/run/.containerenv",
            Keeper::Kubernetes,
        );
        assert_eq!(keeper(&[("container", "podman")], &[]), Keeper::Podman);
    }

    #[test]
    fn every_engine_has_a_line_of_its_own_for_every_setting() {
        use Keeper::{Docker, GithubActions, Kubernetes, Podman, Systemd};
        let mut lines = std::collections::BTreeSet::new();
        for keeper in [Docker, Podman, Kubernetes, GithubActions, Systemd] {
            for setting in [Setting::SystemCalls, Setting::OpenProc] {
                assert!(keeper.line(setting).contains('`'));
                assert!(lines.insert(keeper.line(setting)), "{keeper:?} {setting:?}");
            }
        }
    }
}
