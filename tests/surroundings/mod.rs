//! The surroundings in which the program has to work: containers, pods, other sandboxes, poor accounts.
//!
//! Shared by the end-to-end tests, which run the quick ones, and by `cargo xtask surroundings`, which
//! attacks every tier in every one and writes docs/surroundings.md. All of them are real: nothing stands for
//! a kernel, an engine or a profile. They are set up as root, as engines are.

mod containers;
mod stage;

use std::os::unix::process::CommandExt;
use std::process::Command;

use containers::{ContainerRules, ContainerSeccomp};
pub(crate) use stage::Stage;

/// Where the shipped profiles are, from the manifest of the crate that includes this.
pub(crate) const DEPLOY: &str = super::DEPLOY_FROM_HERE;

/// A user that owns nothing, and has no name.
const NOBODY_KNOWN: u32 = 54_321;
/// A user that is in every list.
const NOBODY: u32 = 65_534;
/// Who containers run as that name no user.
const CONTAINER_USER: u32 = 10_001;

/// Where the program is run.
pub(crate) struct Surrounding {
    pub(crate) name: &'static str,
    /// What it is like, for people.
    pub(crate) what: &'static str,
    /// Programs that make it.
    pub(crate) needs: &'static [&'static str],
    enter: fn(&Stage, &[&str]) -> Command,
}

impl Surrounding {
    /// The one of that name.
    pub(crate) fn named(name: &str) -> &'static Self {
        ALL.iter().find(|one| one.name == name).unwrap()
    }

    /// A command that runs `lula` with these arguments in it.
    pub(crate) fn command(&self, stage: &Stage, arguments: &[&str]) -> Command {
        let mut command = (self.enter)(stage, arguments);
        command
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(std::process::Stdio::null());
        command
    }
}

/// A pod whose process is nobody in particular and may do nothing in particular.
const POD: ContainerRules = ContainerRules {
    seccomp: ContainerSeccomp::Docker,
    masked_proc: true,
    user: CONTAINER_USER,
    own_users: false,
    read_only_root: true,
    variable: "KUBERNETES_SERVICE_HOST=10.0.0.1",
    capabilities: false,
};

/// The same as Docker starts it.
const DOCKER: ContainerRules = ContainerRules {
    read_only_root: false,
    variable: "container=docker",
    ..POD
};

pub(crate) const ALL: &[Surrounding] = &[
    Surrounding {
        name: "bare-root",
        what: "the machine itself, as root",
        needs: &[],
        enter: |stage, arguments| bare(stage, &[], arguments),
    },
    Surrounding {
        name: "bare-user",
        what: "the machine itself, as an ordinary user",
        needs: &["setpriv"],
        enter: |stage, arguments| bare(stage, &as_user(NOBODY), arguments),
    },
    Surrounding {
        name: "unknown-user",
        what: "a user without an entry in the list of users, and without a home",
        needs: &["setpriv"],
        enter: |stage, arguments| {
            let mut command = bare(stage, &as_user(NOBODY_KNOWN), arguments);
            command.env_remove("HOME");
            command
        },
    },
    Surrounding {
        name: "root-without-capabilities",
        what: "root that has given up every capability",
        needs: &["setpriv"],
        enter: |stage, arguments| {
            let without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"].map(str::to_owned);
            bare(stage, &without, arguments)
        },
    },
    Surrounding {
        name: "unshare-root",
        what: "root of a user namespace with one user (`unshare -Ur`)",
        needs: &["setpriv", "unshare"],
        enter: |stage, arguments| {
            let mut enter = as_user(NOBODY);
            enter.extend(["unshare", "-Ur"].map(str::to_owned));
            bare(stage, &enter, arguments)
        },
    },
    Surrounding {
        name: "read-only-root",
        what: "an ordinary user who can write below /tmp only",
        needs: &["setpriv", "unshare"],
        enter: |stage, arguments| {
            scene(
                stage,
                "mount -t tmpfs -o mode=1777 none /tmp; mount -o remount,bind,ro /",
                arguments,
            )
        },
    },
    Surrounding {
        name: "noexec-tmp",
        what: "an ordinary user whose temporary directory runs no programs",
        needs: &["setpriv", "unshare"],
        enter: |stage, arguments| {
            scene(
                stage,
                "mount -t tmpfs -o mode=1777,noexec,nosuid,nodev none /tmp",
                arguments,
            )
        },
    },
    Surrounding {
        name: "bwrap",
        what: "bubblewrap, with namespaces of every kind",
        needs: &["setpriv", "bwrap"],
        enter: |stage, arguments| {
            let mut enter = as_user(NOBODY);
            enter.extend(
                [
                    "bwrap",
                    "--ro-bind",
                    "/",
                    "/",
                    "--dev",
                    "/dev",
                    "--proc",
                    "/proc",
                    "--tmpfs",
                    "/tmp",
                    "--unshare-all",
                    "--die-with-parent",
                    "--",
                ]
                .map(str::to_owned),
            );
            bare(stage, &enter, arguments)
        },
    },
    Surrounding {
        name: "docker",
        what: "Docker's default: seccomp profile, masked /proc, no capability; an image with nothing but \
               the program",
        needs: &["runc"],
        enter: |stage, arguments| containers::command(stage, DOCKER, "runc", arguments),
    },
    Surrounding {
        name: "docker-root",
        what: "the same, as root with the capabilities to manage files and users",
        needs: &["runc"],
        enter: |stage, arguments| {
            let rules = ContainerRules {
                user: 0,
                capabilities: true,
                ..DOCKER
            };
            containers::command(stage, rules, "runc", arguments)
        },
    },
    Surrounding {
        name: "docker-unmasked",
        what: "Docker's default with `--security-opt systempaths=unconfined`",
        needs: &["runc"],
        enter: |stage, arguments| {
            let rules = ContainerRules {
                masked_proc: false,
                ..DOCKER
            };
            containers::command(stage, rules, "runc", arguments)
        },
    },
    Surrounding {
        name: "pod-restricted",
        what: "a pod of the level `restricted`: RuntimeDefault, no capability, read-only root",
        needs: &["runc"],
        enter: |stage, arguments| containers::command(stage, POD, "runc", arguments),
    },
    Surrounding {
        name: "pod-restricted-profile",
        what: "the same with the shipped profile as its Localhost profile",
        needs: &["runc"],
        enter: |stage, arguments| {
            let rules = ContainerRules {
                seccomp: ContainerSeccomp::Lula,
                ..POD
            };
            containers::command(stage, rules, "runc", arguments)
        },
    },
    Surrounding {
        name: "pod-baseline",
        what: "a pod of the level `baseline`: the shipped profile, `hostUsers: false`, `procMount: Unmasked`",
        needs: &["runc"],
        enter: |stage, arguments| {
            let rules = ContainerRules {
                seccomp: ContainerSeccomp::Lula,
                masked_proc: false,
                own_users: true,
                ..POD
            };
            containers::command(stage, rules, "runc", arguments)
        },
    },
    Surrounding {
        name: "unconfined",
        what: "a container without a seccomp profile, with a masked /proc",
        needs: &["runc"],
        enter: |stage, arguments| {
            let rules = ContainerRules {
                seccomp: ContainerSeccomp::None,
                ..DOCKER
            };
            containers::command(stage, rules, "runc", arguments)
        },
    },
    Surrounding {
        name: "podman",
        what: "Podman's default",
        needs: &["podman", "runc"],
        enter: |stage, arguments| podman(stage, 0, &["--user=10001"], arguments),
    },
    Surrounding {
        name: "podman-rootless",
        what: "Podman's default, started by an ordinary user",
        needs: &["podman", "runc", "setpriv"],
        enter: |stage, arguments| podman(stage, NOBODY_KNOWN, &[], arguments),
    },
    Surrounding {
        name: "gvisor",
        what: "gVisor (`runsc`)",
        needs: &["runsc"],
        enter: |stage, arguments| {
            let rules = ContainerRules {
                seccomp: ContainerSeccomp::None,
                masked_proc: false,
                ..POD
            };
            containers::command(stage, rules, "runsc", arguments)
        },
    },
    Surrounding {
        name: "lula",
        what: "a sandbox of this program",
        needs: &[],
        enter: nested,
    },
];

/// The shipped profile without one of its calls, as a test of each.
pub(crate) fn pod_without(stage: &Stage, call: &'static str, arguments: &[&str]) -> Command {
    let rules = ContainerRules {
        seccomp: ContainerSeccomp::LulaWithout(call),
        ..POD
    };
    containers::command(stage, rules, "runc", arguments)
}

fn as_user(user: u32) -> Vec<String> {
    let id = |what: &str| format!("--{what}={user}");
    vec![
        "setpriv".to_owned(),
        id("reuid"),
        id("regid"),
        "--clear-groups".to_owned(),
    ]
}

/// The program on the machine itself, started by another one where asked.
fn bare(stage: &Stage, enter: &[String], arguments: &[&str]) -> Command {
    let lula = stage.lula();
    let mut words = enter.iter();
    let mut command = match words.next() {
        Some(first) => {
            let mut command = Command::new(first);
            command.args(words).arg(lula);
            command
        }
        None => Command::new(lula),
    };
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/tmp")
        .current_dir("/tmp");
    command
}

/// The program as an ordinary user, in mounts of its own that a shell line sets.
fn scene(stage: &Stage, line: &str, arguments: &[&str]) -> Command {
    let line = format!("set -e; {line}; cd /tmp; exec \"$@\"");
    let mut enter = ["unshare", "--mount", "sh", "-c", &line, "sh"]
        .map(str::to_owned)
        .to_vec();
    enter.extend(as_user(NOBODY));
    bare(stage, &enter, arguments)
}

fn podman(stage: &Stage, user: u32, more: &[&str], arguments: &[&str]) -> Command {
    let home = stage.home_of(user);
    let mut command = Command::new("podman");
    let place = |name: &str| home.join(name).display().to_string();
    command
        .args([
            "--runtime=runc",
            "--cgroup-manager=cgroupfs",
            "--events-backend=none",
        ])
        .args([
            "--root",
            &place("store"),
            "--runroot",
            &place("run"),
            "--tmpdir",
            &place("tmp"),
        ])
        .args(["--storage-driver=vfs", "run", "--rm", "--network=none"])
        // More than the process has now, only some machines let root give.
        .args(["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"])
        .args([
            "--read-only",
            "--tmpfs=/tmp:rw,mode=1777",
            "--env=HOME=/tmp",
            "--workdir=/tmp",
        ])
        // What runs an image has that from Podman itself.
        .arg("--env=container=podman")
        .args(more)
        .arg("--rootfs")
        .arg(stage.root_file_system())
        .arg("/usr/bin/lula")
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/usr/sbin:/bin:/sbin")
        .env("HOME", &home)
        .current_dir(&home);
    if user != 0 {
        command.uid(user).gid(user);
    }
    command
}

fn nested(stage: &Stage, arguments: &[&str]) -> Command {
    let home = stage.bundle();
    let file = home.join("policy.toml");
    let lula = stage.lula().display().to_string();
    std::fs::write(&file, format!("[paths]\nread = [{lula:?}]\n")).unwrap();
    let file = file.display().to_string();
    let work = home.join("work");
    std::fs::create_dir(&work).unwrap();
    let mut outer = vec!["exec", "--write=direct", "--policy", &file, "--", &lula];
    outer.extend(arguments);
    let mut command = bare(stage, &[], &outer);
    command.env("HOME", &home).current_dir(work);
    command
}
