//! Code and diffs in colour: words that most languages share, texts, numbers and remarks. A guess for the
//! eye, nothing depends on it.

use anstyle::{AnsiColor, Style};
use lula_host::text::visible;

use crate::style::{BAD, DIM, GOOD, PLAIN, STRONG, Span, paint};

const WORD: Style = AnsiColor::Magenta.on_default();
const TEXT: Style = AnsiColor::Green.on_default();
const NUMBER: Style = AnsiColor::Yellow.on_default();

/// Words that begin or end something in many languages.
const WORDS: [&str; 54] = [
    "and",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "do",
    "elif",
    "else",
    "enum",
    "except",
    "export",
    "extends",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "if",
    "impl",
    "import",
    "in",
    "interface",
    "let",
    "match",
    "mod",
    "mut",
    "new",
    "not",
    "or",
    "pass",
    "pub",
    "raise",
    "return",
    "self",
    "static",
    "struct",
    "switch",
    "this",
    "throw",
    "trait",
    "try",
    "type",
    "use",
    "var",
    "while",
    "with",
    "yield",
];

/// A line of code.
pub(crate) fn highlighted(line: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (style, long) = token(rest, first);
        let (head, tail) = rest.split_at(long);
        match spans.last_mut() {
            Some((last, text)) if *last == style => {
                let text: &mut String = text;
                text.push_str(head);
            }
            _ => spans.push((style, head.to_owned())),
        }
        rest = tail;
    }
    spans
}

fn token(rest: &str, first: char) -> (Style, usize) {
    let run = |keep: fn(char) -> bool| rest.find(|c| !keep(c)).unwrap_or(rest.len());
    if rest.starts_with("//") || rest.starts_with("# ") || rest == "#" {
        return (DIM, rest.len());
    }
    match first {
        '"' | '\'' => {
            let inner = &rest[1..];
            let end = inner.find(first);
            end.map_or((PLAIN, 1), |end| (TEXT, end + 2))
        }
        c if c.is_ascii_digit() => (NUMBER, run(|c| c.is_alphanumeric() || c == '.' || c == '_')),
        c if c.is_alphabetic() || c == '_' => {
            let long = run(|c| c.is_alphanumeric() || c == '_');
            let style = if WORDS.contains(&&rest[..long]) {
                WORD
            } else {
                PLAIN
            };
            (style, long)
        }
        c => (PLAIN, c.len_utf8()),
    }
}

/// A diff, line by line. What a file holds cannot act on the terminal.
pub(crate) fn diff_rows(diff: &str) -> Vec<String> {
    let row = |line: &str| {
        let line = visible(&line.replace('\t', "    "));
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => STRONG,
            [b'+', ..] => GOOD,
            [b'-', ..] => BAD,
            [b'@', ..] => DIM,
            _ => PLAIN,
        };
        paint(style, line)
    };
    diff.lines().map(row).collect()
}

/// How much a diff changes, in words.
pub(crate) fn size(diff: &str, files: usize) -> String {
    let count = |mark: char, head: &str| {
        let lines = diff.lines().filter(|line| line.starts_with(mark));
        lines.filter(|line| !line.starts_with(head)).count()
    };
    let files = if files == 1 {
        "1 file".to_owned()
    } else {
        format!("{files} files")
    };
    format!("{files} +{} -{}", count('+', "+++"), count('-', "---"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_code_keeps_every_letter() {
        for line in [
            "def f(x): return \"a\" + 'b' # c",
            "let x = 'un",
            "日本 // x",
            "",
        ] {
            let whole: String = highlighted(line)
                .into_iter()
                .map(|(_, text)| text)
                .collect();
            assert_eq!(whole, line);
        }
        let spans = highlighted("return 12");
        assert_eq!(spans[0], (WORD, "return".to_owned()));
        assert_eq!(spans[2].0, NUMBER);
    }

    #[test]
    fn the_size_of_a_change_is_told() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\n+three\n";
        assert_eq!(size(diff, 1), "1 file +2 -1");
    }
}
