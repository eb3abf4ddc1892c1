//! What a project is made of and how its tests are run, told from its files alone.
//!
//! Every finding carries its reason, so that a person can see why and put it right with a command
//! of their own.

mod cmake;
mod command;
mod deno;
mod django;
mod framework;
mod language;
mod others;
mod php;
mod projects;
mod python;
mod ruby;
mod rust;
mod script;

use serde::{Deserialize, Serialize};

pub use command::from_command;
pub use framework::{TestFramework, TestResultFormat};
pub use language::DetectedLanguage;
use language::languages;
pub(crate) use script::{followed, is_check};

/// A set of tests and how to run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectedTests {
    pub framework: TestFramework,
    /// The command a person would type.
    pub argv: Vec<String>,
    /// The test files, where the framework goes by files.
    pub files: Vec<String>,
    /// Options of the framework that the user gave.
    pub options: Vec<String>,
    /// The folder in which the command is run, from the top; empty for the top.
    #[serde(default)]
    pub folder: String,
    /// The files to run, where not all are meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// How results are read.
    pub results: TestResultFormat,
    /// Why we think so.
    pub reason: String,
}

impl DetectedTests {
    /// The command as a person would type it.
    pub fn line(&self) -> String {
        shell_words(&self.argv)
    }

    /// The same, where a virtual environment of the checkout may not be activated: its own interpreter
    /// is named. `exists` looks at a path of the checkout.
    pub fn line_in(&self, exists: &dyn Fn(&str) -> bool) -> String {
        let interpreters = [".venv/bin/python3", "venv/bin/python3"];
        let own = interpreters.into_iter().find(|path| {
            let folder = self.folder.trim_end_matches('/');
            exists(&match folder {
                "" => (*path).to_owned(),
                folder => format!("{folder}/{path}"),
            })
        });
        match (own, self.argv.split_first()) {
            (Some(own), Some((first, rest))) if first == "python3" => {
                shell_words(&[&[own.to_owned()], rest].concat())
            }
            _ => self.line(),
        }
    }
}

/// Words as a shell reads them.
pub(crate) fn shell_words(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%[]".contains(c);
    let quoted = argv.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Which tests are meant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TestSelection {
    /// The command that runs them, where a person gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The folder that the task is about, from the top of the repository; empty for the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
}

impl TestSelection {
    /// Those that this command runs, at the top.
    pub fn by(command: impl Into<String>) -> Self {
        Self {
            command: Some(command.into()),
            folder: String::new(),
        }
    }
}

/// What was found in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectDetection {
    /// Languages, most files first.
    pub languages: Vec<DetectedLanguage>,
    /// Ways to run tests, the best first.
    pub tests: Vec<DetectedTests>,
    /// The folder of the project that this is about, from the top; empty for the top.
    #[serde(default)]
    pub folder: String,
    /// Folders below that are projects of their own.
    #[serde(default)]
    pub projects: Vec<String>,
}

/// The files of a project as detection sees them.
pub(crate) struct DetectionProject<'a> {
    pub(crate) files: &'a [String],
    pub(crate) read: &'a dyn Fn(&str) -> Option<String>,
}

impl DetectionProject<'_> {
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file == path)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        if self.has(path) {
            (self.read)(path).unwrap_or_default()
        } else {
            String::new()
        }
    }
}

/// Files that others wrote or that a build made.
pub(crate) fn is_foreign(path: &str) -> bool {
    path.split('/').any(|part| {
        matches!(
            part,
            "node_modules"
                | "target"
                | "site-packages"
                | ".venv"
                | "venv"
                | ".tox"
                | "dist"
                | "build"
                | "vendor"
                | "__pycache__"
                | ".git"
                | ".nox"
                | "coverage"
                | ".mypy_cache"
        )
    })
}

/// Looks at a project's files. Nothing is run; `read` gives the text of a file where it has one.
///
/// ```
/// let files = ["Cargo.toml".to_owned(), "src/lib.rs".to_owned()];
/// let found = lula_repair::detect(&files, &|_| Some("[package]".to_owned()));
/// assert_eq!(found.tests[0].argv, ["cargo", "test"]);
/// assert_eq!(found.languages[0].name, "Rust");
/// ```
pub fn detect(files: &[String], read: &dyn Fn(&str) -> Option<String>) -> ProjectDetection {
    detect_in(files, read, "")
}

/// Looks at the project that a folder of a repository belongs to: the nearest one around it. A
/// repository without tests of its own has those of its projects.
pub fn detect_in(
    files: &[String],
    read: &dyn Fn(&str) -> Option<String>,
    folder: &str,
) -> ProjectDetection {
    let own: Vec<String> = files
        .iter()
        .filter(|path| !is_foreign(path))
        .cloned()
        .collect();
    let folder = projects::around(&own, folder);
    let mut found = detect_at(&own, read, folder);
    let below = projects::below(&projects::inside(&own, folder));
    let joined = |name: &String| {
        if folder.is_empty() {
            name.clone()
        } else {
            format!("{folder}/{name}")
        }
    };
    found.projects = below.iter().map(joined).collect();
    if found.tests.is_empty() {
        found.tests = found
            .projects
            .iter()
            .flat_map(|project| detect_at(&own, read, project).tests)
            .collect();
    }
    found
}

/// The project that a file belongs to: the nearest one around it that has tests.
pub(crate) fn project_of(
    files: &[String],
    read: &dyn Fn(&str) -> Option<String>,
    file: &str,
) -> Option<ProjectDetection> {
    if is_foreign(file) {
        return None;
    }
    let own: Vec<String> = files
        .iter()
        .filter(|path| !is_foreign(path))
        .cloned()
        .collect();
    projects::above(&own, file)
        .map(|folder| detect_at(&own, read, folder))
        .find(|found| !found.tests.is_empty())
}

/// Looks at one folder as a project.
fn detect_at(
    own: &[String],
    read: &dyn Fn(&str) -> Option<String>,
    folder: &str,
) -> ProjectDetection {
    let files = projects::inside(own, folder);
    let read = |path: &str| {
        if folder.is_empty() {
            read(path)
        } else {
            read(&format!("{folder}/{path}"))
        }
    };
    let project = DetectionProject {
        files: &projects::outside(&files),
        read: &read,
    };
    let mut tests = Vec::new();
    django::look(&project, &mut tests);
    python::look(&project, &mut tests);
    rust::look(&project, &mut tests);
    script::look(&project, &mut tests);
    deno::look(&project, &mut tests);
    ruby::look(&project, &mut tests);
    php::look(&project, &mut tests);
    cmake::look(&project, &mut tests);
    others::look(&project, &mut tests);
    for found in &mut tests {
        folder.clone_into(&mut found.folder);
        if !folder.is_empty() {
            found.reason = format!("in {folder}, {}", found.reason);
        }
    }
    let languages = languages(&files);
    // The language with the most files is what the project is about.
    let share = |tests: &DetectedTests| {
        languages
            .iter()
            .position(|language| {
                tests
                    .framework
                    .language()
                    .is_some_and(|name| name.contains(&language.name.as_str()))
            })
            .unwrap_or(usize::MAX)
    };
    tests.sort_by_key(share);
    ProjectDetection {
        languages,
        tests,
        folder: folder.to_owned(),
        projects: Vec::new(),
    }
}

fn found(
    framework: TestFramework,
    argv: &[&str],
    files: Vec<String>,
    reason: impl Into<String>,
) -> DetectedTests {
    DetectedTests {
        framework,
        argv: argv.iter().map(|&part| part.to_owned()).collect(),
        files,
        options: Vec::new(),
        folder: String::new(),
        only: Vec::new(),
        results: framework.results(),
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests;
