//! One check after the other, shown as it runs and counted by what it really said.

use std::{
    env,
    ffi::OsString,
    io::{self, IsTerminal},
    path::Path,
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use super::{Check, Selection, heading, ignored};
use crate::{
    command,
    interrupt::Interrupt,
    report::{Failure, Report, Tally, read_doctests, read_nextest},
    repository::Repository,
    requirements::{program, python_with},
};

const BROWSER: &str = "wasm32-unknown-unknown";

/// What the checks share.
pub(super) struct Run<'a> {
    pub(super) repository: &'a Repository,
    pub(super) selection: &'a Selection,
    pub(super) interrupt: &'a Interrupt,
    /// Where tests find the servers.
    pub(super) variables: Vec<(&'static str, &'a str)>,
    pub(super) report: &'a mut Report,
}

impl Run<'_> {
    pub(super) fn check(&mut self, check: Check) {
        let (name, held) = check.words();
        heading(&name, &held);
        let started = Instant::now();
        let outcome = match check {
            Check::Fmt => self.one(&name, "fmt --all --check"),
            Check::Deny => self.deny(&name),
            Check::Clippy => self.one(
                &name,
                "clippy --locked --workspace --all-targets -- -D warnings",
            ),
            Check::Wasm => self.wasm(&name),
            Check::Doc => {
                let mut doc = self.repository.cargo("doc --locked --workspace --no-deps");
                self.one_command(&name, doc.env("RUSTDOCFLAGS", "-Dwarnings"))
            }
            // Programs too: a test may start one that belongs to another crate.
            Check::Build => self.one(&name, "build --locked --workspace --bins --tests"),
            Check::Test => self.tests(&name),
            Check::Doctest => self.doctests(&name),
        };
        if let Err(error) = outcome {
            self.report
                .failed(Failure::new(&name, format!("{error:#}")));
        }
        println!("    {:.1} s", started.elapsed().as_secs_f32());
    }

    fn one(&mut self, name: &str, line: &str) -> Result<()> {
        self.one_command(name, &mut self.repository.cargo(line))
    }

    /// A command that is one check: its exit code says how it went.
    fn one_command(&mut self, name: &str, command: &mut Command) -> Result<()> {
        let spoken = command::spoken(command);
        println!("    {spoken}");
        let (status, _) = command::run_and_read(command, self.interrupt)?;
        if status.success() {
            self.report.passed(name);
        } else {
            self.report.failed(Failure::new(
                name,
                format!("`{spoken}` ended with {status}"),
            ));
        }
        Ok(())
    }

    /// cargo-deny judges every platform's dependencies, also those that no build here fetches.
    fn deny(&mut self, name: &str) -> Result<()> {
        let mut fetch = self.repository.cargo("fetch --locked --quiet");
        let (status, _) = command::run_and_read(&mut fetch, self.interrupt)?;
        if !status.success() {
            let reason = format!("`cargo fetch` ended with {status}, so nothing was judged");
            self.report.failed(Failure::new(name, reason));
            return Ok(());
        }
        self.one(name, "deny --offline --locked check bans licenses sources")
    }

    fn wasm(&mut self, name: &str) -> Result<()> {
        if has_target(BROWSER) {
            return self.one(
                name,
                &format!("check --locked -p lula-protocol --target {BROWSER}"),
            );
        }
        let reason = format!(
            "the standard library for {BROWSER} is not installed; \
             `rustup target add {BROWSER}` brings it where the network allows"
        );
        self.report.not_checked(name, &reason);
        Ok(())
    }

    fn tests(&mut self, name: &str) -> Result<()> {
        let mut command = self.repository.cargo("nextest run --locked --no-fail-fast");
        command.args([
            "--color",
            if io::stderr().is_terminal() {
                "always"
            } else {
                "never"
            },
        ]);
        if !self.selection.names_a_crate() {
            command.arg("--workspace");
        }
        command.args(&self.selection.nextest);
        if let Some(python) = python_with("pytest") {
            if let Some(path) = python_first(&python, self.repository)? {
                command.env("PATH", path);
            }
            command.env("LULA_TEST_PYTHON", python);
        }
        let Some(tally) = self.counted(name, &mut command, read_nextest)? else {
            return Ok(());
        };
        // A filter skips all that it does not name; without one, only ignored tests are skipped.
        if self.selection.nextest.is_empty() && tally.skipped > 0 {
            ignored::judge(self.repository, tally.skipped, self.report)?;
        }
        Ok(())
    }

    fn doctests(&mut self, name: &str) -> Result<()> {
        let mut command = self
            .repository
            .cargo("test --locked --workspace --doc --no-fail-fast");
        let Some(tally) = self.counted(name, &mut command, read_doctests)? else {
            return Ok(());
        };
        if tally.skipped > 0 {
            let reason = "an example marked `ignore` proves nothing: mark it `no_run` or `text`";
            self.report.failed(Failure::new(name, reason));
        }
        Ok(())
    }

    /// Runs a test runner and takes over its counts, with which its exit code must agree.
    fn counted(
        &mut self,
        name: &str,
        command: &mut Command,
        read: fn(&str) -> Option<Tally>,
    ) -> Result<Option<Tally>> {
        command.envs(self.variables.iter().copied());
        let spoken = command::spoken(command);
        println!("    {spoken}");
        let (status, output) = command::run_and_read(command, self.interrupt)?;
        let tally = read(&output);
        if let Some(tally) = &tally {
            self.report.tally(name, tally);
            if !status.success() && tally.failed == 0 {
                let reason = format!("`{spoken}` ended with {status}, though no test failed");
                self.report.failed(Failure::new(name, reason));
            }
        } else {
            let reason = format!("`{spoken}` ended with {status} and counted no tests");
            self.report.failed(Failure::new(name, reason));
        }
        Ok(tally)
    }
}

fn has_target(target: &str) -> bool {
    Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .is_ok_and(|output| {
            let directory = String::from_utf8_lossy(&output.stdout);
            output.status.success() && Path::new(directory.trim()).is_dir()
        })
}

/// The search path with that Python first, where another one is: a project's tests are run by the
/// first Python there is and by no other, so that one has to have pytest.
fn python_first(python: &Path, repository: &Repository) -> Result<Option<OsString>> {
    if program("python3").as_deref() == Some(python) {
        return Ok(None);
    }
    let place = repository.root().join("target").join("test-python");
    if !place.join("bin/python3").is_file() {
        let made = Command::new(python)
            .args(["-m", "venv", "--without-pip", "--system-site-packages"])
            .arg(&place)
            .status()
            .with_context(|| format!("cannot run {}", python.display()))?;
        ensure!(made.success(), "{} -m venv failed", python.display());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(place.join("bin")).chain(env::split_paths(&path));
    Ok(Some(env::join_paths(path)?))
}
