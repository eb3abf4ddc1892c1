use proptest::prelude::*;

use super::*;

fn one(patch: &str, current: &str) -> Result<String, String> {
    let patches = parse(patch).map_err(|error| error.to_string())?;
    assert_eq!(patches.len(), 1, "{patches:?}");
    patches[0]
        .apply(current)
        .map_err(|failed| failed.join("\n"))
}

fn updated(hunks: &str, current: &str) -> Result<String, String> {
    one(
        &format!("*** Begin Patch\n*** Update File: a.py\n{hunks}*** End Patch\n"),
        current,
    )
}

const CLASSES: &str = "\
class A:
    def f(self):
        return 1

class B:
    def f(self):
        return 1
";

#[test]
fn files_are_made_moved_changed_and_deleted_by_one_patch() {
    let patch = "\
*** Begin Patch
*** Add File: docs/new.md
+# New
+
+text
*** Update File: src/old.py
*** Move to: src/new.py
@@ def f():
-    return 1
+    return 2
*** Delete File: gone.txt
*** End Patch";
    let patches = parse(patch).unwrap();
    let paths: Vec<Vec<&str>> = patches
        .iter()
        .map(|patch| patch.paths().collect())
        .collect();
    assert_eq!(
        paths,
        [
            vec!["docs/new.md"],
            vec!["src/old.py", "src/new.py"],
            vec!["gone.txt"]
        ]
    );
    assert_eq!(patches[0].apply("").unwrap(), "# New\n\ntext\n");
    assert_eq!(
        patches[1].apply("def f():\n    return 1\n").unwrap(),
        "def f():\n    return 2\n"
    );
    assert!(patches[2].outright && patches[2].new.is_none());
}

#[test]
fn a_named_line_says_which_of_two_places_is_meant() {
    let hunk = "@@ class B:\n     def f(self):\n-        return 1\n+        return 2\n";
    let expected = CLASSES
        .replacen("return 1", "return 9", 1)
        .replace("return 1", "return 2");
    assert_eq!(
        updated(hunk, CLASSES).unwrap(),
        expected.replace("return 9", "return 1")
    );
    let hunk = "@@ class B:\n@@     def f(self):\n-        return 1\n+        return 2\n";
    assert_eq!(
        updated(hunk, CLASSES).unwrap(),
        expected.replace("return 9", "return 1")
    );
    let unclear = "@@\n-        return 1\n+        return 2\n";
    let error = updated(unclear, CLASSES).unwrap_err();
    assert!(
        error.contains("several times, at lines 3, 7: put a line above"),
        "{error}"
    );
}

#[test]
fn hunks_follow_each_other() {
    let hunks = "\
@@
-        return 1
+        return 2
 
 class B:
@@
-        return 1
+        return 3
";
    let expected = CLASSES
        .replacen("return 1", "return 2", 1)
        .replace("return 1", "return 3");
    assert_eq!(updated(hunks, CLASSES).unwrap(), expected);
}

#[test]
fn the_end_of_a_file_is_a_place() {
    let hunk = "@@\n     def f(self):\n-        return 1\n+        return 2\n*** End of File\n";
    let expected = "return 2\n";
    let new = updated(hunk, CLASSES).unwrap();
    assert!(new.ends_with(expected) && new.contains("return 1"), "{new}");
    let added = "@@\n+class C:\n+    pass\n";
    assert_eq!(
        updated(added, CLASSES).unwrap(),
        format!("{CLASSES}class C:\n    pass\n")
    );
    let below = "@@ class B:\n+    x = 1\n";
    assert!(
        updated(below, CLASSES)
            .unwrap()
            .contains("class B:\n    x = 1\n    def f")
    );
}

#[test]
fn a_patch_may_lack_its_frame_and_have_blank_lines_between_its_parts() {
    let patch = "*** Update File: a\n@@\n-x\n+y\n z\n\n*** Add File: b\n+1\n\n";
    let patches = parse(patch).unwrap();
    assert_eq!(patches[0].apply("x\nz\n").unwrap(), "y\nz\n");
    assert_eq!(patches[1].apply("").unwrap(), "1\n");
}

#[test]
fn blanks_that_differ_are_forgiven_and_other_text_is_not() {
    let hunk = "@@\n def f():\n-    return  1\n+    return 2\n";
    let error = updated(hunk, "def f():\n    return 7\n").unwrap_err();
    assert!(error.starts_with("a.py, hunk 1 (line 3 of the patch): its old lines do not stand"));
    assert!(
        error.contains("Line 2 differs: the file has `    return 7`"),
        "{error}"
    );
    let shifted = "@@\n-return 1\n+return 2\n";
    assert_eq!(
        updated(shifted, "def f():\n    return 1   \n").unwrap(),
        "def f():\n    return 2\n"
    );
}

#[test]
fn what_is_no_patch_is_told_by_its_line() {
    for (patch, said) in [
        ("hello\n", "line 1: it changes no file"),
        (
            "*** Begin Patch\n*** Update File: a\nwhat\n",
            "line 3: a line of a file",
        ),
        (
            "*** Begin Patch\n*** Add File: a\nx\n",
            "line 3: each line of a new file",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** End Patch",
            "updated by no line",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n x\n*** End Patch",
            "changes nothing",
        ),
        (
            "*** Begin Patch\n*** Delete File: a\n-x\n",
            "line 3: a file that is deleted",
        ),
        (
            "*** Begin Patch\n*** Update File: \n",
            "line 2: a path is missing",
        ),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n x\n", "changes nothing"),
    ] {
        let error = parse(patch).unwrap_err().to_string();
        assert!(error.contains(said), "{patch:?}: {error}");
    }
}

#[test]
fn unified_diffs_are_read_by_the_same_door() {
    let diff = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 1\n+b = 2\n";
    assert_eq!(one(diff, "a = 1\nb = 1\n").unwrap(), "a = 1\nb = 2\n");
    let patches = parse("diff --git a/x b/y\nrename from x\nrename to y\n").unwrap();
    assert_eq!(patches[0].paths().collect::<Vec<_>>(), ["x", "y"]);
}

proptest! {
    #[test]
    fn any_text_is_a_patch_or_an_error(text in "(?s).{0,300}") {
        let _ = parse(&text);
        for frame in ["*** Update File: a\n", "*** Add File: a\n", "--- a/a\n+++ b/a\n@@\n"] {
            if let Ok(patches) = parse(&format!("{frame}{text}")) {
                for patch in patches {
                    let _ = patch.apply("1\n2\n3\n");
                    let _ = patch.apply("");
                }
            }
        }
    }

    /// A change of one line, written as a patch with its lines around it, is that change.
    #[test]
    fn a_change_written_as_a_patch_is_made(
        lines in proptest::collection::vec("[a-z ]{0,6}", 1..12), at in 0_usize..12,
    ) {
        let at = at % lines.len();
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        let mut patch = "*** Begin Patch\n*** Update File: a\n@@\n".to_owned();
        for (index, line) in lines.iter().enumerate() {
            let sign = if index == at { '-' } else { ' ' };
            patch.extend([sign.to_string().as_str(), line, "\n"]);
            if index == at {
                patch.push_str("+CHANGED\n");
            }
        }
        patch.push_str("*** End Patch\n");
        let mut expected = lines.clone();
        expected[at] = "CHANGED".to_owned();
        let expected = expected.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        prop_assert_eq!(one(&patch, &text).unwrap(), expected);
    }
}
