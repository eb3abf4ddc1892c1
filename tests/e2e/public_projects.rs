//! A project that was not written here, in the suite that runs every time. `cargo xtask real` has more of them,
//! and downloads them; this one is on every machine that built Lula.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{FIX, LulaEnv, Repo, git};

/// Where cargo keeps the source of a crate that Lula is built with.
fn source_of(name: &str) -> PathBuf {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let known: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages = known["packages"].as_array().unwrap().iter();
    let found = packages.find(|package| package["name"] == name).unwrap();
    let manifest = Path::new(found["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().to_owned()
}

/// Makes the working directory a checkout of a crate, as its authors wrote it.
fn check_out(world: &LulaEnv, name: &str) -> Repo {
    let copied = Command::new("cp")
        .arg("--recursive")
        .arg(source_of(name).join("."))
        .arg(world.work())
        .status();
    assert!(copied.unwrap().success());
    let here = world.work();
    for published in [".cargo-ok", ".cargo_vcs_info.json", "Cargo.lock"] {
        let _ = std::fs::remove_file(here.join(published));
    }
    std::fs::rename(here.join("Cargo.toml.orig"), here.join("Cargo.toml")).unwrap();
    std::fs::write(here.join(".gitignore"), "target/\n").unwrap();
    let repo = Repo::with(world, &[]);
    assert!(
        cargo(world, &["generate-lockfile", "--offline"])
            .status
            .success()
    );
    repo.git(&["add", "--all", "--force", "Cargo.lock"]);
    git(&here, &["commit", "--quiet", "--message=lock"]);
    repo
}

fn cargo(world: &LulaEnv, arguments: &[&str]) -> std::process::Output {
    Command::new("cargo")
        .args(arguments)
        .current_dir(world.work())
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_INCREMENTAL")
        .output()
        .unwrap()
}

/// How many tests pass and fail where a developer runs them.
fn plainly(world: &LulaEnv) -> (usize, usize) {
    let output = cargo(world, &["test", "--offline", "--no-fail-fast"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let ended = |how: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with("test "));
        let mut count = 0;
        while lines.find(|line| line.ends_with(how)).is_some() {
            count += 1;
        }
        count
    };
    (ended("... ok"), ended("... FAILED"))
}

#[test]
fn a_bug_in_a_public_crate_is_seen_as_its_developers_see_it_and_mended() {
    let world = LulaEnv::new();
    let repo = check_out(&world, "strsim");
    let source = world.work().join("src/lib.rs");
    let sound = std::fs::read_to_string(&source).unwrap();
    let (old, new) = (
        "let min_bound = if i > search_range {",
        "let min_bound = if i < search_range {",
    );
    assert!(sound.contains(old), "another version of strsim");
    std::fs::write(&source, sound.replacen(old, new, 1)).unwrap();
    repo.git(&["commit", "--quiet", "--all", "--message=a change"]);
    let (passing, failing) = plainly(&world);
    assert!(
        passing > 40 && failing > 0,
        "{passing} pass, {failing} fail"
    );
    world.run(&["run", "--task", FIX]).exits(0);
    let report = world.run(&["show", "last", "--json"]).json();
    let ran = &report["state"]["repositories"][0]["baseline"]["looked"]["ran"];
    let count = |name: &str| ran[name].as_array().map_or(0, Vec::len);
    assert_eq!((count("passing"), count("failing")), (passing, failing));
    assert_eq!(report["files"], serde_json::json!(["src/lib.rs"]));
}
