//! Diffs as they are shown: counted file by file, and cut between hunks where they are long.

use std::fmt::Write;

/// Most bytes of what stands above the hunks of a file.
const HEAD: usize = 2000;

/// The part of a diff about one file.
#[derive(Debug, Default)]
struct DiffPart<'a> {
    path: &'a str,
    head: Vec<&'a str>,
    hunks: Vec<Vec<&'a str>>,
}

impl DiffPart<'_> {
    fn count(&self, sign: char) -> usize {
        let lines = self.hunks.iter().flatten();
        lines.filter(|line| line.starts_with(sign)).count()
    }
}

fn parts(diff: &str) -> Vec<DiffPart<'_>> {
    let mut parts: Vec<DiffPart<'_>> = Vec::new();
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        let in_hunk = parts.last().is_some_and(|part| !part.hunks.is_empty());
        let opens = line.starts_with("diff --git ")
            || ((in_hunk || parts.is_empty())
                && line.starts_with("--- ")
                && lines.peek().is_some_and(|next| next.starts_with("+++ ")));
        if opens {
            parts.push(DiffPart::default());
        }
        let Some(part) = parts.last_mut() else {
            continue;
        };
        if line.starts_with("@@") {
            part.hunks.push(vec![line]);
        } else if let Some(hunk) = part.hunks.last_mut() {
            hunk.push(line);
        } else {
            part.head.push(line);
            if let Some(path) = named(line) {
                part.path = path;
            }
        }
    }
    parts
}

/// The path that a line above the hunks names, the one after the change where there is one.
fn named(line: &str) -> Option<&str> {
    if let Some(both) = line.strip_prefix("diff --git ") {
        return both.rfind(" b/").map(|at| &both[at + 3..]);
    }
    let path = line.strip_prefix("+++ ")?.trim_end();
    (path != "/dev/null").then(|| path.strip_prefix("b/").unwrap_or(path))
}

/// How many lines each file of a diff gains and loses, and all of them together.
pub fn diff_stat(diff: &str) -> String {
    let parts = parts(diff);
    let (mut added, mut removed) = (0, 0);
    let mut text = String::new();
    for part in &parts {
        let (plus, minus) = (part.count('+'), part.count('-'));
        (added, removed) = (added + plus, removed + minus);
        let _ = writeln!(text, "{} (+{plus} -{minus})", part.path);
    }
    let files = if parts.len() == 1 { "file" } else { "files" };
    let _ = writeln!(text, "{} {files} changed, +{added} -{removed}", parts.len());
    text
}

/// A diff in at most about so many bytes: whole hunks, and for each file what of it is left out.
pub fn diff_excerpt(diff: &str, most: usize) -> String {
    if diff.len() <= most {
        return diff.to_owned();
    }
    let mut text = String::new();
    for part in parts(diff) {
        let mut head = 0;
        for line in &part.head {
            if head + line.len() > HEAD {
                text.push_str("[…]\n");
                break;
            }
            head += line.len();
            let _ = writeln!(text, "{line}");
        }
        let (mut hunks, mut bytes) = (0, 0);
        for hunk in &part.hunks {
            let size: usize = hunk.iter().map(|line| line.len() + 1).sum();
            if text.len() + size <= most {
                for line in hunk {
                    let _ = writeln!(text, "{line}");
                }
            } else if size > most && text.len() < most {
                bytes += begin(&mut text, hunk, most);
                hunks += 1;
            } else {
                hunks += 1;
                bytes += size;
            }
        }
        if hunks > 0 {
            let word = if hunks == 1 { "hunk" } else { "hunks" };
            let _ = writeln!(
                text,
                "[… {bytes} bytes of {hunks} {word} of {} left out …]",
                part.path
            );
        }
    }
    text
}

/// The first lines of a hunk that has no room as a whole; how many bytes of it are left out.
fn begin(text: &mut String, hunk: &[&str], most: usize) -> usize {
    let mut left = 0;
    for line in hunk {
        if left == 0 && text.len() + line.len() < most {
            let _ = writeln!(text, "{line}");
        } else {
            left += line.len() + 1;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
-x = 1
+x = 2
 y
@@ -20,2 +20,3 @@
 z
+--- z
+more
diff --git a/b.py b/b.py
deleted file mode 100644
--- a/b.py
+++ /dev/null
@@ -1 +0,0 @@
-gone
";

    #[test]
    fn a_diff_is_counted_file_by_file() {
        assert_eq!(
            diff_stat(DIFF),
            "a.py (+3 -1)\nb.py (+0 -1)\n2 files changed, +3 -2\n"
        );
    }

    #[test]
    fn a_long_diff_is_cut_between_hunks_and_says_what_is_missing() {
        let cut = diff_excerpt(DIFF, 120);
        assert!(cut.contains("+x = 2\n y\n[… "), "{cut}");
        assert!(
            cut.contains(" bytes of 1 hunk of a.py left out …]\n"),
            "{cut}"
        );
        assert!(cut.contains("deleted file mode"), "{cut}");
        assert!(!cut.contains("+more"), "{cut}");
        assert_eq!(diff_excerpt(DIFF, 10_000), DIFF);
    }
}
