//! Making, joining and furnishing namespaces.

use std::path::Path;

use super::act::{HERE, apart, at, call, done, path};
use super::probe::{
    AttackBodyResult, AttackExpectation, AttackFamily, AttackObservation, AttackProbe,
};
use super::scene::AttackScene;

const fn probe(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Privilege, name, attempts, body)
}

const OPEN_TREE_CLONE: u64 = 1;

const fn flags(flags: i32) -> u64 {
    flags.cast_unsigned() as u64
}

/// New namespaces that only exist as long as the probe.
fn unshare(namespace: i32) -> AttackBodyResult {
    done("unshare", &[flags(namespace)])
}

fn mount_tmpfs() -> AttackBodyResult {
    let (kind, place) = (path(Path::new("tmpfs")), path(Path::new("/tmp")));
    done("mount", &[at(&kind), at(&place), at(&kind), 0, 0])
}

fn remount() -> AttackBodyResult {
    let root = path(Path::new("/"));
    done(
        "mount",
        &[0, at(&root), 0, libc::MS_BIND | libc::MS_REMOUNT, 0],
    )
}

fn clone_tree() -> Result<u64, AttackObservation> {
    let root = path(Path::new("/tmp"));
    call("open_tree", &[HERE, at(&root), OPEN_TREE_CLONE])
}

fn set_attributes() -> AttackBodyResult {
    let root = path(Path::new("/"));
    // Clears nothing and sets nodiratime: harmless where it is allowed.
    let attributes = [128_u64, 0, 0, 0];
    done(
        "mount_setattr",
        &[HERE, at(&root), 0, attributes.as_ptr().addr() as u64, 32],
    )
}

pub(super) const PROBES: &[AttackProbe] = &[
    probe(
        "user_namespace",
        "become root in a user namespace of one's own",
        |_| unshare(libc::CLONE_NEWUSER),
    )
    .privileged(),
    probe("user_namespace_by_clone", "the same, by clone", |_| {
        // With CLONE_VFORK refused flags are found before anything is made.
        done("clone", &[flags(libc::CLONE_NEWUSER | libc::CLONE_THREAD)])
    })
    .outside(AttackExpectation::Fails(&[libc::EINVAL])),
    probe("user_namespace_by_clone3", "the same, by clone3", |_| {
        done("clone3", &[0, 0])
    })
    .outside(AttackExpectation::Fails(&[libc::EINVAL]))
    .inside(AttackExpectation::Fails(&[libc::ENOSYS])),
    probe("mount_namespace", "make a mount namespace", |_| {
        unshare(libc::CLONE_NEWNS)
    })
    .controlled_by(|_| apart(libc::CLONE_NEWNS).map(|()| String::new()))
    .privileged(),
    probe("pid_namespace", "make a pid namespace", |_| {
        unshare(libc::CLONE_NEWPID)
    })
    .controlled_by(|_| apart(libc::CLONE_NEWPID).map(|()| String::new()))
    .privileged(),
    probe("network_namespace", "make a network namespace", |_| {
        unshare(libc::CLONE_NEWNET)
    })
    .controlled_by(|_| apart(libc::CLONE_NEWNET).map(|()| String::new()))
    .privileged(),
    probe("ipc_namespace", "make an IPC namespace", |_| {
        unshare(libc::CLONE_NEWIPC)
    })
    .controlled_by(|_| apart(libc::CLONE_NEWIPC).map(|()| String::new()))
    .privileged(),
    probe("time_namespace", "make a time namespace", |_| unshare(0x80))
        .controlled_by(|_| apart(0x80).map(|()| String::new()))
        .privileged(),
    probe("mount", "mount a filesystem", |_| mount_tmpfs())
        .controlled_by(|_| apart(libc::CLONE_NEWNS).and_then(|()| mount_tmpfs()))
        .privileged(),
    probe("remount", "make read-only places writable", |_| remount())
        .controlled_by(|_| apart(libc::CLONE_NEWNS).and_then(|()| mount_tmpfs()))
        .privileged(),
    probe("unmount", "unmount what hides something", |_| {
        let place = path(Path::new("/proc"));
        done("umount2", &[at(&place), flags(libc::MNT_DETACH)])
    })
    .controlled_by(|_| {
        apart(libc::CLONE_NEWNS)?;
        mount_tmpfs()?;
        let place = path(Path::new("/tmp"));
        done("umount2", &[at(&place), flags(libc::MNT_DETACH)])
    })
    .privileged(),
    probe("new_mount_api", "mount by fsopen", |_| {
        let kind = path(Path::new("tmpfs"));
        done("fsopen", &[at(&kind), 0])
    })
    .controlled_by(|_| {
        apart(libc::CLONE_NEWNS)?;
        let kind = path(Path::new("tmpfs"));
        done("fsopen", &[at(&kind), 0])
    })
    .privileged(),
    probe("clone_mounts", "copy a mount by open_tree", |_| {
        clone_tree().map(|_| String::new())
    })
    .controlled_by(|_| {
        apart(libc::CLONE_NEWNS)?;
        clone_tree().map(|_| String::new())
    })
    .privileged(),
    probe("move_mount", "move a mount", |_| {
        done("move_mount", &[0, 0, 0, 0, 0])
    })
    .outside(AttackExpectation::Fails(&[libc::EFAULT]))
    .privileged(),
    probe("mount_attributes", "change a mount's attributes", |_| {
        set_attributes()
    })
    .controlled_by(|_| apart(libc::CLONE_NEWNS).and_then(|()| set_attributes()))
    .privileged(),
    probe("pivot_root", "take another root", |_| {
        let root = path(Path::new("/"));
        done("pivot_root", &[at(&root), at(&root)])
    })
    .outside(AttackExpectation::Fails(&[libc::EBUSY, libc::EINVAL]))
    .privileged(),
    probe("chroot", "take another root by chroot", |_| {
        let root = path(Path::new("/"));
        done("chroot", &[at(&root)])
    })
    .controlled_by(|_| {
        apart(libc::CLONE_NEWNS)?;
        let root = path(Path::new("/"));
        done("chroot", &[at(&root)])
    })
    .privileged(),
    probe("join_namespace", "join a namespace", |_| {
        done("setns", &[0, 0])
    })
    .outside(AttackExpectation::Fails(&[libc::EINVAL])),
];
