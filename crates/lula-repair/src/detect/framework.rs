//! The test frameworks that are known: what they test, and how their results are read.

use serde::{Deserialize, Serialize};

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

impl TestFramework {
    pub(super) fn language(self) -> Option<&'static [&'static str]> {
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
