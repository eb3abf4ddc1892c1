use std::os::unix::fs::symlink;

use super::world::*;
use crate::{ChangeRisk, ChangeSelection, UncommittableReason, WorkspaceError, WorkspaceStatus};

#[test]
fn an_upper_directory_is_read_as_the_kernel_reads_it() {
    let world = TestWorld::new();
    let before = world.tree();
    let (mut workspace, upper) = world.overlay();
    std::fs::write(upper.join("a.txt"), "changed\n").unwrap();
    whiteout(&upper.join("link"));
    whiteout(&upper.join("never-was"));
    std::fs::create_dir(upper.join("src")).unwrap();
    std::fs::write(upper.join("src/new.txt"), "n\n").unwrap();
    std::fs::create_dir(upper.join("src/deep")).unwrap();
    mark(&upper.join("src/deep"), "user.overlay.opaque", b"y");
    std::fs::write(upper.join("src/deep/only.txt"), "o\n").unwrap();
    assert_eq!(
        summary(&workspace),
        [
            "M a.txt",
            "D link",
            "D src/deep/c.txt",
            "A src/deep/only.txt",
            "A src/new.txt"
        ]
    );
    commit(&mut workspace).unwrap();
    let mut expected = before.clone();
    expected.remove(std::path::Path::new("link"));
    expected.remove(std::path::Path::new("src/deep/c.txt"));
    expected.insert(
        "a.txt".into(),
        TestPathState::File(b"changed\n".to_vec(), 0o644),
    );
    expected.insert(
        "src/deep/only.txt".into(),
        TestPathState::File(b"o\n".to_vec(), 0o644),
    );
    expected.insert(
        "src/new.txt".into(),
        TestPathState::File(b"n\n".to_vec(), 0o644),
    );
    assert_eq!(world.tree(), expected);
    workspace.undo().unwrap();
    assert_eq!(world.tree(), before);
}

#[test]
fn a_marked_file_is_a_deleted_name_only_where_the_kernel_says_so() {
    let world = TestWorld::new();
    let (workspace, upper) = world.overlay();
    std::fs::create_dir(upper.join("src")).unwrap();
    std::fs::write(upper.join("src/b.txt"), "").unwrap();
    mark(&upper.join("src/b.txt"), "user.overlay.whiteout", b"y");
    assert_eq!(summary(&workspace), ["M src/b.txt"]);
    mark(&upper.join("src"), "user.overlay.opaque", b"x");
    assert_eq!(summary(&workspace), ["D src/b.txt"]);
}

#[test]
fn marks_of_another_file_system_are_refused_or_mean_nothing() {
    let world = TestWorld::new();
    let (workspace, upper) = world.overlay();
    std::fs::create_dir(upper.join("src")).unwrap();
    // Only root can set these at all, and such a mount does not read them.
    let _ = rustix::fs::setxattr(
        upper.join("src"),
        "trusted.overlay.opaque",
        b"y",
        rustix::fs::XattrFlags::empty(),
    );
    assert_eq!(summary(&workspace), [""; 0]);
    mark(&upper.join("src"), "user.overlay.redirect", b"/etc");
    let result = workspace.diff();
    assert!(
        matches!(result, Err(WorkspaceError::ForeignMark { .. })),
        "{result:?}"
    );
    // It can always be thrown away.
    workspace.discard(true).unwrap();
}

#[test]
fn what_can_hurt_is_reported_and_never_committed() {
    let world = TestWorld::new();
    let (mut workspace, upper) = world.overlay();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        upper.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(upper.join("sock")).unwrap();
    std::fs::write(upper.join("su"), "#!/bin/sh\n").unwrap();
    permit(&upper.join("su"), 0o4755);
    symlink("/etc/passwd", upper.join("abs")).unwrap();
    symlink("../../x", upper.join("out")).unwrap();
    std::fs::create_dir_all(upper.join(".git/hooks")).unwrap();
    std::fs::write(upper.join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();

    let diff = workspace.diff().unwrap();
    let of = |path: &str| diff.get(&path.parse().unwrap()).unwrap();
    assert_eq!(of("pipe").held_back, Some(UncommittableReason::Special));
    assert_eq!(of("sock").held_back, Some(UncommittableReason::Special));
    assert!(of("su").risks.contains(&ChangeRisk::SetId));
    assert!(of("abs").risks.contains(&ChangeRisk::AbsoluteLink));
    assert!(of("out").risks.contains(&ChangeRisk::EscapingLink));
    assert_eq!(
        of(".git/hooks/pre-commit").held_back,
        Some(UncommittableReason::GitInternals)
    );

    let committed = workspace.commit(&ChangeSelection::all(), None).unwrap();
    let held: Vec<_> = committed
        .held_back
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        held,
        [
            ".git",
            ".git/hooks",
            ".git/hooks/pre-commit",
            "pipe",
            "sock"
        ]
    );
    assert_eq!(workspace.record().state, WorkspaceStatus::Pending);
    for path in ["pipe", "sock", ".git"] {
        assert!(!world.path(path).exists(), "{path}");
    }
    let TestPathState::File(_, mode) = world.tree()[std::path::Path::new("su")].clone() else {
        panic!("not a file")
    };
    assert_eq!(mode, 0o755, "a set-user-id bit was committed");

    let again = workspace.commit(&ChangeSelection::all(), None);
    assert!(
        matches!(again, Err(WorkspaceError::AllHeldBack(_))),
        "{again:?}"
    );
    let allowed = ChangeSelection {
        git_internals: true,
        ..ChangeSelection::default()
    };
    workspace.commit(&allowed, None).unwrap();
    assert!(world.path(".git/hooks/pre-commit").exists());
}

#[test]
fn names_can_be_anything_but_a_slash() {
    let world = TestWorld::new();
    let before = world.tree();
    let (mut workspace, upper) = world.overlay();
    for name in [
        &b"new\nline"[..],
        b"\xff\xfe",
        b"back\\slash",
        b" ",
        b"-rf",
        b"\x1b[2J",
    ] {
        std::fs::write(upper.join(odd_name(name)), name).unwrap();
    }
    commit(&mut workspace).unwrap();
    assert_eq!(world.tree().len(), before.len() + 6);
    assert_eq!(
        std::fs::read(world.base.path().join(odd_name(b"\xff\xfe"))).unwrap(),
        b"\xff\xfe"
    );
    workspace.undo().unwrap();
    assert_eq!(world.tree(), before);
}

#[test]
fn a_bottomless_layer_is_refused_and_goes_away() {
    let world = TestWorld::across_file_systems();
    let (workspace, upper) = world.overlay();
    let mut here = rustix::fs::open(
        &upper,
        rustix::fs::OFlags::DIRECTORY,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&here, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        here = rustix::fs::openat(&here, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    let result = workspace.diff();
    assert!(
        matches!(
            result,
            Err(WorkspaceError::TooMuch { .. } | WorkspaceError::Path(_))
        ),
        "{result:?}"
    );
    let home = upper.parent().unwrap().parent().unwrap().to_owned();
    workspace.discard(true).unwrap();
    assert!(!home.exists());
}

#[test]
fn a_workspace_with_very_many_entries_is_looked_through() {
    // In memory: it is not the disk that is looked at.
    let world = TestWorld::across_file_systems();
    let (workspace, upper) = world.overlay();
    std::fs::create_dir(upper.join("many")).unwrap();
    for number in 0..20_000 {
        std::fs::File::create(upper.join(format!("many/{number}"))).unwrap();
    }
    assert_eq!(workspace.diff().unwrap().changes.len(), 20_001);
}

#[test]
fn a_snapshot_that_is_replaced_or_forgotten_takes_no_space() {
    let world = TestWorld::new();
    let (mut workspace, layer) = world.overlay();
    std::fs::write(layer.join("a.txt"), "one\n").unwrap();
    let kept = |workspace: &crate::Workspace| {
        let home = layer.ancestors().find_map(|above| {
            let place = above.join("snapshots");
            place.is_dir().then_some(place)
        });
        let count = home.map_or(0, |home| std::fs::read_dir(home).unwrap().count());
        (count, workspace.record().snapshots.len())
    };
    workspace.snapshot("a").unwrap();
    workspace.snapshot("a").unwrap();
    assert_eq!(kept(&workspace), (1, 1));
    assert!(workspace.snapshot_within("b", 1).is_err());
    assert_eq!(
        kept(&workspace),
        (1, 1),
        "one that does not fit leaves nothing"
    );
    workspace.forget_snapshot("a").unwrap();
    workspace.forget_snapshot("never").unwrap();
    assert_eq!(kept(&workspace), (0, 0));
}

#[test]
fn snapshots_bring_back_a_layer_and_forks_start_from_it() {
    for copies in [true, false] {
        let world = TestWorld::new();
        let (mut workspace, layer) = if copies {
            world.copy()
        } else {
            world.overlay()
        };
        std::fs::write(layer.join("a.txt"), "one\n").unwrap();
        workspace.snapshot("first").unwrap();
        let first = workspace.diff().unwrap();
        std::fs::write(layer.join("a.txt"), "two\n").unwrap();
        std::fs::write(layer.join("more"), "more\n").unwrap();
        if copies {
            std::fs::remove_file(layer.join("link")).unwrap();
        } else {
            whiteout(&layer.join("link"));
        }
        let second = workspace.diff().unwrap();
        assert_eq!(second.changes.len(), 3);
        let fork = workspace.fork("a fork").unwrap();
        assert_eq!(fork.diff().unwrap().digest, second.digest);
        let open = workspace.layer().unwrap();
        assert!(matches!(
            workspace.restore("first"),
            Err(WorkspaceError::InUse(_))
        ));
        drop(open);
        workspace.restore("first").unwrap();
        assert_eq!(workspace.diff().unwrap().digest, first.digest);
        assert_eq!(fork.diff().unwrap().digest, second.digest);
        assert!(workspace.restore("none").is_err());
    }
}

#[test]
fn workspaces_are_placed_apart_where_the_file_system_takes_the_hint() {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    let world = TestWorld::new();
    let _workspace = world.overlay();
    let open = |path: &std::path::Path| std::fs::File::open(path).unwrap();
    let other = open(world.store.root());
    let takes_it = ioctl_getflags(&other)
        .and_then(|flags| ioctl_setflags(&other, flags | IFlags::TOPDIR))
        .is_ok();
    let home = open(&world.store.root().join("workspaces"));
    let apart = ioctl_getflags(&home).is_ok_and(|flags| flags.contains(IFlags::TOPDIR));
    assert_eq!(apart, takes_it);
}

/// Workspaces that were closed without a change, by where they lie.
fn left_in(world: &TestWorld, place: &str) -> Vec<std::path::PathBuf> {
    let left = std::fs::read_dir(world.store.root().join(place));
    left.into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[test]
fn an_empty_workspace_is_used_again() {
    use std::os::unix::fs::MetadataExt;
    let world = TestWorld::new();
    let inode = |upper: &std::path::Path| std::fs::metadata(upper).unwrap().ino();
    let (first, upper) = world.overlay();
    let (id, number) = (first.id().clone(), inode(&upper));
    // As the kernel leaves it.
    let work = upper.parent().unwrap().join("work/work");
    std::fs::create_dir_all(work.join("incompat/volatile")).unwrap();
    mark(&upper, "user.overlay.uuid", &[7; 16]);
    first.close().unwrap();
    // None any more from the moment it was closed.
    assert!(world.store.list().unwrap().is_empty());
    assert_eq!(left_in(&world, "used").len(), 1);
    world.store.tidy_spares();
    assert!(left_in(&world, "used").is_empty());
    assert_eq!(left_in(&world, "spare").len(), 1);
    // What the kernel left is put aside with everything else, and removed some time.
    let aside = left_in(&world, "trash");
    assert!(aside[0].join("incompat/volatile").exists() && aside.len() == 1);
    world.store.empty_trash();
    assert!(left_in(&world, "trash").is_empty());

    let (second, upper) = world.overlay();
    assert_eq!(inode(&upper), number);
    assert_ne!(*second.id(), id);
    assert!(!work.exists());
    assert!(left_in(&world, "spare").is_empty());
    let listed = world.store.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].id, *second.id());
    std::fs::write(upper.join("new.txt"), "n\n").unwrap();
    assert_eq!(summary(&second), ["A new.txt"]);
    // One with changes is kept as what it is.
    second.close().unwrap();
    assert!(left_in(&world, "used").is_empty());
}

#[test]
fn what_somebody_put_into_an_empty_workspace_is_never_seen_by_the_next() {
    let meddle: [fn(&std::path::Path); 5] = [
        |spare| std::fs::write(spare.join("layer/upper/planted"), "p").unwrap(),
        |spare| mark(&spare.join("layer/upper"), "user.overlay.opaque", b"y"),
        |spare| std::fs::create_dir(spare.join("layer/work/index")).unwrap(),
        |spare| std::fs::create_dir(spare.join("commits")).unwrap(),
        |spare| {
            std::fs::remove_dir(spare.join("layer/upper")).unwrap();
            symlink("/", spare.join("layer/upper")).unwrap();
        },
    ];
    for meddle in meddle {
        let world = TestWorld::new();
        world.overlay().0.close().unwrap();
        world.store.tidy_spares();
        let spare = left_in(&world, "spare").remove(0);
        meddle(&spare);
        let (workspace, upper) = world.overlay();
        assert!(summary(&workspace).is_empty());
        assert_eq!(std::fs::read_dir(upper).unwrap().count(), 0);
        assert!(left_in(&world, "spare").is_empty());
        assert!(!workspace.part("commits").exists());
    }
}

#[test]
fn an_empty_workspace_that_somebody_has_not_let_go_of_is_left_alone() {
    let world = TestWorld::new();
    let hold = |spare: &std::path::Path| {
        let held = std::fs::File::open(spare.join("in-use.lock")).unwrap();
        held.lock().unwrap();
        held
    };
    world.overlay().0.close().unwrap();
    let used = left_in(&world, "used");
    let holding = hold(&used[0]);
    world.store.tidy_spares();
    assert_eq!(left_in(&world, "used"), used);
    drop(holding);

    world.store.tidy_spares();
    let spare = left_in(&world, "spare");
    let _holding = hold(&spare[0]);
    let (_workspace, _upper) = world.overlay();
    assert_eq!(left_in(&world, "spare"), spare);
}

#[test]
fn more_empty_workspaces_than_are_needed_again_are_removed_together() {
    let world = TestWorld::new();
    let aside = || left_in(&world, "trash").len();
    let close_many = |count: usize| {
        let many: Vec<_> = (0..count).map(|_| world.overlay().0).collect();
        for one in many {
            one.close().unwrap();
        }
    };
    close_many(20);
    assert_eq!(left_in(&world, "used").len(), 4);
    assert_eq!(aside(), 16);
    assert!(!world.store.trash_is_full());
    world.store.tidy_spares();
    assert_eq!(left_in(&world, "spare").len(), 4);
    // Four of these take what is there, and are kept again.
    close_many(5);
    assert_eq!(left_in(&world, "used").len(), 4);
    assert!(world.store.trash_is_full());
    world.store.empty_trash();
    assert_eq!(aside(), 0);
    // A caller that never empties it has that done by the next workspace.
    for _ in 0..11 {
        close_many(11);
    }
    assert!(aside() < 70, "{}", aside());
}
