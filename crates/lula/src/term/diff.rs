//! Unified diffs in colour.

use lula_host::text::visible;

use super::style::{BAD, DIM, GOOD, STRONG, paint};

/// The change from one text to another, as `diff -u` prints it. Control characters are made
/// visible: a file must not be able to paint over its own diff.
pub(crate) fn unified(name: &str, before: &str, after: &str) -> String {
    let text = lula_workspace::unified(name, before, after);
    coloured(&text)
}

/// A diff that exists already, in colour.
pub(super) fn coloured(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = visible(line);
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => STRONG,
            [b'+', ..] => GOOD,
            [b'-', ..] => BAD,
            [b'@', ..] => DIM,
            _ => return line,
        };
        paint(style, line)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(before: &str, after: &str) -> String {
        anstream::adapter::strip_str(&unified("a.py", before, after)).to_string()
    }

    #[test]
    fn a_change_reads_like_diff_u() {
        assert_eq!(
            plain("one\ntwo\n", "one\n2\n"),
            "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
        );
    }

    #[test]
    fn nothing_in_a_file_can_hide_from_its_diff() {
        let text = plain("", "a\u{1b}[2Kb\u{202e}c\n");
        assert!(text.contains("+a\\u{1b}[2Kb\\u{202e}c"), "{text}");
    }
}
