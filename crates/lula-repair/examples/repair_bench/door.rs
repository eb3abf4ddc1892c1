//! The door that a user goes through: the `lula` program, with its sandbox.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lula_repair::RepairReport;

/// The program to measure.
pub(crate) struct Door {
    program: String,
}

/// What the program answered, and how long it took.
pub(crate) struct Answer {
    /// What it found, or what it said instead.
    pub(crate) report: Result<RepairReport, String>,
    /// From its start to its end.
    pub(crate) seconds: f64,
}

impl Door {
    pub(crate) fn new(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
        }
    }

    /// Has it repair a project within a budget.
    pub(crate) fn repair(&self, project: &Path, budget: Duration, flags: &[&str]) -> Answer {
        let started = Instant::now();
        let ran = Command::new(&self.program)
            .args(["repair", "--quiet", "--json", "--workspace"])
            .arg(project)
            .arg("--budget")
            .arg(format!("{}s", budget.as_secs()))
            .args(flags)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", self.program));
        let seconds = started.elapsed().as_secs_f64();
        let report = serde_json::from_slice(&ran.stdout).map_err(|_| {
            let said = String::from_utf8_lossy(&ran.stderr);
            said.lines().next().unwrap_or("nothing said").to_owned()
        });
        Answer { report, seconds }
    }
}
