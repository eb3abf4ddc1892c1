//! The checks, in the order they run, and the run itself.
//!
//! One profile and one lock file for all of them, so that nothing is built twice. All run even if
//! one fails: a person wants the whole list at once.

use std::{
    io::{self, IsTerminal},
    process::{Command, ExitCode},
    time::Instant,
};

use clap::ValueEnum;
use serde::Deserialize;

use crate::{
    command, install,
    interrupt::Interrupt,
    report::{Failure, Report, Tally, read_doctests, read_nextest},
    repository::Repository,
    requirements::python_with,
    servers::{self, Servers},
};

/// A check that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Check {
    /// Every crate is formatted
    Fmt,
    /// Licences, sources and bans of deny.toml
    Deny,
    /// No warning in any target
    Clippy,
    /// The protocol compiles for the browser
    Wasm,
    /// The documentation builds without a warning
    Doc,
    /// Every program and test is built
    Build,
    /// Every test, by nextest
    Test,
    /// Every example in the documentation
    Doctest,
}

/// Tests that may be ignored, each with the reason. A test that is ignored and not listed fails
/// the run: it would prove nothing and look as if it did.
const MAY_BE_IGNORED: &[(&str, &str)] = &[];

const BROWSER: &str = "wasm32-unknown-unknown";

/// What to run.
pub(crate) struct Selection {
    checks: Vec<Check>,
    nextest: Vec<String>,
}

impl Selection {
    pub(crate) fn for_test(only: Vec<Check>, nextest: Vec<String>) -> Self {
        let checks = match (only.is_empty(), nextest.is_empty()) {
            (false, _) => only,
            (true, false) => vec![Check::Test],
            (true, true) => Check::value_variants().to_vec(),
        };
        Self { checks, nextest }
    }

    pub(crate) fn for_lint() -> Self {
        let checks = vec![Check::Fmt, Check::Deny, Check::Clippy, Check::Doc];
        Self {
            checks,
            nextest: Vec::new(),
        }
    }
}

/// Runs the chosen checks and ends with the line that counts them.
pub(crate) fn run(
    repository: &Repository,
    selection: &Selection,
    interrupt: &Interrupt,
) -> ExitCode {
    let mut report = Report::default();
    heading("requirements: what the checks need from this machine");
    install::install_missing(repository, &selection.checks, &mut report, interrupt);

    let mut servers = Servers::default();
    if selection.checks.contains(&Check::Test) {
        start_servers(repository, &mut servers, &mut report);
    }
    let mut run = Run {
        repository,
        selection,
        interrupt,
        servers: &servers,
        report: &mut report,
    };
    for check in Check::value_variants() {
        if selection.checks.contains(check) && !interrupt.is_raised() {
            run.check(*check);
        }
    }
    drop(servers);
    if interrupt.is_raised() {
        report.failed(Failure::new(
            "interrupted",
            "stopped before all checks had run",
        ));
    }
    println!("\n{report}");
    if report.has_failures() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn start_servers(repository: &Repository, servers: &mut Servers, report: &mut Report) {
    let needs = match repository
        .metadata()
        .and_then(|metadata| servers::needs(&metadata))
    {
        Ok(needs) => needs,
        Err(error) => return report.failed(Failure::new("servers", format!("{error:#}"))),
    };
    if needs.is_empty() {
        return;
    }
    heading("servers: on loopback, with data that is thrown away");
    for need in needs {
        match servers.start(need) {
            Ok(()) => report.passed(need.name()),
            Err(error) => report.failed(Failure::new(need.name(), format!("{error:#}"))),
        }
    }
    for place in servers.places() {
        println!("    {place}");
    }
}

fn heading(text: &str) {
    println!("\n==> {text}");
}

/// The state the checks share.
struct Run<'a> {
    repository: &'a Repository,
    selection: &'a Selection,
    interrupt: &'a Interrupt,
    servers: &'a Servers,
    report: &'a mut Report,
}

impl Run<'_> {
    fn check(&mut self, check: Check) {
        let name = check.to_possible_value().map(|value| {
            (
                value.get_name().to_owned(),
                value.get_help().map(ToString::to_string),
            )
        });
        let (name, help) = name.unwrap_or_default();
        heading(&format!("{name}: {}", help.unwrap_or_default()));
        let started = Instant::now();
        match check {
            Check::Fmt => self.plain(&name, &["fmt", "--all", "--check"]),
            Check::Deny => self.deny(&name),
            Check::Clippy => self.plain(
                &name,
                &[
                    "clippy",
                    "--locked",
                    "--workspace",
                    "--all-targets",
                    "--",
                    "-D",
                    "warnings",
                ],
            ),
            Check::Wasm => self.wasm(&name),
            Check::Doc => {
                let mut doc =
                    self.repository
                        .cargo(["doc", "--locked", "--no-deps", "--workspace"]);
                self.one(&name, doc.env("RUSTDOCFLAGS", "-Dwarnings"));
            }
            // Programs too: a test may start one that belongs to another crate.
            Check::Build => {
                self.plain(
                    &name,
                    &["build", "--locked", "--workspace", "--bins", "--tests"],
                );
            }
            Check::Test => self.tests(&name),
            Check::Doctest => self.doctests(&name),
        }
        println!("    {:.1} s", started.elapsed().as_secs_f32());
    }

    fn plain(&mut self, name: &str, arguments: &[&str]) {
        let mut command = self.repository.cargo(arguments.iter().copied());
        self.one(name, &mut command);
    }

    /// A command that is one check: its exit code says how it went.
    fn one(&mut self, name: &str, command: &mut Command) {
        let spoken = command::spoken(command);
        println!("    {spoken}");
        match command::run_and_read(command, self.interrupt) {
            Ok((status, _)) if status.success() => self.report.passed(name),
            Ok((status, _)) => {
                self.report.failed(Failure::new(
                    name,
                    format!("`{spoken}` ended with {status}"),
                ));
            }
            Err(error) => self.report.failed(Failure::new(name, format!("{error:#}"))),
        }
    }

    /// cargo-deny judges every platform's dependencies, also those that no build here fetches.
    fn deny(&mut self, name: &str) {
        let mut fetch = self.repository.cargo(["fetch", "--locked", "--quiet"]);
        match command::run_and_read(&mut fetch, self.interrupt) {
            Ok((status, _)) if status.success() => self.plain(
                name,
                &[
                    "deny",
                    "--offline",
                    "--locked",
                    "check",
                    "bans",
                    "licenses",
                    "sources",
                ],
            ),
            Ok((status, _)) => {
                let reason = format!("`cargo fetch` ended with {status}, so nothing was judged");
                self.report.failed(Failure::new(name, reason));
            }
            Err(error) => self.report.failed(Failure::new(name, format!("{error:#}"))),
        }
    }

    fn wasm(&mut self, name: &str) {
        if has_target(BROWSER) {
            self.plain(
                name,
                &[
                    "check",
                    "--locked",
                    "-p",
                    "lula-protocol",
                    "--target",
                    BROWSER,
                ],
            );
        } else {
            let reason = format!(
                "the standard library for {BROWSER} is not installed; \
                 `rustup target add {BROWSER}` brings it where the network allows"
            );
            self.report.not_checked(name, &reason);
        }
    }

    fn tests(&mut self, name: &str) {
        let mut command = self
            .repository
            .cargo(["nextest", "run", "--locked", "--workspace"]);
        command.args(["--no-fail-fast", "--color", colour()]);
        command
            .args(&self.selection.nextest)
            .envs(self.servers.variables());
        if let Some(python) = python_with("pytest") {
            command.env("LULA_TEST_PYTHON", python);
        }
        let Some((tally, success)) = self.counted(name, &mut command, read_nextest) else {
            return;
        };
        self.close(name, &tally, success);
        // A filter skips all that it does not name; without one, only ignored tests are skipped.
        if self.selection.nextest.is_empty() && tally.skipped > 0 {
            self.ignored_tests(name);
        }
    }

    /// Names the tests that were ignored, each of which fails the run unless it is listed.
    fn ignored_tests(&mut self, name: &str) {
        let listed = self
            .repository
            .cargo([
                "nextest",
                "list",
                "--locked",
                "--workspace",
                "--message-format",
                "json",
            ])
            .output()
            .ok()
            .and_then(|output| serde_json::from_slice::<TestList>(&output.stdout).ok());
        let Some(listed) = listed else {
            let reason = "tests were skipped, and nextest cannot list which";
            return self.report.failed(Failure::new(name, reason));
        };
        for test in listed.ignored() {
            match MAY_BE_IGNORED.iter().find(|(name, _)| *name == test) {
                Some((name, reason)) => self.report.not_checked(name, reason),
                None => self.report.failed(Failure::new(
                    &test,
                    "ignored, and an ignored test proves nothing: make it run, or list it in \
                     MAY_BE_IGNORED with the reason",
                )),
            }
        }
    }

    fn doctests(&mut self, name: &str) {
        let mut command =
            self.repository
                .cargo(["test", "--locked", "--workspace", "--doc", "--no-fail-fast"]);
        command.envs(self.servers.variables());
        let Some((tally, success)) = self.counted(name, &mut command, read_doctests) else {
            return;
        };
        self.close(name, &tally, success);
        if tally.skipped > 0 {
            let reason = "an example marked `ignore` proves nothing: mark it `no_run` or `text`";
            self.report.failed(Failure::new(name, reason));
        }
    }

    /// Runs a test runner and reads its counts.
    fn counted(
        &mut self,
        name: &str,
        command: &mut Command,
        read: fn(&str) -> Option<Tally>,
    ) -> Option<(Tally, bool)> {
        let spoken = command::spoken(command);
        println!("    {spoken}");
        match command::run_and_read(command, self.interrupt) {
            Ok((status, output)) => {
                let tally = read(&output);
                if tally.is_none() {
                    let reason = format!("`{spoken}` ended with {status} and counted no tests");
                    self.report.failed(Failure::new(name, reason));
                }
                tally.map(|tally| (tally, status.success()))
            }
            Err(error) => {
                self.report.failed(Failure::new(name, format!("{error:#}")));
                None
            }
        }
    }

    /// The exit code and the counts must agree.
    fn close(&mut self, name: &str, tally: &Tally, success: bool) {
        self.report.tally(name, tally);
        if !success && tally.failed == 0 {
            let reason = "the runner failed without counting a failed test; its output is above";
            self.report.failed(Failure::new(name, reason));
        }
    }
}

fn has_target(target: &str) -> bool {
    Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .is_ok_and(|output| {
            let directory = String::from_utf8_lossy(&output.stdout);
            output.status.success() && std::path::Path::new(directory.trim()).is_dir()
        })
}

fn colour() -> &'static str {
    if io::stderr().is_terminal() {
        "always"
    } else {
        "never"
    }
}

/// The part of `cargo nextest list` that names ignored tests.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TestList {
    rust_suites: std::collections::BTreeMap<String, Suite>,
}

#[derive(Deserialize)]
struct Suite {
    #[serde(default)]
    testcases: std::collections::BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    ignored: bool,
}

impl TestList {
    fn ignored(&self) -> impl Iterator<Item = String> {
        self.rust_suites.iter().flat_map(|(suite, tests)| {
            tests
                .testcases
                .iter()
                .filter(|(_, case)| case.ignored)
                .map(move |(name, _)| format!("{suite} {name}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_alone_runs_only_the_tests() {
        let selection = Selection::for_test(Vec::new(), vec!["canonical".into()]);
        assert_eq!(selection.checks, [Check::Test]);
    }

    #[test]
    fn without_arguments_every_check_runs() {
        let selection = Selection::for_test(Vec::new(), Vec::new());
        assert_eq!(selection.checks, Check::value_variants());
    }

    #[test]
    fn ignored_tests_are_found_by_name() {
        let listed = r#"{"rust-suites": {"lula-store::it": {"testcases": {
            "queue::fast": {"ignored": false}, "queue::slow": {"ignored": true}}}}}"#;
        let listed: TestList = serde_json::from_str(listed).expect("a list");
        assert_eq!(
            listed.ignored().collect::<Vec<_>>(),
            ["lula-store::it queue::slow"]
        );
    }
}
