//! The tests nearest to a change run before the others: they can end it early by failing, and nothing
//! else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lula_repair::TestSelection;
use lula_repair::trial::{
    ChangedFile, TestBaseline, TestRunAttempt, VerificationEvidence, VerificationRequest, baseline,
    verify,
};
use tempfile::TempDir;

use crate::unsandboxed::UnsandboxedGround;

const FILES: [&str; 3] = ["near", "far", "further"];
const BUGGY: &str = "def last(items):\n    return items[len(items)]\n";
const WRONG: &str = "def last(items):\n    return items[0]\n";
const MENDED: &str = "def last(items):\n    return items[-1]\n";

/// A project whose tests write down which files of theirs ran.
struct Scene {
    folder: TempDir,
    diary: PathBuf,
    before: TestBaseline,
}

impl Scene {
    fn new(far: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let diary = folder.path().join("diary");
        let write = |path: &str, text: &str| {
            let path = folder.path().join("project").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("items.py", BUGGY);
        write("tests/__init__.py", "");
        for name in FILES {
            let body = match name {
                "near" => "self.assertEqual(items.last([1, 2]), 2)",
                "far" => far,
                _ => "self.assertEqual(1, 1)",
            };
            let text = format!(
                "import unittest\n\nimport items\n\nopen('{}', 'a').write('{name}\\n')\n\n\n\
                 class Case(unittest.TestCase):\n    def test_{name}(self):\n        {body}\n",
                diary.display()
            );
            write(&format!("tests/test_{name}.py"), &text);
        }
        let ground = UnsandboxedGround::new(folder.path().join("project"));
        let before = baseline(&ground, &TestSelection::default(), Duration::from_mins(1)).unwrap();
        assert_eq!(before.failing().len(), 1, "{before:?}");
        fs::remove_file(&diary).unwrap();
        Self {
            folder,
            diary,
            before,
        }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Weighs a change of the code, and tells which test files ran.
    fn verify(&self, code: &str, first: &[&str]) -> (VerificationEvidence, BTreeSet<String>) {
        fs::write(self.project().join("items.py"), code).unwrap();
        let change = [ChangedFile {
            path: "items.py".to_owned(),
            before: Some(BUGGY.as_bytes().to_owned()),
            after: Some(code.as_bytes().to_owned()),
        }];
        let first: Vec<String> = first.iter().map(|&id| id.to_owned()).collect();
        let asked = VerificationRequest {
            change: &change,
            before: &self.before,
            tests: &TestSelection::default(),
            first: &first,
            accept: &[],
            deadline: Duration::from_mins(1),
        };
        let evidence = verify(&UnsandboxedGround::new(self.project()), &asked).unwrap();
        (evidence, ran(&self.diary))
    }
}

fn ran(diary: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(diary).unwrap_or_default();
    let _ = fs::remove_file(diary);
    text.lines().map(str::to_owned).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

const NEAR: &str = "tests.test_near.Case.test_near";
const FAR: &str = "tests.test_far.Case.test_far";
const HARMLESS: &str = "self.assertEqual(2, 2)";

#[test]
fn a_test_nearby_that_still_fails_spares_all_others() {
    let scene = Scene::new(HARMLESS);
    let (evidence, files) = scene.verify(WRONG, &[NEAR]);
    assert_eq!(files, set(&["near"]));
    let first = evidence.first.unwrap();
    assert!(first.enough);
    assert!(first.with.results().unwrap().failing.contains(NEAR));
    assert_eq!(evidence.after, TestRunAttempt::NotRun);
    assert_eq!(evidence.without, None);
}

#[test]
fn tests_nearby_that_pass_are_followed_by_all_of_them() {
    let scene = Scene::new(HARMLESS);
    let (evidence, files) = scene.verify(MENDED, &[NEAR]);
    assert_eq!(files, set(&FILES));
    assert!(!evidence.first.unwrap().enough);
    assert_eq!(evidence.after.results().unwrap().passing.len(), 3);
    let without = evidence.without.unwrap();
    assert!(without.results().unwrap().failing.contains(NEAR));
}

#[test]
fn a_test_nearby_that_breaks_must_pass_without_the_change() {
    // It passes as long as the code holds its bug, wherever it runs.
    let scene = Scene::new("self.assertRaises(IndexError, items.last, [1, 2])");
    let (evidence, files) = scene.verify(MENDED, &[FAR]);
    assert_eq!(files, set(&["far"]));
    let first = evidence.first.unwrap();
    assert!(first.enough && first.without.is_some());
    assert_eq!(evidence.after, TestRunAttempt::NotRun);

    // It passes only beside another, which says nothing of the change: all tests decide.
    let needy = "import sys; self.assertTrue('tests.test_further' in sys.modules)";
    let scene = Scene::new(needy);
    let (evidence, files) = scene.verify(MENDED, &[FAR]);
    assert_eq!(files, set(&FILES));
    let first = evidence.first.unwrap();
    assert!(first.with.results().unwrap().failing.contains(FAR));
    assert!(!first.enough);
    assert_eq!(evidence.after.results().unwrap().passing.len(), 3);
}

#[test]
fn names_that_mean_no_test_or_all_of_them_change_nothing() {
    let scene = Scene::new(HARMLESS);
    let (plain, _) = scene.verify(MENDED, &[]);
    let hostile = [
        "",
        "::",
        "../../etc/passwd",
        "--help",
        "tests.test_gone.Case.test_x",
        "*",
    ];
    let further = "tests.test_further.Case.test_further";
    for first in [&hostile[..], &[NEAR, FAR, further]] {
        let (evidence, files) = scene.verify(MENDED, first);
        assert_eq!(files, set(&FILES));
        assert_eq!(evidence, plain);
    }
    let (evidence, files) = scene.verify(WRONG, &hostile);
    assert_eq!(files, set(&FILES));
    assert!(evidence.after.results().unwrap().failing.contains(NEAR));
}

#[test]
fn where_tests_are_touched_all_of_them_run() {
    let scene = Scene::new(HARMLESS);
    let path = "tests/test_further.py";
    let old = fs::read(scene.project().join(path)).unwrap();
    let new = [&old[..], b"# touched\n"].concat();
    fs::write(scene.project().join(path), &new).unwrap();
    let change = [ChangedFile {
        path: path.to_owned(),
        before: Some(old),
        after: Some(new),
    }];
    let asked = VerificationRequest {
        change: &change,
        before: &scene.before,
        tests: &TestSelection::default(),
        first: &[NEAR.to_owned()],
        accept: &[],
        deadline: Duration::from_mins(1),
    };
    let evidence = verify(&UnsandboxedGround::new(scene.project()), &asked).unwrap();
    assert_eq!(evidence.first, None);
    assert_eq!(ran(&scene.diary), set(&FILES));
}

#[test]
fn a_command_that_was_ended_has_not_failed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.py"), "x = 1\n").unwrap();
    let ground = UnsandboxedGround::new(folder.path());
    let said = |command: &str| {
        let tests = TestSelection::by(command);
        baseline(&ground, &tests, Duration::from_secs(2))
            .unwrap()
            .looked
    };
    let TestRunAttempt::OutOfTime(ms) = said("sleep 30") else {
        panic!("{:?}", said("sleep 30"));
    };
    assert!((1000..=2000).contains(&ms), "{ms}");
    assert!(matches!(said("sh -c 'exit 1'"), TestRunAttempt::Ran(_)));
}

#[test]
fn new_tests_in_an_existing_file_are_run_over_the_old_code() {
    let scene = Scene::new(HARMLESS);
    let path = "tests/test_far.py";
    let old = fs::read_to_string(scene.project().join(path)).unwrap();
    let new =
        format!("{old}\n    def test_new(self):\n        self.assertEqual(items.last([5]), 5)\n");
    fs::write(scene.project().join(path), &new).unwrap();
    fs::write(scene.project().join("items.py"), MENDED).unwrap();
    let changed = |path: &str, before: &str, after: &str| ChangedFile {
        path: path.to_owned(),
        before: Some(before.as_bytes().to_owned()),
        after: Some(after.as_bytes().to_owned()),
    };
    let change = [
        changed("items.py", BUGGY, MENDED),
        changed(path, &old, &new),
    ];
    let accept = ["grep -q 'items.-1' items.py".to_owned()];
    let asked = VerificationRequest {
        change: &change,
        before: &scene.before,
        tests: &TestSelection::default(),
        first: &[],
        accept: &accept,
        deadline: Duration::from_mins(1),
    };
    let evidence = verify(&UnsandboxedGround::new(scene.project()), &asked).unwrap();
    let is = |looked: &Option<TestRunAttempt>, passes: bool| {
        let results = looked.as_ref().and_then(TestRunAttempt::results).unwrap();
        let set = if passes {
            &results.passing
        } else {
            &results.failing
        };
        set.iter().any(|id| id.ends_with("test_new"))
    };
    assert!(is(&evidence.as_is, true), "{evidence:?}");
    assert!(is(&evidence.tests_alone, false), "{evidence:?}");
    assert_eq!(evidence.touched_tests, [path]);
    assert!(evidence.accepted[0].after && !evidence.accepted[0].before);
    assert_eq!(evidence.command, evidence.command_before);
    assert!(evidence.command.is_some());
}
