//! Files of guidelines: TOML, read strictly, with the line of every mistake.

use serde::Deserialize;
use toml::Spanned;

use super::checks::{GuidelineCheck, rate_diff};
use super::{Guideline, GuidelineRater, RatingPhase};
use crate::task::TaskIntent;

/// Name of the built-in file in messages.
pub const BUILT_IN_FILE: &str = "built-in";
/// Name of a repository's file, at its top.
pub const REPOSITORY_FILE: &str = ".lula-guidelines.toml";
const BUILT_IN: &str = include_str!("default.toml");
/// Longer files are not taken for guidelines.
const MAX_BYTES: usize = 64 * 1024;
/// Most guidelines in force. Each is written into every run.
const MOST: usize = 40;
/// Longest name and wording of one.
const LONGEST_NAME: usize = 64;
const LONGEST: usize = 400;

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuidelineFileTrust {
    /// The operator of this machine wrote it.
    Operator,
    /// Of a repository: it can only add and require.
    Repository,
}

/// A guidelines file, as it was read.
#[derive(Debug, Clone, Copy)]
pub struct GuidelineFileSource<'a> {
    /// What to call it.
    pub file: &'a str,
    pub text: &'a str,
    pub trust: GuidelineFileTrust,
}

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct GuidelineFileError {
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    guideline: Vec<GuidelineText>,
    #[serde(default)]
    require: Vec<Spanned<String>>,
    #[serde(default)]
    off: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GuidelineText {
    id: Spanned<String>,
    #[serde(default = "one")]
    version: u32,
    phase: RatingPhase,
    text: String,
    check: Option<GuidelineCheck>,
    #[serde(default)]
    judge: bool,
    limit: Option<u32>,
    #[serde(rename = "for")]
    only_for: Option<TaskIntent>,
    #[serde(default)]
    touches: Vec<String>,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    examples: ExamplesText,
}

const fn one() -> u32 {
    1
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExamplesText {
    #[serde(default)]
    keeps: Vec<Spanned<String>>,
    #[serde(default)]
    breaks: Vec<Spanned<String>>,
}

/// The text of the built-in file.
pub const fn built_in_text() -> &'static str {
    BUILT_IN
}

const BUILT_IN_SOURCE: GuidelineFileSource<'static> = GuidelineFileSource {
    file: BUILT_IN_FILE,
    text: BUILT_IN,
    trust: GuidelineFileTrust::Operator,
};

/// The built-in guidelines alone.
pub fn built_in() -> Vec<Guideline> {
    // A test reads it; were it wrong nothing would be rated.
    load(&[]).unwrap_or_default()
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

fn parse(source: &GuidelineFileSource<'_>) -> Result<FileText, GuidelineFileError> {
    let wrong = |line: usize, what: String| GuidelineFileError {
        file: source.file.to_owned(),
        line,
        what,
    };
    if source.text.len() > MAX_BYTES {
        return Err(wrong(1, format!("it is longer than {MAX_BYTES} bytes")));
    }
    toml::from_str(source.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        wrong(line_of(source.text, at), error.message().to_owned())
    })
}

fn guideline(text: &GuidelineText, trust: GuidelineFileTrust) -> Result<Guideline, String> {
    let id = text.id.get_ref();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    if id.is_empty() || id.len() > LONGEST_NAME || !id.chars().all(plain) {
        return Err(format!(
            "{id:?} is no name: small letters, digits, -, . and _, at most {LONGEST_NAME}"
        ));
    }
    if text.text.trim().is_empty() || text.text.chars().count() > LONGEST {
        return Err(format!(
            "{id} says nothing, or more than {LONGEST} characters"
        ));
    }
    let rater = match (text.check, text.judge) {
        (Some(check), false) => GuidelineRater::Check(check),
        (None, true) => GuidelineRater::Judge,
        _ => return Err(format!("{id} needs either check or judge = true")),
    };
    if rater == GuidelineRater::Judge && text.phase != RatingPhase::Doubt {
        return Err(format!("{id}: a judge is asked in phase doubt only"));
    }
    let diffs = text.examples.keeps.len() + text.examples.breaks.len();
    let about_diff = matches!(rater, GuidelineRater::Check(check) if check.is_about_diff());
    if diffs > 0 && !about_diff {
        return Err(format!("{id}: examples are diffs, and no diff decides it"));
    }
    Ok(Guideline {
        id: id.clone(),
        version: text.version,
        phase: text.phase,
        text: text.text.trim().to_owned(),
        only_for: text.only_for,
        touches: text.touches.clone(),
        rater,
        limit: text.limit,
        required: text.required,
        tightens: trust == GuidelineFileTrust::Repository,
    })
}

/// The built-in guidelines and those of these files, in order. A mistake or an example that does
/// not come out as it says refuses them all.
pub fn load(sources: &[GuidelineFileSource<'_>]) -> Result<Vec<Guideline>, GuidelineFileError> {
    let mut all: Vec<Guideline> = Vec::new();
    for source in std::iter::once(&BUILT_IN_SOURCE).chain(sources) {
        let wrong = |at: usize, what: String| GuidelineFileError {
            file: source.file.to_owned(),
            line: line_of(source.text, at),
            what,
        };
        if let Some(failure) = test(source)?.into_iter().next() {
            return Err(failure);
        }
        let parsed = parse(source)?;
        for name in &parsed.off {
            let at = name.span().start;
            if source.trust == GuidelineFileTrust::Repository {
                let what = "a repository cannot switch guidelines off".to_owned();
                return Err(wrong(at, what));
            }
            let before = all.len();
            all.retain(|known| known.id != *name.get_ref());
            if all.len() == before {
                return Err(wrong(
                    at,
                    format!("there is no guideline {:?}", name.get_ref()),
                ));
            }
        }
        for text in &parsed.guideline {
            let at = text.id.span().start;
            let one = guideline(text, source.trust).map_err(|what| wrong(at, what))?;
            if all.iter().any(|known| known.id == one.id) {
                let what = format!("there is a guideline {:?} already", one.id);
                return Err(wrong(at, what));
            }
            all.push(one);
        }
        for name in &parsed.require {
            let known = all.iter_mut().find(|known| known.id == *name.get_ref());
            let Some(known) = known else {
                let what = format!("there is no guideline {:?}", name.get_ref());
                return Err(wrong(name.span().start, what));
            };
            known.required = true;
        }
        if all.len() > MOST {
            return Err(wrong(0, format!("there are more than {MOST} guidelines")));
        }
    }
    Ok(all)
}

/// Runs the examples of a file. Returns those that do not come out as they say.
pub fn test(
    source: &GuidelineFileSource<'_>,
) -> Result<Vec<GuidelineFileError>, GuidelineFileError> {
    let mut failures = Vec::new();
    for text in &parse(source)?.guideline {
        let Some(check) = text.check else { continue };
        let keeps = text.examples.keeps.iter().map(|diff| (diff, true));
        let breaks = text.examples.breaks.iter().map(|diff| (diff, false));
        for (diff, should_keep) in keeps.chain(breaks) {
            let (score, why) = rate_diff(check, text.limit, diff.get_ref());
            let kept = score.is_some_and(|score| score >= 0);
            if kept != should_keep {
                let should = if should_keep { "keep" } else { "break" };
                failures.push(GuidelineFileError {
                    file: source.file.to_owned(),
                    line: line_of(source.text, diff.span().start),
                    what: format!("should {should} {} and does not: {why}", text.id.get_ref()),
                });
            }
        }
    }
    Ok(failures)
}
