//! Templates: mount namespaces whose root holds a short list of read-only binds and nothing else.
//!
//! A sandbox is cloned out of one, so its root costs a copy of a dozen mounts instead of building
//! it, and the host's file tree is not even reachable from where it is born.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use super::identity::Identities;
use super::namespaces::hold_namespace;
use super::{BuildStepContext, BuildStepFailure};
use crate::blueprint::{BindMount, MOST_TEMPLATES, PlacedPath, RootPlan, SandboxBlueprint};
use crate::frames::SetupStage;
use crate::init::{InitSite, OuterIdentity};
use crate::sys::mount::{self, MountRestrictions};
use crate::sys::process::{EndingProcess, NamespaceFlags, enter, unshare};

pub(crate) struct RootTemplates {
    /// The host's tree: the original namespace where privileged, a private copy elsewhere.
    host: OwnedFd,
    /// Made while there was nothing else to do.
    blank: Option<BlankRoot>,
    /// Whether this process is in a copy of the host's tree that is not needed.
    in_spare_copy: bool,
    /// The process that lets go of the host's tree behind the last blank root, unless its end was seen.
    leaving: Option<EndingProcess>,
    /// In order, the oldest first.
    announced: VecDeque<Template>,
}

struct Template {
    number: u32,
    plan: RootPlan,
    /// Where it was built.
    namespace: Option<OwnedFd>,
}

impl RootTemplates {
    /// Must be called right after this process left the host's mount namespace; `original` is that
    /// one, where this process may go back to it.
    pub(crate) fn new(
        own: BorrowedFd<'_>,
        original: Option<OwnedFd>,
    ) -> Result<Self, BuildStepFailure> {
        let stage = SetupStage::MountNamespace;
        mount::stop_propagation().during(stage, || "/".to_owned())?;
        let in_spare_copy = original.is_some();
        let host = match original {
            Some(original) => original,
            None => hold_namespace(own, "mnt").during(stage, || "the host's tree".to_owned())?,
        };
        Ok(Self {
            host,
            blank: None,
            in_spare_copy,
            leaving: None,
            announced: VecDeque::new(),
        })
    }

    /// Copies the paths to be placed and the caches out of the host's tree, with their owners shifted.
    /// Leaves this process in the host's tree.
    pub(crate) fn mount_from_host(
        &self,
        blueprint: &SandboxBlueprint,
        identities: &mut Identities,
        identity: OuterIdentity,
        site: &mut InitSite,
    ) -> Result<(), BuildStepFailure> {
        if blueprint.shifted().next().is_none() && blueprint.caches.is_empty() {
            return Ok(());
        }
        enter(self.host.as_fd(), NamespaceFlags::MOUNT)
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
            let restrict = MountRestrictions::SETUID
                .and(MountRestrictions::DEVICES)
                .and(MountRestrictions::WRITING);
            if mount::restrict_tree(tree.as_fd(), restrict, shift).is_err() {
                mount::restrict_tree(tree.as_fd(), restrict, None)
                    .during(SetupStage::Mounts, name)?;
            }
            site.caches.push(tree);
        }
        Ok(())
    }

    /// Takes note that a child of this process was reaped.
    pub(crate) fn reaped(&mut self, pid: i32) {
        if let Some(leaving) = &mut self.leaving {
            leaving.reaped(pid);
        }
    }

    /// Makes ahead of time what does not depend on the root. What goes wrong is met again, and
    /// reported, by the first template.
    pub(crate) fn get_ready(&mut self, own: BorrowedFd<'_>) {
        if self.blank.is_none() {
            self.blank = self.make_blank(own).ok();
        }
    }

    fn make_blank(&mut self, own: BorrowedFd<'_>) -> Result<BlankRoot, BuildStepFailure> {
        let stage = SetupStage::MountNamespace;
        if !std::mem::take(&mut self.in_spare_copy) {
            enter(self.host.as_fd(), NamespaceFlags::MOUNT)
                .during(stage, || "the host's tree".to_owned())?;
            unshare(NamespaceFlags::MOUNT).during(stage, || "a new template".to_owned())?;
            mount::stop_propagation().during(stage, || "/".to_owned())?;
        }
        let (scaffold, leaving) = blank_root()?;
        self.leaving = Some(leaving);
        let namespace = hold_namespace(own, "mnt").during(stage, || "a template".to_owned())?;
        Ok(BlankRoot {
            namespace,
            scaffold,
        })
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
    pub(crate) fn enter(
        &mut self,
        number: u32,
        own: BorrowedFd<'_>,
    ) -> Result<(), BuildStepFailure> {
        let stage = SetupStage::MountNamespace;
        let position = self.announced.iter().rposition(|one| one.number == number);
        let Some(position) = position else {
            return Err(BuildStepFailure {
                stage: SetupStage::Request,
                detail: format!("no root was announced under the number {number}"),
                errno: 0,
            });
        };
        if let Some(namespace) = &self.announced[position].namespace {
            return enter(namespace.as_fd(), NamespaceFlags::MOUNT)
                .during(stage, || "a template".to_owned());
        }
        let blank = match self.blank.take() {
            Some(blank) => blank,
            None => self.make_blank(own)?,
        };
        let template = &mut self.announced[position];
        enter(self.host.as_fd(), NamespaceFlags::MOUNT)
            .during(stage, || "the host's tree".to_owned())?;
        let shown = template.plan.binds.iter().map(|bind| {
            from_host(
                bind,
                MountRestrictions::SETUID.and(MountRestrictions::DEVICES),
            )
            .during(SetupStage::Root, || bind.source.clone())
        });
        let shown = shown.collect::<Result<Vec<_>, _>>()?;
        // What cannot be read here could not be read inside either.
        let copied = template.plan.copies.iter().filter_map(|path| {
            let file = open_to_copy(path).ok()?;
            Some((path.as_str(), file))
        });
        let copied: Vec<_> = copied.collect();
        enter(blank.namespace.as_fd(), NamespaceFlags::MOUNT)
            .during(stage, || "a template".to_owned())?;
        furnish(blank.scaffold, &template.plan, &shown, &copied)?;
        template.namespace = Some(blank.namespace);
        Ok(())
    }
}

/// A mount namespace whose root holds nothing but what every root does, and from which the host's tree
/// is out of reach already.
struct BlankRoot {
    namespace: OwnedFd,
    scaffold: Scaffold,
}

/// How much of a file is copied at once: little enough to lie in memory that is there anyway.
const AT_ONCE: usize = 32 * 1024;

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Builds a root with the devices and a view of `/proc`, and makes it this namespace's.
fn blank_root() -> Result<(Scaffold, EndingProcess), BuildStepFailure> {
    let stage = SetupStage::Root;
    // Modes are meant as they are written.
    rustix::process::umask(Mode::empty());
    let root = mount::new_filesystem(
        "tmpfs",
        &[("mode", "0755"), ("size", "4m")],
        MountRestrictions::SETUID.and(MountRestrictions::DEVICES),
    )
    .during(stage, || "/".to_owned())?;
    // Attached anywhere: the place disappears with the old root.
    let anywhere = mount::hold_host(Path::new("/tmp"))
        .or_else(|_| mount::hold_host(Path::new("/proc")))
        .during(stage, || "/tmp".to_owned())?;
    mount::attach(&root, &anywhere).during(stage, || "/".to_owned())?;

    let mut scaffold = Scaffold::new(root);
    devices(&mut scaffold)?;
    for directory in ["/dev/shm", "/dev/pts"] {
        scaffold
            .directories(directory)
            .during(stage, || directory.to_owned())?;
    }
    // A view of /proc must stay mounted: without one the kernel lets an unprivileged sandbox mount
    // none of its own.
    let proc = BindMount {
        source: "/proc".to_owned(),
        target: "/proc".to_owned(),
        file: false,
    };
    let without = MountRestrictions::SETUID
        .and(MountRestrictions::DEVICES)
        .and(MountRestrictions::EXECUTION);
    from_host(&proc, without)
        .and_then(|tree| scaffold.show(&proc, &tree))
        .during(stage, || "/proc".to_owned())?;
    let leaving = mount::pivot_into(&scaffold.root).during(stage, || "/".to_owned())?;
    mount::make_read_only(c"/dev").during(stage, || "/dev".to_owned())?;
    Ok((scaffold, leaving))
}

/// Puts into a blank root what the plan says, the trees and files of the host given, and closes it.
fn furnish(
    mut scaffold: Scaffold,
    plan: &RootPlan,
    shown: &[OwnedFd],
    copied: &[(&str, OwnedFd)],
) -> Result<(), BuildStepFailure> {
    let stage = SetupStage::Root;
    // Modes are meant as they are written.
    rustix::process::umask(Mode::empty());
    for directory in &plan.directories {
        scaffold
            .directories(directory)
            .during(stage, || directory.clone())?;
    }
    for (bind, tree) in plan.binds.iter().zip(shown) {
        scaffold
            .show(bind, tree)
            .during(stage, || format!("{} at {}", bind.source, bind.target))?;
    }
    for (link, to) in &plan.links {
        scaffold.link(link, to).during(stage, || link.clone())?;
    }
    for (path, text) in &plan.files {
        scaffold
            .file(path, text.as_bytes())
            .during(stage, || path.clone())?;
    }
    let mut buffer = vec![0; AT_ONCE];
    for (path, file) in copied {
        scaffold
            .copy(path, file, &mut buffer)
            .during(stage, || (*path).to_owned())?;
    }
    mount::make_read_only(c"/").during(stage, || "/".to_owned())
}

/// A copy of a tree of the host that can only be read.
fn from_host(bind: &BindMount, without: MountRestrictions) -> io::Result<OwnedFd> {
    let tree = mount::clone_tree(rustix::fs::CWD, Path::new(&bind.source))?;
    mount::restrict_tree(tree.as_fd(), without.and(MountRestrictions::WRITING), None)?;
    Ok(tree)
}

/// A file of the host, if it still is one.
fn open_to_copy(path: &str) -> io::Result<OwnedFd> {
    // Whatever has taken its place is not followed, and not waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// `/dev` with the few devices every program may use.
fn devices(scaffold: &mut Scaffold) -> Result<(), BuildStepFailure> {
    let stage = SetupStage::Root;
    let whole = || "/dev".to_owned();
    let devices = mount::new_filesystem(
        "tmpfs",
        &[("mode", "0755"), ("size", "64k")],
        MountRestrictions::SETUID.and(MountRestrictions::EXECUTION),
    )
    .during(stage, whole)?;
    scaffold.directories("/dev").during(stage, whole)?;
    let place = mount::hold(&scaffold.root, Path::new("/dev")).during(stage, whole)?;
    mount::attach(&devices, &place).during(stage, whole)?;
    for device in DEVICES {
        // A node costs every sandbox less than a mount; only the machine's root can make one.
        if node(&devices, device).is_err() {
            scaffold
                .show_device(&format!("/dev/{device}"))
                .during(stage, || format!("/dev/{device}"))?;
        }
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
    Ok(())
}

/// A device like the host's of that name.
fn node(devices: &OwnedFd, name: &str) -> io::Result<()> {
    let host = rustix::fs::stat(format!("/dev/{name}"))?;
    let kind = FileType::from_raw_mode(host.st_mode);
    if kind != FileType::CharacterDevice {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mode = Mode::from_raw_mode(0o666);
    Ok(rustix::fs::mknodat(
        devices,
        name,
        kind,
        mode,
        host.st_rdev,
    )?)
}

/// A root while it is being put together. What is in it, only this process has put there.
struct Scaffold {
    root: OwnedFd,
    /// Directories that are there, by their path without the slash it begins with.
    known: HashSet<String>,
}

impl Scaffold {
    fn new(root: OwnedFd) -> Self {
        Self {
            root,
            known: HashSet::new(),
        }
    }

    fn show(&mut self, bind: &BindMount, tree: &OwnedFd) -> io::Result<()> {
        if bind.file {
            self.place_for_file(&bind.target)?;
        } else {
            self.directories(&bind.target)?;
        }
        mount::attach(tree, &mount::hold(&self.root, Path::new(&bind.target))?)
    }

    fn show_device(&mut self, path: &str) -> io::Result<()> {
        let tree = mount::clone_tree(rustix::fs::CWD, Path::new(path))?;
        mount::restrict_tree(
            tree.as_fd(),
            MountRestrictions::SETUID.and(MountRestrictions::EXECUTION),
            None,
        )?;
        self.place_for_file(path)?;
        mount::attach(&tree, &mount::hold(&self.root, Path::new(path))?)
    }

    /// Makes a directory and its parents. What is there already, also inside a bind, is left alone.
    fn directories(&mut self, path: &str) -> io::Result<()> {
        let whole = relative(path);
        if whole.is_empty() || self.known.contains(whole) {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(0o755);
        match rustix::fs::mkdirat(&self.root, whole, mode) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(rustix::io::Errno::NOENT) => {
                self.parents(path)?;
                match rustix::fs::mkdirat(&self.root, whole, mode) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
        self.known.insert(whole.to_owned());
        Ok(())
    }

    fn parents(&mut self, path: &str) -> io::Result<()> {
        match Path::new(path).parent().and_then(Path::to_str) {
            Some(parent) => self.directories(parent),
            None => Ok(()),
        }
    }

    fn link(&mut self, path: &str, to: &str) -> io::Result<()> {
        self.parents(path)?;
        Ok(rustix::fs::symlinkat(to, &self.root, relative(path))?)
    }

    fn place_for_file(&mut self, path: &str) -> io::Result<()> {
        if mount::hold(&self.root, Path::new(path)).is_ok() {
            return Ok(());
        }
        self.file(path, b"")
    }

    fn file(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        write_all(&self.new_file(path)?, bytes)
    }

    /// What an open file holds, to its end: however long it has become since it was looked at.
    fn copy(&mut self, path: &str, from: &OwnedFd, buffer: &mut [u8]) -> io::Result<()> {
        let file = self.new_file(path)?;
        loop {
            let count = rustix::io::read(from, &mut *buffer)?;
            write_all(&file, &buffer[..count])?;
            // Less than there was room for: the kernel had no more.
            if count < buffer.len() {
                return Ok(());
            }
        }
    }

    fn new_file(&mut self, path: &str) -> io::Result<OwnedFd> {
        self.parents(path)?;
        Ok(rustix::fs::openat(
            &self.root,
            relative(path),
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o644),
        )?)
    }
}

fn write_all(file: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::write(file, rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// A copy of a tree of the host, with its owner shifted and without what it must not do.
fn shifted(
    placed: &PlacedPath,
    identities: &mut Identities,
    identity: OuterIdentity,
) -> Result<OwnedFd, BuildStepFailure> {
    let source = &placed.bind.source;
    let name = || source.clone();
    let tree =
        mount::clone_tree(rustix::fs::CWD, Path::new(source)).during(SetupStage::Mounts, name)?;
    let stat = rustix::fs::fstat(&tree)
        .map_err(io::Error::from)
        .during(SetupStage::Mounts, name)?;
    if (stat.st_dev, stat.st_ino) != (placed.device, placed.inode) {
        return Err(BuildStepFailure {
            stage: SetupStage::Mounts,
            detail: format!("{source} was replaced while the sandbox was being built"),
            errno: 0,
        });
    }
    let mut restrict = MountRestrictions::SETUID.and(MountRestrictions::DEVICES);
    if !placed.writable {
        restrict = restrict.and(MountRestrictions::WRITING);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_copied_to_its_end_however_long_it_has_become() {
        let place = tempfile::tempdir().unwrap();
        let host = place.path().join("host");
        let long: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&host, &long).unwrap();
        let root = std::fs::File::open(place.path()).unwrap();
        let mut scaffold = Scaffold::new(root.into());
        let from = open_to_copy(host.to_str().unwrap()).unwrap();
        scaffold
            .copy("/etc/services", &from, &mut vec![0; AT_ONCE])
            .unwrap();
        let copied = std::fs::read(place.path().join("etc/services")).unwrap();
        assert!(copied == long);
    }
}
