//! Templates: mount namespaces whose root holds a short list of read-only binds and nothing else.
//!
//! A sandbox is cloned out of one, so its root costs a copy of a dozen mounts instead of building
//! it, and the host's file tree is not even reachable from where it is born.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::identity::Identities;
use super::{During, Failure, hold_namespace};
use crate::blueprint::{Bind, Blueprint, MOST_TEMPLATES, Placed, RootPlan};
use crate::frames::SetupStage;
use crate::init::{Identity, Site};
use crate::sys::mount::{self, Without};
use crate::sys::process::{Apart, enter, unshare};

pub(crate) struct Templates {
    /// The host's tree: the original namespace where privileged, a private copy elsewhere.
    host: OwnedFd,
    /// The oldest first.
    announced: VecDeque<Template>,
}

struct Template {
    number: u32,
    plan: RootPlan,
    /// Where it was built.
    namespace: Option<OwnedFd>,
}

impl Templates {
    /// Must be called right after this process left the host's mount namespace; `original` is that
    /// one, where this process may go back to it.
    pub(crate) fn new(own: BorrowedFd<'_>, original: Option<OwnedFd>) -> Result<Self, Failure> {
        let stage = SetupStage::MountNamespace;
        mount::stop_propagation().during(stage, || "/".to_owned())?;
        let host = match original {
            Some(original) => original,
            None => hold_namespace(own, "mnt").during(stage, || "the host's tree".to_owned())?,
        };
        Ok(Self {
            host,
            announced: VecDeque::new(),
        })
    }

    /// Copies the paths to be placed and the caches out of the host's tree, with their owners shifted.
    /// Leaves this process in the host's tree.
    pub(crate) fn mount_from_host(
        &self,
        blueprint: &Blueprint,
        identities: &mut Identities,
        identity: Identity,
        site: &mut Site,
    ) -> Result<(), Failure> {
        if blueprint.shifted().next().is_none() && blueprint.caches.is_empty() {
            return Ok(());
        }
        enter(self.host.as_fd(), Apart::MOUNT)
            .during(SetupStage::MountNamespace, || "the host's tree".to_owned())?;
        for placed in &blueprint.placed {
            site.placed.push(shifted(placed, identities, identity)?);
        }
        for layer in blueprint.layers() {
            site.layers.push(shifted(layer, identities, identity)?);
        }
        for cache in &blueprint.caches {
            let name = || format!("cache {}", cache.source);
            let tree = mount::clone_tree(rustix::fs::CWD, Path::new(&cache.source))
                .during(SetupStage::Mounts, name)?;
            let stat = rustix::fs::fstat(&tree)
                .map_err(io::Error::from)
                .during(SetupStage::Mounts, name)?;
            let shift = identities
                .shift(identity, (stat.st_uid, stat.st_gid))
                .during(SetupStage::Identity, name)?;
            let restrict = Without::SETUID.and(Without::DEVICES).and(Without::WRITING);
            if mount::restrict_tree(tree.as_fd(), restrict, shift).is_err() {
                mount::restrict_tree(tree.as_fd(), restrict, None)
                    .during(SetupStage::Mounts, name)?;
            }
            site.caches.push(tree);
        }
        Ok(())
    }

    /// Takes note of a root that sandboxes are going to have.
    pub(crate) fn announce(&mut self, number: u32, plan: RootPlan) {
        if self.announced.len() >= MOST_TEMPLATES {
            self.announced.pop_front();
        }
        self.announced.push_back(Template {
            number,
            plan,
            namespace: None,
        });
    }

    /// Puts this process into the template of that number, building it first where it is new.
    pub(crate) fn enter(&mut self, number: u32, own: BorrowedFd<'_>) -> Result<(), Failure> {
        let stage = SetupStage::MountNamespace;
        let known = self.announced.iter_mut().rev();
        let Some(template) = known.into_iter().find(|one| one.number == number) else {
            return Err(Failure {
                stage: SetupStage::Request,
                detail: format!("no root was announced under the number {number}"),
                errno: 0,
            });
        };
        if let Some(namespace) = &template.namespace {
            return enter(namespace.as_fd(), Apart::MOUNT)
                .during(stage, || "a template".to_owned());
        }
        enter(self.host.as_fd(), Apart::MOUNT).during(stage, || "the host's tree".to_owned())?;
        unshare(Apart::MOUNT).during(stage, || "a new template".to_owned())?;
        mount::stop_propagation().during(stage, || "/".to_owned())?;
        build(&template.plan)?;
        let namespace = hold_namespace(own, "mnt").during(stage, || "a template".to_owned())?;
        template.namespace = Some(namespace);
        Ok(())
    }
}

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Builds the root and makes it this namespace's.
fn build(plan: &RootPlan) -> Result<(), Failure> {
    let stage = SetupStage::Root;
    let tmpfs = |options: &[(&str, &str)]| {
        mount::new_filesystem("tmpfs", options, Without::SETUID.and(Without::DEVICES))
    };
    let root = tmpfs(&[("mode", "0755"), ("size", "4m")]).during(stage, || "/".to_owned())?;
    // Attached anywhere: the place disappears with the old root.
    let anywhere = mount::hold_host(Path::new("/tmp"))
        .or_else(|_| mount::hold_host(Path::new("/proc")))
        .during(stage, || "/tmp".to_owned())?;
    mount::attach(&root, &anywhere).during(stage, || "/".to_owned())?;

    for directory in &plan.directories {
        make_directories(&root, directory).during(stage, || directory.clone())?;
    }
    for bind in &plan.binds {
        show(&root, bind, Without::SETUID.and(Without::DEVICES))
            .during(stage, || format!("{} at {}", bind.source, bind.target))?;
    }
    for (link, to) in &plan.links {
        make_parents(&root, link).during(stage, || link.clone())?;
        rustix::fs::symlinkat(to, &root, relative(link))
            .map_err(io::Error::from)
            .during(stage, || link.clone())?;
    }
    for (path, text) in &plan.files {
        write_file(&root, path, text).during(stage, || path.clone())?;
    }

    make_directories(&root, "/dev").during(stage, || "/dev".to_owned())?;
    let devices = mount::new_filesystem(
        "tmpfs",
        &[("mode", "0755"), ("size", "64k")],
        Without::SETUID.and(Without::EXECUTION),
    )
    .during(stage, || "/dev".to_owned())?;
    let place = mount::hold(&root, Path::new("/dev")).during(stage, || "/dev".to_owned())?;
    mount::attach(&devices, &place).during(stage, || "/dev".to_owned())?;
    for device in DEVICES {
        let bind = Bind {
            source: format!("/dev/{device}"),
            target: format!("/dev/{device}"),
            file: true,
        };
        show_device(&root, &bind).during(stage, || bind.source.clone())?;
    }
    for (link, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        rustix::fs::symlinkat(to, &devices, link)
            .map_err(io::Error::from)
            .during(stage, || format!("/dev/{link}"))?;
    }
    for directory in ["/dev/shm", "/dev/pts", "/proc"] {
        make_directories(&root, directory).during(stage, || directory.to_owned())?;
    }
    // A view of /proc must stay mounted: without one the kernel lets an unprivileged sandbox mount
    // none of its own.
    show(
        &root,
        &Bind {
            source: "/proc".to_owned(),
            target: "/proc".to_owned(),
            file: false,
        },
        Without::SETUID
            .and(Without::DEVICES)
            .and(Without::EXECUTION),
    )
    .during(stage, || "/proc".to_owned())?;
    mount::pivot_into(&root).during(stage, || "/".to_owned())?;
    mount::make_read_only(c"/").during(stage, || "/".to_owned())?;
    mount::make_read_only(c"/dev").during(stage, || "/dev".to_owned())
}

fn show(root: &OwnedFd, bind: &Bind, without: Without) -> io::Result<()> {
    let tree = mount::clone_tree(rustix::fs::CWD, Path::new(&bind.source))?;
    mount::restrict_tree(tree.as_fd(), without.and(Without::WRITING), None)?;
    if bind.file {
        make_file(root, &bind.target)?;
    } else {
        make_directories(root, &bind.target)?;
    }
    let place = mount::hold(root, Path::new(&bind.target))?;
    mount::attach(&tree, &place)
}

fn show_device(root: &OwnedFd, bind: &Bind) -> io::Result<()> {
    let tree = mount::clone_tree(rustix::fs::CWD, Path::new(&bind.source))?;
    mount::restrict_tree(tree.as_fd(), Without::SETUID.and(Without::EXECUTION), None)?;
    make_file(root, &bind.target)?;
    let place = mount::hold(root, Path::new(&bind.target))?;
    mount::attach(&tree, &place)
}

/// A copy of a tree of the host, with its owner shifted and without what it must not do.
fn shifted(
    placed: &Placed,
    identities: &mut Identities,
    identity: Identity,
) -> Result<OwnedFd, Failure> {
    let source = &placed.bind.source;
    let name = || source.clone();
    let tree =
        mount::clone_tree(rustix::fs::CWD, Path::new(source)).during(SetupStage::Mounts, name)?;
    let stat = rustix::fs::fstat(&tree)
        .map_err(io::Error::from)
        .during(SetupStage::Mounts, name)?;
    if (stat.st_dev, stat.st_ino) != (placed.device, placed.inode) {
        return Err(Failure {
            stage: SetupStage::Mounts,
            detail: format!("{source} was replaced while the sandbox was being built"),
            errno: 0,
        });
    }
    let mut restrict = Without::SETUID.and(Without::DEVICES);
    if !placed.writable {
        restrict = restrict.and(Without::WRITING);
    }
    let shift = identities
        .shift(identity, placed.owner)
        .during(SetupStage::Identity, name)?;
    let shifts = shift.is_some();
    let restricted = mount::restrict_tree(tree.as_fd(), restrict, shift);
    if shifts
        && restricted
            .as_ref()
            .is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
    {
        identities.refuses_maps(placed.device);
    }
    restricted.during(SetupStage::Identity, || format!("owners of {source}"))?;
    Ok(tree)
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// Makes a directory and its parents. What is there already, also inside a bind, is left alone.
fn make_directories(root: &OwnedFd, path: &str) -> io::Result<()> {
    let whole = relative(path);
    if whole.is_empty() {
        return Ok(());
    }
    match rustix::fs::mkdirat(root, whole, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => return Ok(()),
        // Its parent first.
        Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let mut so_far = String::new();
    for part in relative(path).split('/').filter(|part| !part.is_empty()) {
        if !so_far.is_empty() {
            so_far.push('/');
        }
        so_far.push_str(part);
        match rustix::fs::mkdirat(root, &*so_far, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn make_parents(root: &OwnedFd, path: &str) -> io::Result<()> {
    match Path::new(path).parent().and_then(Path::to_str) {
        Some(parent) => make_directories(root, parent),
        None => Ok(()),
    }
}

fn make_file(root: &OwnedFd, path: &str) -> io::Result<()> {
    if mount::hold(root, Path::new(path)).is_ok() {
        return Ok(());
    }
    write_file(root, path, "")
}

fn write_file(root: &OwnedFd, path: &str, text: &str) -> io::Result<()> {
    make_parents(root, path)?;
    let file = rustix::fs::openat(
        root,
        relative(path),
        OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o644),
    )?;
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = &rest[written..];
    }
    Ok(())
}
