//! The real runners of JavaScript, as `cargo xtask test` installs them from the registry of npm.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use lula_repair::{ForkSource, RepairOutcome, TestOutcome, TestSelection, examine};
use tempfile::TempDir;

use crate::unsandboxed::UnsandboxedGround;
use crate::{mend, project};

/// A package called `cart` with this test script, the runners installed.
fn package(kind: &str, test: &str, files: &[(&str, &str)]) -> TempDir {
    let manifest =
        format!(r#"{{"name": "cart", "type": "{kind}", "scripts": {{"test": "{test}"}}}}"#);
    let folder = project(&[&[("package.json", manifest.as_str())], files].concat());
    let installed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/javascript/node_modules");
    assert!(
        installed.is_dir(),
        "{} is not there: `cargo xtask test` installs it",
        installed.display()
    );
    symlink(installed, folder.path().join("node_modules")).unwrap();
    folder
}

/// The same with specs for uvu.
fn uvu(files: &[(&str, &str)]) -> TempDir {
    package("commonjs", "uvu spec", files)
}

/// Every test with what it did, and the file that the package's code was loaded from.
fn tested(folder: &TempDir) -> (Vec<(String, TestOutcome)>, Option<String>) {
    let ground = UnsandboxedGround::new(folder.path());
    let mut fork = ground.fork().unwrap();
    let all = TestSelection::default();
    let found = examine(&mut *fork, &all, Duration::from_mins(2)).unwrap();
    let tests = found.report.tests.into_iter();
    let origin = found.origins.iter().find(|origin| origin.name == "cart");
    (
        tests.map(|test| (test.id, test.outcome)).collect(),
        origin.map(|origin| origin.path.clone()),
    )
}

const TOTAL: &str =
    "(items, limit) => items.filter((x) => x < limit).reduce((a, b) => a + b, 0);\n";

#[test]
fn uvu_is_told_test_by_test_and_the_search_sees_which_lines_each_ran() {
    let cart = format!("exports.total = {TOTAL}\nexports.label = (name) => `<${{name}}>`;\n");
    let folder = uvu(&[
        ("cart.js", &cart),
        (
            "spec/cart.js",
            "const { test, suite } = require('uvu');\nconst assert = require('uvu/assert');\nconst { label, total } = require('../cart');\n\ntest('takes the limit along', () => assert.is(total([1, 5, 9], 5), 6));\ntest('of nothing', () => assert.is(total([], 5), 0));\ntest.skip('later', () => {});\ntest.run();\n\nconst named = suite('label');\nnamed('a name', async () => assert.is(label('x'), '<x>'));\nnamed.run();\n",
        ),
        (
            "spec/imported.mjs",
            "import { test } from 'uvu';\nimport * as assert from 'uvu/assert';\nimport cart from '../cart.js';\n\ntest('adds', () => assert.is(cart.total([1, 2], 9), 3));\ntest.run();\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.failing, ["spec/cart.js > takes the limit along"]);
    assert_eq!((report.before.passed, report.before.failed), (3, 1));
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

#[test]
fn a_hook_of_uvu_that_fails_is_a_failure_of_every_test_behind_it() {
    let folder = uvu(&[(
        "spec/cart.js",
        "const { suite } = require('uvu');\nconst hooked = suite('hooked');\nhooked.before(() => { throw new Error('no database'); });\nhooked('one', () => {});\nhooked('two', () => {});\nhooked.run();\nconst fine = suite('fine');\nfine('one', () => {});\nfine.run();\n",
    )]);
    let (tests, _) = tested(&folder);
    let failing = tests
        .iter()
        .filter(|(_, outcome)| *outcome != TestOutcome::Passed);
    let failing: Vec<&str> = failing.map(|(id, _)| id.as_str()).collect();
    assert_eq!(
        failing,
        ["spec/cart.js > hooked > one", "spec/cart.js > hooked > two"]
    );
    assert_eq!(tests.len(), 3);
}

#[test]
fn where_imported_code_comes_from_is_told_by_every_runner() {
    let import = |runner: &str| format!("{runner}\nimport {{ total }} from '../src/cart.js';\n");
    let runners = [
        (
            "mocha spec",
            "import assert from 'node:assert';",
            "it('adds', () => assert.equal(total([1, 2], 9), 3));\n",
        ),
        (
            "uvu spec",
            "import { test } from 'uvu';",
            "test('adds', () => { if (total([1, 2], 9) !== 3) throw new Error(); });\ntest.run();\n",
        ),
        (
            "vitest run --globals --dir spec",
            "",
            "test('adds', () => expect(total([1, 2], 9)).toBe(3));\n",
        ),
        (
            "node --test spec/",
            "import test from 'node:test';",
            "test('adds', () => { if (total([1, 2], 9) !== 3) throw new Error(); });\n",
        ),
        (
            "NODE_OPTIONS=--experimental-vm-modules jest --rootDir=.",
            "",
            "test('adds', () => expect(total([1, 2], 9)).toBe(3));\n",
        ),
    ];
    for (command, runner, test) in runners {
        let folder = package(
            "module",
            command,
            &[
                ("src/cart.js", &format!("export const total = {TOTAL}")),
                ("spec/cart.test.js", &(import(runner) + test)),
            ],
        );
        let (tests, origin) = tested(&folder);
        assert_eq!(
            tests,
            [("spec/cart.test.js > adds".to_owned(), TestOutcome::Passed)],
            "{command}"
        );
        let origin = origin.unwrap_or_else(|| panic!("{command} tells nothing"));
        assert!(origin.ends_with("/src/cart.js"), "{command}: {origin}");
    }
}

#[test]
fn what_a_test_does_to_every_object_hides_no_test() {
    // As qs and other packages test themselves against polluted prototypes.
    let folder = package(
        "commonjs",
        "mocha spec",
        &[(
            "spec/cart.js",
            "it('before', () => {});\nit('with a strange mode', () => { Object.prototype.mode = 'x'; Object.prototype.flag = 7; });\nit('after', () => {});\nit('and the last', () => { require('fs').appendFileSync = () => {}; });\n",
        )],
    );
    let (tests, _) = tested(&folder);
    assert_eq!(tests.len(), 4, "{tests:?}");
    assert!(
        tests
            .iter()
            .all(|(_, outcome)| *outcome == TestOutcome::Passed)
    );
}
