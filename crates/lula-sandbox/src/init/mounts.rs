//! What each sandbox mounts for itself inside its copy of the template.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};

use super::{InitSite, OuterIdentity};
use crate::blueprint::{BindMount, BlueprintOverlay, SandboxBlueprint};
use crate::frames::{SetupStage, UnavailableProtection};
use crate::mounts::{HOME, SCRATCH};
use crate::sys::mount::{self, MountRestrictions};
use crate::sys::process;
use crate::tiers::OWN_PROC;
use crate::zygote::{BuildStepContext, BuildStepFailure};

/// Directories of `/proc` that tell about the machine.
const MASKED_DIRECTORIES: [&CStr; 6] = [
    c"/proc/acpi",
    c"/proc/asound",
    c"/proc/bus",
    c"/proc/fs",
    c"/proc/irq",
    c"/proc/scsi",
];

/// Files of `/proc` that tell about the kernel.
const MASKED_FILES: [&CStr; 2] = [c"/proc/kallsyms", c"/proc/keys"];

/// Files of `/proc` that only the machine's root may touch. They matter where a sandbox has to run as
/// that user, for want of id maps.
const MASKED_FROM_ROOT: [&CStr; 6] = [
    c"/proc/kcore",
    c"/proc/kmsg",
    c"/proc/latency_stats",
    c"/proc/sched_debug",
    c"/proc/sysrq-trigger",
    c"/proc/timer_list",
];

/// An empty read-only directory of the template.
const EMPTY: &CStr = c"/var/empty";

const CLOSED: MountRestrictions = MountRestrictions::SETUID.and(MountRestrictions::DEVICES);

pub(super) fn build(
    blueprint: &SandboxBlueprint,
    site: &mut InitSite,
) -> Result<(), BuildStepFailure> {
    // Modes are meant as they are written; the commands get an ordinary mask.
    rustix::process::umask(Mode::empty());
    proc(blueprint, site).during(SetupStage::Proc, || "/proc".to_owned())?;
    scratch(blueprint, site).during(SetupStage::Mounts, || "private directories".to_owned())?;
    if blueprint.switches.proc_masks {
        mask_proc(site).during(SetupStage::Proc, || "masks".to_owned())?;
    }
    terminals(site).during(SetupStage::Mounts, || "/dev/pts".to_owned())?;
    private(blueprint, site)?;
    let workspace = &blueprint.workspace.path;
    // Parents first, wherever the workspace stands among the rest.
    let (before, after): (Vec<_>, Vec<_>) = blueprint
        .placed
        .iter()
        .map(|placed| &placed.bind)
        .zip(&site.placed)
        .partition(|(bind, _)| bind.target <= *workspace);
    for (bind, tree) in before {
        place(bind, tree, site).during(SetupStage::Mounts, || bind.target.clone())?;
    }
    if let Some(overlay) = &blueprint.workspace.overlay {
        lay_workspace(blueprint, overlay, site)
            .during(SetupStage::Workspace, || workspace.clone())?;
    }
    for (bind, tree) in after {
        place(bind, tree, site).during(SetupStage::Mounts, || bind.target.clone())?;
    }
    caches(blueprint, site)?;
    for path in &blueprint.masks {
        mask(path).during(SetupStage::Mounts, || format!("mask over {path}"))?;
    }
    cover_run().during(SetupStage::Mounts, || "/run".to_owned())
}

/// The private filesystem was put together at `/run`; an empty directory goes over it.
fn cover_run() -> io::Result<()> {
    mount::bind(EMPTY, c"/run")
}

fn root() -> rustix::fd::BorrowedFd<'static> {
    rustix::fs::CWD
}

fn proc(blueprint: &SandboxBlueprint, site: &mut InitSite) -> io::Result<()> {
    // Over the template's view, where there is one: it had to show for this one to be allowed. No process
    // inside can unmount, and unmounting here would cost a grace period of the kernel.
    match mount::new_filesystem("proc", &[], CLOSED.and(MountRestrictions::EXECUTION)) {
        Ok(fresh) => mount::attach(&fresh, mount::hold(root(), Path::new("/proc"))?),
        // Part of the one around this sandbox is masked, and a new one would show it. The template's
        // view stays: read-only, and what of other processes needs permission stays closed, because they
        // are in another user namespace.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) && !blueprint.switches.own_proc => {
            site.held_back.push(UnavailableProtection {
                asked: OWN_PROC.to_owned(),
                reason:
                    "the /proc around it is masked, so it is shown as it is: numbers, names and \
                         command lines of processes outside can be read"
                        .to_owned(),
            });
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn mask_proc(site: &InitSite) -> io::Result<()> {
    // An unprivileged engine cannot be root outside, whatever it is called in its own namespace.
    let runs_as_root = matches!(site.identity, Some(OuterIdentity::Taken { uid: 0, .. }));
    let from_root = MASKED_FROM_ROOT.iter().filter(|_| runs_as_root);
    let files = MASKED_FILES.iter().chain(from_root);
    let binds = MASKED_DIRECTORIES
        .iter()
        .map(|path| (EMPTY, *path))
        .chain(files.map(|path| (c"/dev/null", *path)));
    for (over, path) in binds {
        // By name: /proc is the kernel's own and has no links here.
        match mount::bind(over, path) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
            other => other?,
        }
    }
    if runs_as_root {
        mount::bind(c"/proc/sys", c"/proc/sys")?;
        mount::make_read_only(c"/proc/sys")?;
    }
    Ok(())
}

/// Hides a path behind emptiness. A path that is not there needs no hiding.
fn mask(path: &str) -> io::Result<()> {
    let held = match mount::hold(root(), Path::new(path)) {
        Ok(held) => held,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(()),
        Err(error) => return Err(error),
    };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode);
    let empty = if kind == FileType::Directory {
        "/var/empty"
    } else {
        "/dev/null"
    };
    let tree = mount::clone_tree(root(), Path::new(empty))?;
    mount::attach(&tree, held)
}

/// One private filesystem for every private directory, so that one size limits them together.
fn scratch(blueprint: &SandboxBlueprint, site: &InitSite) -> io::Result<()> {
    let most = blueprint.scratch_bytes.to_string();
    let inodes = (blueprint.scratch_bytes / 4096)
        .clamp(1024, 1 << 20)
        .to_string();
    let options = [("mode", "0755"), ("size", &*most), ("nr_inodes", &*inodes)];
    let scratch = mount::new_filesystem("tmpfs", &options, CLOSED)?;
    mount::attach(&scratch, mount::hold(root(), Path::new("/run"))?)?;
    for (name, target) in SCRATCH {
        let mode = if *target == HOME { 0o700 } else { 0o1777 };
        rustix::fs::mkdirat(&scratch, *name, Mode::from_raw_mode(mode))?;
        if *target == HOME {
            own(&scratch, name, site)?;
        }
        let tree = mount::clone_tree(root(), Path::new(&format!("/run/{name}")))?;
        mount::attach(&tree, mount::hold(root(), Path::new(target))?)?;
    }
    Ok(())
}

fn terminals(site: &InitSite) -> io::Result<()> {
    // The group of a terminal must be one this user namespace will know; its own user's does.
    let gid = match site.identity {
        Some(OuterIdentity::Taken { gid, .. }) => gid,
        _ => 0,
    };
    let gid = gid.to_string();
    let options = [
        ("newinstance", ""),
        ("ptmxmode", "0666"),
        ("mode", "0620"),
        ("gid", &*gid),
    ];
    let terminals = mount::new_filesystem(
        "devpts",
        &options,
        MountRestrictions::SETUID.and(MountRestrictions::EXECUTION),
    )?;
    mount::attach(&terminals, mount::hold(root(), Path::new("/dev/pts"))?)
}

fn place(bind: &BindMount, tree: impl AsFd, site: &InitSite) -> io::Result<()> {
    let target = Path::new(&bind.target);
    if mount::hold(root(), target).is_err() {
        make_place(bind, site)?;
    }
    mount::attach(tree, mount::hold(root(), target)?)
}

/// Makes a place to mount on inside a private directory, owned like everything there. Elsewhere
/// the template already has one.
fn make_place(bind: &BindMount, site: &InitSite) -> io::Result<()> {
    let mut so_far = String::new();
    let parts: Vec<&str> = bind
        .target
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for (index, part) in parts.iter().enumerate() {
        so_far.push('/');
        so_far.push_str(part);
        let made = if bind.file && index + 1 == parts.len() {
            rustix::fs::open(
                &*so_far,
                OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC,
                Mode::from_raw_mode(0o644),
            )
            .map(drop)
        } else {
            rustix::fs::mkdir(&*so_far, Mode::from_raw_mode(0o755))
        };
        match made {
            Ok(()) => own(rustix::fs::CWD, &so_far, site)?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Gives a path to the sandbox's user.
fn own(at: impl AsFd, path: &str, site: &InitSite) -> io::Result<()> {
    if let Some(OuterIdentity::Taken { uid, gid }) = site.identity {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        rustix::fs::chownat(at, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// The workspace at its own path, over layers that stay out of reach once `/run` is covered.
fn lay_workspace(
    blueprint: &SandboxBlueprint,
    overlay: &BlueprintOverlay,
    site: &InitSite,
) -> io::Result<()> {
    for (layer, tree) in blueprint.layers().zip(&site.layers) {
        let held = &*layer.bind.target;
        rustix::fs::mkdir(held, Mode::from_raw_mode(0o755))?;
        mount::attach(tree, mount::hold(root(), Path::new(held))?)?;
    }
    let lowers: Vec<&str> = overlay
        .lowers
        .iter()
        .map(|layer| &*layer.bind.target)
        .collect();
    let lowers = lowers.join(":");
    let mut options = vec![
        ("lowerdir", &*lowers),
        ("upperdir", &*overlay.upper),
        ("workdir", &*overlay.work),
        // The same marks on disk whichever user made them, and none that point elsewhere.
        ("userxattr", ""),
        ("redirect_dir", "nofollow"),
        ("metacopy", "off"),
        ("index", "off"),
    ];
    if overlay.unflushed {
        options.push(("volatile", ""));
    }
    let mut without = CLOSED;
    if !blueprint.workspace.writable {
        without = without.and(MountRestrictions::WRITING);
    }
    let merged = match site.identity {
        // The kernel works on the layers as the process that mounts: it must have ids they know.
        Some(OuterIdentity::Taken { uid, gid }) => process::with_file_ids(uid, gid, || {
            mount::new_filesystem("overlay", &options, without)
        }),
        Some(OuterIdentity::Own) | None => mount::new_filesystem("overlay", &options, without),
    }?;
    let bind = BindMount {
        source: String::new(),
        target: blueprint.workspace.path.clone(),
        file: false,
    };
    place(&bind, &merged, site)
}

/// Empty directories at paths of the host, on the one private filesystem.
fn private(blueprint: &SandboxBlueprint, site: &InitSite) -> Result<(), BuildStepFailure> {
    for (index, path) in blueprint.private.iter().enumerate() {
        let name = format!("/run/private{index}");
        let bind = BindMount {
            source: name.clone(),
            target: path.clone(),
            file: false,
        };
        rustix::fs::mkdir(&*name, Mode::from_raw_mode(0o755))
            .map_err(io::Error::from)
            .and_then(|()| own(rustix::fs::CWD, &name, site))
            .and_then(|()| mount::clone_tree(root(), Path::new(&name)))
            .and_then(|tree| place(&bind, &tree, site))
            .during(SetupStage::Mounts, || format!("private {path}"))?;
    }
    Ok(())
}

/// Each cache is an overlay: the host's below, read-only, and a private layer above.
fn caches(blueprint: &SandboxBlueprint, site: &InitSite) -> Result<(), BuildStepFailure> {
    for (index, (bind, tree)) in blueprint.caches.iter().zip(&site.caches).enumerate() {
        overlay(index, bind, tree, site)
            .during(SetupStage::Mounts, || format!("cache {}", bind.target))?;
    }
    Ok(())
}

fn overlay(index: usize, bind: &BindMount, lower: impl AsFd, site: &InitSite) -> io::Result<()> {
    let name = |part: &str| format!("/run/{part}{index}");
    let (below, above, work) = (name("lower"), name("upper"), name("work"));
    for path in [&below, &above, &work] {
        rustix::fs::mkdir(&**path, Mode::from_raw_mode(0o755))?;
    }
    mount::attach(lower, mount::hold(root(), Path::new(&below))?)?;
    own(rustix::fs::CWD, &above, site)?;
    let mut options = vec![
        ("lowerdir", &*below),
        ("upperdir", &*above),
        ("workdir", &*work),
    ];
    if !matches!(site.identity, Some(OuterIdentity::Taken { .. })) {
        options.push(("userxattr", ""));
    }
    let merged = mount::new_filesystem("overlay", &options, CLOSED)?;
    place(bind, &merged, site)
}
