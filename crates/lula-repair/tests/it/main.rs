//! Whole repairs of small projects, in plain directories.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/corpus.rs"]
mod corpus;
mod environments;
mod first;
mod javascript;
mod judging;
mod others;
mod runners;
#[path = "../support/unsandboxed.rs"]
mod unsandboxed;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use lula_repair::outcome::PatchDoubt;
use lula_repair::{
    RepairError, RepairOutcome, RepairReport, RepairTask, TestFramework, TestSelection, repair,
    run_tests,
};
use tempfile::TempDir;
use unsandboxed::UnsandboxedGround;

fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn contents(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn mend(folder: &TempDir) -> Result<RepairReport, RepairError> {
    let task = RepairTask {
        budget: Duration::from_mins(2),
        ..RepairTask::default()
    };
    repair(&UnsandboxedGround::new(folder.path()), &task, &|_| ())
}

const CART: &str = "def total(prices, limit):\n    kept = 0\n    for price in prices:\n        if price < limit:\n            kept += price\n    return kept\n";
const CART_TEST: &str = "import unittest\nfrom cart import total\n\n\nclass Total(unittest.TestCase):\n    def test_the_limit_itself_counts(self):\n        self.assertEqual(total([1, 5, 9], 5), 6)\n\n    def test_nothing(self):\n        self.assertEqual(total([], 5), 0)\n";

#[test]
fn a_wrong_comparison_in_python_is_mended_and_proved() {
    let folder = project(&[("cart.py", CART), ("tests/test_cart.py", CART_TEST)]);
    let before = contents(folder.path());
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed);
    assert_eq!(report.framework, TestFramework::Unittest);
    let patch = &report.patches[0];
    assert!(
        patch.diff.contains("+        if price <= limit:"),
        "{}",
        patch.diff
    );
    assert!(patch.evidence.reverted && !patch.doubts.contains(&PatchDoubt::NotReverted));
    assert_eq!(patch.evidence.fixed, report.failing);
    assert_eq!((report.before.failed, patch.evidence.after.failed), (1, 0));
    assert_eq!(
        contents(folder.path()),
        before,
        "the project itself is never written to"
    );
    let read_back: RepairReport =
        serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(read_back.patches.len(), report.patches.len());
}

#[test]
fn a_project_whose_tests_pass_has_nothing_to_mend() {
    let sound = CART.replace("price < limit", "price <= limit");
    let folder = project(&[("cart.py", &sound), ("tests/test_cart.py", CART_TEST)]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::NothingFailing);
    assert!(report.patches.is_empty());
}

#[test]
fn a_project_without_tests_is_told_so() {
    let folder = project(&[("cart.py", CART)]);
    assert!(matches!(mend(&folder), Err(RepairError::NoTests)));
}

#[test]
fn tests_that_need_what_is_not_installed_are_named() {
    let folder = project(&[
        ("cart.py", CART),
        (
            "tests/test_cart.py",
            "import unittest\nimport no_such_library_here\n\n\nclass T(unittest.TestCase):\n    def test_x(self):\n        pass\n",
        ),
    ]);
    let Err(RepairError::EnvironmentBroken(broken)) = mend(&folder) else {
        panic!("what is not installed was searched on");
    };
    assert_eq!(broken.missing, ["no_such_library_here"]);
    assert!(broken.output.contains("No module named"), "{broken:?}");
    assert!(broken.remedy.is_some(), "{broken:?}");
}

#[test]
fn a_wrong_test_is_never_edited() {
    let wrong = CART_TEST.replace("total([1, 5, 9], 5), 6)", "total([1, 5, 9], 5), 'six')");
    let folder = project(&[("cart.py", CART), ("tests/test_cart.py", &wrong)]);
    let task = RepairTask {
        budget: Duration::from_secs(15),
        ..RepairTask::default()
    };
    let report = repair(&UnsandboxedGround::new(folder.path()), &task, &|_| ()).unwrap();
    for patch in &report.patches {
        assert!(
            patch.files.iter().all(|file| file.path == "cart.py"),
            "{}",
            patch.diff
        );
    }
}

#[test]
fn an_endless_loop_is_mended() {
    let halve = "def halvings(n):\n    count = 0\n    while n > 1:\n        count += 1\n    return count\n\n\ndef double(n):\n    return n * 2\n";
    let test = "import unittest\nfrom halve import halvings, double\n\n\nclass T(unittest.TestCase):\n    def test_counts(self):\n        self.assertEqual(double(2), 4)\n\n    def test_one(self):\n        self.assertEqual(halvings(1), 0)\n\n    def test_ends(self):\n        self.assertEqual(halvings(3), 2)\n        self.assertEqual(halvings(2), 1)\n";
    let folder = project(&[("halve.py", halve), ("tests/test_halve.py", test)]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

/// Far more than any budget below, far less than what the tests would sleep.
const LONG: Duration = Duration::from_mins(2);

#[test]
fn cases_of_pytest_are_judged_one_by_one() {
    let folder = project(&[
        (
            "shelf.py",
            "def place(values, value):\n    low, high = 0, len(values)\n    while low < high:\n        middle = (low + high) // 2\n        if values[middle] <= value:\n            low = middle + 1\n        else:\n            high = middle\n    return low\n",
        ),
        (
            "test_shelf.py",
            "import pytest\nfrom shelf import place\n\nCASES = [([1, 3], 0, 0), ([1, 3], 3, 1), ([1, 3], 9, 2), ([], 1, 0), ([2, 2, 2], 2, 0)]\n\n@pytest.mark.parametrize('values, value, wanted', CASES)\ndef test_place(values, value, wanted):\n    assert place(values, value) == wanted\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{:?}", report.effort);
    assert_eq!(report.framework, TestFramework::Pytest);
    assert_eq!((report.before.passed, report.before.failed), (3, 2));
    let diff = &report.patches[0].diff;
    assert!(
        diff.contains("+        if values[middle] < value:"),
        "{diff}"
    );
}

#[test]
fn a_file_that_is_too_hard_to_parse_is_named_and_left_aside() {
    let deep = format!("x = {}1{}\n", "(".repeat(90), ")".repeat(90))
        .replace('(', "((((")
        .replace(')', "))))");
    let folder = project(&[
        ("odd.py", "def odd(n):\n    return n % 2 == 0\n"),
        ("made.py", &deep),
        (
            "test_odd.py",
            "import unittest\nfrom odd import odd\n\nclass Odd(unittest.TestCase):\n    def test_odd(self):\n        self.assertTrue(odd(3))\n        self.assertFalse(odd(2))\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed);
    assert_eq!(report.left_aside.len(), 1);
    assert!(
        report.left_aside[0].starts_with("made.py: "),
        "{:?}",
        report.left_aside
    );
}

fn ends_by_its_budget(folder: &TempDir, tests: Option<&str>) {
    let task = RepairTask {
        tests: TestSelection {
            command: tests.map(str::to_owned),
            folder: String::new(),
        },
        budget: Duration::from_secs(6),
        ..RepairTask::default()
    };
    let started = Instant::now();
    match repair(&UnsandboxedGround::new(folder.path()), &task, &|_| ()) {
        Ok(report) => assert!(
            report.outcome == RepairOutcome::NotFound && !report.effort.exhausted,
            "{report:?}"
        ),
        Err(error) => assert!(matches!(error, RepairError::OutOfTime(_)), "{error}"),
    }
    assert!(started.elapsed() < LONG);
}

#[test]
fn a_test_that_hangs_and_will_not_be_interrupted_does_not_outlast_the_budget() {
    let test = "import time\nimport unittest\nfrom cart import total\n\n\nclass Total(unittest.TestCase):\n    def test_hangs(self):\n        total([1, 5, 9], 5)\n        while True:\n            try:\n                time.sleep(3600)\n            except BaseException:\n                pass\n\n    def test_passes(self):\n        self.assertEqual(total([], 5), 0)\n";
    let folder = project(&[("cart.py", CART), ("tests/test_cart.py", test)]);
    ends_by_its_budget(&folder, None);
}

#[test]
fn candidates_that_loop_for_ever_do_not_outlast_the_budget() {
    let spin = "export function spin(n) {\n  let i = 0;\n  while (i < n) {\n    i += 1;\n  }\n  return i;\n}\n";
    let test = "import { test } from 'node:test';\nimport assert from 'node:assert/strict';\nimport { spin } from '../src/spin.js';\n\ntest('wants what no number is', () => {\n  assert.equal(spin(3), Symbol('never'));\n});\n\ntest('hangs', () => {\n  spin(1);\n  for (;;);\n});\n";
    let folder = project(&[
        ("package.json", r#"{"type":"module"}"#),
        ("src/spin.js", spin),
        ("test/spin.test.js", test),
    ]);
    ends_by_its_budget(&folder, None);
}

#[test]
fn a_command_that_hangs_does_not_outlast_the_budget() {
    let folder = project(&[("cart.py", CART)]);
    ends_by_its_budget(&folder, Some("python3 cart.py; sleep 3600"));
}

#[test]
fn what_one_candidate_leaves_behind_never_reaches_another() {
    // Every run appends to a file and fails where it finds more than its own line there.
    let test = "import os\nimport tempfile\nimport unittest\nfrom cart import total\n\n\ndef runs(path):\n    with open(path, 'a') as file:\n        file.write('run\\n')\n    with open(path) as file:\n        return len(file.readlines())\n\n\nclass Total(unittest.TestCase):\n    def test_the_limit_itself_counts(self):\n        self.assertEqual(runs('data.txt'), 2)\n        self.assertEqual(runs(os.path.join(tempfile.gettempdir(), 'runs.txt')), 1)\n        self.assertEqual(total([1, 5, 9], 5), 6)\n";
    let folder = project(&[
        ("cart.py", CART),
        ("data.txt", "as it was\n"),
        ("tests/test_cart.py", test),
    ]);
    let task = RepairTask {
        budget: Duration::from_secs(30),
        all: true,
        lanes: 1,
        ..RepairTask::default()
    };
    let report = repair(&UnsandboxedGround::new(folder.path()), &task, &|_| ()).unwrap();
    // In a shared workspace only the first candidate could have passed.
    assert!(report.patches.len() > 1, "{:?}", report.effort);
    let data = fs::read_to_string(folder.path().join("data.txt")).unwrap();
    assert_eq!(data, "as it was\n");
}

#[test]
fn javascript_candidates_are_apart_too() {
    let test = "import { test } from 'node:test';\nimport assert from 'node:assert/strict';\nimport { appendFileSync, readFileSync } from 'node:fs';\nimport { total } from '../src/cart.js';\n\ntest('the limit itself counts', () => {\n  appendFileSync('data.txt', 'run\\n');\n  assert.equal(readFileSync('data.txt', 'utf8'), 'as it was\\nrun\\n');\n  assert.equal('test'.length + 'node:test'.length, 13);\n  assert.equal(total([1, 5, 9], 5), 6);\n});\n";
    let folder = project(&[
        ("package.json", r#"{"type":"module"}"#),
        ("data.txt", "as it was\n"),
        (
            "src/cart.js",
            "export function total(prices, limit) {\n  let kept = 0;\n  for (const price of prices) {\n    if (price < limit) kept += price;\n  }\n  return kept;\n}\n",
        ),
        ("test/cart.test.js", test),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
    assert!(report.patches[0].diff.contains("price <= limit"));
}

#[test]
fn a_command_of_the_users_own_is_judged_by_its_exit_code() {
    let folder = project(&[
        ("cart.py", CART),
        (
            "check.py",
            "from cart import total\nassert total([1, 5, 9], 5) == 6\n",
        ),
    ]);
    let task = RepairTask {
        tests: TestSelection::by("python3 check.py && true"),
        ..RepairTask::default()
    };
    let report = repair(&UnsandboxedGround::new(folder.path()), &task, &|_| ()).unwrap();
    assert_eq!(report.framework, TestFramework::Command);
    assert_eq!(report.outcome, RepairOutcome::Fixed);
}

#[test]
fn javascript_is_mended_with_nodes_own_runner() {
    let folder = project(&[
        (
            "package.json",
            r#"{"type":"module","scripts":{"test":"node --test"}}"#,
        ),
        (
            "src/page.js",
            "export function page(items, number, size) {\n  const start = number * size;\n  return items.slice(start, start + size);\n}\n",
        ),
        (
            "test/page.test.js",
            "import { test } from 'node:test';\nimport assert from 'node:assert/strict';\nimport { page } from '../src/page.js';\n\ntest('pages count from one', () => {\n  assert.deepEqual(page([1, 2, 3, 4, 5], 1, 2), [1, 2]);\n  assert.deepEqual(page([1, 2, 3, 4, 5], 3, 2), [5]);\n});\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(
        (report.outcome, report.framework),
        (RepairOutcome::Fixed, TestFramework::NodeTest)
    );
    assert!(
        report
            .suspects
            .iter()
            .all(|suspect| suspect.path == "src/page.js")
    );
}

#[test]
fn rust_is_mended_with_many_candidates_in_one_build() {
    let folder = project(&[
        (
            "Cargo.toml",
            "[package]\nname = \"span\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        (
            "src/lib.rs",
            "pub fn overlap(a: (i32, i32), b: (i32, i32)) -> i32 {\n    let start = a.0.max(b.0);\n    let end = a.1.max(b.1);\n    (end - start).max(0)\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn spans_share_what_both_cover() {\n        assert_eq!(overlap((0, 5), (3, 9)), 2);\n        assert_eq!(overlap((0, 5), (7, 9)), 0);\n        assert_eq!(overlap((0, 9), (3, 5)), 2);\n    }\n}\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(
        (report.outcome, report.framework),
        (RepairOutcome::Fixed, TestFramework::CargoTest)
    );
    assert!(
        report.patches[0]
            .diff
            .contains("+    let end = a.1.min(b.1);"),
        "{}",
        report.patches[0].diff
    );
}

#[test]
fn rust_candidates_do_not_meet_what_others_left() {
    let folder = project(&[
        (
            "Cargo.toml",
            "[package]\nname = \"span\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        ("data.txt", "as it was\n"),
        (
            "src/lib.rs",
            "pub fn at_most(a: i32, b: i32) -> bool {\n    a < b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n    use std::io::Write;\n\n    #[test]\n    fn the_limit_itself_counts() {\n        let mut file = std::fs::OpenOptions::new().append(true).open(\"data.txt\").unwrap();\n        writeln!(file, \"run\").unwrap();\n        std::fs::write(\"new.txt\", \"\").unwrap();\n        assert_eq!(std::fs::read_to_string(\"data.txt\").unwrap(), \"as it was\\nrun\\n\");\n        assert!(at_most(5, 5) && at_most(4, 5) && !at_most(6, 5));\n    }\n}\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
    assert!(report.patches[0].diff.contains("a <= b"));
}

#[test]
fn two_mistakes_are_mended_by_two_edits() {
    let ends =
        "def first(items):\n    return items[1]\n\n\ndef last(items):\n    return items[0]\n";
    let test = "import unittest\nfrom ends import first, last\n\n\nclass T(unittest.TestCase):\n    def test_first(self):\n        self.assertEqual(first([1, 2, 3]), 1)\n\n    def test_last(self):\n        self.assertEqual(last([1, 2, 3]), 3)\n";
    let folder = project(&[("ends.py", ends), ("tests/test_ends.py", test)]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{:?}", report.effort);
    assert_eq!(report.patches[0].evidence.fixed.len(), 2);
}

#[test]
fn seeded_bugs_break_tests_that_can_be_seen() {
    let mut projects = Vec::new();
    for (set, least, written) in [
        (
            corpus::Set::Known,
            60,
            &["javascript", "python", "rust"][..],
        ),
        (corpus::Set::HeldOut, 30, &["javascript", "python", "rust"]),
        (
            corpus::Set::Practice,
            240,
            &["javascript", "python", "python"],
        ),
    ] {
        let found = corpus::projects(set);
        let bugs: usize = found.iter().map(|project| project.bugs.len()).sum();
        assert!(bugs >= least, "{set:?}: {bugs} bugs");
        let languages: Vec<&str> = found.iter().map(corpus::Project::language).collect();
        assert_eq!(languages, written, "{set:?}");
        projects.extend(found);
    }
    for project in &projects {
        let sound = project.sound();
        project.reveal(sound.path());
        let report = run_tests(
            &UnsandboxedGround::new(sound.path()),
            &TestSelection::default(),
            Duration::from_mins(2),
        )
        .unwrap();
        assert_eq!(
            report.failing().count(),
            0,
            "{}: the reference fails {report:?}",
            project.name
        );
        for (index, bug) in project.bugs.iter().enumerate() {
            let folder = project.seeded(bug);
            if index >= 1 {
                continue;
            }
            let report = run_tests(
                &UnsandboxedGround::new(folder.path()),
                &TestSelection::default(),
                Duration::from_mins(2),
            )
            .unwrap();
            assert!(
                report.failing().next().is_some(),
                "{}/{}: {}",
                project.name,
                bug.id,
                bug.about
            );
        }
    }
}
