//! Changes as patches that people read and `git apply` takes.

use std::fmt::Write;
use std::time::Duration;

use similar::TextDiff;

use crate::error::WorkspaceResult;
use crate::layer::change::{PathChange, PathChangeKind};
use crate::store::workspace::Workspace;
use crate::tree::node::{FileNode, FileNodeKind};

/// Larger files are named, not shown.
const MAX_SHOWN: u64 = 1 << 20;
/// Two texts can be built so that comparing them takes for ever; after this the comparison is coarse.
const PATIENCE: Duration = Duration::from_millis(500);

/// The change from one text to another, as `diff -u` prints it.
pub fn unified(name: &str, before: &str, after: &str) -> String {
    hunks(
        before.as_bytes(),
        after.as_bytes(),
        &format!("a/{name}"),
        &format!("b/{name}"),
    )
}

fn hunks(before: &[u8], after: &[u8], from: &str, to: &str) -> String {
    let before = String::from_utf8_lossy(before);
    let after = String::from_utf8_lossy(after);
    let diff = TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(before.as_ref(), after.as_ref());
    diff.unified_diff()
        .context_radius(3)
        .header(from, to)
        .to_string()
}

/// One change as git writes it. Content that is not text, or too long, is named and not shown; text
/// that is not UTF-8 is shown with replacement characters.
pub fn patch(workspace: &Workspace, change: &PathChange) -> WorkspaceResult<String> {
    if let Some(text) = directory(change) {
        return Ok(text);
    }
    let (from, to) = (
        quoted("a/", change.path.as_bytes()),
        quoted("b/", change.path.as_bytes()),
    );
    let mut out = format!("diff --git {from} {to}\n");
    let mode = |node: &FileNode| git_mode(node);
    match (&change.old, &change.new) {
        (None, Some(new)) => line(&mut out, &format!("new file mode {}", mode(new))),
        (Some(old), None) => line(&mut out, &format!("deleted file mode {}", mode(old))),
        (Some(old), Some(new)) if mode(old) != mode(new) || change.what == PathChangeKind::Mode => {
            line(&mut out, &format!("old mode {}", mode(old)));
            line(&mut out, &format!("new mode {}", mode(new)));
        }
        _ => {}
    }
    let nodes = || [&change.old, &change.new].into_iter().flatten();
    if change.what == PathChangeKind::Mode || nodes().all(|node| !has_content(node)) {
        return Ok(out);
    }
    let shown = |node: &FileNode| !node.binary && node.size <= MAX_SHOWN;
    if !nodes().filter(|node| has_content(node)).all(shown) {
        let size = |node: &Option<FileNode>| {
            let node = node.as_ref().filter(|node| has_content(node));
            node.map_or_else(
                || "nothing".to_owned(),
                |node| format!("{} bytes", node.size),
            )
        };
        let kind = if nodes().any(|node| node.binary) {
            "Binary"
        } else {
            "Large"
        };
        line(
            &mut out,
            &format!(
                "{kind} files {from} and {to} differ: {} to {}",
                size(&change.old),
                size(&change.new)
            ),
        );
        return Ok(out);
    }
    let sides = workspace.sides(change, MAX_SHOWN)?;
    let from = if sides.old.is_some() {
        from
    } else {
        "/dev/null".to_owned()
    };
    let to = if sides.new.is_some() {
        to
    } else {
        "/dev/null".to_owned()
    };
    out.push_str(&hunks(
        sides.old.as_deref().unwrap_or_default(),
        sides.new.as_deref().unwrap_or_default(),
        &from,
        &to,
    ));
    Ok(out)
}

/// Directories are not part of git's patches; a line that `git apply` skips tells of them.
fn directory(change: &PathChange) -> Option<String> {
    let is = |node: &Option<FileNode>| {
        node.as_ref()
            .is_some_and(|node| node.kind == FileNodeKind::Directory)
    };
    let mode = |node: &Option<FileNode>| node.as_ref().map_or(0, |node| node.mode & 0o777);
    let name = quoted("", change.path.as_bytes());
    match (is(&change.old), is(&change.new)) {
        (false, true) if change.old.is_none() => Some(format!(
            "new directory {name} with mode {:03o}\n",
            mode(&change.new)
        )),
        (true, false) if change.new.is_none() => Some(format!("deleted directory {name}\n")),
        (true, true) => Some(format!(
            "directory {name}: mode {:03o} to {:03o}\n",
            mode(&change.old),
            mode(&change.new)
        )),
        _ => None,
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

const fn has_content(node: &FileNode) -> bool {
    matches!(node.kind, FileNodeKind::File | FileNodeKind::Symlink)
}

/// As git spells it. Permissions that git does not know are spelled out.
fn git_mode(node: &FileNode) -> String {
    match (node.kind, node.mode & 0o777) {
        (FileNodeKind::Symlink, _) => "120000".to_owned(),
        (FileNodeKind::Directory, mode) => format!("04{mode:04o}"),
        (_, mode) => format!("10{mode:04o}"),
    }
}

/// A path as git prints it: in C quotes where it holds anything unusual.
fn quoted(prefix: &str, path: &[u8]) -> String {
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if path.iter().all(plain) {
        return format!("{prefix}{}", String::from_utf8_lossy(path));
    }
    let mut out = format!("\"{prefix}");
    for byte in path {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            byte if plain(byte) => out.push(char::from(*byte)),
            byte => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_git_does() {
        assert_eq!(quoted("a/", b"x y"), "a/x y");
        assert_eq!(quoted("a/", b"x\n\xff\"\x1b"), "\"a/x\\n\\377\\\"\\033\"");
    }

    #[test]
    fn texts_built_to_stall_a_comparison_are_compared_anyway() {
        let many = |odd: usize| -> String {
            let lines = (0..60_000).map(|n| (n * 7919 % (97 + odd)).to_string());
            lines.collect::<Vec<_>>().join("\n")
        };
        assert!(unified("x", &many(0), &many(2)).contains("@@"));
    }
}
