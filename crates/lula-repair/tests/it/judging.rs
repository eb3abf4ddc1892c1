//! What is seen of a change: what decides about it is seen twice.

use std::path::Path;
use std::time::Duration;

use lula_repair::TestSelection;
use lula_repair::trial::{
    self, ChangedFile, ProjectTestResults, TestBaseline, TestRunAttempt, VerificationEvidence,
    VerificationRequest,
};

use crate::project;
use crate::unsandboxed::UnsandboxedGround;

const CODE: &str = "def double(x):\n    return x * 2\n";
const OLD: &str = "import unittest\nfrom code_of import double\n\n\nclass Old(unittest.TestCase):\n    \
                   def test_old(self):\n        self.assertEqual(double(2), 4)\n";

/// A test file of one class, with this in its test.
fn tests(body: &str) -> String {
    let body = body.replace('\n', "\n        ");
    format!(
        "import os\nimport unittest\n\n\nclass New(unittest.TestCase):\n    def test_new(self):\n        \
         from extra import extra\n        self.assertEqual(extra(), 1)\n        {body}\n"
    )
}

/// What is seen of a change that adds a module and a test of it.
fn seen(new_test: &str, accept: &[String]) -> VerificationEvidence {
    let extra = "def extra():\n    return 1\n";
    let folder = project(&[
        ("code_of.py", CODE),
        ("extra.py", extra),
        ("tests/__init__.py", ""),
        ("tests/test_old.py", OLD),
        ("tests/test_new.py", new_test),
    ]);
    let added = |path: &str, text: &str| ChangedFile {
        path: path.to_owned(),
        before: None,
        after: Some(text.as_bytes().to_vec()),
    };
    let change = [
        added("extra.py", extra),
        added("tests/test_new.py", new_test),
    ];
    let before = TestBaseline {
        looked: TestRunAttempt::Ran(ProjectTestResults {
            passing: ["tests.test_old.Old.test_old".to_owned()].into(),
            ..ProjectTestResults::default()
        }),
        ..TestBaseline::default()
    };
    let asked = VerificationRequest {
        change: &change,
        before: &before,
        tests: &TestSelection {
            command: Some("python3 -m unittest".to_owned()),
            ..TestSelection::default()
        },
        first: &[],
        accept,
        deadline: Duration::from_mins(1),
    };
    trial::verify(&UnsandboxedGround::new(folder.path()), &asked).unwrap()
}

fn ends_with(ids: &std::collections::BTreeSet<String>, end: &str) -> bool {
    ids.iter().any(|id| id.ends_with(end))
}

/// A place outside of every fork, and a Python text that fails once something is there.
fn only_once(memory: &Path) -> String {
    let place = memory.join("seen").display().to_string();
    format!("self.assertFalse(os.path.exists('{place}'))\nopen('{place}', 'w').close()")
}

#[test]
fn a_new_test_that_passes_only_once_shows_nothing() {
    let memory = tempfile::tempdir().unwrap();
    let evidence = seen(&tests(&only_once(memory.path())), &[]);
    let after = evidence.after.results().unwrap();
    assert!(ends_with(&after.flaky, "test_new"), "{evidence:?}");
    assert!(ends_with(&after.passing, "test_old"), "{evidence:?}");
    assert!(evidence.is_unsteady());
}

#[test]
fn a_new_test_that_leaves_something_behind_or_needs_others_is_steady() {
    let litters = "self.assertFalse(os.path.exists('left.txt'))\nopen('left.txt', 'w').close()";
    let evidence = seen(&tests(litters), &[]);
    let after = evidence.after.results().unwrap();
    assert!(ends_with(&after.passing, "test_new"), "{evidence:?}");
    assert!(!evidence.is_unsteady());
    let without = evidence.without.unwrap();
    assert!(ends_with(&without.results().unwrap().failing, "test_new"));

    let after_others =
        "pass\n\ndef test_order(self):\n    self.assertTrue(hasattr(os, 'was_here'))";
    let sets = tests(after_others).replace("        pass", "        os.was_here = True");
    let sets = sets.replace("        def test_order", "    def test_order");
    let evidence = seen(&sets, &[]);
    let after = evidence.after.results().unwrap();
    assert!(ends_with(&after.passing, "test_order"), "{evidence:?}");
}

#[test]
fn a_command_that_succeeds_with_the_change_alone_has_to_do_so_twice() {
    let memory = tempfile::tempdir().unwrap();
    let place = memory.path().join("tried").display().to_string();
    let steady = "test -e extra.py".to_owned();
    let once = format!("test -e extra.py && ! test -e {place} && touch {place}");
    let evidence = seen(&tests("pass"), &[steady, once]);
    let [steady, once] = &evidence.accepted[..] else {
        panic!("{evidence:?}");
    };
    assert!(
        steady.after && !steady.before && !steady.unsteady,
        "{steady:?}"
    );
    assert!(once.after && !once.before && once.unsteady, "{once:?}");
}
