//! Rules and guidelines carry examples of themselves; here they are run.

use std::path::Path;

use lula_agents::guidelines::{self as guide, GuidelineFileSource, GuidelineFileTrust};
use lula_gate::rules::{self as gate, RulesFileSource, RulesFileTrust};
use serde::Serialize;

use crate::error::HostError;
use crate::guidelines::{self, GuidelineFile};
use crate::installation::Installation;
use crate::rules::{self, LoadedRulesFile};

/// What the examples of files showed.
#[derive(Debug, Default, Serialize)]
pub struct ExampleReport {
    /// The files whose examples were run.
    pub files: Vec<String>,
    /// The examples that do not hold.
    pub failures: Vec<FailedExample>,
}

/// An example that does not hold.
#[derive(Debug, Serialize)]
pub struct FailedExample {
    pub file: String,
    pub line: usize,
    pub what: String,
}

impl std::fmt::Display for FailedExample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// The file that is named has to be there.
fn missing(path: &Path) -> HostError {
    HostError::NoRulesFile {
        path: path.to_owned(),
        configured: false,
    }
}

/// Runs the examples of one rules file, or of all in force.
pub fn of_rules(
    file: Option<&Path>,
    installation: &Installation,
) -> Result<ExampleReport, HostError> {
    let files = match file {
        Some(path) => {
            let read = rules::read(path, RulesFileTrust::Operator)?;
            vec![read.ok_or_else(|| missing(path))?]
        }
        None => rules::files(installation)?,
    };
    let built_in = file.is_none().then(|| RulesFileSource {
        file: gate::BUILT_IN_FILE,
        text: gate::built_in_text(),
        trust: RulesFileTrust::Operator,
    });
    let own = files.iter().map(LoadedRulesFile::source);
    let mut report = ExampleReport::default();
    for source in built_in.into_iter().chain(own) {
        report.files.push(source.file.to_owned());
        let failed = gate::test(&source)?.into_iter();
        report.failures.extend(failed.map(|one| FailedExample {
            file: one.file,
            line: one.line,
            what: one.what,
        }));
    }
    Ok(report)
}

/// Runs the examples of one guidelines file, or of all in force for this repository.
pub fn of_guidelines(
    file: Option<&Path>,
    repository: Option<&Path>,
    installation: &Installation,
) -> Result<ExampleReport, HostError> {
    let files = match file {
        Some(path) => {
            let read = GuidelineFile::at(path, GuidelineFileTrust::Operator)?;
            vec![read.ok_or_else(|| missing(path))?]
        }
        None => guidelines::files(repository, installation)?,
    };
    let built_in = file.is_none().then(|| GuidelineFileSource {
        file: guide::BUILT_IN_FILE,
        text: guide::built_in_text(),
        trust: GuidelineFileTrust::Operator,
    });
    let own: Vec<_> = files.iter().map(GuidelineFile::source).collect();
    let mut report = ExampleReport::default();
    for source in built_in.iter().chain(&own) {
        report.files.push(source.file.to_owned());
        let failed = guide::test(source)?.into_iter();
        report.failures.extend(failed.map(|one| FailedExample {
            file: one.file,
            line: one.line,
            what: one.what,
        }));
    }
    if report.failures.is_empty() {
        // Names that are taken and a repository's reach show only together.
        guide::load(&own)?;
    }
    Ok(report)
}
