//! `cargo xtask test` in a small workspace with one test of every fate.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::xtask;

const LIBRARY: &str = r"
/// ```
/// assert_eq!(sample::two(), 2);
/// ```
///
/// ```
/// assert_eq!(sample::two(), 3);
/// ```
pub fn two() -> u8 {
    2
}

#[test]
fn holds() {
    assert_eq!(two(), 2);
}

#[test]
fn breaks() {
    assert_eq!(two(), 3);
}

#[test]
#[ignore]
fn waits() {}
";

fn workspace(library: &str) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        fs::write(root.path().join(name), text).expect("a file of the workspace");
    };
    fs::create_dir_all(root.path().join("sample/src")).expect("a directory");
    write(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"sample\"]\n",
    );
    write(
        "sample/Cargo.toml",
        "[package]\nname = \"sample\"\nedition = \"2024\"\n",
    );
    write("sample/src/lib.rs", library);
    let lock = Command::new("cargo")
        .args(["generate-lockfile", "--offline"])
        .current_dir(root.path())
        .output()
        .expect("cargo runs");
    assert!(
        lock.status.success(),
        "{}",
        String::from_utf8_lossy(&lock.stderr)
    );
    root
}

fn test(root: &Path, arguments: &[&str]) -> (Output, String) {
    let output = xtask()
        .args(["test", "--no-install"])
        .args(arguments)
        .env("CARGO_TARGET_DIR", root.join("target"))
        .current_dir(root)
        .output()
        .expect("xtask runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, said)
}

#[test]
fn every_fate_is_counted_and_named() {
    let root = workspace(LIBRARY);
    let (output, said) = test(root.path(), &["--only", "test,doctest"]);
    // Held: the requirements, one test, one example. Broken: one test, the ignored one, one example.
    assert_eq!(
        said.lines().last(),
        Some("3 passed, 3 failed, 1 skipped"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
    let (_, failures) = said.rsplit_once("Failed:\n").expect("a list of failures");
    for name in [
        "sample breaks: failed",
        "sample waits: ignored",
        "sample/src/lib.rs - two (line 6)",
    ] {
        assert!(failures.contains(name), "{name} is not in:\n{failures}");
    }
}

#[test]
fn a_filter_counts_what_it_chose() {
    let root = workspace(LIBRARY);
    let (output, said) = test(root.path(), &["--", "holds"]);
    assert_eq!(
        said.lines().last(),
        Some("2 passed, 0 failed, 2 skipped"),
        "{said}"
    );
    assert!(output.status.success());
}

#[test]
fn a_crate_that_does_not_compile_is_a_failure_not_an_empty_success() {
    let root = workspace("fn two() -> u8 { \"two\" }\n");
    let (output, said) = test(root.path(), &["--only", "build,test,doctest"]);
    assert_eq!(said.lines().last(), Some("1 passed, 3 failed"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}
