//! Holds the workspace to ARCHITECTURE.md: who may know whom, where `unsafe` may stand, who may
//! speak HTTP, which lints apply, that one name means one type, that comments name who acts and doc
//! comments say something, that the binary is thin and the first pages short, that nothing names the
//! machine it was written on, and that what ships is optimised throughout.
//!
//! Every rule is a function from data to [`Violation`]s, so that each can be shown to fail.

mod dependencies;
mod doc_comments;
mod lints;
mod names;
mod pages;
mod paths;
mod profiles;
mod prose;
mod table;
mod thin_binary;
mod unsafe_code;

use std::{fmt, fs, process::ExitCode};

use anyhow::{Context, Result};

use crate::repository::Repository;

/// Where the table stands.
const DOCUMENT: &str = "ARCHITECTURE.md";

/// One broken rule: where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks the repository and says what is wrong with it.
pub(crate) fn run(repository: &Repository) -> Result<ExitCode> {
    let violations = check(repository)?;
    for violation in &violations {
        println!("{violation}");
    }
    Ok(if violations.is_empty() {
        println!("the workspace keeps to {DOCUMENT}");
        ExitCode::SUCCESS
    } else {
        println!("broken rules of {DOCUMENT}: {}", violations.len());
        ExitCode::FAILURE
    })
}

/// Every broken rule of the repository.
pub(crate) fn check(repository: &Repository) -> Result<Vec<Violation>> {
    let document = fs::read_to_string(repository.root().join(DOCUMENT))
        .with_context(|| format!("cannot read {DOCUMENT}, which holds the table of crates"))?;
    let table = table::parse(&document)?;
    let metadata = repository.metadata()?;
    let files = repository.files()?;

    let mut violations = dependencies::check(&table, &metadata);
    violations.extend(unsafe_code::check(repository, &metadata, &files)?);
    violations.extend(lints::check(&metadata)?);
    violations.extend(paths::check(repository, &files)?);
    violations.extend(pages::check(repository)?);
    violations.extend(profiles::check(repository)?);
    violations.extend(names::check(repository, &files)?);
    violations.extend(prose::check(repository, &files)?);
    violations.extend(doc_comments::check(repository, &files)?);
    violations.extend(thin_binary::check(repository, &files)?);
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_keeps_its_architecture() {
        let violations = check(&Repository::around_here().unwrap()).unwrap();
        let list = violations
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n");
        assert!(violations.is_empty(), "{list}");
    }
}
