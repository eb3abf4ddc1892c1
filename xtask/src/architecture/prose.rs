//! Comments name who acts: a driver, a runner, a coder, an operator. A reader cannot grep for a pronoun.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Violation;
use crate::repository::Repository;

/// Words that stand for an actor without naming one. In two pieces, so that this file does not hold them.
const NAMELESS: &[(&str, &str)] = &[("who", "ever")];

pub(crate) fn check(repository: &Repository, files: &[PathBuf]) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| is_rust(file)) {
        let text = fs::read_to_string(repository.root().join(file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        violations.extend(complaints(file, &text));
    }
    Ok(violations)
}

fn is_rust(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
}

fn complaints(file: &Path, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (row, line) in text.lines().enumerate() {
        let comment = line.trim_start();
        if !comment.starts_with("///") && !comment.starts_with("//!") {
            continue;
        }
        let words = comment.split(|c: char| !c.is_alphanumeric());
        for word in words.map(str::to_ascii_lowercase) {
            if NAMELESS.iter().any(|(a, b)| word == format!("{a}{b}")) {
                violations.push(Violation(format!(
                    "{}:{} says \"{word}\": name who acts",
                    file.display(),
                    row + 1
                )));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_without_a_name_is_found_in_doc_comments_alone() {
        let word = ["who", "ever"].concat();
        let said = |text: String| complaints(Path::new("a.rs"), &text).len();
        assert_eq!(said(format!("/// Asks {word} waits.\nfn f() {{}}")), 1);
        assert_eq!(said(format!("//! {}", word.to_uppercase())), 1);
        assert_eq!(said(format!("fn f() -> &'static str {{ \"{word}\" }}")), 0);
        assert_eq!(said("/// The runner asks the operator.".to_owned()), 0);
    }
}
