//! A unified diff of git, as files and hunks. Pure. What is not understood stays in the text of the file
//! it stands in; nothing is left out and nothing is made up.

use serde::Serialize;
use utoipa::ToSchema;

/// A file that is changed.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ChangedFile {
    /// Its name after the change; before it, where it is removed.
    path: String,
    /// Its name before, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_path: Option<String>,
    /// `added`, `removed`, `renamed` or `modified`.
    kind: String,
    /// Whether its content is not text.
    binary: bool,
    /// The mode after the change, where that changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    hunks: Vec<ChangeHunk>,
}

/// Lines that change together.
#[derive(Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ChangeHunk {
    /// The first line before the change.
    old_start: u64,
    old_lines: u64,
    /// The first line after it.
    new_start: u64,
    new_lines: u64,
    /// What git names beside the numbers.
    heading: String,
    /// The lines, each with its mark.
    lines: Vec<String>,
    /// Lines that have to come, before and after the change.
    #[serde(skip)]
    due: (u64, u64),
}

impl ChangeHunk {
    /// Of a line such as `@@ -1,3 +1,4 @@ fn main()`.
    fn begun(line: &str) -> Option<Self> {
        let (ranges, heading) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let range = |text: &str| {
            let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse::<u64>().ok()?, lines.parse::<u64>().ok()?))
        };
        let ((old_start, old_lines), (new_start, new_lines)) = (range(old)?, range(new)?);
        Some(Self {
            old_start,
            old_lines,
            new_start,
            new_lines,
            heading: heading.trim().to_owned(),
            lines: Vec::new(),
            due: (old_lines, new_lines),
        })
    }

    /// Takes a line, where one is still due.
    fn take(&mut self, line: &str) -> bool {
        let (old, new) = self.due;
        let due = match line.bytes().next() {
            Some(b'+') if new > 0 => (old, new - 1),
            Some(b'-') if old > 0 => (old - 1, new),
            Some(b' ') | None if old > 0 && new > 0 => (old - 1, new - 1),
            // Belongs to the line before it.
            Some(b'\\') => self.due,
            _ => return false,
        };
        self.due = due;
        self.lines.push(line.to_owned());
        true
    }
}

/// The name after `a/` or `b/`; none for `/dev/null`.
fn side(text: &str) -> Option<String> {
    let text = text.split('\t').next().unwrap_or(text);
    let text = text.trim_matches('"');
    let name = text.strip_prefix("a/").or_else(|| text.strip_prefix("b/"));
    name.map(str::to_owned)
}

/// The files of a diff.
pub(super) fn files(diff: &str) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    for line in diff.split('\n') {
        if let Some(file) = files.last_mut()
            && let Some(hunk) = file.hunks.last_mut()
            && hunk.take(line)
        {
            match line.bytes().next() {
                Some(b'+') => file.added += 1,
                Some(b'-') => file.removed += 1,
                _ => {}
            }
            continue;
        }
        if let Some(names) = line.strip_prefix("diff --git ") {
            // Right where no name has a blank; the lines that follow say it exactly.
            let after = names.rsplit_once(" b/").map(|(_, name)| name.to_owned());
            files.push(ChangedFile {
                path: after.unwrap_or_default().trim_matches('"').to_owned(),
                kind: "modified".to_owned(),
                ..ChangedFile::default()
            });
        }
        if let Some(file) = files.last_mut() {
            header(file, line);
        }
    }
    files
}

/// A line of a file before, between or after its hunks.
fn header(file: &mut ChangedFile, line: &str) {
    if let Some(hunk) = ChangeHunk::begun(line) {
        file.hunks.push(hunk);
    } else if let Some(mode) = line.strip_prefix("new file mode ") {
        "added".clone_into(&mut file.kind);
        file.mode = Some(mode.to_owned());
    } else if line.starts_with("deleted file mode ") {
        "removed".clone_into(&mut file.kind);
    } else if let Some(mode) = line.strip_prefix("new mode ") {
        file.mode = Some(mode.to_owned());
    } else if let Some(name) = line.strip_prefix("rename from ") {
        "renamed".clone_into(&mut file.kind);
        file.old_path = Some(name.to_owned());
    } else if let Some(name) = line.strip_prefix("rename to ") {
        name.clone_into(&mut file.path);
    } else if let Some(name) = line.strip_prefix("--- ").filter(|_| file.kind == "removed") {
        file.path = side(name).unwrap_or_else(|| file.path.clone());
    } else if let Some(name) = line.strip_prefix("+++ ") {
        file.path = side(name).unwrap_or_else(|| file.path.clone());
    } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
        file.binary = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIFF: &str = "\
diff --git a/items.py b/items.py
index 1..2 100644
--- a/items.py
+++ b/items.py
@@ -1,3 +1,3 @@ def last(items):
 def last(items):
-    return items[len(items)]
+    return items[len(items) - 1]

diff --git a/new file.txt b/new file.txt
new file mode 100755
--- /dev/null
+++ b/new file.txt
@@ -0,0 +1 @@
+--- looks like a header
\\ No newline at end of file
diff --git a/old.bin b/old.bin
deleted file mode 100644
Binary files a/old.bin and /dev/null differ
diff --git a/a.py b/b.py
similarity index 100%
rename from a.py
rename to b.py
";

    #[test]
    fn files_and_hunks_are_what_git_wrote() {
        let files = files(DIFF);
        let facts: Vec<_> = files
            .iter()
            .map(|file| {
                (
                    file.path.as_str(),
                    file.kind.as_str(),
                    file.added,
                    file.removed,
                )
            })
            .collect();
        assert_eq!(
            facts,
            [
                ("items.py", "modified", 1, 1),
                ("new file.txt", "added", 1, 0),
                ("old.bin", "removed", 0, 0),
                ("b.py", "renamed", 0, 0),
            ]
        );
        let hunk = &files[0].hunks[0];
        assert_eq!((hunk.old_start, hunk.new_lines), (1, 3));
        assert_eq!(hunk.heading, "def last(items):");
        assert_eq!(hunk.lines[1], "-    return items[len(items)]");
        // What looks like a header inside a hunk is a line of it.
        assert_eq!(files[1].hunks[0].lines[0], "+--- looks like a header");
        assert_eq!(files[1].mode.as_deref(), Some("100755"));
        assert!(files[2].binary);
        assert_eq!(files[3].old_path.as_deref(), Some("a.py"));
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "(@@ -[0-9]{0,20},?[0-9]{0,3} \\+1 @@|diff --git a/x b/x|[ +\\-\\\\].{0,5}|\n){0,40}") {
            let _ = files(&text);
        }
    }
}
