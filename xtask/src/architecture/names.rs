//! One name, one type: a public type's name is unique in the workspace, so that a reader who greps for
//! it finds the one that is meant.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};

use super::Violation;
use crate::repository::Repository;

/// Names that more than one crate may have, and why.
const SHARED: &[(&str, &str)] = &[];

/// What a type is declared by.
const KINDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

pub(crate) fn check(repository: &Repository, files: &[PathBuf]) -> Result<Vec<Violation>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_library(file)) {
        let text = fs::read_to_string(repository.root().join(file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        for (name, line) in declared(&text) {
            let place = format!("{}:{line}", file.display());
            places.entry(name).or_default().push(place);
        }
    }
    Ok(repeated(&places, SHARED))
}

/// Whether a file is code that other crates may see.
fn is_library(file: &Path) -> bool {
    let mut parts = file.iter().map(|part| part.to_string_lossy());
    file.extension().is_some_and(|extension| extension == "rs")
        && parts.next().is_some_and(|part| part == "crates")
        && parts.nth(1).is_some_and(|part| part == "src")
        && !file
            .iter()
            .any(|part| part == "tests" || part == "tests.rs")
}

/// Public types that a file declares, with their lines.
fn declared(text: &str) -> Vec<(String, usize)> {
    let Ok(tokens) = text.parse::<TokenStream>() else {
        // Said by the check of `unsafe`, which reads every file.
        return Vec::new();
    };
    let mut found = Vec::new();
    within(tokens, &mut found);
    found
}

fn within(tokens: TokenStream, found: &mut Vec<(String, usize)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for window in tokens.windows(3) {
        if let [
            TokenTree::Ident(public),
            TokenTree::Ident(kind),
            TokenTree::Ident(name),
        ] = window
            && public == "pub"
            && KINDS.iter().any(|known| kind == known)
        {
            found.push((name.to_string(), name.span().start().line));
        }
    }
    // Modules inside a file.
    for token in tokens {
        if let TokenTree::Group(group) = token {
            within(group.stream(), found);
        }
    }
}

fn repeated(places: &BTreeMap<String, Vec<String>>, shared: &[(&str, &str)]) -> Vec<Violation> {
    let known = |name: &str| shared.iter().any(|(known, _)| *known == name);
    let mut violations: Vec<Violation> = places
        .iter()
        .filter(|(name, places)| places.len() > 1 && !known(name))
        .map(|(name, places)| {
            Violation(format!(
                "the public type `{name}` is declared in {} places: {}; name each by what it is",
                places.len(),
                places.join(", ")
            ))
        })
        .collect();
    violations.extend(
        shared
            .iter()
            .filter(|(name, _)| places.get(*name).is_none_or(|places| places.len() < 2))
            .map(|(name, _)| {
                Violation(format!(
                    "`{name}` is no longer shared: take it off the list in xtask's names.rs"
                ))
            }),
    );
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_types_are_found_and_others_are_not() {
        let text = "pub struct A;\nstruct B;\npub(crate) enum C {}\nmod m { pub trait D {} }\n\
                    // pub struct E;\npub fn f() -> &'static str { \"pub struct F\" }";
        let names: Vec<String> = declared(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "D"]);
    }

    #[test]
    fn a_second_type_of_a_name_is_refused_with_both_places() {
        let places = BTreeMap::from([
            (
                "Verdict".to_owned(),
                vec!["a.rs:1".to_owned(), "b.rs:2".to_owned()],
            ),
            ("Run".to_owned(), vec!["c.rs:3".to_owned()]),
        ]);
        let said: Vec<String> = repeated(&places, &[])
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("`Verdict`") && said[0].contains("a.rs:1, b.rs:2"));
        assert!(repeated(&places, &[("Verdict", "a reason")]).is_empty());
        assert_eq!(repeated(&places, &[("Run", "a reason")]).len(), 2);
    }

    #[test]
    fn only_code_of_libraries_counts() {
        assert!(is_library(Path::new("crates/lula-gate/src/rules/mod.rs")));
        assert!(!is_library(Path::new("crates/lula-gate/tests/it/main.rs")));
        assert!(!is_library(Path::new(
            "crates/lula-gate/src/rules/tests.rs"
        )));
        assert!(!is_library(Path::new("xtask/src/main.rs")));
    }
}
