//! Projects as their developers have them: with virtual environments, installed packages and warm builds.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{LulaEnv, Repo, git};

/// A package in `src`, whose tests need it installed and start another interpreter that does too.
const BUGGY: &str = "def total(prices):\n    result = 0\n    for price in prices:\n        result -= price\n    return result\n";
const TESTS: &str = r#"
import subprocess
import sys

import pytest

from cart import total


@pytest.mark.parametrize("prices, expected", [([], 0), ([1, 2], 3), ([5], 5)])
def test_total(prices, expected):
    assert total(prices) == expected


def test_another_interpreter_finds_the_package_too():
    line = "import cart; print(cart.total([2, 2]))"
    assert subprocess.check_output([sys.executable, "-c", line], text=True).strip() == "4"
"#;
const FIX: &str = "fix the failing tests";

/// A Python that has pytest.
fn python() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let usual = [PathBuf::from("/usr/bin")];
    std::env::split_paths(&path)
        .chain(usual)
        .map(|directory| directory.join("python3"))
        .find(|python| {
            let asked = Command::new(python).args(["-c", "import pytest"]).output();
            asked.is_ok_and(|output| output.status.success())
        })
        .unwrap_or_else(|| panic!("no python3 has pytest; `cargo xtask test` installs it"))
}

fn project(world: &LulaEnv) {
    let files = [
        (".gitignore", ".venv/\n__pycache__/\n"),
        (
            "pyproject.toml",
            "[project]\nname = \"cart\"\nversion = \"1\"\n\n[tool.pytest.ini_options]\ntestpaths = [\"tests\"]\n",
        ),
        ("src/cart/__init__.py", BUGGY),
        // A module of the package, not a test, although it is called like one.
        ("src/cart/tests.py", "raise RuntimeError('not a test')\n"),
        ("tests/test_cart.py", TESTS),
        // Not below testpaths, so not the project's tests.
        (
            "examples/test_broken.py",
            "def test_broken():\n    assert False\n",
        ),
    ];
    Repo::with(world, &files);
}

/// A virtual environment as `python3 -m venv` makes it; tells where its packages lie.
fn virtualenv(directory: &Path) -> PathBuf {
    let made = Command::new(python())
        .args(["-m", "venv", "--without-pip", "--system-site-packages"])
        .arg(directory)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let mut libraries = std::fs::read_dir(directory.join("lib")).unwrap();
    libraries
        .next()
        .unwrap()
        .unwrap()
        .path()
        .join("site-packages")
}

/// Installs the checkout as `pip install -e .` does.
fn install_editable(packages: &Path, world: &LulaEnv) {
    let line = format!("{}\n", world.work().join("src").display());
    std::fs::write(packages.join("__editable__.cart.pth"), line).unwrap();
}

fn ids(report: &Value, name: &str) -> usize {
    let looked = &report["state"]["repositories"][0]["baseline"]["looked"]["ran"];
    looked[name].as_array().map_or(0, Vec::len)
}

/// The last run, as `lula show` has it.
fn shown(world: &LulaEnv) -> Value {
    world.run(&["show", "last", "--json"]).exits(0).json()
}

fn is_mended_by(world: &LulaEnv, variables: &[(&str, &str)], interpreter: &str) {
    world.run_with(variables, &["run", "--task", FIX]).exits(0);
    let report = shown(world);
    assert_eq!((ids(&report, "passing"), ids(&report, "failing")), (1, 3));
    let baseline = &report["state"]["repositories"][0]["baseline"];
    let used = baseline["interpreter"].as_str().unwrap();
    assert!(used.contains(interpreter), "{used}");
    let origin = baseline["origins"][0]["path"].as_str().unwrap();
    let own = world.work().canonicalize().unwrap().join("src/cart");
    assert!(Path::new(origin).starts_with(&own), "{origin}");
    assert_eq!(
        Repo::of(world).branches().len(),
        1,
        "{:?}",
        Repo::of(world).branches()
    );
    assert_eq!(git(&world.work(), &["status", "--porcelain"]), "");
}

#[test]
fn an_editable_install_in_a_virtual_environment_of_the_checkout_tests_the_right_code() {
    let world = LulaEnv::new();
    project(&world);
    install_editable(&virtualenv(&world.work().join(".venv")), &world);
    is_mended_by(&world, &[], "work/.venv/bin/python");
}

#[test]
fn an_active_virtual_environment_elsewhere_is_used() {
    let world = LulaEnv::new();
    project(&world);
    let place = world.home().join("environments/cart");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    install_editable(&virtualenv(&place), &world);
    let text = place.to_str().unwrap();
    let path = format!("{text}/bin:{}", std::env::var("PATH").unwrap());
    is_mended_by(
        &world,
        &[("VIRTUAL_ENV", text), ("PATH", &path)],
        "environments/cart/bin/python",
    );
}

#[test]
fn an_installed_copy_of_the_package_is_not_the_code_that_is_worked_on() {
    let world = LulaEnv::new();
    project(&world);
    let packages = virtualenv(&world.work().join(".venv"));
    std::fs::create_dir(packages.join("cart")).unwrap();
    std::fs::write(packages.join("cart/__init__.py"), BUGGY).unwrap();
    let ran = world.run(&["run", "--task", FIX]).exits(6);
    ran.says("site-packages").says("pip install -e");
    assert_eq!(Repo::of(&world).branches().len(), 0);
}

#[test]
fn a_fresh_clone_is_told_what_to_install_and_no_model_is_asked() {
    for task in [FIX, "let there be a discount beside total"] {
        let world = LulaEnv::new();
        project(&world);
        virtualenv(&world.work().join(".venv"));
        let ran = world.run(&["run", "--task", task]).exits(6);
        ran.says("cart")
            .says("pip install -e")
            .says("no model was asked");
        let report = shown(&world);
        assert_eq!(report["models"], serde_json::json!([]), "{task}");
        assert_eq!(ids(&report, "failing"), 0);
    }
}

#[test]
fn a_workspace_of_packages_finds_its_own_and_what_is_installed_deep_inside() {
    let world = LulaEnv::new();
    let files = [
        (".gitignore", "node_modules/\n"),
        (
            "package.json",
            r#"{"name": "shop", "private": true, "workspaces": ["packages/*"], "scripts": {"test": "node --test packages/cart/test"}}"#,
        ),
        (
            "packages/price/package.json",
            r#"{"name": "@shop/price", "version": "1.0.0", "main": "index.js"}"#,
        ),
        (
            "packages/price/index.js",
            "exports.sum = (prices) => prices.reduce((a, b) => a - b, 0);\n",
        ),
        (
            "packages/cart/package.json",
            r#"{"name": "@shop/cart", "version": "1.0.0"}"#,
        ),
        (
            "packages/cart/test/cart.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst { sum } = require('@shop/price');\nconst { round } = require('round');\n\ntest('adds', () => assert.equal(round(sum([1, 2])), 3));\ntest('of nothing', () => assert.equal(sum([]), 0));\n",
        ),
    ];
    Repo::with(&world, &files);
    // As npm installs them: links to the workspace's own packages, others beside their user.
    let top = world.work().join("node_modules/@shop");
    std::fs::create_dir_all(&top).unwrap();
    for name in ["price", "cart"] {
        std::os::unix::fs::symlink(format!("../../packages/{name}"), top.join(name)).unwrap();
    }
    let inner = world.work().join("packages/cart/node_modules/round");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(inner.join("index.js"), "exports.round = Math.round;\n").unwrap();
    world.run(&["run", "--task", FIX]).exits(0);
    let report = shown(&world);
    assert_eq!((ids(&report, "passing"), ids(&report, "failing")), (1, 1));
    assert_eq!(
        report["files"],
        serde_json::json!(["packages/price/index.js"])
    );
}

#[test]
fn a_warm_build_of_a_cargo_workspace_is_used_and_not_changed() {
    let world = LulaEnv::new();
    let manifest = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{more}")
    };
    let (price, cart) = (
        manifest("price", ""),
        manifest(
            "cart",
            "\n[dependencies]\nprice = { path = \"../price\" }\n",
        ),
    );
    let files = [
        (".gitignore", "target/\n"),
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"price\", \"cart\"]\nresolver = \"2\"\n",
        ),
        ("price/Cargo.toml", price.as_str()),
        // A build script that leaves a mark tells whether anything was built again.
        (
            "price/build.rs",
            "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n}\n",
        ),
        (
            "price/src/lib.rs",
            "pub fn sum(prices: &[i64]) -> i64 {\n    prices.iter().fold(0, |a, b| a + b)\n}\n",
        ),
        ("cart/Cargo.toml", cart.as_str()),
        (
            "cart/src/lib.rs",
            "pub fn is_free(prices: &[i64]) -> bool {\n    price::sum(prices) > 0\n}\n\n#[cfg(test)]\nmod tests {\n    use super::is_free;\n\n    #[test]\n    fn nothing_is_free() {\n        assert!(is_free(&[]));\n    }\n\n    #[test]\n    fn something_is_not() {\n        assert!(!is_free(&[3]));\n    }\n\n    #[test]\n    fn nought_is() {\n        assert!(is_free(&[0]));\n    }\n}\n",
        ),
    ];
    Repo::with(&world, &files);
    // As the developer has them set: cargo builds anew without them.
    let set = [("CARGO_INCREMENTAL", "0"), ("RUSTFLAGS", "--cfg mine")];
    let cargo = |arguments: &[&str]| {
        Command::new("cargo")
            .args(arguments)
            .current_dir(world.work())
            .env_remove("CARGO_TARGET_DIR")
            .envs(set)
            .output()
            .unwrap()
    };
    assert!(cargo(&["generate-lockfile", "--offline"]).status.success());
    git(&world.work(), &["add", "--all"]);
    git(&world.work(), &["commit", "--quiet", "--message=lock"]);
    cargo(&["test", "--offline", "--no-run"]);
    let before = crate::support::listing(&world.work().join("target"));
    let build = [
        "exec",
        "--",
        "cargo",
        "test",
        "--offline",
        "--no-run",
        "--verbose",
    ];
    let fresh = world.run_with(&set, &build).exits(0);
    assert!(!fresh.stderr.contains("Compiling"), "{}", fresh.stderr);
    world.run_with(&set, &["run", "--task", FIX]).exits(0);
    let report = shown(&world);
    assert_eq!(ids(&report, "failing"), 3, "{report:#}");
    let after = crate::support::listing(&world.work().join("target"));
    assert!(before == after, "the person's build was changed");
}

#[test]
fn a_run_sees_what_is_ignored_and_neither_secrets_nor_unfinished_work() {
    let world = LulaEnv::new();
    Repo::buggy_with(&world, &[(".gitignore", "*.cfg\n.env\nkeys/\n")]);
    for (path, text) in [
        ("local.cfg", "ignored"),
        (".env", "TOKEN=1"),
        ("draft.py", "unfinished"),
        ("keys/server.pem", "key"),
        ("keys/readme", "ignored too"),
    ] {
        let path = world.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let here = world.work().canonicalize().unwrap();
    let sees = format!(
        "test \"$(pwd)\" = {} && test -e local.cfg && test -e keys/readme && test ! -e .env && \
         test ! -e draft.py && test ! -e keys/server.pem && test ! -e .git && echo changed > local.cfg",
        here.display()
    );
    world
        .run(&["run", "--task", FIX, "--accept", &sees])
        .exits(0)
        .says("ignored by git, read-only (keys/, local.cfg)")
        .says("left out as secrets: .env, keys/server.pem");
    let text = std::fs::read_to_string(here.join("local.cfg")).unwrap();
    assert_eq!(text, "ignored");
}
