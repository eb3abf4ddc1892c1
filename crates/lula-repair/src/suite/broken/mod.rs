//! Tells an environment that cannot run tests from code that fails them, by what a runner printed.

mod node;
mod python;
mod remedy;
mod runners;
mod toolchains;

use crate::environment::BrokenEnvironment;
use crate::ground::ProjectFork;
use crate::trial::tail;

pub(crate) use node::{broken as node, linked_elsewhere};
pub(crate) use python::{broken as python, missing as missing_modules, shadowed};
pub(crate) use remedy::python as python_remedy;
pub(crate) use runners::{absent, broken as runner};
pub(crate) use toolchains::broken as toolchain;

/// What was run, and what came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuiteCommandAttempt<'a> {
    pub(crate) command: &'a str,
    pub(crate) folder: &'a str,
    pub(crate) interpreter: Option<&'a str>,
    pub(crate) output: &'a str,
}

impl SuiteCommandAttempt<'_> {
    /// The interpreter that the command starts.
    fn python(&self) -> &str {
        let first = self.command.split_whitespace().next().unwrap_or_default();
        let name = first.rsplit('/').next().unwrap_or(first);
        if name.starts_with("python") {
            first
        } else {
            "python3"
        }
    }

    /// Says what is wrong, with what was run.
    pub(crate) fn failed(
        &self,
        what: String,
        missing: Vec<String>,
        remedy: Option<String>,
    ) -> BrokenEnvironment {
        BrokenEnvironment {
            what,
            missing,
            interpreter: self.interpreter.map(str::to_owned),
            command: self.command.to_owned(),
            output: tail(self.output.trim(), 3000).to_owned(),
            remedy: remedy.map(|remedy| {
                if self.folder.is_empty() {
                    remedy
                } else {
                    format!("cd {} && {remedy}", self.folder)
                }
            }),
        }
    }
}

/// What is not installed, in the words of a language that says so for each test file.
pub(crate) fn not_installed(
    project: &ProjectFolderFiles<'_>,
    attempt: &SuiteCommandAttempt<'_>,
) -> Option<BrokenEnvironment> {
    node(project, attempt).or_else(|| python(project, attempt))
}

/// The files of a project's folder, and their texts.
pub(crate) struct ProjectFolderFiles<'a> {
    fork: &'a dyn ProjectFork,
    folder: &'a str,
    files: Vec<String>,
}

impl<'a> ProjectFolderFiles<'a> {
    pub(crate) fn of(fork: &'a dyn ProjectFork, folder: &'a str) -> Self {
        let prefix = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let files = fork.files().unwrap_or_default();
        Self {
            fork,
            folder,
            files: files
                .into_iter()
                .filter_map(|file| file.strip_prefix(&prefix).map(str::to_owned))
                .collect(),
        }
    }

    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file == path)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        if !self.has(path) {
            return String::new();
        }
        let whole = if self.folder.is_empty() {
            path.to_owned()
        } else {
            format!("{}/{path}", self.folder)
        };
        let bytes = self.fork.read(&whole).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Lists names in a sentence.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
