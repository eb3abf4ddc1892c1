//! The two pages that a newcomer reads first stay short: what goes into detail has pages of its own.

use std::fs;

use anyhow::{Context, Result};

use super::Violation;
use crate::repository::Repository;

/// Each with the most words that it may have, counted as `wc -w` counts them.
const PAGES: [(&str, usize); 2] = [("README.md", 600), ("ARCHITECTURE.md", 2_500)];

pub(crate) fn check(repository: &Repository) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for (page, most) in PAGES {
        let text = fs::read_to_string(repository.root().join(page))
            .with_context(|| format!("cannot read {page}"))?;
        violations.extend(complaint(page, &text, most));
    }
    Ok(violations)
}

fn complaint(page: &str, text: &str, most: usize) -> Option<Violation> {
    let words = text.split_whitespace().count();
    (words > most).then(|| {
        Violation(format!(
            "{page} has {words} words, and may have {most}: move what goes into detail to docs/ or to \
             the documentation of a module"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_grew_too_long_is_named() {
        assert!(complaint("README.md", "one two three", 3).is_none());
        let found = complaint("README.md", "one two\nthree four", 3).unwrap();
        assert!(found.to_string().contains("README.md has 4 words"));
    }
}
