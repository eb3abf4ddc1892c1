//! Whether a text parses, in the languages whose grammars are built in.

use std::path::Path;

use tree_sitter::{Language, Node, Parser, Tree};

use crate::bounded_parse::{ParseBudget, parse_within};

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyntaxVerdict {
    /// No error that was not there before.
    Fine,
    /// The edit broke the syntax: the line from 1, and its text.
    Broken {
        /// The first line that does not parse, from 1.
        line: usize,
        text: String,
    },
    /// No grammar for this kind of file.
    Unchecked,
    /// Too long, or made to keep the parser busy: nothing is said of it.
    TooHard,
}

/// Compares the text before an edit and after it. A file that was broken before may stay broken,
/// but not more than it was.
pub fn check(path: &str, before: Option<&str>, after: &str) -> SyntaxVerdict {
    let Some(tree) = parse(path, after) else {
        return if language(path).is_some() {
            SyntaxVerdict::TooHard
        } else {
            SyntaxVerdict::Unchecked
        };
    };
    let errors = errors(tree.root_node());
    let before = before
        .and_then(|text| parse(path, text))
        .map_or(0, |tree| self::errors(tree.root_node()).len());
    match errors.first() {
        Some(line) if errors.len() > before => SyntaxVerdict::Broken {
            line: line + 1,
            text: after
                .lines()
                .nth(*line)
                .unwrap_or_default()
                .trim()
                .chars()
                .take(120)
                .collect(),
        },
        _ => SyntaxVerdict::Fine,
    }
}

/// The lines of errors, from 0, in order.
fn errors(root: Node<'_>) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if node.is_error() || node.is_missing() {
            lines.push(node.start_position().row);
        } else if node.has_error() {
            let mut cursor = node.walk();
            open.extend(node.children(&mut cursor));
        }
    }
    lines.sort_unstable();
    lines
}

/// Parses a text that may be hostile; none where there is no grammar for it, or where it takes
/// more work than text that people write.
pub(crate) fn parse(path: &str, text: &str) -> Option<Tree> {
    let budget = ParseBudget::generous(text.len());
    let grammar = language(path)?;
    parse_within(&mut Parser::new(), &grammar, text.as_bytes(), None, budget)
}

fn language(path: &str) -> Option<Language> {
    let extension = Path::new(path).extension()?.to_str()?;
    let language = match extension {
        "rs" => tree_sitter_rust::LANGUAGE.into(),
        "py" | "pyi" => tree_sitter_python::LANGUAGE.into(),
        "js" | "mjs" | "cjs" | "jsx" => tree_sitter_javascript::LANGUAGE.into(),
        "ts" | "mts" | "cts" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        "tsx" => tree_sitter_typescript::LANGUAGE_TSX.into(),
        "go" => tree_sitter_go::LANGUAGE.into(),
        "c" | "h" => tree_sitter_c::LANGUAGE.into(),
        "java" => tree_sitter_java::LANGUAGE.into(),
        "json" => tree_sitter_json::LANGUAGE.into(),
        _ => return None,
    };
    Some(language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_tells_good_from_broken() {
        for (path, good, bad) in [
            ("a.rs", "fn f() { 1 }\n", "fn f() { 1 \n"),
            (
                "a.py",
                "def f():\n    return 1\n",
                "def f(:\n    return 1\n",
            ),
            (
                "a.js",
                "function f() { return 1 }\n",
                "function f( { return 1 }\n",
            ),
            ("a.ts", "const a: number = 1;\n", "const a: = 1;\n"),
            ("a.tsx", "const a = <b>1</b>;\n", "const a = <b>1</b;\n"),
            (
                "a.go",
                "package a\nfunc f() {}\n",
                "package a\nfunc f( {}\n",
            ),
            (
                "a.c",
                "int f(void) { return 1; }\n",
                "int f(void) { return 1; \n",
            ),
            (
                "a.java",
                "class A { void f() {} }\n",
                "class A { void f( {} }\n",
            ),
            ("a.json", "{\"a\": 1}\n", "{\"a\": }\n"),
        ] {
            assert_eq!(check(path, None, good), SyntaxVerdict::Fine, "{path}");
            assert!(
                matches!(check(path, Some(good), bad), SyntaxVerdict::Broken { .. }),
                "{path}"
            );
        }
    }

    #[test]
    fn a_broken_file_may_be_edited_but_not_broken_further() {
        let broken = "def f(:\n    pass\n\ndef g():\n    return 1\n";
        let edited = "def f(:\n    pass\n\ndef g():\n    return 2\n";
        assert_eq!(check("a.py", Some(broken), edited), SyntaxVerdict::Fine);
        let worse = "def f(:\n    pass\n\ndef g(:\n    return 2\n";
        assert!(matches!(
            check("a.py", Some(broken), worse),
            SyntaxVerdict::Broken { .. }
        ));
    }

    #[test]
    fn what_cannot_be_checked_says_so() {
        assert_eq!(check("notes.txt", None, "(("), SyntaxVerdict::Unchecked);
    }

    #[test]
    fn a_text_that_would_keep_the_parser_busy_is_refused_by_name() {
        let open = "{".repeat(100_000);
        let huge = "x = 1\n".repeat(200_000);
        for (path, text) in [("a.py", &huge), ("a.js", &open), ("a.json", &open)] {
            assert_eq!(check(path, None, text), SyntaxVerdict::TooHard, "{path}");
            assert!(crate::symbols::list(path, text).is_none());
        }
        let long = "def f(a):\n    return [a, {1: (2, 3)}]\n".repeat(5_000);
        assert_eq!(check("a.py", None, &long), SyntaxVerdict::Fine);
        let dense = format!("[{}1]\n", "1,".repeat(100_000));
        assert_eq!(check("a.json", None, &dense), SyntaxVerdict::Fine);
    }
}
