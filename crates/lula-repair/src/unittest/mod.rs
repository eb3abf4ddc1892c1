//! Python's `unittest`, run by a runner of ours that reports in JSON.

use crate::report::TestReport;

/// Starts the line that carries the report; the rest of the marker is the caller's.
const MARKER: &str = "lula-test-report";
/// Longest report that is read.
const MAX_REPORT: usize = 4 << 20;

/// How to run a project's tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables that pin what could make two runs differ.
    pub env: Vec<(&'static str, &'static str)>,
    marker: String,
}

/// Why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoReport {
    /// The runner never got to its end.
    #[error("the test run ended without a report")]
    Missing,
    /// More than one line claims to be the report.
    #[error("the test run printed more than one report")]
    Ambiguous,
    /// The line is not a report.
    #[error("the report of the test run cannot be read: {0}")]
    Malformed(String),
    /// Nothing was found to run.
    #[error("the project has no tests")]
    Empty,
}

impl TestCommand {
    /// Runs every test below the current directory. The nonce keeps output that merely looks like
    /// a report from being taken for one. It cannot keep apart a test that sets out to forge: code
    /// under test shares a process with its runner.
    pub fn unittest(python: &str, nonce: &str) -> Self {
        let marker = format!("{MARKER} {nonce} ");
        let argv = ["-c", include_str!("runner.py"), &marker].map(str::to_owned);
        Self {
            argv: std::iter::once(python.to_owned()).chain(argv).collect(),
            env: vec![
                ("PYTHONHASHSEED", "0"),
                ("PYTHONDONTWRITEBYTECODE", "1"),
                ("TZ", "UTC"),
                ("LC_ALL", "C.UTF-8"),
            ],
            marker,
        }
    }

    /// Reads the report out of what the run printed.
    pub fn read(&self, stdout: &str) -> Result<TestReport, NoReport> {
        let mut lines = stdout
            .lines()
            .filter_map(|line| line.strip_prefix(&self.marker));
        let line = lines.next().ok_or(NoReport::Missing)?;
        if lines.next().is_some() {
            return Err(NoReport::Ambiguous);
        }
        if line.len() > MAX_REPORT {
            return Err(NoReport::Malformed("it is too long".to_owned()));
        }
        let report: TestReport =
            serde_json::from_str(line).map_err(|error| NoReport::Malformed(error.to_string()))?;
        if report.tests.is_empty() {
            return Err(NoReport::Empty);
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outcome;

    fn command() -> TestCommand {
        TestCommand::unittest("python3", "n1")
    }

    #[test]
    fn the_report_is_found_among_what_tests_print() {
        let out = "hello\nlula-test-report n1 {\"tests\":[{\"id\":\"a.T.b\",\"outcome\":\"passed\"}]}\nbye\n";
        let report = command().read(out).unwrap();
        assert_eq!(report.count(Outcome::Passed), 1);
    }

    #[test]
    fn no_report_is_no_success() {
        assert_eq!(
            command().read("Ran 9 tests\n\nOK\n"),
            Err(NoReport::Missing)
        );
        assert_eq!(
            command().read("lula-test-report n1 {\"tests\":[]}"),
            Err(NoReport::Empty)
        );
    }

    #[test]
    fn a_test_that_prints_a_report_of_its_own_gains_nothing() {
        let forged = "lula-test-report other {\"tests\":[]}\n";
        assert_eq!(command().read(forged), Err(NoReport::Missing));
        let doubled = "lula-test-report n1 {\"tests\":[]}\n".repeat(2);
        assert_eq!(command().read(&doubled), Err(NoReport::Ambiguous));
    }
}
