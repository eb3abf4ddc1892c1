//! The checks, in the order they run, and the run itself.
//!
//! One profile and one lock file for all of them, so that nothing is built twice. All run even if
//! one fails: a person wants the whole list at once.

mod ignored;
mod run;

use std::process::ExitCode;

use clap::ValueEnum;

use crate::{
    install,
    interrupt::Interrupt,
    report::{Failure, Report},
    repository::Repository,
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

impl Check {
    /// Its name on the command line, and what it holds.
    fn words(self) -> (String, String) {
        self.to_possible_value()
            .map_or_else(Default::default, |value| {
                let held = value
                    .get_help()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                (value.get_name().to_owned(), held)
            })
    }
}

/// Which of the steps to run.
pub(crate) struct Selection {
    checks: Vec<Check>,
    nextest: Vec<String>,
    install: bool,
}

impl Selection {
    pub(crate) fn for_test(only: Vec<Check>, nextest: Vec<String>) -> Self {
        let checks = match (only.is_empty(), nextest.is_empty()) {
            (false, _) => only,
            (true, false) => vec![Check::Test],
            (true, true) => Check::value_variants().to_vec(),
        };
        Self {
            checks,
            nextest,
            install: true,
        }
    }

    pub(crate) fn for_lint() -> Self {
        let checks = vec![Check::Fmt, Check::Deny, Check::Clippy, Check::Doc];
        Self {
            checks,
            nextest: Vec::new(),
            install: true,
        }
    }

    /// Whether what is missing may be installed.
    pub(crate) fn installing(self, install: bool) -> Self {
        Self { install, ..self }
    }

    /// Named crates would be lost beside `--workspace`.
    fn names_a_crate(&self) -> bool {
        self.nextest
            .iter()
            .any(|word| word.starts_with("-p") || word.starts_with("--package"))
    }
}

/// Runs the chosen checks and ends with the line that counts them.
pub(crate) fn run(
    repository: &Repository,
    selection: &Selection,
    interrupt: &Interrupt,
) -> ExitCode {
    let mut report = Report::default();
    heading("requirements", "What the checks need from this machine");
    let missing = install::missing(repository, &selection.checks);
    if selection.install {
        install::install(repository, &missing, &mut report, interrupt);
    } else {
        install::refuse(&missing, &mut report);
    }

    let mut servers = Servers::default();
    if selection.checks.contains(&Check::Test) {
        start_servers(repository, &mut servers, &mut report);
    }
    let variables = servers.environment().collect::<Vec<_>>();
    let mut run = run::Run {
        repository,
        selection,
        interrupt,
        variables,
        report: &mut report,
    };
    for check in Check::value_variants() {
        if selection.checks.contains(check) && !interrupt.is_raised() {
            run.check(*check);
        }
    }
    // Before the last line, which is to be the last.
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
    heading("servers", "On loopback, with data that is thrown away");
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

fn heading(name: &str, text: &str) {
    println!("\n==> {name}: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_alone_runs_only_the_tests() {
        let selection = Selection::for_test(Vec::new(), vec!["canonical".into()]);
        assert_eq!(selection.checks, [Check::Test]);
        assert!(!selection.names_a_crate());
        assert!(Selection::for_test(Vec::new(), vec!["-plula".into()]).names_a_crate());
    }

    #[test]
    fn without_arguments_every_check_runs() {
        let selection = Selection::for_test(Vec::new(), Vec::new());
        assert_eq!(selection.checks, Check::value_variants());
    }
}
