//! The binary stays thin: arguments, terminal output and exit codes. What else a command needs is in a
//! library, where a server finds it too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Violation;
use crate::repository::Repository;

/// The sources of the binary.
const SOURCES: &str = "crates/lula/src";
/// Most lines of them, tests left out.
const MOST: usize = 9_700;

pub(crate) fn check(repository: &Repository, files: &[PathBuf]) -> Result<Vec<Violation>> {
    let mut sources = Vec::new();
    for file in files {
        if file.starts_with(SOURCES) && file.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(repository.root().join(file))
                .with_context(|| format!("cannot read {}", file.display()))?;
            sources.push((file.clone(), text));
        }
    }
    let lines = lines(&sources);
    Ok(if lines > MOST {
        vec![Violation(format!(
            "{SOURCES} has {lines} lines beside its tests, and may have {MOST}: move what is no \
             argument, no terminal output and no exit code to crates/lula-host"
        ))]
    } else {
        Vec::new()
    })
}

/// All lines but those of test modules, whether they stand in the file or in one of their own.
fn lines(sources: &[(PathBuf, String)]) -> usize {
    let tests: Vec<PathBuf> = sources
        .iter()
        .flat_map(|(file, text)| test_files(file, text))
        .collect();
    sources
        .iter()
        .filter(|(file, _)| !tests.contains(file))
        .map(|(_, text)| text.lines().count() - inline_tests(text))
        .sum()
}

/// Files of modules that are compiled for tests alone.
fn test_files(file: &Path, text: &str) -> Vec<PathBuf> {
    let directory = file.parent().unwrap_or(Path::new(""));
    let mut files = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().map(|line| line.trim());
        let module = next.and_then(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        if line.trim() == "#[cfg(test)]"
            && let Some(module) = module
        {
            files.push(directory.join(format!("{module}.rs")));
        }
    }
    files
}

/// Lines of test modules in a file, each of which ends with a brace in the first column.
fn inline_tests(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let opens = lines
            .peek()
            .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if line == "#[cfg(test)]" && opens {
            count += 1;
            for line in lines.by_ref() {
                count += 1;
                if line == "}" {
                    break;
                }
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let with_tests =
            "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    fn g() {\n    }\n}\nfn h() {}\n";
        let sources = [
            (PathBuf::from("src/a.rs"), with_tests.to_owned()),
            (
                PathBuf::from("src/mod.rs"),
                "#[cfg(test)]\nmod checks;\nmod a;\n".to_owned(),
            ),
            (PathBuf::from("src/checks.rs"), "x\n".repeat(50)),
        ];
        assert_eq!(lines(&sources), 3 + 3);
    }

    #[test]
    fn one_line_too_many_is_found() {
        let sources = [(PathBuf::from("src/a.rs"), "x\n".repeat(MOST + 1))];
        assert_eq!(lines(&sources), MOST + 1);
    }
}
