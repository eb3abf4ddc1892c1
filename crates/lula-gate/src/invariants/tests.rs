use lula_protocol::Digest;
use proptest::prelude::*;

use super::*;

fn paths(paths: &[&str]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn seen<'a>(changed: &'a [String], diff: &'a str) -> ObservedEffect<'a> {
    ObservedEffect {
        changed,
        base_tree: None,
        diff,
    }
}

#[test]
fn writes_stay_in_their_scope_and_off_protected_paths() {
    let rules = ActInvariants {
        write_scope: Some(PathGlobs::new(&["src/**"]).unwrap()),
        protected: Some(PathGlobs::new(&["src/keys/**"]).unwrap()),
        base_tree: None,
    };
    assert_eq!(rules.before(seen(&paths(&["src/x.rs"]), "")), []);
    let violations = rules.before(seen(
        &paths(&[
            "docs/x",
            "src/keys/a",
            "../x",
            "src/../Cargo.toml",
            "/etc/passwd",
        ]),
        "",
    ));
    let kinds: Vec<_> = violations
        .iter()
        .map(|violation| match violation {
            InvariantViolation::OutsideScope { path, .. } => ("scope", path.as_str()),
            InvariantViolation::Protected { path } => ("protected", path.as_str()),
            InvariantViolation::LeavesWorkspace { path } => ("leaves", path.as_str()),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("scope", "docs/x"),
            ("protected", "src/keys/a"),
            ("leaves", "../x"),
            ("scope", "src/../Cargo.toml"),
            ("leaves", "/etc/passwd"),
        ]
    );
}

#[test]
fn a_diff_cannot_touch_more_than_it_lists() {
    let rules = ActInvariants {
        write_scope: Some(PathGlobs::new(&["src/**"]).unwrap()),
        ..ActInvariants::default()
    };
    let diff = "--- a/src/x\n+++ b/.github/x.yml\n@@ -1 +1 @@\n-a\n+b\n";
    let violations = rules.before(seen(&paths(&["src/x"]), diff));
    assert!(
        matches!(&violations[..], [InvariantViolation::OutsideScope { path, .. }] if path == ".github/x.yml")
    );
}

#[test]
fn a_change_is_for_one_tree() {
    let tree = Digest::of_bytes(b"tree");
    let rules = ActInvariants {
        base_tree: Some(tree),
        ..ActInvariants::default()
    };
    let on = |base_tree| {
        rules.before(ObservedEffect {
            changed: &[],
            base_tree,
            diff: "",
        })
    };
    assert_eq!(on(Some(tree)), []);
    assert!(matches!(
        on(Some(Digest::of_bytes(b"x")))[..],
        [InvariantViolation::BaseChanged { .. }]
    ));
    assert!(
        matches!(on(None)[..], [InvariantViolation::BaseChanged { .. }]),
        "unreadable is changed"
    );
}

#[test]
fn a_secret_in_a_diff_is_located_and_never_repeated() {
    let key = format!("AKIA{}", "Q7RZ2MWX5NPL4KDT");
    let added = format!("--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n+ok\n+key = \"{key}\"\n");
    let violations = ActInvariants::default().before(seen(&[], &added));
    assert!(
        matches!(
            violations[..],
            [InvariantViolation::SecretAdded {
                kind: "aws-access-key",
                line: 2
            }]
        ),
        "{violations:?}"
    );
    assert!(!violations[0].to_string().contains(&key));
    let removed = format!("--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-key = \"{key}\"\n");
    assert_eq!(secrets_added(&removed), []);
}

#[test]
fn what_was_not_declared_is_named_afterwards() {
    let rules = ActInvariants::default();
    let declared = paths(&["a", "./b"]);
    let violations = rules.after(Some(&declared), seen(&paths(&["a", "b", "c"]), ""));
    assert_eq!(
        violations,
        [InvariantViolation::Undeclared { path: "c".into() }]
    );
    assert_eq!(rules.after(None, seen(&paths(&["c"]), "")), []);
}

proptest! {
    #[test]
    fn more_changes_never_violate_less(
        some in proptest::collection::vec("[a-c./]{1,6}", 0..4),
        more in proptest::collection::vec("[a-c./]{1,6}", 0..4),
    ) {
        let rules = ActInvariants {
            write_scope: Some(PathGlobs::new(&["a/**"]).unwrap()),
            protected: Some(PathGlobs::new(&["a/b"]).unwrap()),
            base_tree: None,
        };
        let before = rules.before(seen(&some, ""));
        let all: Vec<_> = some.iter().chain(&more).cloned().collect();
        let after = rules.before(seen(&all, ""));
        prop_assert!(before.iter().all(|violation| after.contains(violation)));
    }
}
