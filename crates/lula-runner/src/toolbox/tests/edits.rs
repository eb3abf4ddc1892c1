//! Edits, patches and searches as models ask for them.

use super::*;

#[allow(clippy::needless_pass_by_value)] // reads better where it is called
fn texts(path: &str, edits: Value) -> Value {
    json!({"format": "texts", "path": path, "edits": edits})
}

fn whole(patch: &str) -> Value {
    json!({"format": "any", "patch": patch})
}

#[test]
fn texts_are_replaced_all_or_none_and_the_answer_shows_them() {
    let tree = Tree::of(&[("a.py", "x = f(1)\ny = g(1)\n")]);
    let both = json!([{"old": "f(1)", "new": "f(2)"}, {"old": "y = g", "new": "y = h"}]);
    let output = tree.call("apply_patch", texts("./a.py", both)).unwrap();
    assert_eq!(tree.text("a.py"), "x = f(2)\ny = h(1)\n");
    assert_eq!(
        output.text,
        "wrote a.py (+2 -2)\na.py is now\n    1\tx = f(2)\n    2\ty = h(1)\n"
    );
    let half = json!([{"old": "f(2)", "new": "f(3)"}, {"old": "missing(1)", "new": "x"}]);
    let error = tree.call("apply_patch", texts("a.py", half)).unwrap_err();
    assert_eq!(error.code, Code::EditNotPlaced);
    assert!(
        error
            .message
            .contains("edit 2: `old` does not stand in a.py"),
        "{}",
        error.message
    );
    assert_eq!(tree.text("a.py"), "x = f(2)\ny = h(1)\n");
    let new = json!([{"old": "", "new": "z = 1\n"}]);
    tree.call("apply_patch", texts("new/b.py", new)).unwrap();
    assert_eq!(tree.text("new/b.py"), "z = 1\n");
}

#[test]
fn what_would_no_longer_parse_is_judged_by_the_result_and_not_written() {
    let tree = Tree::of(&[("a.py", "def f():\n    return 1\n")]);
    let broken = json!([{"old": "def f():", "new": "def f(x:"}]);
    let error = tree.call("apply_patch", texts("a.py", broken)).unwrap_err();
    assert!(
        error.message.contains("would no longer parse at line"),
        "{}",
        error.message
    );
    assert!(error.message.contains("def f(x:"), "{}", error.message);
    assert_eq!(tree.text("a.py"), "def f():\n    return 1\n");
    let steps = json!([{"old": "def f():", "new": "def f(x:"}, {"old": "f(x:", "new": "f(x):"}]);
    tree.call("apply_patch", texts("a.py", steps)).unwrap();
    let patch =
        "*** Begin Patch\n*** Update File: a.py\n@@\n-    return 1\n+    return (1\n*** End Patch";
    assert!(tree.call("apply_patch", whole(patch)).is_err());
    assert_eq!(tree.text("a.py"), "def f(x):\n    return 1\n");
}

#[test]
fn a_patch_changes_makes_moves_and_deletes_or_does_nothing() {
    let files = [
        ("a.txt", "1\n2\n"),
        ("old.txt", "x\n"),
        ("gone.txt", "bye\n"),
    ];
    let tree = Tree::of(&files);
    let patch = |second: &str| {
        whole(&format!(
            "*** Begin Patch\n*** Update File: a.txt\n@@\n 1\n-2\n+two\n*** Add File: b/new.txt\n+n\n\
             *** Update File: old.txt\n*** Move to: b/old.txt\n@@\n-{second}\n+y\n\
             *** Delete File: gone.txt\n*** End Patch\n"
        ))
    };
    let error = tree.call("apply_patch", patch("other")).unwrap_err();
    assert!(
        error.message.contains("b/old.txt, hunk 1"),
        "{}",
        error.message
    );
    for (path, text) in files {
        assert_eq!(tree.text(path), text);
    }
    let plan = tree.plan("apply_patch", patch("x"));
    let paths: Vec<&str> = plan
        .images
        .iter()
        .map(|image| image.path.as_str())
        .collect();
    assert_eq!(
        paths,
        ["a.txt", "b/new.txt", "b/old.txt", "gone.txt", "old.txt"]
    );
    let output = tree.call("apply_patch", patch("x")).unwrap();
    assert!(
        output
            .text
            .starts_with("wrote a.txt (+1 -1)\nwrote b/new.txt (new, +1 -0)\n")
    );
    assert_eq!(
        (tree.text("a.txt"), tree.text("b/old.txt")),
        ("1\ntwo\n".to_owned(), "y\n".to_owned())
    );
    assert!(!tree.path().join("old.txt").exists() && !tree.path().join("gone.txt").exists());
}

#[test]
fn parts_of_a_patch_about_one_file_follow_each_other() {
    let tree = Tree::of(&[("a.txt", "1\n2\n3\n")]);
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-1\n+one\n*** Update File: a.txt\n@@\n-3\n\
                 +three\n*** End Patch\n";
    tree.call("apply_patch", whole(patch)).unwrap();
    assert_eq!(tree.text("a.txt"), "one\n2\nthree\n");
    let twice = "*** Begin Patch\n*** Add File: b\n+1\n*** Add File: b\n+2\n*** End Patch\n";
    let error = tree.call("apply_patch", whole(twice)).unwrap_err();
    assert!(
        error.message.contains("b is there already"),
        "{}",
        error.message
    );
}

#[test]
fn a_file_is_moved_with_its_bytes_and_its_mode_and_over_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::of(&[("a", "x"), ("b", "y")]);
    std::fs::write(tree.path().join("a"), [0, 159, 146, 150]).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(tree.path().join("a"), mode).unwrap();
    let moved = |from: &str, to: &str| json!({"format": "move", "from": from, "to": to});
    assert_eq!(
        tree.call("apply_patch", moved("a", "b")).unwrap_err().code,
        Code::EditNotPlaced
    );
    tree.call("apply_patch", moved("a", "d/c")).unwrap();
    assert!(!tree.path().join("a").exists());
    let there = tree.path().join("d/c");
    assert_eq!(std::fs::read(&there).unwrap(), [0, 159, 146, 150]);
    assert_eq!(
        there.metadata().unwrap().permissions().mode() & 0o777,
        0o755
    );
    let delete = |path: &str| json!({"format": "delete", "path": path});
    tree.call("apply_patch", delete("b")).unwrap();
    assert!(!tree.path().join("b").exists());
    for (input, code) in [
        (delete("b"), Code::NothingThere),
        (delete(".git/config"), Code::PathRefused),
        (moved("d/c", "../out"), Code::PathRefused),
        (moved("d/c", ".git/hooks/x"), Code::PathRefused),
        (moved("gone", "e"), Code::NothingThere),
        (
            whole("*** Begin Patch\n*** Add File: ../x\n+1\n"),
            Code::PathRefused,
        ),
        (
            whole("*** Begin Patch\n*** Delete File: .git/config\n"),
            Code::PathRefused,
        ),
        (whole("nonsense"), Code::EditNotPlaced),
    ] {
        let error = tree.call("apply_patch", input.clone()).unwrap_err();
        assert_eq!(error.code, code, "{input}: {}", error.message);
    }
}

#[test]
fn a_page_is_as_many_lines_as_there_is_room_for() {
    let text = (1..=100)
        .map(|number| format!("line {number}\n"))
        .collect::<Vec<_>>()
        .concat();
    let tree = Tree::of(&[("a", &text), ("long", &"x".repeat(5000))]);
    let read = |input| tree.call("read_file", input).unwrap();
    let page = read(json!({"path": "a", "from_line": 11, "most_bytes": 140}));
    assert!(
        page.truncated && page.text.starts_with("line 11\n"),
        "{}",
        page.text
    );
    let Some(ToolOutputDetails::File { to_line, lines, .. }) = page.details else {
        panic!("{:?}", page.details);
    };
    assert_eq!(
        (to_line, lines),
        (20, 100),
        "ten lines of 14 bytes with their numbers"
    );
    let cut = read(json!({"path": "long", "most_bytes": 1000}));
    assert!(cut.truncated && cut.text.len() == 1000);
}

#[test]
fn a_search_shows_lines_around_counts_and_takes_several_globs() {
    let tree = Tree::of(&[
        ("a.py", "one\nTwo\nthree\nfour\ntwo\n"),
        ("b.md", "two\n"),
        ("c.txt", "two\n"),
    ]);
    let found = |input| tree.call("search", input).unwrap().text;
    assert_eq!(
        found(json!({"pattern": "Two", "context": 1})),
        "a.py\n1-one\n2:Two\n3-three\n"
    );
    assert_eq!(
        found(json!({"pattern": "two", "ignore_case": true, "count": true})),
        "a.py:2\nb.md:1\nc.txt:1\n"
    );
    assert_eq!(
        found(json!({"pattern": "two", "globs": ["*.md", "*.txt"]})),
        "b.md\n1:two\n\nc.txt\n1:two\n"
    );
    let many = Tree::of(&[("a", &"x\n".repeat(limits::MATCHES + 25))]);
    let output = many.call("search", json!({"pattern": "x"})).unwrap();
    let Some(ToolOutputDetails::Matches { left_out, .. }) = output.details else {
        panic!("{:?}", output.details);
    };
    assert_eq!(left_out, 25);
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_patch_and_any_text_are_answered(text in "(?s).{0,300}", new in "(?s).{0,40}") {
            let tree = Tree::of(&[("a", "1\n2\n3\n")]);
            let _ = tree.call("apply_patch", whole(&text));
            let _ = tree.call("apply_patch", whole(&format!("*** Update File: a\n@@\n{text}")));
            let _ = tree.call("apply_patch", texts("a", json!([{"old": text, "new": new}])));
        }
    }
}
