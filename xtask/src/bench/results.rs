//! Where the results of a benchmark go.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

/// What a benchmark found, in the forms in which it is looked at.
pub(super) struct Results<'a> {
    pub(super) report: &'a Value,
    /// The results as a table in Markdown.
    pub(super) table: &'a str,
    /// The results as a plot in SVG.
    pub(super) plot: &'a str,
}

impl Results<'_> {
    /// Writes them to files of that name, and prints the table, or the report where JSON is wanted.
    pub(super) fn publish(&self, place: &Path, name: &str, json: bool) -> Result<ExitCode> {
        let report = serde_json::to_string_pretty(self.report)?;
        fs::write(place.join(format!("{name}.json")), &report)?;
        fs::write(place.join(format!("{name}.md")), self.table)?;
        fs::write(place.join(format!("{name}.svg")), self.plot)?;
        if json {
            println!("{report}");
        } else {
            let (table, place) = (self.table, place.display());
            println!("{table}\nAlso in {place} as JSON, Markdown and SVG.");
        }
        Ok(ExitCode::SUCCESS)
    }
}
