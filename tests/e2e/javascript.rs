//! JavaScript projects with the real runners and package managers, as npm and pnpm install them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde_json::Value;

use crate::support::{FIX, LulaEnv, Repo, git};

/// What `cargo xtask test` installed from the registry of npm.
fn installed() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/javascript/node_modules");
    assert!(
        folder.is_dir(),
        "{} is not there: `cargo xtask test` installs it",
        folder.display()
    );
    folder
}

/// Installs all of that in a checkout, as a copy of its own.
fn install(world: &LulaEnv) {
    let copied = Command::new("cp")
        .args(["--archive", "--reflink=auto"])
        .arg(installed())
        .arg(world.work().join("node_modules"))
        .status();
    assert!(copied.unwrap().success());
}

/// Every file below, with its length and when it was written.
fn stamps(folder: &Path) -> Vec<(PathBuf, u64, SystemTime)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let facts = entry.metadata().unwrap();
            if facts.is_dir() {
                folders.push(entry.path());
            }
            found.push((entry.path(), facts.len(), facts.modified().unwrap()));
        }
    }
    found.sort();
    found
}

fn shown(world: &LulaEnv) -> Value {
    world.run(&["show", "last", "--json"]).json()
}

/// How many tests the baseline has, and how many of them failed.
fn baseline(report: &Value) -> (usize, usize) {
    let ran = &report["state"]["repositories"][0]["baseline"]["looked"]["ran"];
    let count = |name: &str| ran[name].as_array().map_or(0, Vec::len);
    (count("passing") + count("failing"), count("failing"))
}

const CART: &str = "export const total = (prices: number[], limit: number): number =>\n  prices.filter((price) => price < limit).reduce((sum, price) => sum + price, 0);\n";

#[test]
fn a_typescript_project_with_vitest_is_mended_and_its_installed_packages_are_left_alone() {
    let world = LulaEnv::new();
    let files = [
        (".gitignore", "node_modules/\n"),
        (
            "package.json",
            r#"{"name": "cart", "type": "module", "scripts": {"test": "vitest run"}}"#,
        ),
        (
            "vitest.config.ts",
            "import { defineConfig } from 'vitest/config';\nexport default defineConfig({ test: { include: ['spec/**/*.ts'] } });\n",
        ),
        ("src/cart.ts", CART),
        (
            "spec/cart.ts",
            "import { describe, expect, it } from 'vitest';\nimport { total } from '../src/cart';\n\ndescribe('total', () => {\n  it('adds', () => expect(total([1, 2], 9)).toBe(3));\n  it('takes the limit along', () => expect(total([1, 5, 9], 5)).toBe(6));\n});\n",
        ),
    ];
    Repo::with(&world, &files);
    install(&world);
    let before = stamps(&world.work().join("node_modules"));
    world
        .run(&["exec", "--", "npm", "test"])
        .exits(1)
        .says("1 failed | 1 passed");
    world.run(&["run", "--task", FIX]).exits(0);
    let report = shown(&world);
    assert_eq!(baseline(&report), (2, 1), "{report:#}");
    assert_eq!(report["files"], serde_json::json!(["src/cart.ts"]));
    let origin = &report["state"]["repositories"][0]["baseline"]["origins"][0];
    let own = world.work().canonicalize().unwrap().join("src/cart.ts");
    assert_eq!(origin["path"], own.to_str().unwrap(), "{report:#}");
    let after = stamps(&world.work().join("node_modules"));
    assert!(before == after, "the installed packages were changed");
}

#[test]
fn a_workspace_of_pnpm_finds_its_own_packages_through_links() {
    let world = LulaEnv::new();
    let files = [
        (".gitignore", "node_modules/\n"),
        (
            "package.json",
            r#"{"name": "shop", "private": true, "scripts": {"test": "pnpm --recursive test"}}"#,
        ),
        ("pnpm-workspace.yaml", "packages:\n  - packages/*\n"),
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
            r#"{"name": "@shop/cart", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"@shop/price": "workspace:*"}}"#,
        ),
        (
            "packages/cart/test/cart.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst { sum } = require('@shop/price');\n\ntest('adds', () => assert.equal(sum([1, 2]), 3));\ntest('of nothing', () => assert.equal(sum([]), 0));\n",
        ),
    ];
    let repo = Repo::with(&world, &files);
    // pnpm where a person has it: a prefix of npm's, on the PATH.
    let tools = world.home().parent().unwrap().join("tools");
    let npm = Command::new("npm")
        .args(["install", "--global", "--install-links", "--offline"])
        .args(["--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
        .arg(&tools)
        .arg(installed().join("pnpm"))
        .output()
        .unwrap();
    assert!(npm.status.success(), "{npm:?}");
    let path = format!(
        "{}:{}",
        tools.join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let pnpm = Command::new(tools.join("bin/pnpm"))
        .args(["install", "--offline", "--ignore-scripts"])
        .current_dir(world.work())
        .env("PATH", &path)
        .env("HOME", world.home())
        .output()
        .unwrap();
    assert!(pnpm.status.success(), "{pnpm:?}");
    repo.git(&["add", "--all"]);
    git(&world.work(), &["commit", "--quiet", "--message=lock"]);
    world
        .run_with(&[("PATH", &path)], &["run", "--task", FIX])
        .exits(0);
    let report = shown(&world);
    assert_eq!(baseline(&report), (2, 1), "{report:#}");
    assert_eq!(
        report["files"],
        serde_json::json!(["packages/price/index.js"])
    );
    let origins = &report["state"]["repositories"][0]["baseline"]["origins"];
    let own = world.work().join("packages/price/");
    let own = own.canonicalize().unwrap();
    let mut origins = origins.as_array().unwrap().iter();
    let price = origins.find(|origin| origin["name"] == "@shop/price");
    let path = price.unwrap()["path"].as_str().unwrap();
    assert!(path.starts_with(own.to_str().unwrap()), "{path}");
}
