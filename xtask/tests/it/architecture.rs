//! A copy of this workspace's manifests, broken on purpose.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::xtask;

/// The workspace's manifests, table and crate roots in a repository of their own.
struct Copy(TempDir);

impl Copy {
    fn of_this_workspace() -> Self {
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the workspace's root");
        let copy = Self(tempfile::tempdir().expect("a temporary directory"));
        for name in ["Cargo.toml", "Cargo.lock", "README.md", "ARCHITECTURE.md"] {
            fs::copy(from.join(name), copy.path(name)).expect("a file of the root");
        }
        let crates = fs::read_dir(from.join("crates")).expect("the crates");
        let crates = crates.map(|entry| entry.expect("a crate").path());
        for directory in crates.chain([from.join("xtask"), from.join("tests")]) {
            let name = directory.strip_prefix(from).expect("a path inside");
            copy_rust(&directory, &copy.0.path().join(name));
        }
        let git = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(copy.0.path())
            .status();
        assert!(git.expect("git runs").success());
        copy
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn append(&self, name: &str, text: &str) {
        let mut content = fs::read_to_string(self.path(name)).expect("a file of the copy");
        content.push_str(text);
        fs::write(self.path(name), content).expect("a file of the copy");
    }

    fn architecture(&self) -> Output {
        xtask()
            .arg("architecture")
            .current_dir(self.0.path())
            .output()
            .expect("xtask runs")
    }
}

fn copy_rust(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry").path();
        let target = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            copy_rust(&entry, &target);
        } else if entry
            .extension()
            .is_some_and(|it| it == "rs" || it == "toml")
        {
            fs::copy(&entry, &target).expect("a file");
        }
    }
}

fn said(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}{stderr}", String::from_utf8_lossy(&output.stdout))
}

#[test]
fn an_honest_copy_passes() {
    let output = Copy::of_this_workspace().architecture();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_forbidden_dependency_fails_and_both_crates_are_named() {
    let copy = Copy::of_this_workspace();
    copy.append(
        "crates/lula-protocol/Cargo.toml",
        "\n[build-dependencies]\nxtask = { path = \"../../xtask\" }\n",
    );
    let output = copy.architecture();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("lula-protocol depends on xtask (build), which the table"),
        "{}",
        said(&output)
    );
}

#[test]
fn unsafe_code_and_a_path_of_the_machine_fail_with_file_and_line() {
    let copy = Copy::of_this_workspace();
    fs::write(
        copy.path("crates/lula-protocol/src/fast.rs"),
        "fn f() { unsafe { g() } }\n",
    )
    .unwrap();
    copy.append("tests/e2e/main.rs", "\nunsafe fn g() {}\n");
    fs::write(
        copy.path("NOTES.md"),
        format!("see\n{}{}notes\n", "/wor", "k/"),
    )
    .unwrap();
    let output = copy.architecture();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for expected in [
        "crates/lula-protocol/src/fast.rs:1 holds `unsafe`",
        "tests/e2e/main.rs:",
        "NOTES.md:2 holds a path of one machine",
    ] {
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}

#[test]
fn a_crate_that_nobody_put_in_the_table_fails() {
    let copy = Copy::of_this_workspace();
    fs::create_dir_all(copy.path("crates/lula-extra/src")).unwrap();
    let manifest = "[package]\nname = \"lula-extra\"\nedition = \"2024\"\n";
    fs::write(copy.path("crates/lula-extra/Cargo.toml"), manifest).unwrap();
    fs::write(copy.path("crates/lula-extra/src/lib.rs"), "//! Extra.\n").unwrap();
    let said = said(&copy.architecture());
    for expected in [
        "lula-extra is not in the table",
        "lula-extra does not take the workspace's lints",
        "lula-extra does not begin its lib.rs with `#![forbid(unsafe_code)]`",
    ] {
        assert!(said.contains(expected), "{said}");
    }
}
