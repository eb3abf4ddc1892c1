use super::world::*;
use crate::commit::faults;
use crate::{ChangeSelection, WorkspaceError, WorkspaceStatus};

#[test]
fn nothing_changes_until_commit_and_then_everything() {
    let world = TestWorld::new();
    let before = world.tree();
    let (mut workspace, expected) = world.changed();
    assert_eq!(
        summary(&workspace),
        [
            "M a.txt",
            "M link",
            "A new.txt",
            "X src",
            "X src/b.txt",
            "D src/deep",
            "D src/deep/c.txt",
            "A x",
            "A x/y",
            "A x/y/run.sh",
        ]
    );
    assert_eq!(world.tree(), before);
    commit(&mut workspace).unwrap();
    assert_eq!(world.tree(), expected);
    assert_eq!(workspace.record().state, WorkspaceStatus::Committed);
    assert_eq!(summary(&workspace), [""; 0]);
}

#[test]
fn undo_brings_back_the_very_files_and_redo_the_new_ones() {
    let world = TestWorld::new();
    let (before, inodes) = (world.tree(), stamps(world.base.path()));
    let (mut workspace, expected) = world.changed();
    commit(&mut workspace).unwrap();
    workspace.undo().unwrap();
    assert_eq!(world.tree(), before);
    for path in ["a.txt", "src/deep/c.txt", "link"] {
        let now = stamps(world.base.path())[std::path::Path::new(path)];
        let then = inodes[std::path::Path::new(path)];
        assert_eq!((now.0, now.1, now.2), (then.0, then.1, then.2), "{path}");
    }
    assert_eq!(workspace.record().state, WorkspaceStatus::Pending);
    workspace.redo().unwrap();
    assert_eq!(world.tree(), expected);
    workspace.undo().unwrap();
    assert_eq!(world.tree(), before);
    assert!(matches!(
        workspace.undo(),
        Err(WorkspaceError::Nothing("undo"))
    ));
    // What was undone can still be committed, anew.
    commit(&mut workspace).unwrap();
    assert_eq!(world.tree(), expected);
}

#[test]
fn discard_leaves_no_trace_in_the_tree() {
    let world = TestWorld::new();
    let before = stamps(world.base.path());
    let (workspace, _) = world.changed();
    let id = workspace.id().clone();
    workspace.discard(false).unwrap();
    assert_eq!(stamps(world.base.path()), before);
    let mut again = world.store.open(&id).unwrap();
    assert!(matches!(
        commit(&mut again),
        Err(WorkspaceError::Discarded(_))
    ));
    again.undo().unwrap();
    assert_eq!(summary(&again).len(), 10);
    again.discard(true).unwrap();
    assert!(matches!(
        world.store.open(&id),
        Err(WorkspaceError::Unknown(_))
    ));
}

#[test]
fn a_part_can_be_committed_and_the_rest_later() {
    let world = TestWorld::new();
    let (mut workspace, expected) = world.changed();
    let part = ChangeSelection {
        paths: vec!["x/y/run.sh".parse().unwrap(), "a.txt".parse().unwrap()],
        ..ChangeSelection::default()
    };
    workspace.commit(&part, None).unwrap();
    assert_eq!(workspace.record().state, WorkspaceStatus::Pending);
    assert_eq!(
        std::fs::read_to_string(world.path("a.txt")).unwrap(),
        "changed\n"
    );
    assert!(world.path("x/y/run.sh").exists() && world.path("src/deep").exists());
    commit(&mut workspace).unwrap();
    assert_eq!(world.tree(), expected);
    let missing = ChangeSelection {
        paths: vec!["nowhere".parse().unwrap()],
        ..ChangeSelection::default()
    };
    assert!(workspace.commit(&missing, None).is_err());
}

#[test]
fn what_the_user_changed_meanwhile_is_a_conflict_and_stays() {
    let world = TestWorld::new();
    let (mut workspace, _) = world.changed();
    world.write("a.txt", "mine\n");
    world.write("src/deep/mine.txt", "mine\n");
    let before = stamps(world.base.path());
    let conflicts = match commit(&mut workspace) {
        Err(WorkspaceError::Conflicts(paths)) => paths,
        other => panic!("{other:?}"),
    };
    assert_eq!(conflicts[0].to_string(), "a.txt");
    assert_eq!(stamps(world.base.path()), before);
    // The others can still be taken.
    let others = ChangeSelection {
        paths: vec!["x".parse().unwrap()],
        ..ChangeSelection::default()
    };
    workspace.commit(&others, None).unwrap();
    // The same content from both sides is no conflict.
    world.write("a.txt", "changed\n");
    assert!(
        !summary(&workspace)
            .iter()
            .any(|line| line.contains("a.txt"))
    );
}

#[test]
fn what_the_user_changed_and_put_back_is_no_conflict() {
    let world = TestWorld::new();
    let (workspace, upper) = world.overlay();
    std::fs::write(upper.join("a.txt"), "theirs\n").unwrap();
    std::fs::write(upper.join("new.txt"), "theirs\n").unwrap();
    let (mut workspace, _) = workspace.close().unwrap();
    world.write("a.txt", "mine\n");
    world.write("new.txt", "mine\n");
    assert_eq!(
        summary(&workspace),
        ["M a.txt conflict", "M new.txt conflict"]
    );
    std::fs::remove_file(world.path("a.txt")).unwrap();
    assert_eq!(
        summary(&workspace),
        ["A a.txt conflict", "M new.txt conflict"]
    );
    world.write("a.txt", "a\n");
    std::fs::remove_file(world.path("new.txt")).unwrap();
    assert_eq!(summary(&workspace), ["M a.txt", "A new.txt"]);
    commit(&mut workspace).unwrap();
}

#[test]
fn a_review_is_bound_to_its_bytes() {
    let world = TestWorld::new();
    let (mut workspace, copy) = world.copy();
    std::fs::write(copy.join("a.txt"), "reviewed\n").unwrap();
    let reviewed = workspace.diff().unwrap().digest;
    std::fs::write(copy.join("a.txt"), "sneaked in\n").unwrap();
    let result = workspace.commit(&ChangeSelection::all(), Some(&reviewed));
    assert!(matches!(
        result,
        Err(WorkspaceError::ChangedSinceReview { .. })
    ));
    assert_eq!(std::fs::read_to_string(world.path("a.txt")).unwrap(), "a\n");
    std::fs::write(copy.join("a.txt"), "reviewed\n").unwrap();
    workspace
        .commit(&ChangeSelection::all(), Some(&reviewed))
        .unwrap();
}

#[test]
fn undo_refuses_where_the_user_went_on() {
    let world = TestWorld::new();
    let (mut workspace, _) = world.changed();
    commit(&mut workspace).unwrap();
    world.write("a.txt", "went on\n");
    let before = stamps(world.base.path());
    assert!(matches!(
        workspace.undo(),
        Err(WorkspaceError::Conflicts(_))
    ));
    assert_eq!(stamps(world.base.path()), before);
    // Put back as the commit had it, it can be undone.
    world.write("a.txt", "changed\n");
    workspace.undo().unwrap();
    assert_eq!(std::fs::read_to_string(world.path("a.txt")).unwrap(), "a\n");
}

#[test]
fn undo_leaves_a_directory_that_holds_something_of_the_users() {
    let world = TestWorld::new();
    let (mut workspace, expected) = world.changed();
    commit(&mut workspace).unwrap();
    world.write("x/mine.txt", "mine\n");
    workspace.undo().unwrap();
    assert!(world.path("x/mine.txt").exists() && !world.path("x/y").exists());
    workspace.redo().unwrap();
    std::fs::remove_file(world.path("x/mine.txt")).unwrap();
    assert_eq!(world.tree(), expected);
}

#[test]
fn a_file_in_the_place_of_a_directory_and_the_other_way_round() {
    let world = TestWorld::new();
    let before = world.tree();
    let (mut workspace, copy) = world.copy();
    std::fs::remove_dir_all(copy.join("src")).unwrap();
    std::fs::write(copy.join("src"), "a file now\n").unwrap();
    std::fs::remove_file(copy.join("a.txt")).unwrap();
    std::fs::create_dir(copy.join("a.txt")).unwrap();
    std::fs::write(copy.join("a.txt/inner"), "x").unwrap();
    let expected = listing(&copy);
    commit(&mut workspace).unwrap();
    assert_eq!(world.tree(), expected);
    workspace.undo().unwrap();
    assert_eq!(world.tree(), before);
}

/// Stops a commit, an undo and a redo after every single step, and looks at what the next opening
/// makes of it.
fn cut_off_everywhere(world_of: fn() -> TestWorld) {
    for turn in ["commit", "undo", "redo"] {
        let mut finished = false;
        let mut seen_old = 0;
        for steps in 0..200 {
            let world = world_of();
            let before = world.tree();
            let (mut workspace, expected) = world.changed();
            let id = workspace.id().clone();
            let (old, new) = match turn {
                "commit" => (&before, &expected),
                "undo" => {
                    commit(&mut workspace).unwrap();
                    (&expected, &before)
                }
                _ => {
                    commit(&mut workspace).unwrap();
                    workspace.undo().unwrap();
                    (&before, &expected)
                }
            };
            faults::stop_after(Some(steps));
            let result = match turn {
                "commit" => commit(&mut workspace).map(drop),
                "undo" => workspace.undo().map(drop),
                _ => workspace.redo().map(drop),
            };
            faults::stop_after(None);
            drop(workspace);
            let mut workspace = world.store.open(&id).unwrap();
            let tree = world.tree();
            if result.is_ok() {
                assert_eq!(&tree, new);
                finished = true;
                break;
            }
            assert!(matches!(result, Err(WorkspaceError::Stopped)), "{result:?}");
            assert!(
                &tree == old || &tree == new,
                "{turn} cut off after {steps}: a mix"
            );
            seen_old += u32::from(&tree == old);
            // And it can be gone on from there.
            if tree == before {
                let _ = commit(&mut workspace);
                assert_eq!(world.tree(), expected, "{turn} cut off after {steps}");
            }
        }
        assert!(finished, "{turn} never finished");
        assert!(
            seen_old > 5,
            "{turn} was hardly ever cut off before its end"
        );
    }
}

#[test]
fn a_commit_cut_off_anywhere_leaves_the_old_or_the_new_tree() {
    cut_off_everywhere(TestWorld::new);
}

#[test]
fn and_so_it_does_across_file_systems() {
    cut_off_everywhere(TestWorld::across_file_systems);
}

/// An attacker with write access to the user's directory swaps a part of it for a link to elsewhere, over and
/// over, while changes are looked at, committed and undone.
#[test]
fn a_directory_swapped_for_a_link_leads_nobody_out() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let world = TestWorld::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("b.txt"), "secret\n").unwrap();
    let (mut workspace, copy) = world.copy();
    std::fs::write(copy.join("src/b.txt"), "changed\n").unwrap();
    std::fs::write(copy.join("src/planted.txt"), "planted\n").unwrap();
    let done = AtomicBool::new(false);
    let secret = crate::WorkspacePath::from_bytes(b"src/b.txt").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (src, aside) = (world.path("src"), world.path("aside"));
            let mut round = 0;
            while !done.load(Ordering::Relaxed) {
                std::fs::rename(&src, &aside).unwrap();
                std::os::unix::fs::symlink(outside.path(), &src).unwrap();
                std::thread::yield_now();
                std::fs::remove_file(&src).unwrap();
                std::fs::rename(&aside, &src).unwrap();
                // Long enough for some commits to get through, too short for most.
                round += 1;
                std::thread::sleep(std::time::Duration::from_micros(round * 379 % 9000));
            }
        });
        let mut committed = 0;
        for _ in 0..300 {
            if let Ok(diff) = workspace.diff()
                && let Some(change) = diff.get(&secret)
            {
                let old = change.old.as_ref().and_then(|old| old.digest);
                assert_ne!(old, Some(lula_protocol::Digest::of_bytes(b"secret\n")));
            }
            if commit(&mut workspace).is_ok() {
                committed += 1;
                let _ = workspace.undo();
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(committed > 0, "nothing was ever committed");
    });
    let left: Vec<_> = listing(outside.path()).into_keys().collect();
    assert_eq!(left, [std::path::PathBuf::from("b.txt")]);
    assert_eq!(
        std::fs::read(outside.path().join("b.txt")).unwrap(),
        b"secret\n"
    );
}

/// An editor saves again and again while changes are committed and undone: no save is ever lost.
#[test]
fn what_the_user_saves_during_a_commit_is_never_lost() {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    let world = TestWorld::new();
    let (mut workspace, copy) = world.copy();
    std::fs::write(copy.join("a.txt"), "theirs\n").unwrap();
    std::fs::write(copy.join("src/b.txt"), "theirs\n").unwrap();
    let (done, saved) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (fresh, target) = (world.path("a.txt~"), world.path("a.txt"));
            while !done.load(Ordering::Relaxed) {
                let number = saved.load(Ordering::Relaxed) + 1;
                std::fs::write(&fresh, format!("save {number}\n")).unwrap();
                std::fs::rename(&fresh, &target).unwrap();
                saved.store(number, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        for _ in 0..40 {
            if commit(&mut workspace).is_ok() {
                let _ = workspace.undo();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let last = format!("save {}\n", saved.load(Ordering::Relaxed));
    assert_eq!(std::fs::read_to_string(world.path("a.txt")).unwrap(), last);
}

#[test]
fn two_processes_do_not_commit_at_once() {
    let world = TestWorld::new();
    let (first, _) = world.changed();
    let (second, copy) = world.copy();
    std::fs::write(copy.join("only-here"), "x").unwrap();
    std::thread::scope(|scope| {
        for mut workspace in [first, second] {
            scope.spawn(move || commit(&mut workspace).unwrap());
        }
    });
    assert!(world.path("only-here").exists() && world.path("x/y/run.sh").exists());
}

#[test]
fn what_nobody_needs_makes_room_and_what_waits_does_not() {
    let world = TestWorld::new();
    let small = crate::WorkspaceStore::at(world.store.root(), 1 << 20);
    let big = |name: &str| {
        let workspace = small
            .create(world.base.path(), crate::LayerPreference::Overlay, name)
            .unwrap();
        let crate::LayerDirectories::Overlay { upper, .. } = workspace.layer().unwrap().place
        else {
            panic!("not an overlay")
        };
        std::fs::write(upper.join(name), vec![b'x'; 700_000]).unwrap();
        workspace.close().unwrap().0
    };
    let first = big("first");
    let id = first.id().clone();
    first.discard(false).unwrap();
    // Both do not fit, and the discarded one goes first.
    let second = big("second");
    small.make_room().unwrap();
    assert!(matches!(small.open(&id), Err(WorkspaceError::Unknown(_))));
    drop(second);
    drop(big("third"));
    let refused = small.create(world.base.path(), crate::LayerPreference::Overlay, "fourth");
    assert!(matches!(refused, Err(WorkspaceError::Full { .. })));
    assert_eq!(small.list().unwrap().len(), 2);
}

#[test]
fn what_workspaces_take_is_noted_until_one_changes() {
    let world = TestWorld::new();
    let (mut workspace, upper) = world.overlay();
    std::fs::write(upper.join("new.txt"), "n\n").unwrap();
    workspace = workspace.close().unwrap().0;
    let used = world.store.make_room().unwrap();
    assert!(used > 0);
    // The note answers: the record could not be read any more.
    let record = workspace.part("record.json");
    let kept = std::fs::read(&record).unwrap();
    std::fs::write(&record, "damaged").unwrap();
    assert_eq!(world.store.make_room().unwrap(), used);
    std::fs::write(&record, kept).unwrap();
    let note = world.store.root().join("tally.json");
    assert!(note.exists());
    commit(&mut workspace).unwrap();
    assert!(!note.exists());
    // One that is unreadable is made anew.
    world.store.make_room().unwrap();
    std::fs::write(&note, "{\"ws_").unwrap();
    assert!(world.store.make_room().unwrap() > 0);
    assert!(std::fs::read_to_string(&note).unwrap().ends_with('}'));
}

#[test]
fn a_wrong_note_removes_nothing_that_waits_for_a_decision_and_refuses_nobody() {
    let world = TestWorld::new();
    let (workspace, upper) = world.overlay();
    std::fs::write(upper.join("new.txt"), "n\n").unwrap();
    let id = workspace.close().unwrap().0.id().clone();
    let note = format!("{{\"{id}\":[9000000,true]}}");
    std::fs::write(world.store.root().join("tally.json"), note).unwrap();
    let small = crate::WorkspaceStore::at(world.store.root(), 1 << 20);
    let used = small.make_room().unwrap();
    assert!(used > 0 && used < 1 << 20, "{used}");
    assert!(world.store.open(&id).is_ok());
}

#[test]
fn state_inside_the_directory_itself_is_refused() {
    let world = TestWorld::new();
    let inside = crate::WorkspaceStore::at(&world.path("src/state"), 1 << 30);
    let refused = inside.create(world.base.path(), crate::LayerPreference::Overlay, "nested");
    assert!(matches!(refused, Err(WorkspaceError::Nested(_))));
}

#[test]
fn of_several_who_make_a_workspace_of_one_name_at_once_one_does_and_the_others_find_it() {
    let world = TestWorld::new();
    for round in 0..25 {
        let id = lula_protocol::WorkspaceId::from_parts(round, [9; 10]);
        let make = || {
            let made = world.store.create_as(
                id.clone(),
                world.base.path(),
                crate::LayerPreference::Overlay,
                "",
            );
            match made {
                Ok(_) => true,
                Err(WorkspaceError::InUse(_)) => false,
                Err(error) => panic!("{error}"),
            }
        };
        let makers = std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            let ended = all.into_iter().map(|one| one.join().unwrap());
            ended.filter(|it_made| *it_made).count()
        });
        assert_eq!(makers, 1);
        world.store.open(&id).unwrap();
    }
}
