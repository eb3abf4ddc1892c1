//! Reading back, from the kernel, what a process in the sandbox is under.

use lula_protocol::IsolationTier;
use lula_protocol::receipt::WorkspaceMode;
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::process::Resource;

use super::numbers::ProcessNumbers;
use crate::blueprint::SandboxBlueprint;
use crate::frames::{KernelPosture, SetupStage};
use crate::landlock::EnforcedLandlock;
use crate::page;
use crate::sys::lockdown;
use crate::zygote::{BuildStepContext, BuildStepFailure};

const NAMESPACES: [(&str, &str); 7] = [
    ("user", "user"),
    ("mount", "mnt"),
    ("pid", "pid"),
    ("net", "net"),
    ("ipc", "ipc"),
    ("uts", "uts"),
    ("cgroup", "cgroup"),
];

/// What the kernel says about this process, which refuses to go on where that is less than asked.
///
/// `interfaces` were listed when the network was made: no process inside can add one.
pub(super) fn own(
    blueprint: &SandboxBlueprint,
    enforced: Option<EnforcedLandlock>,
    interfaces: &[String],
    numbers: ProcessNumbers,
) -> Result<KernelPosture, BuildStepFailure> {
    let stage = SetupStage::ReadBack;
    let mut posture = lockdown::standing().during(stage, || "this process".to_owned())?;
    add_inherited(&mut posture, enforced);
    let links = rustix::fs::open(
        "/proc/self/ns",
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(std::io::Error::from)
    .during(stage, || "/proc/self/ns".to_owned())?;
    for (name, file) in NAMESPACES {
        let link = match rustix::fs::readlinkat(&links, file, Vec::new()) {
            // A kernel without them.
            Err(Errno::NOENT) => continue,
            link => link
                .map_err(std::io::Error::from)
                .during(stage, || format!("/proc/self/ns/{file}"))?,
        };
        let inode = link.to_str().ok().and_then(inode).unwrap_or(0);
        posture.namespaces.push((name.to_owned(), inode));
    }
    posture.root_device = rustix::fs::stat("/")
        .map_err(std::io::Error::from)
        .during(stage, || "/".to_owned())?
        .st_dev;
    posture.interfaces = interfaces.to_vec();
    posture.own_proc = numbers == ProcessNumbers::Own;
    posture.workspace =
        Some(workspace(blueprint).during(stage, || blueprint.workspace.path.clone())?);
    let on = blueprint.switches;
    let boundary = blueprint.tier != IsolationTier::Process;
    let checks = [
        (
            on.no_new_privileges && !posture.no_new_privileges,
            "no_new_privs is not set",
        ),
        (
            on.seccomp && posture.seccomp_mode != 2,
            "seccomp is not in force",
        ),
        (
            on.no_capabilities
                && blueprint.tier == IsolationTier::Namespace
                && posture.capabilities | posture.bounding != 0,
            "capabilities are left",
        ),
        (
            on.landlock && posture.landlock_abi == 0,
            "Landlock is not in force",
        ),
        (
            on.no_network
                && blueprint.tier == IsolationTier::Namespace
                && posture.interfaces != ["lo"],
            "the network has more than its loopback",
        ),
        (
            blueprint.tier == IsolationTier::Namespace
                && posture.workspace != Some(blueprint.mode()),
            "the workspace is not what was asked for",
        ),
        (
            on.own_proc && blueprint.tier == IsolationTier::Namespace && !posture.own_proc,
            "/proc shows other processes",
        ),
    ];
    for (missing, what) in checks {
        if boundary && missing {
            return Err(BuildStepFailure {
                stage,
                detail: what.to_owned(),
                errno: 0,
            });
        }
    }
    Ok(posture)
}

const OVERLAYFS: i64 = 0x794c_7630;

/// What writing to the workspace does, by what the kernel says about the mount there. Where the tree
/// is the host's own, only trying tells.
fn workspace(blueprint: &SandboxBlueprint) -> std::io::Result<WorkspaceMode> {
    let asked = &blueprint.workspace;
    if blueprint.tier != IsolationTier::Namespace {
        let refused = |error| matches!(error, Errno::ACCESS | Errno::ROFS | Errno::PERM);
        let written = || {
            let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::open(&*asked.path, flags, Mode::from_raw_mode(0o600))
        };
        return Ok(if !asked.writable && written().is_err_and(refused) {
            WorkspaceMode::ReadOnly
        } else {
            WorkspaceMode::Direct
        });
    }
    let mount = rustix::fs::statvfs(&*asked.path)?;
    if mount.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(WorkspaceMode::ReadOnly);
    }
    let is_overlay = rustix::fs::statfs(&*asked.path)?.f_type == OVERLAYFS;
    // A real tree may lie on an overlay too; then it is the one it was before.
    if is_overlay && rustix::fs::stat(&*asked.path)?.st_dev != asked.device {
        return Ok(WorkspaceMode::Overlay);
    }
    Ok(WorkspaceMode::Direct)
}

/// The number in `user:[4026531837]`.
fn inode(link: &str) -> Option<u64> {
    link.split_once('[')?.1.strip_suffix(']')?.parse().ok()
}

/// How many seccomp programs this process is under.
pub(super) fn filters() -> std::io::Result<u32> {
    Ok(parse(&page::read("/proc/self/status")?).seccomp_filters)
}

/// The posture of a process by its name in `/proc`.
pub(super) fn of_process(
    name: &str,
    enforced: Option<EnforcedLandlock>,
) -> std::io::Result<KernelPosture> {
    let status = page::read(format!("/proc/{name}/status"))?;
    let mut posture = parse(&status);
    add_inherited(&mut posture, enforced);
    Ok(posture)
}

fn add_inherited(posture: &mut KernelPosture, enforced: Option<EnforcedLandlock>) {
    // Resource limits are inherited and cannot be raised: those of this process are the command's.
    posture.open_files = rustix::process::getrlimit(Resource::Nofile)
        .maximum
        .unwrap_or(u64::MAX);
    posture.file_size = rustix::process::getrlimit(Resource::Fsize).maximum;
    if let Some(enforced) = enforced {
        posture.landlock_abi = enforced.abi;
        posture.landlock_rules = enforced.rules;
    }
}

fn parse(status: &str) -> KernelPosture {
    let mut posture = KernelPosture::default();
    let mut counted = false;
    for line in status.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key {
            "NoNewPrivs" => posture.no_new_privileges = value == "1",
            "Seccomp" => posture.seccomp_mode = value.parse().unwrap_or(0),
            "Seccomp_filters" => {
                posture.seccomp_filters = value.parse().unwrap_or(0);
                counted = true;
            }
            // A set that cannot be read counts as full: never claim what was not read.
            "CapBnd" => posture.bounding = u64::from_str_radix(value, 16).unwrap_or(u64::MAX),
            "CapInh" | "CapPrm" | "CapEff" | "CapAmb" => {
                posture.capabilities |= u64::from_str_radix(value, 16).unwrap_or(u64::MAX);
            }
            _ => {}
        }
    }
    // A kernel that does not count them still says whether there is one.
    if !counted {
        posture.seccomp_filters = u32::from(posture.seccomp_mode == 2);
    }
    posture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_page_says_what_it_says() {
        let posture = parse(
            "Name:\tcat\nCapInh:\t0000000000000000\nCapBnd:\t0000000000000008\n\
             NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n",
        );
        assert!(posture.no_new_privileges);
        assert_eq!(posture.seccomp_mode, 2);
        assert_eq!((posture.capabilities, posture.bounding), (0, 8));
    }

    #[test]
    fn what_cannot_be_read_is_not_claimed() {
        let posture = parse("CapEff:\tgarbage\nNoNewPrivs:\t\nSeccomp:\tx\n");
        assert!(!posture.no_new_privileges);
        assert_eq!(posture.seccomp_mode, 0);
        assert_eq!(posture.capabilities, u64::MAX);
    }

    #[test]
    fn namespace_numbers_are_taken_from_the_link() {
        assert_eq!(inode("user:[4026531837]"), Some(4_026_531_837));
        assert_eq!(inode("user:4026531837"), None);
    }
}
