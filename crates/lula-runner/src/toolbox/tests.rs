//! The tools as their caller meets them: frames in, frames out.

use std::path::Path;

use lula_protocol::{Code, Digest, TextOrigin, ToolAction, ToolOutput, ToolOutputDetails};
use serde_json::{Value, json};

use super::frame::{
    self, ToolboxAnswer, ToolboxPlan, ToolboxQuestion, ToolboxReply, ToolboxRequest,
};
use super::{ToolFailure, limits};

mod edits;

struct Tree(tempfile::TempDir);

impl Tree {
    fn of(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        tree
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).unwrap()
    }

    fn ask(&self, ask: ToolboxQuestion) -> Result<ToolboxAnswer, ToolFailure> {
        let input = frame::encode(&ToolboxRequest { number: 5, ask }, limits::REQUEST).unwrap();
        let mut output = Vec::new();
        assert_eq!(super::main(self.path(), &input[..], &mut output), 0);
        let reply: ToolboxReply = frame::decode(&mut output, limits::REPLY).unwrap().unwrap();
        assert_eq!((reply.number, output.len()), (5, 0));
        reply.answer
    }

    fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolFailure> {
        match self.ask(ToolboxQuestion::Do(action(tool, input)))? {
            ToolboxAnswer::Output(output) => Ok(output),
            other => panic!("{other:?}"),
        }
    }

    fn plan(&self, tool: &str, input: Value) -> ToolboxPlan {
        match self
            .ask(ToolboxQuestion::Plan(action(tool, input)))
            .unwrap()
        {
            ToolboxAnswer::Plan(plan) => plan,
            other => panic!("{other:?}"),
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // reads better where it is called
fn action(tool: &str, input: Value) -> ToolAction {
    serde_json::from_value(json!({"tool": tool, "input": input})).unwrap()
}

fn diff(text: &str) -> Value {
    json!({"format": "unified_diff", "diff": text})
}

#[test]
fn a_range_of_lines_comes_with_the_digest_of_the_whole_file() {
    let tree = Tree::of(&[("a.txt", "one\ntwo\nthree\n")]);
    let output = tree
        .call(
            "read_file",
            json!({"path": "a.txt", "from_line": 2, "to_line": 9}),
        )
        .unwrap();
    assert_eq!(output.text, "two\nthree\n");
    assert_eq!(output.origin, TextOrigin::Repository);
    let Some(ToolOutputDetails::File {
        digest,
        lines,
        from_line,
        to_line,
        ..
    }) = output.details
    else {
        panic!("{output:?}");
    };
    assert_eq!((lines, from_line, to_line), (3, 2, 3));
    assert_eq!(digest, Digest::of_bytes(b"one\ntwo\nthree\n"));
}

#[test]
fn a_binary_file_is_named_and_not_shown() {
    let tree = Tree::of(&[("a.bin", "ab\0cd")]);
    let output = tree.call("read_file", json!({"path": "a.bin"})).unwrap();
    assert!(
        output.text.contains("is binary: 5 bytes"),
        "{}",
        output.text
    );
}

#[test]
fn a_large_text_is_cut_between_lines() {
    let line = "x".repeat(99) + "\n";
    let tree = Tree::of(&[("a.txt", &line.repeat(5000))]);
    let output = tree.call("read_file", json!({"path": "a.txt"})).unwrap();
    assert!(output.truncated && output.text.len() <= limits::TEXT);
    assert!(output.text.ends_with('\n'));
    let beyond = json!({"path": "a.txt", "from_line": 6000});
    assert_eq!(
        tree.call("read_file", beyond).unwrap_err().code,
        Code::NothingThere
    );
}

#[test]
fn a_file_beyond_the_limit_is_refused_with_both_numbers() {
    let tree = Tree::of(&[]);
    let file = std::fs::File::create(tree.path().join("big")).unwrap();
    file.set_len(limits::FILE + 1).unwrap();
    let error = tree.call("read_file", json!({"path": "big"})).unwrap_err();
    assert_eq!(error.code, Code::OverLimit);
    assert!(error.message.contains("8388609") && error.message.contains("8388608"));
}

#[test]
fn listing_leaves_out_what_git_ignores_and_what_git_keeps() {
    let tree = Tree::of(&[
        (".gitignore", "*.log\n/build/\n"),
        (".git/config", ""),
        ("a.py", ""),
        ("x.log", ""),
        ("build/out", ""),
        ("src/.gitignore", "!keep.log\n"),
        ("src/keep.log", ""),
        ("src/b.py", ""),
    ]);
    let listed = |input| tree.call("list_files", input).unwrap().text;
    assert_eq!(
        listed(json!({})),
        ".gitignore\na.py\nsrc/\nsrc/.gitignore\nsrc/b.py\nsrc/keep.log\n"
    );
    assert_eq!(listed(json!({"glob": "*.py"})), "a.py\nsrc/b.py\n");
    assert_eq!(listed(json!({"glob": "src/*.py"})), "src/b.py\n");
    assert_eq!(
        listed(json!({"path": "src", "glob": "*.log"})),
        "src/keep.log\n"
    );
    assert_eq!(listed(json!({"depth": 1})), ".gitignore\na.py\nsrc/\n");
}

#[test]
fn a_list_without_end_is_cut() {
    let tree = Tree::of(&[]);
    for number in 0..limits::ENTRIES + 10 {
        std::fs::write(tree.path().join(format!("f{number}")), "").unwrap();
    }
    let output = tree.call("list_files", json!({})).unwrap();
    let Some(ToolOutputDetails::Files { entries, .. }) = output.details else {
        panic!();
    };
    assert!(output.truncated);
    assert_eq!(entries.len(), limits::ENTRIES);
}

#[test]
fn searching_finds_patterns_and_plain_text() {
    let tree = Tree::of(&[
        ("a.py", "x = f(1)\ny = 2\n"),
        ("b.txt", "f(1)\n"),
        ("c", "f(1)\0"),
    ]);
    let found = |input| tree.call("search", input).unwrap().text;
    assert_eq!(found(json!({"pattern": r"^\w = \d$"})), "a.py\n2:y = 2\n");
    assert_eq!(
        found(json!({"pattern": "f(1)", "literal": true})),
        "a.py\n1:x = f(1)\n\nb.txt\n1:f(1)\n"
    );
    assert_eq!(
        found(json!({"pattern": "f(1)", "literal": true, "glob": "*.txt"})),
        "b.txt\n1:f(1)\n"
    );
    for bad in ["(", "", "(?:a{1000}){1000}", "a\nb"] {
        let error = tree.call("search", json!({"pattern": bad})).unwrap_err();
        assert_eq!(error.code, Code::BadPattern, "{bad:?}");
    }
}

#[test]
fn lines_that_a_search_found_stand_below_the_path_of_their_file() {
    let tree = Tree::of(&[("a", "one\nx\ntwo\n3\n4\nx\n"), ("b", "x\n"), ("c", "y\n")]);
    let found = |input| tree.call("search", input).unwrap().text;
    assert_eq!(
        found(json!({"pattern": "x", "context": 1})),
        "a\n1-one\n2:x\n3-two\n--\n5-4\n6:x\n\nb\n1:x\n"
    );
    assert_eq!(found(json!({"pattern": "x", "count": true})), "a:2\nb:1\n");
}

#[test]
fn a_search_with_too_many_matches_says_so() {
    let tree = Tree::of(&[("a", &"x\n".repeat(limits::MATCHES + 1))]);
    let output = tree.call("search", json!({"pattern": "x"})).unwrap();
    assert!(output.truncated);
    assert_eq!(output.text.lines().count(), 1 + limits::MATCHES);
}

#[test]
fn an_outline_names_what_a_file_defines() {
    let tree = Tree::of(&[
        ("a.py", "class A:\n    def b(self):\n        pass\n"),
        ("a.md", ""),
    ]);
    let output = tree.call("outline", json!({"path": "a.py"})).unwrap();
    assert_eq!(output.text, "1-3 class A\n2-3   method b\n");
    assert!(tree.call("outline", json!({"path": "a.md"})).is_err());
}

#[test]
fn writing_keeps_permissions_and_tells_the_new_digest() {
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::of(&[("run.sh", "old")]);
    let mode = |bits| std::fs::Permissions::from_mode(bits);
    std::fs::set_permissions(tree.path().join("run.sh"), mode(0o750)).unwrap();
    let input = json!({"path": "run.sh", "content": "new"});
    let output = tree.call("write_file", input).unwrap();
    let Some(ToolOutputDetails::Written { files }) = output.details else {
        panic!();
    };
    assert_eq!(files[0].digest, Some(Digest::of_bytes(b"new")));
    let kept = std::fs::metadata(tree.path().join("run.sh")).unwrap();
    assert_eq!(kept.permissions().mode() & 0o777, 0o750);
}

#[test]
fn a_plan_shows_the_diff_and_changes_nothing() {
    let tree = Tree::of(&[("a.txt", "one\ntwo\n")]);
    let plan = tree.plan(
        "write_file",
        json!({"path": "a.txt", "content": "one\n2\n"}),
    );
    assert_eq!(
        plan.diff,
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );
    assert_eq!(tree.text("a.txt"), "one\ntwo\n");
}

#[test]
fn what_was_planned_and_done_can_be_put_back() {
    let tree = Tree::of(&[("a.txt", "one\n"), ("gone.txt", "bye\n")]);
    let text = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n--- /dev/null\n+++ b/new/deep/f\n@@ -0,0 +1 @@\n+f\n";
    let plan = tree.plan("apply_patch", diff(text));
    tree.call("apply_patch", diff(text)).unwrap();
    assert_eq!(tree.text("new/deep/f"), "f\n");
    tree.ask(ToolboxQuestion::PutBack(plan.images)).unwrap();
    assert_eq!(tree.text("a.txt"), "one\n");
    assert_eq!(tree.text("gone.txt"), "bye\n");
    assert_eq!(std::fs::read_dir(tree.path()).unwrap().count(), 2);
}

#[test]
fn edits_are_all_applied_or_none() {
    let tree = Tree::of(&[("a.py", "a = 1\n"), ("b.py", "b = 1\nb = 1\n")]);
    let edits = |second: &str| {
        json!({"format": "search_replace", "edits": [
            {"path": "./a.py", "search": "a = 1", "replace": "a = 2"},
            {"path": "b.py", "search": second, "replace": "b = 2"},
        ]})
    };
    let error = tree.call("apply_patch", edits("b = 1")).unwrap_err();
    assert_eq!(error.code, Code::EditNotPlaced);
    assert!(
        error.message.contains("2 times, at lines 1, 2"),
        "{}",
        error.message
    );
    assert_eq!(tree.text("a.py"), "a = 1\n");
    tree.call("apply_patch", edits("b = 1\nb = 1")).unwrap();
    assert_eq!(
        (tree.text("a.py"), tree.text("b.py")),
        ("a = 2\n".into(), "b = 2\n".into())
    );
}

#[test]
fn an_edit_that_breaks_the_syntax_is_made_and_said() {
    let tree = Tree::of(&[("a.py", "def f():\n    return 1\n")]);
    let edits = json!({"format": "search_replace", "edits": [
        {"path": "a.py", "search": "def f():", "replace": "def f(:"},
    ]});
    let output = tree.call("apply_patch", edits).unwrap();
    assert!(output.text.contains("no longer parses"), "{}", output.text);
}

#[test]
fn a_diff_makes_changes_renames_and_removes_files() {
    let tree = Tree::of(&[
        ("a.txt", "1\n2\n3\n"),
        ("old.txt", "x\ny\n"),
        ("gone.txt", "bye\n"),
    ]);
    let text = "\
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 1
-2
+two
 3
diff --git a/old.txt b/new.txt
rename from old.txt
rename to new.txt
--- a/old.txt
+++ b/new.txt
@@ -2 +2 @@
-y
+z
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/bin/run b/bin/run
new file mode 100755
--- /dev/null
+++ b/bin/run
@@ -0,0 +1,2 @@
+#!/bin/sh
+true
\\ No newline at end of file
";
    tree.call("apply_patch", diff(text)).unwrap();
    assert_eq!(tree.text("a.txt"), "1\ntwo\n3\n");
    assert_eq!(tree.text("new.txt"), "x\nz\n");
    assert_eq!(tree.text("bin/run"), "#!/bin/sh\ntrue");
    assert!(!tree.path().join("old.txt").exists() && !tree.path().join("gone.txt").exists());
}

#[test]
fn a_diff_of_a_model_with_wrong_numbers_finds_its_place() {
    let tree = Tree::of(&[(
        "a.py",
        "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 1\n",
    )]);
    let text =
        "--- a/a.py\n+++ b/a.py\n@@ -40,9 +40,9 @@\n def g():\n-    return 1\n+    return 2\n";
    tree.call("apply_patch", diff(text)).unwrap();
    assert!(tree.text("a.py").ends_with("def g():\n    return 2\n"));
    assert!(tree.text("a.py").contains("def f():\n    return 1\n"));
}

#[test]
fn a_hunk_with_two_places_goes_where_its_number_says_or_nowhere() {
    let twice = "x = 1\n\nx = 1\n";
    let hunk = |at| {
        diff(&format!(
            "--- a/a\n+++ b/a\n@@ -{at} +{at} @@\n-x = 1\n+x = 2\n"
        ))
    };
    let tree = Tree::of(&[("a", twice)]);
    let error = tree.call("apply_patch", hunk(7)).unwrap_err();
    assert!(error.message.contains("at lines 1, 3"), "{}", error.message);
    assert_eq!(tree.text("a"), twice);
    tree.call("apply_patch", hunk(3)).unwrap();
    assert_eq!(tree.text("a"), "x = 1\n\nx = 2\n");
}

#[test]
fn windows_line_endings_survive_a_diff() {
    let tree = Tree::of(&[("a.txt", "1\r\n2\r\n")]);
    tree.call(
        "apply_patch",
        diff("--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n"),
    )
    .unwrap();
    assert_eq!(tree.text("a.txt"), "1\r\ntwo\r\n");
}

#[test]
fn a_diff_reaches_no_path_that_a_write_would_not() {
    let tree = Tree::of(&[("a", "x\n")]);
    for name in [
        "../out",
        "/etc/cron.d/x",
        ".git/hooks/pre-commit",
        "a/../.git/config",
    ] {
        let text = format!("--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n");
        let error = tree.call("apply_patch", diff(&text)).unwrap_err();
        assert_eq!(error.code, Code::PathRefused, "{name}: {}", error.message);
    }
}

#[test]
fn a_change_that_fails_half_way_is_put_back() {
    let tree = Tree::of(&[("a", "x\n"), ("d", "x\n")]);
    std::fs::create_dir(tree.path().join("z")).unwrap();
    // The second file goes through a link, which is found only when it is written.
    std::os::unix::fs::symlink("z", tree.path().join("link")).unwrap();
    let text =
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/link/new\n@@ -0,0 +1 @@\n+n\n";
    let error = tree.call("apply_patch", diff(text)).unwrap_err();
    assert_eq!(error.code, Code::PathRefused, "{}", error.message);
    assert_eq!(tree.text("a"), "x\n");
    assert!(!tree.path().join("z/new").exists());
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_diff_and_any_path_are_answered(text in "(?s).{0,400}", path in "(?s).{0,60}") {
            let tree = Tree::of(&[("a", "1\n2\n3\n")]);
            let _ = tree.call("apply_patch", diff(&text));
            let framed = format!("--- a/a\n+++ b/a\n@@ -1 +1 @@\n{text}");
            let _ = tree.call("apply_patch", diff(&framed));
            let _ = tree.call("read_file", json!({"path": path}));
            let _ = tree.call("list_files", json!({"path": path, "glob": text}));
            let _ = tree.call("search", json!({"pattern": text}));
        }
    }
}
