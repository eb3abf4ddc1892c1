//! A user's directory and a state directory, and whole trees as values.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};

use crate::{
    ChangeSelection, LayerDirectories, LayerPreference, Workspace, WorkspaceError, WorkspaceStore,
};

/// What a path is, as far as a user cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestPathState {
    File(Vec<u8>, u32),
    Directory(u32),
    Link(PathBuf),
}

pub(super) type TestListing = BTreeMap<PathBuf, TestPathState>;

/// Everything below a directory.
pub(super) fn listing(top: &Path) -> TestListing {
    let mut found = TestListing::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.permissions().mode() & 0o7777;
            let thing = if metadata.is_symlink() {
                TestPathState::Link(std::fs::read_link(&path).unwrap())
            } else if metadata.is_dir() {
                waiting.push(path.clone());
                TestPathState::Directory(mode)
            } else {
                TestPathState::File(std::fs::read(&path).unwrap(), mode)
            };
            found.insert(path.strip_prefix(top).unwrap().to_owned(), thing);
        }
    }
    found
}

/// The same with inodes and times: nothing at all was touched.
pub(super) fn stamps(top: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, i64, i64)> {
    let of = |path: &Path| {
        let m = path.symlink_metadata().unwrap();
        (
            m.ino(),
            m.mtime(),
            m.mtime_nsec(),
            m.ctime(),
            m.ctime_nsec(),
        )
    };
    let mut all: BTreeMap<_, _> = listing(top)
        .into_keys()
        .map(|path| (path.clone(), of(&top.join(&path))))
        .collect();
    all.insert(PathBuf::new(), of(top));
    all
}

/// A base, a state directory and a store.
pub(super) struct TestWorld {
    pub(super) base: tempfile::TempDir,
    #[expect(dead_code, reason = "removed when dropped")]
    state: tempfile::TempDir,
    pub(super) store: WorkspaceStore,
}

impl TestWorld {
    pub(super) fn new() -> Self {
        Self::with_state(tempfile::tempdir().unwrap())
    }

    /// State on another file system, so that nothing can be renamed from there.
    pub(super) fn across_file_systems() -> Self {
        let state = tempfile::tempdir_in("/dev/shm").unwrap();
        let world = Self::with_state(state);
        let device = |path: &Path| path.metadata().unwrap().dev();
        assert_ne!(
            device(world.base.path()),
            device(Path::new("/dev/shm")),
            "the temporary directory must not be in /dev/shm"
        );
        world
    }

    fn with_state(state: tempfile::TempDir) -> Self {
        let store = WorkspaceStore::at(state.path(), 1 << 30);
        let base = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a.txt", "a\n"),
            ("src/b.txt", "b\n"),
            ("src/deep/c.txt", "c\n"),
        ] {
            let path = base.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        symlink("a.txt", base.path().join("link")).unwrap();
        Self { base, state, store }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(super) fn copy(&self) -> (Workspace, PathBuf) {
        let wanted = LayerPreference::Copy("a test".to_owned());
        let workspace = self.store.create(self.base.path(), wanted, "test").unwrap();
        let LayerDirectories::Copy { directory } = workspace.layer().unwrap().place else {
            panic!("not a copy")
        };
        (workspace, directory)
    }

    pub(super) fn overlay(&self) -> (Workspace, PathBuf) {
        let workspace = self
            .store
            .create(self.base.path(), LayerPreference::Overlay, "test")
            .unwrap();
        let LayerDirectories::Overlay { upper, .. } = workspace.layer().unwrap().place else {
            panic!("not an overlay")
        };
        (workspace, upper)
    }

    /// A copy in which a bit of everything was changed, and how the tree looks with that.
    pub(super) fn changed(&self) -> (Workspace, TestListing) {
        let (workspace, copy) = self.copy();
        std::fs::write(copy.join("a.txt"), "changed\n").unwrap();
        std::fs::write(copy.join("new.txt"), "").unwrap();
        std::fs::create_dir_all(copy.join("x/y")).unwrap();
        std::fs::write(copy.join("x/y/run.sh"), "#!/bin/sh\n").unwrap();
        permit(&copy.join("x/y/run.sh"), 0o755);
        std::fs::remove_dir_all(copy.join("src/deep")).unwrap();
        std::fs::remove_file(copy.join("link")).unwrap();
        symlink("src", copy.join("link")).unwrap();
        permit(&copy.join("src/b.txt"), 0o600);
        permit(&copy.join("src"), 0o750);
        let expected = listing(&copy);
        (workspace, expected)
    }

    pub(super) fn tree(&self) -> TestListing {
        listing(self.base.path())
    }
}

pub(super) fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A deleted name in an overlay's upper directory.
pub(super) fn whiteout(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}

pub(super) fn mark(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}

/// Letters and paths, as a person reads them.
pub(super) fn summary(workspace: &Workspace) -> Vec<String> {
    let diff = workspace.diff().unwrap();
    let line = |change: &crate::PathChange| {
        let conflict = if change.conflict { " conflict" } else { "" };
        format!("{} {}{conflict}", change.what.letter(), change.path)
    };
    diff.changes.iter().map(line).collect()
}

pub(super) fn commit(workspace: &mut Workspace) -> Result<Vec<String>, WorkspaceError> {
    let committed = workspace.commit(&ChangeSelection::all(), None)?;
    Ok(committed.paths.iter().map(ToString::to_string).collect())
}

pub(super) fn odd_name(bytes: &[u8]) -> PathBuf {
    std::ffi::OsStr::from_bytes(bytes).into()
}
