//! Where `unsafe` may stand: read as tokens, so that comments and strings do not count and macros do.

use std::{
    fs, iter,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Violation;
use crate::repository::{Metadata, Package, Repository};

/// The crates that may hold `unsafe`, and below which of their directories.
const ALLOWED: &[(&str, &str)] = &[("lula-sandbox", "src/sys"), ("lula-guest", "")];

pub(crate) fn check(
    repository: &Repository,
    metadata: &Metadata,
    files: &[PathBuf],
) -> Result<Vec<Violation>> {
    // The root as cargo spells it may differ from ours by a symbolic link.
    let root =
        fs::canonicalize(repository.root()).context("cannot resolve the repository's root")?;
    let read = |file: &Path| {
        fs::read_to_string(root.join(file))
            .with_context(|| format!("cannot read {}", file.display()))
    };
    let mut violations = Vec::new();
    for package in &metadata.packages {
        let directory = below(&root, package.directory())?;
        let sources = sources(&root, package)?;
        for file in files {
            let is_rust = file.extension().is_some_and(|extension| extension == "rs");
            if is_rust && sources.iter().any(|directory| file.starts_with(directory)) {
                let inside = file.strip_prefix(&directory).unwrap_or(file);
                violations.extend(uses(&package.name, inside, file, &read(file)?));
            }
        }
        for root in roots(package) {
            let text = fs::read_to_string(root)
                .with_context(|| format!("cannot read {}", root.display()))?;
            violations.extend(missing_forbid(&package.name, root, &text));
        }
    }
    Ok(violations)
}

/// Where a crate's code stands: its own directory, and those its manifest reaches out to.
fn sources(root: &Path, package: &Package) -> Result<Vec<PathBuf>> {
    let reached = package
        .targets
        .iter()
        .filter_map(|target| target.src_path.parent());
    iter::once(package.directory())
        .chain(reached)
        .map(|directory| below(root, directory))
        .collect()
}

/// A directory as the list of files spells it: relative to the root, without `..`.
fn below(root: &Path, directory: &Path) -> Result<PathBuf> {
    let resolved = fs::canonicalize(directory)
        .with_context(|| format!("cannot resolve {}", directory.display()))?;
    Ok(resolved
        .strip_prefix(root)
        .map(Path::to_path_buf)
        .unwrap_or(resolved))
}

/// The files a crate's libraries and programs begin with.
fn roots(package: &Package) -> impl Iterator<Item = &Path> {
    package
        .targets
        .iter()
        .filter(|target| {
            target
                .kind
                .iter()
                .any(|kind| kind.contains("lib") || kind == "bin" || kind == "proc-macro")
        })
        .map(|target| target.src_path.as_path())
}

fn uses(package: &str, inside: &Path, file: &Path, text: &str) -> Vec<Violation> {
    let allowed = ALLOWED
        .iter()
        .any(|(name, directory)| *name == package && inside.starts_with(directory));
    if allowed {
        return Vec::new();
    }
    match text.parse::<TokenStream>() {
        Ok(tokens) => lines_with_unsafe(tokens)
            .into_iter()
            .map(|line| {
                Violation(format!(
                    "{}:{line} holds `unsafe`: it may stand only in lula-sandbox below src/sys/ \
                     and in lula-guest",
                    file.display()
                ))
            })
            .collect(),
        Err(error) => vec![Violation(format!(
            "{} cannot be read as Rust, so nothing is known of it: {error}",
            file.display()
        ))],
    }
}

fn lines_with_unsafe(tokens: TokenStream) -> Vec<usize> {
    let mut lines = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => lines.extend(lines_with_unsafe(group.stream())),
            TokenTree::Ident(word) if word == "unsafe" => lines.push(word.span().start().line),
            _ => {}
        }
    }
    lines
}

fn missing_forbid(package: &str, root: &Path, text: &str) -> Option<Violation> {
    let may_hold_unsafe = ALLOWED.iter().any(|(name, _)| *name == package);
    let forbids = text
        .parse::<TokenStream>()
        .is_ok_and(|tokens| forbids_unsafe(&tokens));
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    (!may_hold_unsafe && !forbids).then(|| {
        Violation(format!(
            "{package} does not begin its {name} with `#![forbid(unsafe_code)]`"
        ))
    })
}

/// Whether `#![forbid(unsafe_code)]` stands at the file's own level, not in a module inside it.
fn forbids_unsafe(tokens: &TokenStream) -> bool {
    let tokens = tokens.clone().into_iter().collect::<Vec<_>>();
    tokens.windows(3).any(|window| match window {
        [
            TokenTree::Punct(hash),
            TokenTree::Punct(bang),
            TokenTree::Group(attribute),
        ] => {
            hash.as_char() == '#'
                && bang.as_char() == '!'
                && attribute.delimiter() == Delimiter::Bracket
                && is_forbid(&attribute.stream())
        }
        _ => false,
    })
}

fn is_forbid(attribute: &TokenStream) -> bool {
    let words = attribute.clone().into_iter().collect::<Vec<_>>();
    match words.as_slice() {
        [TokenTree::Ident(level), TokenTree::Group(lints)] => {
            level == "forbid"
                && lints
                    .stream()
                    .into_iter()
                    .any(|lint| matches!(lint, TokenTree::Ident(name) if name == "unsafe_code"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(package: &str, inside: &str, text: &str) -> Vec<String> {
        let file = Path::new("crates").join(package).join(inside);
        uses(package, Path::new(inside), &file, text)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn unsafe_code_is_found_with_its_line_wherever_it_hides() {
        for text in [
            "fn f() {\n    unsafe { g() }\n}",
            "\nunsafe fn g() {}",
            "macro_rules! m {\n    () => { unsafe { g() } }; }",
            "\n#[unsafe(no_mangle)] fn g() {}",
        ] {
            let said = said("lula-store", "src/a.rs", text);
            assert_eq!(said.len(), 1, "{text}");
            assert!(
                said[0].starts_with("crates/lula-store/src/a.rs:2 holds `unsafe`"),
                "{said:?}"
            );
        }
    }

    #[test]
    fn comments_strings_and_the_lint_itself_are_not_unsafe() {
        let text = "#![forbid(unsafe_code)]\n//! unsafe\n/* unsafe /* unsafe */ */\n\
            fn f() -> &'static str { r#\"unsafe { }\"# } // unsafe";
        assert!(said("lula-store", "src/a.rs", text).is_empty());
    }

    #[test]
    fn only_the_sandboxes_system_calls_and_the_guest_may_hold_it() {
        let text = "fn f() { unsafe { g() } }";
        assert!(said("lula-sandbox", "src/sys/clone.rs", text).is_empty());
        assert!(said("lula-guest", "src/main.rs", text).is_empty());
        assert_eq!(said("lula-sandbox", "src/tier.rs", text).len(), 1);
        assert_eq!(said("lula-sandbox", "src/system.rs", text).len(), 1);
        assert_eq!(said("lula-sandbox", "tests/it/main.rs", text).len(), 1);
    }

    #[test]
    fn a_file_that_is_not_rust_is_not_taken_for_a_safe_one() {
        assert_eq!(said("lula-store", "src/a.rs", "fn f( {").len(), 1);
    }

    #[test]
    fn a_crate_forbids_unsafe_at_its_root() {
        let said = |package, text| missing_forbid(package, Path::new("src/lib.rs"), text).is_some();
        assert!(!said("lula-store", "//! Docs.\n#![forbid(unsafe_code)]\n"));
        assert!(!said("lula-store", "#![forbid(missing_docs, unsafe_code)]"));
        assert!(!said("lula-sandbox", "//! Docs."));
        for without in [
            "",
            "// #![forbid(unsafe_code)]",
            "#![deny(unsafe_code)]",
            "mod a { #![forbid(unsafe_code)] }",
            "const A: &str = \"#![forbid(unsafe_code)]\";",
        ] {
            assert!(said("lula-store", without), "{without}");
        }
    }
}
