//! The languages of a project, counted by the endings of its files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const LANGUAGES: &[(&str, &[&str], bool)] = &[
    ("Python", &["py"], true),
    ("JavaScript", &["js", "mjs", "cjs", "jsx"], true),
    ("TypeScript", &["ts", "mts", "cts", "tsx"], true),
    ("Rust", &["rs"], true),
    ("Go", &["go"], false),
    ("Java", &["java"], false),
    ("Kotlin", &["kt", "kts"], false),
    ("C", &["c", "h"], false),
    ("C++", &["cc", "cpp", "cxx", "hpp", "hh"], false),
    ("C#", &["cs"], false),
    ("Ruby", &["rb"], false),
    ("PHP", &["php"], false),
    ("Swift", &["swift"], false),
    ("Shell", &["sh", "bash"], false),
];

/// A language and how much of it there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectedLanguage {
    pub name: String,
    /// How many source files.
    pub files: usize,
    /// Whether the repairer can write patches in it.
    pub repairable: bool,
}

pub(super) fn languages(files: &[String]) -> Vec<DetectedLanguage> {
    let mut counts: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for path in files {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        if let Some((name, _, repairable)) = LANGUAGES
            .iter()
            .find(|(_, endings, _)| endings.contains(&ending))
        {
            let count = counts.entry(name).or_insert((0, *repairable));
            count.0 += 1;
        }
    }
    let mut found: Vec<_> = counts
        .into_iter()
        .map(|(name, (files, repairable))| DetectedLanguage {
            name: name.to_owned(),
            files,
            repairable,
        })
        .collect();
    found.sort_by(|a, b| b.files.cmp(&a.files).then_with(|| a.name.cmp(&b.name)));
    found
}
