//! Repositories of every shape: submodules, linked worktrees, files kept elsewhere, odd names.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{LulaEnv, Ran, git, listing};

fn shell(world: &LulaEnv, script: &str) -> Ran {
    world.run(&["exec", "--", "sh", "-c", script]).exits(0)
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A repository with one commit.
fn commit_all(directory: &Path) {
    git(directory, &["init", "--quiet", "--initial-branch=main"]);
    git(directory, &["add", "--all"]);
    git(directory, &["commit", "--quiet", "--message=one"]);
}

/// Everything but what the test means to change.
fn others(directory: &Path, changed: &[&str]) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = listing(directory);
    files.retain(|(path, _)| !changed.iter().any(|name| path.ends_with(name)));
    files
}

#[test]
fn files_of_a_submodule_are_changed_and_its_repository_is_not() {
    let world = LulaEnv::new();
    let library = world.home().join("library");
    write(&library.join("lib.c"), "int one;\n");
    commit_all(&library);
    let work = world.work();
    write(&work.join("main.c"), "int main;\n");
    commit_all(&work);
    let url = library.to_str().unwrap();
    git(
        &work,
        &[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            url,
            "lib",
        ],
    );
    git(&work, &["commit", "--quiet", "--message=two"]);
    let before = others(&work, &["lib/lib.c", "main.c"]);

    shell(
        &world,
        "echo 'int two;' >> lib/lib.c; echo 'int three;' >> main.c",
    );
    let diff = world.run(&["diff", "--json"]).exits(0).json();
    let paths: Vec<_> = diff["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(paths, ["lib/lib.c", "main.c"]);
    world.run(&["commit"]).exits(0);
    assert_eq!(
        std::fs::read_to_string(work.join("lib/lib.c")).unwrap(),
        "int one;\nint two;\n"
    );
    assert_eq!(others(&work, &["lib/lib.c", "main.c"]), before);
    assert_eq!(
        git(&work.join("lib"), &["status", "--porcelain"]),
        "M lib.c"
    );
    world.run(&["undo"]).exits(0);
    assert_eq!(git(&work.join("lib"), &["status", "--porcelain"]), "");

    // Where a submodule's repository is, decides whose hooks git runs there.
    shell(&world, "echo 'gitdir: /tmp/elsewhere' > lib/.git");
    world.run(&["commit"]).exits(3);
    assert!(git(&work, &["submodule", "status"]).contains("lib"));
}

#[test]
fn a_linked_worktree_is_worked_in_and_its_main_one_is_left_alone() {
    let world = LulaEnv::new();
    let main = world.home().join("main");
    write(&main.join("a.txt"), "one\n");
    commit_all(&main);
    std::fs::remove_dir(world.work()).unwrap();
    let work = world.work();
    git(
        &main,
        &[
            "worktree",
            "add",
            "--quiet",
            "-b",
            "side",
            work.to_str().unwrap(),
        ],
    );
    let before = listing(&main);
    shell(&world, "echo two >> a.txt");
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
    world.run(&["commit"]).exits(0);
    assert_eq!(git(&work, &["diff", "--name-only"]), "a.txt");
    let mut after = listing(&main);
    // git itself refreshes the worktree's index when it is asked for a status.
    after.retain(|(path, _)| !path.ends_with("index"));
    let mut before = before;
    before.retain(|(path, _)| !path.ends_with("index"));
    assert_eq!(after, before);
    world.run(&["undo"]).exits(0);
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
}

#[test]
fn a_run_in_a_linked_worktree_delivers_a_branch_there() {
    let world = LulaEnv::new();
    crate::support::Repo::buggy(&world);
    let side = world.home().join("side");
    let side = side.to_str().unwrap();
    git(
        &world.work(),
        &["worktree", "add", "--quiet", "-b", "side", side],
    );
    world
        .run(&["run", "--task", "fix the failing tests", "--repo", side])
        .exits(0);
    let list = ["branch", "--list", "--format=%(refname:short)", "lula/*"];
    assert_eq!(git(&world.work(), &list).lines().count(), 1);
    assert_eq!(git(Path::new(side), &["status", "--porcelain"]), "");
    assert_eq!(
        git(Path::new(side), &["symbolic-ref", "HEAD"]),
        "refs/heads/side"
    );
}

/// What git-lfs leaves in a repository: a pointer, and filters that would fetch the rest.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:\
                       4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

#[test]
fn a_pointer_to_a_large_file_stays_one_and_no_filter_runs() {
    let world = LulaEnv::new();
    crate::support::Repo::buggy(&world);
    let work = world.work();
    let canary = world.home().join("filter-ran");
    write(&work.join("big.bin"), POINTER);
    write(
        &work.join(".gitattributes"),
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "--message=two"]);
    let filter = format!("sh -c 'touch {}; cat'", canary.display());
    for key in [
        "filter.lfs.smudge",
        "filter.lfs.clean",
        "filter.lfs.process",
        "diff.lfs.textconv",
    ] {
        git(&work, &["config", key, &filter]);
    }
    git(&work, &["config", "filter.lfs.required", "true"]);

    shell(&world, "grep -q git-lfs big.bin && echo more >> items.py");
    world.run(&["diff"]).exits(0);
    world.run(&["discard"]).exits(0);
    world
        .run(&["run", "--task", "fix the failing tests"])
        .exits(0);
    assert!(!canary.exists(), "a filter of the repository ran");
    let list = ["branch", "--list", "--format=%(refname:short)", "lula/*"];
    let branch = git(&work, &list);
    let kept = git(&work, &["cat-file", "blob", &format!("{branch}:big.bin")]);
    assert_eq!(kept, POINTER.trim());
    assert_eq!(
        std::fs::read_to_string(work.join("big.bin")).unwrap(),
        POINTER
    );
}

#[test]
fn odd_names_bits_links_and_large_files_come_through_as_they_are() {
    let world = LulaEnv::new();
    let work = world.work();
    write(&work.join("plain"), "x\n");
    commit_all(&work);
    shell(
        &world,
        "printf x > 'new\nline'; printf x > ' leading'; printf x > '-rf'; printf x > 'naïve ☃'; \
         printf '\\377' > \"$(printf 'bad\\377utf')\"; ln -s plain link; \
         printf '#!/bin/sh\\n' > run; chmod 755 run; \
         dd if=/dev/zero of=huge bs=1M count=64 status=none; : > empty; mkdir hollow",
    );
    world.run(&["diff"]).exits(0);
    world.run(&["commit"]).exits(0);
    let name = |bytes: &[u8]| work.join(std::ffi::OsStr::from_bytes(bytes));
    for odd in [&b"new\nline"[..], b" leading", b"-rf", "naïve ☃".as_bytes()] {
        assert_eq!(std::fs::read(name(odd)).unwrap(), b"x");
    }
    assert_eq!(std::fs::read(name(b"bad\xffutf")).unwrap(), b"\xff");
    assert_eq!(
        std::fs::read_link(work.join("link")).unwrap(),
        Path::new("plain")
    );
    let mode = |name: &str| {
        let metadata = std::fs::metadata(work.join(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("run") & 0o111, 0o111);
    assert_eq!(
        std::fs::metadata(work.join("huge")).unwrap().len(),
        64 << 20
    );
    assert_eq!(std::fs::metadata(work.join("empty")).unwrap().len(), 0);
    assert!(work.join("hollow").is_dir());
    let untouched = git(&work, &["status", "--porcelain", "plain"]);
    assert_eq!(untouched, "");
    world.run(&["undo"]).exits(0);
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
    // A link that is there is not followed.
    symlink("/etc/passwd", work.join("outside")).unwrap();
    shell(&world, "rm outside; echo mine > outside");
    world.run(&["commit"]).exits(0);
    assert_eq!(
        std::fs::read_to_string(work.join("outside")).unwrap(),
        "mine\n"
    );
}
