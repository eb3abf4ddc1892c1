//! What a project is made of and how its tests are run, told from its files alone.
//!
//! Every finding carries its reason, so that a person can see why and put it right with a command
//! of their own.

mod cmake;
mod command;
mod deno;
mod django;
mod others;
mod php;
mod projects;
mod python;
mod ruby;
mod rust;
mod script;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use command::from_command;
pub(crate) use script::{followed, is_check};

/// A test framework, told apart by how it is run and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestFramework {
    Pytest,
    /// Python's own `unittest`, without pytest.
    Unittest,
    /// Test files of bare Python functions, with no framework at hand.
    PlainPython,
    /// Django's runner, through `manage.py test`.
    Django,
    /// Rust's libtest, through cargo.
    CargoTest,
    /// Rust's tests, each in a process of its own, through cargo-nextest.
    Nextest,
    /// Node's own test runner.
    NodeTest,
    Jest,
    Vitest,
    Mocha,
    /// A package's test script, whatever runner it starts.
    NodeScript,
    /// Bun's own runner, `bun test`.
    BunTest,
    /// Deno's own runner, `deno test`.
    DenoTest,
    /// Go's own runner, `go test`.
    GoTest,
    /// `CTest`, after a build with `CMake`.
    Ctest,
    /// `RSpec`, the test framework of Ruby projects.
    Rspec,
    /// `PHPUnit`, and Pest, which is made of it.
    Phpunit,
    /// A `test` target of a makefile.
    Make,
    /// Maven, whose Surefire runs the tests.
    Maven,
    Gradle,
    /// A command of the user's that only its exit code explains.
    Command,
}

/// How a framework's results are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestResultFormat {
    /// A report of a runner that we bring in.
    OurReport,
    /// XML files as `JUnit` writes them.
    JunitXml,
    /// The framework's own JSON.
    Json,
    /// The Test Anything Protocol.
    Tap,
    /// The lines that libtest prints, one for each test.
    Libtest,
    /// Nothing but the exit code.
    ExitCode,
}

/// A language and how much of it there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectedLanguage {
    pub name: String,
    /// How many source files.
    pub files: usize,
    /// Whether the repairer can write patches in it.
    pub repairable: bool,
}

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

impl TestFramework {
    fn language(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Pytest | Self::Unittest | Self::PlainPython | Self::Django => Some(&["Python"]),
            Self::CargoTest | Self::Nextest => Some(&["Rust"]),
            Self::NodeTest
            | Self::Jest
            | Self::Vitest
            | Self::Mocha
            | Self::NodeScript
            | Self::BunTest
            | Self::DenoTest => Some(&["JavaScript", "TypeScript"]),
            Self::Ctest => Some(&["C", "C++"]),
            Self::Rspec => Some(&["Ruby"]),
            Self::Phpunit => Some(&["PHP"]),
            Self::GoTest => Some(&["Go"]),
            Self::Maven | Self::Gradle => Some(&["Java", "Kotlin"]),
            Self::Make | Self::Command => None,
        }
    }

    /// How its results are read.
    pub fn results(self) -> TestResultFormat {
        match self {
            Self::CargoTest => TestResultFormat::Libtest,
            Self::NodeTest => TestResultFormat::Tap,
            Self::Pytest
            | Self::Unittest
            | Self::PlainPython
            | Self::Jest
            | Self::Vitest
            | Self::Mocha
            | Self::NodeScript
            | Self::Django
            | Self::Rspec => TestResultFormat::OurReport,
            Self::GoTest => TestResultFormat::Json,
            Self::Maven
            | Self::Gradle
            | Self::Nextest
            | Self::Ctest
            | Self::Phpunit
            | Self::BunTest
            | Self::DenoTest => TestResultFormat::JunitXml,
            Self::Make | Self::Command => TestResultFormat::ExitCode,
        }
    }
}

fn languages(files: &[String]) -> Vec<DetectedLanguage> {
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
        .map(|(name, (files, repairable))| DetectedLanguage {
            name: name.to_owned(),
            files,
            repairable,
        })
        .collect();
    found.sort_by(|a, b| b.files.cmp(&a.files).then_with(|| a.name.cmp(&b.name)));
    found
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
mod tests {
    use super::*;

    fn look(files: &[(&str, &str)]) -> ProjectDetection {
        let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        detect(&names, &|path| {
            files
                .iter()
                .find(|(name, _)| *name == path)
                .map(|(_, text)| (*text).to_owned())
        })
    }

    fn first(files: &[(&str, &str)]) -> (TestFramework, String) {
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
        assert_eq!(first(&unittest).0, TestFramework::Unittest);
        let pytest = [
            ("a.py", ""),
            (
                "tests/test_a.py",
                "import pytest\ndef test_x():\n    assert 1\n",
            ),
        ];
        assert_eq!(first(&pytest).0, TestFramework::Pytest);
        let configured = [
            ("a.py", ""),
            ("pytest.ini", "[pytest]"),
            (
                "tests/test_a.py",
                "import unittest\nclass T(unittest.TestCase): pass",
            ),
        ];
        let (framework, reason) = first(&configured);
        assert_eq!(framework, TestFramework::Pytest);
        assert!(reason.contains("pytest.ini"), "{reason}");
    }

    #[test]
    fn script_frameworks_are_read_from_package_json() {
        for (manifest, framework) in [
            (r#"{"scripts":{"test":"jest"}}"#, TestFramework::Jest),
            (
                r#"{"scripts":{"test":"vitest run"}}"#,
                TestFramework::Vitest,
            ),
            (r#"{"scripts":{"test":"mocha"}}"#, TestFramework::Mocha),
            (
                r#"{"scripts":{"test":"node --test"}}"#,
                TestFramework::NodeTest,
            ),
            (r#"{"devDependencies":{"jest":"^29"}}"#, TestFramework::Jest),
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
                "eslint . && node -r ./setup.js --test --test-reporter=spec",
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
            assert_eq!(
                found.tests[0].framework,
                TestFramework::NodeTest,
                "{script}"
            );
            assert_eq!(found.tests[0].options, options, "{script}");
            assert_eq!(found.tests[0].files, ["test/a.test.ts"]);
        }
    }

    #[test]
    fn a_script_of_node_is_run_as_it_is_where_it_builds_first_or_names_what_is_not_there() {
        let found = |script: &str| {
            let manifest = format!(r#"{{"scripts":{{"test":"{script}"}}}}"#);
            let tests = look(&[
                ("package.json", &manifest),
                ("src/a.js", ""),
                ("test/a.test.js", ""),
                ("test/b.test.js", ""),
                ("test/more/c.test.js", ""),
                ("test/index.js", "require('./a.test.js');"),
                ("test/tape.js", "const test = require('tape');"),
            ])
            .tests;
            (tests[0].framework, tests[0].files.clone())
        };
        for script in [
            "npm run compile && node --enable-source-maps --test ./lib/test/*.test.js",
            "node --test ./lib/test/*.test.js",
            "tsc && node --test",
            // Another runner's page, another program, a library that is a runner.
            "node tests/test.js --mocha-headless-chrome",
            "ts-node test/a.test.js",
            "node test/tape.js",
            "node test --all && node examples",
        ] {
            assert_eq!(found(script).0, TestFramework::NodeScript, "{script}");
        }
        for (script, files) in [
            (
                "node --test test/*.test.js",
                &["test/a.test.js", "test/b.test.js"][..],
            ),
            ("node --test 'test/more'", &["test/more/c.test.js"]),
            ("c8 node --test test/a.test.js", &["test/a.test.js"]),
            ("node test", &["test/index.js"]),
            ("xo && node ./test/a.test.js", &["test/a.test.js"]),
        ] {
            let (framework, named) = found(script);
            assert_eq!(framework, TestFramework::NodeTest, "{script}");
            assert_eq!(named, files, "{script}");
        }
    }

    #[test]
    fn other_ecosystems_are_known_by_their_manifests() {
        assert_eq!(
            first(&[("Cargo.toml", "[package]"), ("src/lib.rs", "")]).0,
            TestFramework::CargoTest
        );
        assert_eq!(
            first(&[("go.mod", "module x"), ("a_test.go", "")]).0,
            TestFramework::GoTest
        );
        assert_eq!(first(&[("pom.xml", "")]).0, TestFramework::Maven);
        assert_eq!(
            first(&[("build.gradle", ""), ("gradlew", "")]).0,
            TestFramework::Gradle
        );
        assert_eq!(
            first(&[("Makefile", "all:\n\tcc\ntest: all\n\t./run\n")]).0,
            TestFramework::Make
        );
    }

    #[test]
    fn each_runner_is_started_as_its_project_starts_it() {
        let line = |files: &[(&str, &str)]| {
            let found = look(files).tests.swap_remove(0);
            (found.framework, found.line())
        };
        let expect = |files: &[(&str, &str)], framework: TestFramework, wanted: &str| {
            assert_eq!(line(files), (framework, wanted.to_owned()));
        };
        let manage = ("manage.py", "from django.core.management import x");
        expect(
            &[
                manage,
                ("shop/tests.py", "from django.test import TestCase"),
            ],
            TestFramework::Django,
            "python3 manage.py test",
        );
        expect(
            &[
                ("runtests.py", "import django"),
                ("tests/test_a.py", "import unittest"),
            ],
            TestFramework::Django,
            "python3 runtests.py",
        );
        expect(
            &[
                manage,
                ("pytest.ini", "[pytest]\nDJANGO_SETTINGS_MODULE = a"),
                ("shop/tests/test_a.py", ""),
            ],
            TestFramework::Pytest,
            "python3 -m pytest",
        );
        expect(
            &[("go.mod", ""), ("a.go", "")],
            TestFramework::GoTest,
            "go test ./...",
        );
        expect(
            &[("Gemfile", ""), ("spec/a_spec.rb", "")],
            TestFramework::Rspec,
            "bundle exec rspec",
        );
        expect(&[("spec/a_spec.rb", "")], TestFramework::Rspec, "rspec");
        expect(
            &[(
                "composer.json",
                r#"{"require-dev":{"phpunit/phpunit":"^9"}}"#,
            )],
            TestFramework::Phpunit,
            "vendor/bin/phpunit",
        );
        expect(
            &[(
                "composer.json",
                r#"{"scripts":{"test":["phpcs","phpunit"]}}"#,
            )],
            TestFramework::Phpunit,
            "composer test",
        );
        expect(
            &[("phpunit.xml.dist", "")],
            TestFramework::Phpunit,
            "phpunit",
        );
        expect(
            &[("CMakeLists.txt", "enable_testing ()"), ("a.c", "")],
            TestFramework::Ctest,
            "sh -c 'cmake -S . -B build && cmake --build build && ctest --test-dir build'",
        );
        expect(
            &[("deno.json", r#"{"tasks": {"test": "deno test -A"}}"#)],
            TestFramework::DenoTest,
            "deno task test",
        );
        expect(
            &[("deno.jsonc", "{}")],
            TestFramework::DenoTest,
            "deno test -A",
        );
        expect(
            &[
                ("package.json", r#"{"scripts":{"test":"bun test"}}"#),
                ("bun.lock", ""),
            ],
            TestFramework::BunTest,
            "bun run test",
        );
        expect(
            &[("package.json", "{}"), ("bun.lock", ""), ("a.test.ts", "")],
            TestFramework::BunTest,
            "bun test",
        );
    }

    #[test]
    fn nextest_stands_beside_what_a_repair_is_quickest_with() {
        let found = look(&[("Cargo.toml", ""), (".config/nextest.toml", "")]);
        let lines: Vec<String> = found.tests.iter().map(DetectedTests::line).collect();
        assert_eq!(lines, ["cargo test", "cargo nextest run"]);
    }

    #[test]
    fn what_others_wrote_is_not_the_project() {
        let found = look(&[("node_modules/x/test/a.test.js", ""), ("a.py", "")]);
        assert_eq!(found.languages.len(), 1);
        assert!(found.tests.is_empty());
    }
}
