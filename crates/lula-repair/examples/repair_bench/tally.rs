//! What came of the attempts, bug by bug and language by language.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// What came of one bug.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) language: String,
    pub(crate) project: String,
    pub(crate) bug: String,
    /// The best patch passes every visible test.
    pub(crate) plausible: bool,
    /// The hidden tests pass with it too.
    pub(crate) correct: bool,
    pub(crate) seconds: f64,
    pub(crate) tried: usize,
    pub(crate) search_seconds: f64,
    /// What kind of patch it is, or why there is none.
    pub(crate) note: String,
}

impl Row {
    pub(crate) const HEADING: &str = "| project | bug | plausible | correct | seconds | tried | per second | patch |\n|---|---|---|---|---|---|---|---|";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |done: bool| if done { "yes" } else { "no" };
        write!(
            f,
            "| {} | {} | {} | {} | {:.1} | {} | {:.0} | {} |",
            self.project,
            self.bug,
            mark(self.plausible),
            mark(self.correct),
            self.seconds,
            self.tried,
            share(self.tried, self.search_seconds),
            self.note
        )
    }
}

/// What came of several bugs together.
#[derive(Debug, Serialize)]
pub(crate) struct Sum {
    pub(crate) bugs: usize,
    pub(crate) plausible: usize,
    pub(crate) correct: usize,
    pub(crate) plausible_share: f64,
    pub(crate) correct_share: f64,
    /// Over all bugs, the unmended ones with all the time they took.
    pub(crate) median_seconds: f64,
    pub(crate) candidates_per_second: f64,
}

/// What came of all of them.
#[derive(Debug, Serialize)]
pub(crate) struct Tally {
    #[serde(flatten)]
    pub(crate) all: Sum,
    pub(crate) languages: BTreeMap<String, Sum>,
    pub(crate) rows: Vec<Row>,
}

#[allow(clippy::cast_precision_loss)]
fn share(part: usize, whole: f64) -> f64 {
    if whole > 0.0 {
        part as f64 / whole
    } else {
        0.0
    }
}

impl Sum {
    #[allow(clippy::cast_precision_loss)]
    fn of(rows: &[&Row]) -> Self {
        let count = |wanted: fn(&Row) -> bool| rows.iter().filter(|row| wanted(row)).count();
        let (plausible, correct) = (count(|row| row.plausible), count(|row| row.correct));
        let mut times: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
        times.sort_by(f64::total_cmp);
        let bugs = rows.len();
        Self {
            bugs,
            plausible,
            correct,
            plausible_share: share(plausible, bugs as f64),
            correct_share: share(correct, bugs as f64),
            median_seconds: times.get(times.len() / 2).copied().unwrap_or(0.0),
            candidates_per_second: share(
                rows.iter().map(|row| row.tried).sum(),
                rows.iter().map(|row| row.search_seconds).sum(),
            ),
        }
    }
}

impl Tally {
    pub(crate) fn of(rows: Vec<Row>) -> Self {
        let mut languages: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
        for row in &rows {
            languages.entry(row.language.clone()).or_default().push(row);
        }
        Self {
            all: Sum::of(&rows.iter().collect::<Vec<_>>()),
            languages: languages
                .into_iter()
                .map(|(language, rows)| (language, Sum::of(&rows)))
                .collect(),
            rows,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| language | bugs | plausible | correct | median s | candidates per s |\n|---|---|---|---|---|---|"
        )?;
        let all = [("all", &self.all)];
        let languages = self.languages.iter();
        for (name, sum) in languages.map(|(name, sum)| (name.as_str(), sum)).chain(all) {
            writeln!(
                f,
                "| {name} | {} | {} ({:.0} %) | {} ({:.0} %) | {:.1} | {:.1} |",
                sum.bugs,
                sum.plausible,
                sum.plausible_share * 100.0,
                sum.correct,
                sum.correct_share * 100.0,
                sum.median_seconds,
                sum.candidates_per_second
            )?;
        }
        Ok(())
    }
}
