//! The new mount interface: trees by descriptor, attributes by struct.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

use super::check;
use super::process::EndingProcess;
use super::ways::FirstWay;

/// What a mount does not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MountRestrictions(u64);

impl MountRestrictions {
    pub(crate) const SETUID: Self = Self(libc::MOUNT_ATTR_NOSUID);
    pub(crate) const DEVICES: Self = Self(libc::MOUNT_ATTR_NODEV);
    pub(crate) const EXECUTION: Self = Self(libc::MOUNT_ATTR_NOEXEC);
    pub(crate) const WRITING: Self = Self(libc::MOUNT_ATTR_RDONLY);

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A detached copy of the tree at `path` below `at`, with everything mounted in it.
pub(crate) fn clone_tree(at: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::mount::open_tree(
        at,
        path,
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_NO_AUTOMOUNT
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW,
    )?)
}

/// Takes abilities away from a whole tree and, where given, shifts its owners through the id map of
/// a user namespace.
pub(crate) fn restrict_tree(
    tree: BorrowedFd<'_>,
    without: MountRestrictions,
    id_map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    let mut attributes = libc::mount_attr {
        attr_set: without.0,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    if let Some(namespace) = id_map {
        attributes.attr_set |= libc::MOUNT_ATTR_IDMAP;
        attributes.userns_fd = u64::try_from(namespace.as_raw_fd()).unwrap_or(0);
    }
    // SAFETY: the path is a static empty string, `attributes` outlives the call and has the size
    // passed.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// Makes one mount read-only where it is, without touching what is mounted in it.
pub(crate) fn make_read_only(path: &std::ffi::CStr) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: `path` is NUL-terminated, `attributes` outlives the call and has the size passed.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            0,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}

/// A new instance of a filesystem, not attached anywhere yet.
pub(crate) fn new_filesystem(
    kind: &str,
    options: &[(&str, &str)],
    without: MountRestrictions,
) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            rustix::mount::fsconfig_set_flag(&context, *key)?;
        } else {
            rustix::mount::fsconfig_set_string(&context, *key, *value)?;
        }
    }
    rustix::mount::fsconfig_create(&context)?;
    #[allow(clippy::cast_possible_truncation)]
    let attributes = MountAttrFlags::from_bits_retain(without.0 as u32);
    Ok(rustix::mount::fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        attributes,
    )?)
}

/// Attaches a detached tree onto the place a descriptor holds.
pub(crate) fn attach(tree: impl AsFd, onto: impl AsFd) -> io::Result<()> {
    Ok(rustix::mount::move_mount(
        tree,
        c"",
        onto,
        c"",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )?)
}

/// Holds a place below `root` without following any link.
pub(crate) fn hold(root: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    /// Since Linux 5.6; older profiles of container engines do not know it.
    static OPENAT2: FirstWay = FirstWay::new();
    let relative = path.strip_prefix("/").unwrap_or(path);
    let relative = if relative.as_os_str().is_empty() {
        Path::new(".")
    } else {
        relative
    };
    let whole = || {
        Ok(rustix::fs::openat2(
            &root,
            relative,
            HELD,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT,
        )?)
    };
    OPENAT2.or_else(whole, || hold_by_steps(root.as_fd(), relative))
}

const HELD: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// The same name by name, each in the directory that is held already. No path here goes up.
fn hold_by_steps(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let mut held = rustix::fs::openat(root, ".", HELD, Mode::empty())?;
    for step in path.components() {
        let name = match step {
            Component::CurDir | Component::RootDir => continue,
            Component::Normal(name) => name,
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::from_raw_os_error(libc::EXDEV));
            }
        };
        // A link at the end is held itself, and leads nowhere.
        if FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode) == FileType::Symlink {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        held = rustix::fs::openat(&held, name, HELD, Mode::empty())?;
    }
    Ok(held)
}

/// Holds a place of the process's own root, following links.
pub(crate) fn hold_host(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Shows one path also at another, with what the first may and may not do.
pub(crate) fn bind(path: &std::ffi::CStr, also_at: &std::ffi::CStr) -> io::Result<()> {
    Ok(rustix::mount::mount_bind(path, also_at)?)
}

/// No mount event travels in or out of this mount namespace any more.
pub(crate) fn stop_propagation() -> io::Result<()> {
    use rustix::mount::MountPropagationFlags as Propagation;
    Ok(rustix::mount::mount_change(
        c"/",
        Propagation::PRIVATE | Propagation::REC,
    )?)
}

/// Makes the directory a descriptor holds the root, and lets go of the old one. That is out of reach
/// when this returns; the process given back waits until the kernel has forgotten it, too.
pub(crate) fn pivot_into(new_root: impl AsFd) -> io::Result<EndingProcess> {
    rustix::process::fchdir(&new_root)?;
    rustix::process::pivot_root(c".", c".")?;
    let mut leaving = super::process::unmount_behind()?;
    rustix::process::chdir(c"/")?;
    for _ in 0..1000 {
        if is_alone(&new_root)? {
            return Ok(leaving);
        }
        // It has little to do, and may be waiting for this very processor.
        super::scheduling::sched_yield();
    }
    leaving.wait();
    if is_alone(&new_root)? {
        return Ok(leaving);
    }
    // It says why by trying itself.
    rustix::process::fchdir(&new_root)?;
    rustix::mount::unmount(c".", rustix::mount::UnmountFlags::DETACH)?;
    rustix::process::chdir(c"/")?;
    if is_alone(&new_root)? {
        Ok(leaving)
    } else {
        Err(io::Error::other("the old root cannot be let go of"))
    }
}

/// Whether nothing is mounted over the root, which a descriptor holds: up from the root leads to what is
/// mounted there last.
fn is_alone(root: impl AsFd) -> io::Result<bool> {
    let (own, above) = (rustix::fs::fstat(root)?, rustix::fs::stat(c"/..")?);
    Ok((own.st_dev, own.st_ino) == (above.st_dev, above.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::ways::keep_back;

    #[test]
    fn a_place_is_held_without_openat2_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("a/b")).unwrap();
        std::os::unix::fs::symlink("a", place.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/", place.path().join("a/out")).unwrap();
        for kept_back in [None, Some(libc::ENOSYS), Some(libc::EPERM)] {
            let root = std::fs::File::open(place.path()).unwrap();
            let thread = std::thread::spawn(move || {
                if let Some(errno) = kept_back {
                    keep_back(&["openat2"], u16::try_from(errno).unwrap()).unwrap();
                }
                let inode = |path: &str| {
                    hold(&root, Path::new(path))
                        .and_then(|held| Ok(rustix::fs::fstat(held)?.st_ino))
                        .map_err(|error| error.raw_os_error().unwrap())
                };
                [
                    inode("/a/b"),
                    inode("/"),
                    inode("link/b"),
                    inode("a/out/etc"),
                    inode("a/out"),
                    inode("nowhere"),
                ]
            });
            let inode = |path: &str| {
                use std::os::unix::fs::MetadataExt;
                Ok(std::fs::metadata(place.path().join(path)).unwrap().ino())
            };
            let link = std::fs::symlink_metadata(place.path().join("a/out")).unwrap();
            let link = std::os::unix::fs::MetadataExt::ino(&link);
            let expected = [
                inode("a/b"),
                inode("."),
                Err(libc::ELOOP),
                Err(libc::ELOOP),
                Ok(link),
                Err(libc::ENOENT),
            ];
            assert_eq!(thread.join().unwrap(), expected, "{kept_back:?}");
        }
    }
}
