//! One line of a report.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::report::TestOutcome;

/// What a runner said of itself when it began.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReporterStart {
    pub(crate) runner: String,
    pub(crate) version: String,
    /// The interpreter's version, and where it lies.
    pub(crate) python: String,
    pub(crate) executable: String,
    pub(crate) cwd: String,
    /// What it was started with.
    pub(crate) args: Vec<String>,
    /// Where modules were looked for.
    pub(crate) path: Vec<String>,
    /// Whether tests run in processes of their own.
    pub(crate) spread: bool,
    /// Which plugins of those that candidates do without are there.
    pub(crate) has: Vec<String>,
}

/// What a runner said of one test.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ReportedTest {
    pub(crate) id: String,
    pub(crate) outcome: TestOutcome,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) ms: u64,
}

/// One line of a report.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum ReporterLine {
    Begin(ReporterStart),
    Start {
        id: String,
    },
    Test(ReportedTest),
    Done {
        id: String,
    },
    /// Ranges of lines by file.
    Lines {
        id: String,
        lines: BTreeMap<String, String>,
    },
    Origins {
        origins: BTreeMap<String, String>,
    },
    Plan {
        plan: BTreeMap<String, (String, String, Option<usize>)>,
    },
    Kinds {
        kinds: BTreeMap<String, BTreeMap<usize, BTreeMap<String, Vec<String>>>>,
        preload: Vec<String>,
    },
    /// What a runner printed in TAP, in its own process.
    Out {
        text: String,
    },
    /// The runner got to its end, whatever it thought of what it saw.
    End {},
}

/// The lines of `3-5,8`.
pub(crate) fn lines_of_ranges(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            lines.extend(first..=last.min(first.saturating_add(100_000)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_nonsense_is_nothing() {
        assert_eq!(lines_of_ranges("3-5,8"), [3, 4, 5, 8]);
        assert!(lines_of_ranges("x,-,").is_empty());
    }

    #[test]
    fn a_line_is_known_by_its_kind() {
        let text = r#"{"is":"test","runner":"pytest","id":"a::b","outcome":"failed","ms":3}"#;
        assert!(matches!(
            serde_json::from_str(text),
            Ok(ReporterLine::Test(ReportedTest { ms: 3, .. }))
        ));
        assert!(serde_json::from_str::<ReporterLine>(r#"{"is":"else"}"#).is_err());
    }
}
