use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::*;

struct World {
    directory: tempfile::TempDir,
    git: GitProgram,
}

impl World {
    /// A repository with one commit, installed dependencies, build results, a secret, work that is
    /// not committed, and its commit laid out beside it.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let git = GitProgram::find("", std::env::var_os("PATH").as_deref()).unwrap();
        let world = Self { directory, git };
        let files = [
            (
                ".gitignore",
                "node_modules/\n*.log\nsrc/_version.py\n.env\nconf/\n",
            ),
            ("src/app.py", "app\n"),
            ("src/gone.py", "gone\n"),
        ];
        for (path, text) in files {
            world.write(path, text);
        }
        for arguments in [
            &["init", "--quiet", "--template="][..],
            &["config", "user.name", "A"],
            &["config", "user.email", "a@localhost"],
            &["add", "--all"],
            &["commit", "--quiet", "--message=first"],
        ] {
            world.git.run(&world.checkout(), arguments).unwrap();
        }
        for (path, text) in [
            ("packages/a/node_modules/dep/index.js", "dep"),
            ("src/_version.py", "version"),
            ("trace.log", "log"),
            (".env", "TOKEN=1"),
            ("conf/server.pem", "key"),
            ("conf/plain.ini", "plain"),
            (".venv/pyvenv.cfg", "home = /usr/bin"),
            ("draft.py", "draft"),
            ("drafts/a.py", "draft"),
            ("staged.py", "staged"),
        ] {
            world.write(path, text);
        }
        world
            .git
            .run(&world.checkout(), &["add", "staged.py"])
            .unwrap();
        let tree = world.directory.path().join("laid/tree");
        std::fs::create_dir_all(tree.join("src")).unwrap();
        for path in [".gitignore", "src/app.py"] {
            std::fs::copy(world.checkout().join(path), tree.join(path)).unwrap();
        }
        world
    }

    fn checkout(&self) -> std::path::PathBuf {
        self.directory.path().join("checkout")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.checkout().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn below(&self) -> IgnoredLayers {
        let laid = self.directory.path().join("laid");
        IgnoredLayers::make(&self.git, &self.checkout(), &laid.join("tree"), &laid)
            .unwrap()
            .unwrap()
    }
}

fn is_hidden(mask: &Path, path: &str) -> bool {
    std::fs::symlink_metadata(mask.join(path))
        .is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == 0)
}

#[test]
fn what_is_ignored_shows_and_nothing_else_that_is_not_committed() {
    let world = World::new();
    let below = world.below();
    let [mask, checkout] = &below.layers()[..] else {
        panic!();
    };
    assert_eq!(*checkout, world.checkout());
    for path in [
        ".git",
        "draft.py",
        "drafts",
        "staged.py",
        // The commit that is laid out has lost it.
        "src/gone.py",
        ".env",
        "conf/server.pem",
    ] {
        assert!(is_hidden(mask, path), "{path}");
    }
    for path in [
        "packages/a/node_modules",
        "src/_version.py",
        "trace.log",
        "conf/plain.ini",
        ".venv",
        "src/app.py",
    ] {
        assert!(!mask.join(path).exists(), "{path}");
        assert!(!is_hidden(mask, path), "{path}");
    }
}

#[test]
fn a_path_in_something_ignored_is_known_to_be() {
    let below = World::new().below();
    for path in [
        "packages/a/node_modules/dep/new.js",
        "src/_version.py",
        "trace.log",
        ".venv/bin/python",
    ] {
        assert!(below.ignores(path.as_bytes()), "{path}");
    }
    for path in ["src/app.py", "trace.log2", "packages/a/x.js"] {
        assert!(!below.ignores(path.as_bytes()), "{path}");
    }
}

#[test]
fn a_file_that_is_the_checkouts_keeps_its_time_and_another_does_not() {
    let world = World::new();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    for path in [".gitignore", "src/app.py"] {
        let file = std::fs::File::options()
            .write(true)
            .open(world.checkout().join(path))
            .unwrap();
        file.set_modified(long_ago).unwrap();
    }
    let tree = world.directory.path().join("laid/tree");
    std::fs::write(tree.join(".gitignore"), "another\n").unwrap();
    world.below();
    let time = |path: &str| tree.join(path).metadata().unwrap().modified().unwrap();
    assert_eq!(time("src/app.py"), long_ago);
    assert_ne!(time(".gitignore"), long_ago);
}

#[test]
fn a_repository_without_a_checkout_has_nothing_below() {
    let world = World::new();
    let bare = world.directory.path().join("bare");
    std::fs::create_dir(&bare).unwrap();
    world
        .git
        .run(&bare, &["init", "--quiet", "--bare", "--template="])
        .unwrap();
    let laid = world.directory.path().join("laid");
    let made = IgnoredLayers::make(&world.git, &bare, &laid.join("tree"), &laid).unwrap();
    assert_eq!(made, None);
}
