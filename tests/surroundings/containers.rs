//! Containers as engines make them: their rules by hand, run by `runc` without an engine's store or daemon.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::stage::Stage;

/// What surrounds a process in a container.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // one for each rule that an engine has a switch for
pub(crate) struct ContainerRules {
    pub(crate) seccomp: ContainerSeccomp,
    /// Whether parts of `/proc` are hidden or read-only.
    pub(crate) masked_proc: bool,
    /// Who the process is.
    pub(crate) user: u32,
    /// Whether the container has a user namespace of its own, as a pod without the host's users.
    pub(crate) own_users: bool,
    pub(crate) read_only_root: bool,
    /// The variable by which its engine is known.
    pub(crate) variable: &'static str,
    /// Whether it keeps the capabilities that engines give to root.
    pub(crate) capabilities: bool,
}

/// The seccomp profile of a container.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerSeccomp {
    None,
    /// As Docker and containerd have it for a process without capabilities: nothing that makes namespaces
    /// or mounts, and no `clone3`.
    Docker,
    /// The one that is shipped with this project.
    Lula,
    /// The same without one call.
    LulaWithout(&'static str),
}

/// Podman's own profile, which its packages install. Docker's has the same calls but for those below.
const PODMAN_PROFILE: &str = "/usr/share/containers/seccomp.json";

/// What Docker's profile allows only with `CAP_SYS_ADMIN` or not at all, and Podman's to every process.
const NOT_IN_DOCKERS: [&str; 17] = [
    "add_key",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "keyctl",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "pivot_root",
    "request_key",
    "setns",
    "umount",
    "umount2",
    "unshare",
    "userfaultfd",
];

/// Engines' lists of what is hidden in `/proc`, and of what is read-only.
const MASKED: [&str; 9] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Namespace flags of `clone`, as Docker's profile masks them.
const NAMESPACE_FLAGS: u64 = 2_114_060_288;

/// A command that runs `lula` with these arguments in such a container.
pub(crate) fn command(
    stage: &Stage,
    rules: ContainerRules,
    runtime: &str,
    arguments: &[&str],
) -> Command {
    let bundle = stage.bundle();
    let config = config(stage, rules, arguments);
    std::fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let name = bundle.file_name().unwrap().to_str().unwrap().to_owned();
    let mut command = Command::new(runtime);
    command.arg("--root").arg(stage.path().join("runtime"));
    if runtime == "runsc" {
        // No control groups and no network of its own: the machine's are not touched.
        command.args(["--ignore-cgroups", "--network=none", "--platform=ptrace"]);
    }
    command.arg("run").arg("--bundle").arg(&bundle).arg(name);
    command
}

fn config(stage: &Stage, rules: ContainerRules, arguments: &[&str]) -> Value {
    let mut args = vec!["/usr/bin/lula"];
    args.extend(arguments);
    let capabilities: &[&str] = if rules.capabilities {
        &[
            "CAP_CHOWN",
            "CAP_DAC_OVERRIDE",
            "CAP_FOWNER",
            "CAP_SETGID",
            "CAP_SETUID",
        ]
    } else {
        &[]
    };
    let mut namespaces: Vec<Value> = ["pid", "ipc", "uts", "mount", "network", "cgroup"]
        .map(|kind| json!({ "type": kind }))
        .into();
    let mut linux = json!({
        "maskedPaths": if rules.masked_proc { &MASKED[..] } else { &[] },
        "readonlyPaths": if rules.masked_proc { &READ_ONLY[..] } else { &[] },
    });
    if rules.own_users {
        namespaces.push(json!({"type": "user"}));
        let map = json!([{"containerID": 0, "hostID": 100_000, "size": 65_536}]);
        linux["uidMappings"] = map.clone();
        linux["gidMappings"] = map;
    }
    linux["namespaces"] = namespaces.into();
    if let Some(profile) = profile(rules.seccomp) {
        linux["seccomp"] = profile;
    }
    let tmpfs = |at: &str, options: &[&str]| {
        let options: Vec<_> = ["nosuid"].iter().chain(options).collect();
        json!({"destination": at, "type": "tmpfs", "source": "tmpfs", "options": options})
    };
    json!({
        "ociVersion": "1.0.2",
        "hostname": "container",
        "root": {"path": stage.root_file_system(), "readonly": rules.read_only_root},
        "process": {
            "terminal": false,
            "user": {"uid": rules.user, "gid": rules.user},
            "args": args,
            "env": ["PATH=/usr/bin", "HOME=/tmp", rules.variable],
            "cwd": "/tmp",
            "noNewPrivileges": true,
            "capabilities": {
                "bounding": capabilities, "effective": capabilities, "permitted": capabilities,
            },
            // More than the process has now, only some machines let root give.
            "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 4096, "soft": 4096}],
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            tmpfs("/dev", &["strictatime", "mode=755", "size=65536k"]),
            {
                "destination": "/dev/pts", "type": "devpts", "source": "devpts",
                "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
            },
            tmpfs("/dev/shm", &["noexec", "mode=1777", "size=65536k"]),
            {
                "destination": "/sys", "type": "none", "source": "/sys",
                "options": ["rbind", "nosuid", "noexec", "nodev", "ro"],
            },
            tmpfs("/tmp", &["mode=1777"]),
        ],
        "linux": linux,
    })
}

fn profile(seccomp: ContainerSeccomp) -> Option<Value> {
    match seccomp {
        ContainerSeccomp::None => None,
        ContainerSeccomp::Docker => Some(docker()),
        ContainerSeccomp::Lula => Some(lula(None)),
        ContainerSeccomp::LulaWithout(call) => Some(lula(Some(call))),
    }
}

/// Docker's profile, made of Podman's.
fn docker() -> Value {
    let text = std::fs::read_to_string(PODMAN_PROFILE)
        .unwrap_or_else(|error| panic!("{PODMAN_PROFILE} is needed (package podman): {error}"));
    let podmans: Value = serde_json::from_str(&text).unwrap();
    let unconditional = podmans["syscalls"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| {
            rule["action"] == "SCMP_ACT_ALLOW"
                && rule["includes"]
                    .as_object()
                    .is_none_or(serde_json::Map::is_empty)
                && rule["excludes"]
                    .as_object()
                    .is_none_or(serde_json::Map::is_empty)
                && rule["args"].as_array().is_none_or(Vec::is_empty)
        });
    let names: Vec<&str> = unconditional
        .flat_map(|rule| rule["names"].as_array().unwrap())
        .filter_map(Value::as_str)
        .filter(|name| !NOT_IN_DOCKERS.contains(name) && !["clone", "clone3"].contains(name))
        .chain(["arch_prctl", "modify_ldt", "socket"])
        .collect();
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
        "syscalls": [
            {"names": names, "action": "SCMP_ACT_ALLOW"},
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
            {
                "names": ["clone"], "action": "SCMP_ACT_ALLOW",
                "args": [{"index": 0, "value": NAMESPACE_FLAGS, "op": "SCMP_CMP_MASKED_EQ"}],
            },
            {
                "names": ["personality"], "action": "SCMP_ACT_ALLOW",
                "args": [{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}],
            },
        ],
    })
}

/// The profile that this project ships, without one of its calls where asked.
fn lula(without: Option<&str>) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(super::DEPLOY)
        .join("seccomp/lula-namespace.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut profile: Value = serde_json::from_str(&text).unwrap();
    if let Some(call) = without {
        let rules = profile["syscalls"].as_array_mut().unwrap();
        let mut removed = 0;
        for names in rules
            .iter_mut()
            .filter_map(|rule| rule["names"].as_array_mut())
        {
            let before = names.len();
            names.retain(|name| name != call);
            removed += before - names.len();
        }
        assert_eq!(removed, 1, "{call} is not in the profile");
        // As engines answer them: the C library starts nothing where `clone3` is refused by EPERM.
        let errno = if call == "clone3" { 38 } else { 1 };
        rules.push(json!({"names": [call], "action": "SCMP_ACT_ERRNO", "errnoRet": errno}));
    }
    profile
}
