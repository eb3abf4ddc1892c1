use std::os::unix::fs::PermissionsExt;

use super::world::*;
use crate::{PathContent, PathReplacement, WorkspaceError};

fn file(text: &str) -> PathContent {
    PathContent::File {
        bytes: text.as_bytes().to_vec(),
        executable: false,
    }
}

fn piece(path: &str, before: Option<PathContent>, after: Option<PathContent>) -> PathReplacement {
    PathReplacement {
        path: path.parse().unwrap(),
        before,
        after,
    }
}

/// Something of every kind.
fn pieces() -> Vec<PathReplacement> {
    vec![
        piece("a.txt", Some(file("a\n")), Some(file("A\n"))),
        piece("src/deep/c.txt", Some(file("c\n")), None),
        piece(
            "src/new/tool.sh",
            None,
            Some(PathContent::File {
                bytes: b"#!/bin/sh\n".to_vec(),
                executable: true,
            }),
        ),
        piece(
            "link",
            Some(PathContent::Link(b"a.txt".to_vec())),
            Some(PathContent::Link(b"src/b.txt".to_vec())),
        ),
    ]
}

#[test]
fn a_known_change_arrives_whole_and_goes_again() {
    for world in [TestWorld::new(), TestWorld::across_file_systems()] {
        // The user's own permissions stay.
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(world.path("a.txt"), private).unwrap();
        let before = world.tree();
        let (id, committed) = world
            .store
            .put(world.base.path(), "a run", &pieces())
            .unwrap();
        assert_eq!(committed.held_back, []);
        let now = world.tree();
        let at = |path: &str| now.get(std::path::Path::new(path)).cloned();
        assert_eq!(
            at("a.txt"),
            Some(TestPathState::File(b"A\n".to_vec(), 0o600))
        );
        assert_eq!(at("src/deep/c.txt"), None);
        assert_eq!(
            at("src/new/tool.sh"),
            Some(TestPathState::File(b"#!/bin/sh\n".to_vec(), 0o755))
        );
        assert_eq!(at("link"), Some(TestPathState::Link("src/b.txt".into())));
        assert_eq!(at("src"), before.get(std::path::Path::new("src")).cloned());
        let there = || world.store.was_put(world.base.path(), "a run").unwrap();
        assert_eq!(there(), Some(id.clone()));
        world.store.open(&id).unwrap().undo().unwrap();
        assert_eq!(there(), None);
        assert_eq!(world.tree(), before);
    }
}

#[test]
fn where_one_file_is_not_as_it_was_nothing_changes() {
    type Spoil = fn(&TestWorld);
    let spoils: [(&str, Spoil); 5] = [
        ("a.txt", |world| world.write("a.txt", "mine\n")),
        // The user made the same change: it is theirs.
        ("a.txt", |world| world.write("a.txt", "A\n")),
        ("src/deep/c.txt", |world| {
            std::fs::remove_file(world.path("src/deep/c.txt")).unwrap();
        }),
        ("src/new", |world| world.write("src/new", "a file\n")),
        ("link", |world| {
            std::fs::remove_file(world.path("link")).unwrap();
            world.write("link", "a.txt");
        }),
    ];
    for (path, spoil) in spoils {
        let world = TestWorld::new();
        spoil(&world);
        let before = stamps(world.base.path());
        let refused = world.store.put(world.base.path(), "a run", &pieces());
        match refused {
            Err(WorkspaceError::Conflicts(paths)) => {
                let named = paths.iter().any(|found| found.to_string() == path);
                assert!(named, "{path}: {paths:?}");
            }
            other => panic!("{path}: {other:?}"),
        }
        assert_eq!(stamps(world.base.path()), before, "{path}");
        assert_eq!(world.store.list().unwrap().len(), 0, "{path}");
    }
}
