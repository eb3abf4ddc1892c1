//! No file names a path of the machine it was written on: it would mean nothing on any other.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::Violation;
use crate::repository::Repository;

/// Roots that no user's machine has. In two pieces, so that this file does not hold them.
const FORBIDDEN: &[(&str, &str)] = &[("/wor", "k/"), ("/far", "m/")];

pub(crate) fn check(repository: &Repository, files: &[PathBuf]) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in files {
        let content = fs::read(repository.root().join(file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        violations.extend(complaints(file, &content));
    }
    Ok(violations)
}

fn complaints(file: &Path, content: &[u8]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
        for (start, end) in FORBIDDEN {
            let root = [start.as_bytes(), end.as_bytes()].concat();
            if starts_a_path(line, &root) {
                violations.push(Violation(format!(
                    "{}:{} holds a path of one machine, below {start}{end}: write it relative to \
                     the repository",
                    file.display(),
                    number + 1
                )));
            }
        }
    }
    violations
}

/// Whether the root stands in the line as the beginning of a path, not inside a longer one.
fn starts_a_path(line: &[u8], root: &[u8]) -> bool {
    line.windows(root.len())
        .enumerate()
        .any(|(position, window)| {
            let before = position.checked_sub(1).and_then(|before| line.get(before));
            let inside_a_path =
                before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_.-~})".contains(byte));
            window == root && !inside_a_path
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Vec<String> {
        complaints(Path::new("docs/a.md"), line.as_bytes())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_path_of_the_machine_is_found_with_its_line() {
        let line = format!("first\nsee \"{}{}main/src\"", "/wor", "k/");
        assert_eq!(said(&line).len(), 1);
        assert!(
            said(&line)[0].starts_with("docs/a.md:2 holds a path"),
            "{:?}",
            said(&line)
        );
        assert_eq!(said(&format!("file://{}{}x", "/far", "m/")).len(), 1);
    }

    #[test]
    fn a_longer_path_with_the_same_component_is_a_users_own() {
        for line in [
            "/home/ada/work/app",
            "overlay/work/work",
            "~/work/app",
            "/workspace/src",
            "$HOME/farm",
        ] {
            assert!(said(line).is_empty(), "{line}");
        }
    }
}
