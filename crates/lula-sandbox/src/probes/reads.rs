//! Reading what was not granted.

use std::path::{Path, PathBuf};

use super::act::{HERE, at, call, list, path, read};
use super::probe::{
    AttackBodyResult, AttackExpectation, AttackFamily, AttackObservation, AttackProbe,
};
use super::scene::AttackScene;

/// A path that is not part of the sandbox: it does not exist in a private root, and is refused
/// where the root is shared.
const ABSENT: [Option<AttackExpectation>; 2] = [
    Some(AttackExpectation::Fails(&[libc::ENOENT])),
    Some(AttackExpectation::Fails(&[libc::EACCES])),
];

/// What belongs to a process of another user namespace is refused, also where it is shown.
const CLOSED: AttackExpectation = AttackExpectation::Fails(&[libc::EACCES, libc::EPERM]);

const fn probe(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Reads, name, attempts, body).by_tier(ABSENT[0], ABSENT[1])
}

fn of_victim(scene: &AttackScene, what: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{what}", scene.victim()))
}

/// The secret by a path that starts where the attacker stands.
fn by_climbing(from: &Path, scene: &AttackScene) -> PathBuf {
    let climb = "../".repeat(40);
    from.join(climb)
        .join(scene.secret().strip_prefix("/").unwrap_or(Path::new("")))
}

/// The number of the file behind a path, and what opens it again by that number.
fn handle(of: &Path) -> Result<(Vec<u32>, u64), AttackObservation> {
    let (name, mut mount) = (path(of), 0_u32);
    // struct file_handle: bytes, type, then up to 128 bytes.
    let mut handle = vec![0_u32; 34];
    handle[0] = 128;
    let (pointer, mount_pointer) = (handle.as_mut_ptr().addr(), (&raw mut mount).addr());
    call(
        "name_to_handle_at",
        &[HERE, at(&name), pointer as u64, mount_pointer as u64, 0],
    )?;
    Ok((handle, u64::from(mount)))
}

pub(super) const PROBES: &[AttackProbe] = &[
    probe(
        "secret_by_path",
        "read a credential of the user by its path",
        |s| read(s.secret()),
    ),
    probe(
        "secret_by_climbing",
        "read it by ../../.. from the working directory",
        |s| read(by_climbing(Path::new("."), s)),
    ),
    probe(
        "secret_by_proc_cwd",
        "read it through /proc/self/cwd (CVE-2024-21626)",
        |s| read(by_climbing(Path::new("/proc/self/cwd"), s)),
    ),
    probe(
        "secret_by_proc_root",
        "read it through /proc/self/root",
        |s| {
            read(
                Path::new("/proc/self/root")
                    .join(s.secret().strip_prefix("/").unwrap_or(Path::new(""))),
            )
        },
    ),
    probe(
        "secret_by_link",
        "read it through a symbolic link in the workspace",
        |s| {
            let link = s.workspace().join("link-to-secret");
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(s.secret(), &link)?;
            read(link)
        },
    ),
    probe(
        "secret_by_chdir",
        "make its directory the working directory",
        |s| {
            let parent = s.secret().parent().map(Path::to_owned).unwrap_or_default();
            std::env::set_current_dir(parent)?;
            Ok(String::new())
        },
    )
    .by_tier(ABSENT[0], None),
    probe(
        "secrets_directory",
        "list the directory of the credential",
        |s| list(s.secret().parent().unwrap_or(Path::new("/"))),
    ),
    probe("home_directory", "list the home directory of root", |_| {
        list("/root")
    })
    .privileged(),
    probe("shadow", "read the password hashes", |_| {
        read("/etc/shadow")
    })
    .privileged(),
    probe("logs", "list the system's logs", |_| list("/var/log")).not_everywhere(),
    probe(
        "victims_environment",
        "read the environment of a process outside",
        |s| read(of_victim(s, "environ")),
    )
    .where_proc_is_shared(Some(CLOSED)),
    probe("victims_root", "list the root of a process outside", |s| {
        list(of_victim(s, "root/"))
    })
    .where_proc_is_shared(Some(CLOSED)),
    probe(
        "victims_directory",
        "list the working directory of a process outside",
        |s| list(of_victim(s, "cwd/")),
    )
    .where_proc_is_shared(Some(CLOSED)),
    probe(
        "victims_descriptors",
        "list the descriptors of a process outside",
        |s| list(of_victim(s, "fd")),
    )
    .by_tier(ABSENT[0], None)
    .where_proc_is_shared(None),
    probe(
        "victims_memory",
        "open the memory of a process outside",
        |s| {
            std::fs::File::open(of_victim(s, "mem"))?;
            Ok(String::new())
        },
    )
    .privileged()
    .where_proc_is_shared(Some(CLOSED)),
    probe(
        "victims_maps",
        "read the memory map of a process outside",
        |s| read(of_victim(s, "maps")),
    )
    .where_proc_is_shared(Some(CLOSED)),
    probe(
        "inherited_descriptors",
        "find descriptors that leaked in",
        |_| Ok(descriptors()),
    )
    .controlled_by(|_| {
        let _leaked = std::fs::File::open("/")?;
        Ok(descriptors())
    })
    .outside(AttackExpectation::Yields("leaked"))
    .inside(AttackExpectation::Yields("0 1 2")),
    probe("file_handle", "name a file by number", |_| {
        handle(Path::new("/")).map(|_| String::new())
    })
    .inside(AttackExpectation::Fails(&[libc::EPERM])),
    probe(
        "open_by_handle",
        "open a file by number (the shocker escape)",
        |scene| {
            let (handle, _) = handle(&scene.secret()).unwrap_or_else(|_| (vec![8, 1, 2, 0], 0));
            let root = std::fs::File::open(scene.workspace())?;
            let descriptor = std::os::fd::AsRawFd::as_raw_fd(&root).unsigned_abs().into();
            let pointer = handle.as_ptr().addr() as u64;
            match call("open_by_handle_at", &[descriptor, pointer, 0]) {
                // The root may be another filesystem than the file's: the kernel got to look for it.
                Err(AttackObservation::Errno(libc::ESTALE)) => Ok(String::new()),
                other => other.map(|_| String::new()),
            }
        },
    )
    .inside(AttackExpectation::Fails(&[libc::EPERM]))
    .privileged(),
    probe("device", "open a device no command needs", |scene| {
        std::fs::File::open(scene.device())?;
        Ok(String::new())
    })
    .privileged(),
    probe(
        "kernel_log_call",
        "read the kernel's log by system call",
        |_| call("syslog", &[10]).map(|_| String::new()),
    )
    .inside(AttackExpectation::Fails(&[libc::EPERM]))
    .privileged(),
    probe(
        "kernel_log_device",
        "read the kernel's log by device",
        |_| {
            std::fs::File::open("/dev/kmsg")?;
            Ok(String::new())
        },
    )
    .privileged(),
    probe(
        "kernel_insides",
        "read the kernel's memory or symbols in /proc",
        |scene| {
            use std::io::Read;
            // Some of them are larger than memory.
            let mut first = [0; 1];
            let count = std::fs::File::open(scene.kernel_file())?.read(&mut first)?;
            Ok(["nothing", "something"][count].to_owned())
        },
    )
    .outside(AttackExpectation::Yields("something"))
    .by_tier(Some(AttackExpectation::Yields("nothing")), None)
    .privileged(),
    probe(
        "kernel_objects",
        "list the machine's devices in /sys",
        |_| list("/sys/devices"),
    )
    .not_everywhere(),
    probe("control_groups", "list the control groups", |_| {
        list("/sys/fs/cgroup")
    })
    .not_everywhere(),
    probe("boot_files", "list the boot directory", |_| list("/boot")).not_everywhere(),
];

fn descriptors() -> String {
    let open: Vec<_> = (0..1024_u64)
        .filter(|number| call("fcntl", &[*number, libc::F_GETFD.unsigned_abs().into()]).is_ok())
        .collect();
    let standard = open.iter().all(|number| *number < 3);
    if standard { "0 1 2" } else { "leaked" }.to_owned()
}
