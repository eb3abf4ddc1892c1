//! Where in a file a mistake is.

use std::path::Path;

use lula_config::ConfigOrigin;
use lula_repair::RepairError;

use super::HostError;
use crate::story::environment;

/// Where a mistake is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MistakeLocation {
    /// `file:line`, a variable or a flag.
    pub name: String,
    /// The line itself, with its number.
    pub line: Option<(usize, String)>,
}

impl MistakeLocation {
    fn in_file(file: &str, number: usize, shown: bool) -> Self {
        Self {
            name: format!("{file}:{number}"),
            line: line_of(Path::new(file), number).filter(|_| shown),
        }
    }
}

impl HostError {
    /// Where the mistake is, if it is one in a file, a variable or a flag.
    pub fn place(&self) -> Option<MistakeLocation> {
        match self {
            Self::Config(error) => error.origin().map(of_setting),
            Self::Rules(error) => Some(MistakeLocation::in_file(&error.file, error.line, true)),
            Self::Guidelines(error) => {
                Some(MistakeLocation::in_file(&error.file, error.line, false))
            }
            _ => None,
        }
    }

    /// What happened, without where.
    pub fn message(&self) -> String {
        match self {
            Self::Rules(error) => error.what.clone(),
            Self::Guidelines(error) => error.what.clone(),
            Self::Repair(RepairError::EnvironmentBroken(broken)) => {
                environment::lines(broken).join("\n")
            }
            other => other.to_string(),
        }
    }
}

fn of_setting(origin: &ConfigOrigin) -> MistakeLocation {
    let line = match origin {
        ConfigOrigin::File { path, line } => line_of(path, *line),
        ConfigOrigin::Default | ConfigOrigin::Variable(_) | ConfigOrigin::Flag(_) => None,
    };
    MistakeLocation {
        name: origin.to_string(),
        line,
    }
}

/// A line of a file with its number, so that it acts on no terminal.
fn line_of(file: &Path, number: usize) -> Option<(usize, String)> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().nth(number.checked_sub(1)?)?;
    let shown = line.chars().filter(|c| !c.is_control() || *c == '\t');
    Some((number, shown.take(120).collect()))
}
