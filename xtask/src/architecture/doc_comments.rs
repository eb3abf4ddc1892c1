//! A doc comment says something that the name and the type do not. Three words never do: they say the name
//! again, and a reader who meets ten of them passes over the eleventh, which mattered.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Violation;
use crate::repository::Repository;

/// A comment of no more words than these is not worth its line.
const TOO_FEW: usize = 3;

/// Derives that make help of comments. Help names things, which can take a word or two.
const HELP: &[&str] = &["Args", "Parser", "Subcommand", "ValueEnum"];

pub(crate) fn check(repository: &Repository, files: &[PathBuf]) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| is_held_to_it(file)) {
        let text = fs::read_to_string(repository.root().join(file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        violations.extend(complaints(file, &text));
    }
    Ok(violations)
}

/// Whether a file is our code, and no test's alone.
fn is_held_to_it(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
        && (file.starts_with("crates") || file.starts_with("xtask"))
        && !file
            .iter()
            .any(|part| part == "tests" || part == "tests.rs")
}

fn complaints(file: &Path, text: &str) -> Vec<Violation> {
    let Ok(tokens) = text.parse::<TokenStream>() else {
        // Said by the check of `unsafe`, which reads every file.
        return Vec::new();
    };
    let mut found = Vec::new();
    within(tokens, &mut found);
    let complaint = |comment: &DocComment| {
        Violation(format!(
            "{}:{} has a doc comment that says {:?}: say what the name does not, or nothing",
            file.display(),
            comment.line,
            comment.words.join(" ")
        ))
    };
    found.iter().map(complaint).collect()
}

/// All lines before one item.
#[derive(Default)]
struct DocComment {
    line: usize,
    words: Vec<String>,
}

fn within(tokens: TokenStream, found: &mut Vec<DocComment>) {
    let mut tokens = tokens.into_iter().peekable();
    let mut comment = DocComment::default();
    // Whether the item that begins here is a test, or its comments are help.
    let mut exempt = false;
    while let Some(token) = tokens.next() {
        if let TokenTree::Punct(sign) = &token
            && sign.as_char() == '#'
            && let Some(TokenTree::Group(attribute)) = tokens.peek()
        {
            match doc(attribute) {
                Some(text) => {
                    if comment.words.is_empty() {
                        comment.line = attribute.span_open().start().line;
                    }
                    let words = text.split_whitespace().map(str::to_owned);
                    comment.words.extend(words);
                }
                None => exempt |= exempts(attribute),
            }
            tokens.next();
            continue;
        }
        // The item itself.
        let comment = std::mem::take(&mut comment);
        if !exempt && (1..=TOO_FEW).contains(&comment.words.len()) {
            found.push(comment);
        }
        match token {
            TokenTree::Group(group) => {
                let body = group.delimiter() == Delimiter::Brace;
                if !(body && std::mem::take(&mut exempt)) {
                    within(group.stream(), found);
                }
            }
            TokenTree::Punct(end) if matches!(end.as_char(), ',' | ';') => exempt = false,
            _ => {}
        }
    }
}

/// The text of an attribute that a line of a doc comment is to the compiler.
fn doc(attribute: &Group) -> Option<String> {
    match attribute
        .stream()
        .into_iter()
        .collect::<Vec<_>>()
        .as_slice()
    {
        [
            TokenTree::Ident(name),
            TokenTree::Punct(_),
            TokenTree::Literal(text),
        ] if name == "doc" => Some(text.to_string().trim_matches('"').to_owned()),
        _ => None,
    }
}

/// Whether an attribute makes help of an item's comments, or a test of the item.
fn exempts(attribute: &Group) -> bool {
    let text = attribute.stream().to_string();
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        ["derive", traits @ ..] => traits.iter().any(|name| HELP.contains(name)),
        other => *other == ["cfg", "test"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        complaints(Path::new("a.rs"), text)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_comment_of_three_words_is_found_with_its_line() {
        let found = said("struct A {\n    /// Its full name.\n    #[serde(default)]\n    b: B,\n}");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("a.rs:2 has a doc comment that says \"Its full name.\""),
            "{found:?}"
        );
        assert_eq!(said("mod m {\n/// Why.\nfn f() {}\n}").len(), 1);
        assert_eq!(said("enum E { /** One. */ A, B }").len(), 1);
    }

    #[test]
    fn a_comment_counts_as_a_whole() {
        assert!(said("/// The name\n/// as the operator wrote it.\nstruct A;").is_empty());
        assert!(said("/// In bytes, 0 for none.\nconst A: u8 = 0;").is_empty());
        assert!(said("//! Too few.\n// And here.\nfn f() { g(\"/// Or here.\") }").is_empty());
    }

    #[test]
    fn help_and_tests_may_be_short() {
        for text in [
            "/// The flags.\n#[derive(Debug, clap::Args)]\nstruct A {\n    /// List runs\n    b: bool,\n}",
            "#[derive(Subcommand)]\nenum A {\n    /// List runs\n    B {\n        /// Only one\n        c: bool,\n    },\n}",
            "#[cfg(test)]\nmod tests {\n    /// A bug.\n    struct A;\n}",
        ] {
            assert!(said(text).is_empty(), "{text}");
        }
        let after = "#[derive(Args)]\nstruct A {\n    b: bool,\n}\n/// A thing.\nstruct B;";
        assert_eq!(said(after).len(), 1);
        assert!(!is_held_to_it(Path::new("crates/a/tests/it/main.rs")));
        assert!(!is_held_to_it(Path::new("crates/a/src/b/tests.rs")));
        assert!(!is_held_to_it(Path::new("eval/a/project/src/b.rs")));
        assert!(is_held_to_it(Path::new("crates/a/examples/b.rs")));
    }
}
