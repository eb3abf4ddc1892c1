//! What a project is made of and how its tests are run, told from its files alone.
//!
//! Every finding carries its reason, so that a person can see why and put it right with a command
//! of their own.

mod command;
mod others;
mod projects;
mod python;
mod rust;
mod script;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use command::from_command;

/// A test framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framework {
    /// pytest.
    Pytest,
    /// Python's own unittest.
    Unittest,
    /// Test files of bare Python functions, with no framework at hand.
    PlainPython,
    /// Rust's libtest, through cargo.
    CargoTest,
    /// Node's own test runner.
    NodeTest,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// Mocha.
    Mocha,
    /// A package's test script, whatever runner it starts.
    NodeScript,
    /// `go test`.
    GoTest,
    /// A `test` target of a makefile.
    Make,
    /// Maven's Surefire.
    Maven,
    /// Gradle.
    Gradle,
    /// A command of the user's that only its exit code explains.
    Command,
}

/// How a framework's results are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultFormat {
    /// A report of a runner that we bring in.
    OurReport,
    /// `JUnit`'s XML files.
    JunitXml,
    /// The framework's own JSON.
    Json,
    /// The Test Anything Protocol.
    Tap,
    /// libtest's lines.
    Libtest,
    /// Nothing but the exit code.
    ExitCode,
}

/// A language and how much of it there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanguageFound {
    /// Its name.
    pub name: String,
    /// How many source files.
    pub files: usize,
    /// Whether the repairer can write patches in it.
    pub repairable: bool,
}

/// A set of tests and how to run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsFound {
    /// The framework.
    pub framework: Framework,
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
    pub results: ResultFormat,
    /// Why we think so.
    pub reason: String,
}

impl TestsFound {
    /// The command as a person would type it.
    pub fn line(&self) -> String {
        shell_words(&self.argv)
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
pub struct TestsWanted {
    /// The command that runs them, where a person gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The folder that the task is about, from the top of the repository; empty for the top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
}

impl TestsWanted {
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
pub struct Detection {
    /// Languages, most files first.
    pub languages: Vec<LanguageFound>,
    /// Ways to run tests, the best first.
    pub tests: Vec<TestsFound>,
    /// The folder of the project that this is about, from the top; empty for the top.
    #[serde(default)]
    pub folder: String,
    /// Folders below that are projects of their own.
    #[serde(default)]
    pub projects: Vec<String>,
}

/// The files of a project as detection sees them.
pub(crate) struct Project<'a> {
    pub(crate) files: &'a [String],
    pub(crate) read: &'a dyn Fn(&str) -> Option<String>,
}

impl Project<'_> {
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

const LANGUAGES: &[(&str, &[&str], bool)] = &[
    ("Python", &["py"], true),
    ("JavaScript", &["js", "mjs", "cjs", "jsx"], true),
    ("TypeScript", &["ts", "mts", "cts", "tsx"], true),
    ("Rust", &["rs"], true),
    ("Go", &["go"], false),
    ("Java", &["java"], false),
    ("Kotlin", &["kt", "kts"], false),
    ("C", &["c", "h"], false),
    ("C++", &["cc", "cpp", "cxx", "hpp", "hh"], false),
    ("C#", &["cs"], false),
    ("Ruby", &["rb"], false),
    ("PHP", &["php"], false),
    ("Swift", &["swift"], false),
    ("Shell", &["sh", "bash"], false),
];

/// Looks at a project's files. Nothing is run; `read` gives the text of a file where it has one.
///
/// ```
/// let files = ["Cargo.toml".to_owned(), "src/lib.rs".to_owned()];
/// let found = lula_repair::detect(&files, &|_| Some("[package]".to_owned()));
/// assert_eq!(found.tests[0].argv, ["cargo", "test"]);
/// assert_eq!(found.languages[0].name, "Rust");
/// ```
pub fn detect(files: &[String], read: &dyn Fn(&str) -> Option<String>) -> Detection {
    detect_in(files, read, "")
}

/// Looks at the project that a folder of a repository belongs to: the nearest one around it. A
/// repository without tests of its own has those of its projects.
pub fn detect_in(
    files: &[String],
    read: &dyn Fn(&str) -> Option<String>,
    folder: &str,
) -> Detection {
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
) -> Option<Detection> {
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
fn detect_at(own: &[String], read: &dyn Fn(&str) -> Option<String>, folder: &str) -> Detection {
    let files = projects::inside(own, folder);
    let read = |path: &str| {
        if folder.is_empty() {
            read(path)
        } else {
            read(&format!("{folder}/{path}"))
        }
    };
    let project = Project {
        files: &projects::outside(&files),
        read: &read,
    };
    let mut tests = Vec::new();
    python::look(&project, &mut tests);
    rust::look(&project, &mut tests);
    script::look(&project, &mut tests);
    others::look(&project, &mut tests);
    for found in &mut tests {
        folder.clone_into(&mut found.folder);
        if !folder.is_empty() {
            found.reason = format!("in {folder}, {}", found.reason);
        }
    }
    let languages = languages(&files);
    // The language with the most files is what the project is about.
    let share = |tests: &TestsFound| {
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
    Detection {
        languages,
        tests,
        folder: folder.to_owned(),
        projects: Vec::new(),
    }
}

impl Framework {
    fn language(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Pytest | Self::Unittest | Self::PlainPython => Some(&["Python"]),
            Self::CargoTest => Some(&["Rust"]),
            Self::NodeTest | Self::Jest | Self::Vitest | Self::Mocha | Self::NodeScript => {
                Some(&["JavaScript", "TypeScript"])
            }
            Self::GoTest => Some(&["Go"]),
            Self::Maven | Self::Gradle => Some(&["Java", "Kotlin"]),
            Self::Make | Self::Command => None,
        }
    }

    /// How its results are read.
    pub fn results(self) -> ResultFormat {
        match self {
            Self::CargoTest => ResultFormat::Libtest,
            Self::NodeTest => ResultFormat::Tap,
            Self::Pytest
            | Self::Unittest
            | Self::PlainPython
            | Self::Jest
            | Self::Vitest
            | Self::Mocha
            | Self::NodeScript => ResultFormat::OurReport,
            Self::GoTest => ResultFormat::Json,
            Self::Maven | Self::Gradle => ResultFormat::JunitXml,
            Self::Make | Self::Command => ResultFormat::ExitCode,
        }
    }
}

fn languages(files: &[String]) -> Vec<LanguageFound> {
    let mut counts: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for path in files {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        if let Some((name, _, repairable)) = LANGUAGES
            .iter()
            .find(|(_, endings, _)| endings.contains(&ending))
        {
            let count = counts.entry(name).or_insert((0, *repairable));
            count.0 += 1;
        }
    }
    let mut found: Vec<_> = counts
        .into_iter()
        .map(|(name, (files, repairable))| LanguageFound {
            name: name.to_owned(),
            files,
            repairable,
        })
        .collect();
    found.sort_by(|a, b| b.files.cmp(&a.files).then_with(|| a.name.cmp(&b.name)));
    found
}

fn found(
    framework: Framework,
    argv: &[&str],
    files: Vec<String>,
    reason: impl Into<String>,
) -> TestsFound {
    TestsFound {
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
mod tests {
    use super::*;

    fn look(files: &[(&str, &str)]) -> Detection {
        let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        detect(&names, &|path| {
            files
                .iter()
                .find(|(name, _)| *name == path)
                .map(|(_, text)| (*text).to_owned())
        })
    }

    fn first(files: &[(&str, &str)]) -> (Framework, String) {
        let found = look(files);
        (found.tests[0].framework, found.tests[0].reason.clone())
    }

    #[test]
    fn pytest_is_told_from_unittest_by_what_the_tests_use() {
        let unittest = [
            ("a.py", ""),
            (
                "tests/test_a.py",
                "import unittest\nclass T(unittest.TestCase):\n    pass\n",
            ),
        ];
        assert_eq!(first(&unittest).0, Framework::Unittest);
        let pytest = [
            ("a.py", ""),
            (
                "tests/test_a.py",
                "import pytest\ndef test_x():\n    assert 1\n",
            ),
        ];
        assert_eq!(first(&pytest).0, Framework::Pytest);
        let configured = [
            ("a.py", ""),
            ("pytest.ini", "[pytest]"),
            (
                "tests/test_a.py",
                "import unittest\nclass T(unittest.TestCase): pass",
            ),
        ];
        let (framework, reason) = first(&configured);
        assert_eq!(framework, Framework::Pytest);
        assert!(reason.contains("pytest.ini"), "{reason}");
    }

    #[test]
    fn script_frameworks_are_read_from_package_json() {
        for (manifest, framework) in [
            (r#"{"scripts":{"test":"jest"}}"#, Framework::Jest),
            (r#"{"scripts":{"test":"vitest run"}}"#, Framework::Vitest),
            (r#"{"scripts":{"test":"mocha"}}"#, Framework::Mocha),
            (r#"{"scripts":{"test":"node --test"}}"#, Framework::NodeTest),
            (r#"{"devDependencies":{"jest":"^29"}}"#, Framework::Jest),
        ] {
            assert_eq!(
                first(&[
                    ("package.json", manifest),
                    ("src/a.js", ""),
                    ("test/a.test.js", "")
                ])
                .0,
                framework,
                "{manifest}"
            );
        }
    }

    #[test]
    fn what_makes_node_read_typescript_is_kept() {
        for (script, options) in [
            ("node --import tsx --test", &["--import=tsx"][..]),
            ("tsx --test 'test/*.ts'", &["--import=tsx"]),
            (
                "tsc && node -r ./setup.js --test --test-reporter=spec",
                &["--require=./setup.js"],
            ),
            (
                "node --experimental-strip-types --test",
                &["--experimental-strip-types"],
            ),
        ] {
            let manifest = format!(r#"{{"scripts":{{"test":"{script}"}}}}"#);
            let found = look(&[
                ("package.json", &manifest),
                ("src/a.ts", ""),
                ("test/a.test.ts", ""),
            ]);
            assert_eq!(found.tests[0].framework, Framework::NodeTest, "{script}");
            assert_eq!(found.tests[0].options, options, "{script}");
            assert_eq!(found.tests[0].files, ["test/a.test.ts"]);
        }
    }

    #[test]
    fn other_ecosystems_are_known_by_their_manifests() {
        assert_eq!(
            first(&[("Cargo.toml", "[package]"), ("src/lib.rs", "")]).0,
            Framework::CargoTest
        );
        assert_eq!(
            first(&[("go.mod", "module x"), ("a_test.go", "")]).0,
            Framework::GoTest
        );
        assert_eq!(first(&[("pom.xml", "")]).0, Framework::Maven);
        assert_eq!(
            first(&[("build.gradle", ""), ("gradlew", "")]).0,
            Framework::Gradle
        );
        assert_eq!(
            first(&[("Makefile", "all:\n\tcc\ntest: all\n\t./run\n")]).0,
            Framework::Make
        );
    }

    #[test]
    fn what_others_wrote_is_not_the_project() {
        let found = look(&[("node_modules/x/test/a.test.js", ""), ("a.py", "")]);
        assert_eq!(found.languages.len(), 1);
        assert!(found.tests.is_empty());
    }
}
