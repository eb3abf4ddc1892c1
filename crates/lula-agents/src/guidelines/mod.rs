//! Guidelines: what a good change looks like, as data, and how sure a run may be of one.
//!
//! What must never happen is not here: that is for the rules of the runner, which no model decides.
//! A guideline is rated, by code or by a model that is not the author, from −2 to 2; ratings and
//! what tests said make features, and features a probability with its variance. It never overrides
//! tests: it decides whether a person is asked, and whether a second look is taken.
//!
//! The executor rates the change before its tests run, the verifier rates what they said. Features
//! of both and a hand-written Bayesian regression give the probability with its spread. It is
//! learned from votes in the logs, merges in the repositories and `undone.txt` beside the runs.

mod checks;
pub mod confidence;
mod features;
mod file;
pub mod judge;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::task::{ModelChoice, TaskIntent};
use crate::work::CodingState;

pub use checks::{DiffHunksByFile, GuidelineCheck};
pub use confidence::{ChangeConfidence, ConfidenceCalibration, ENOUGH, ReviewLabel};
pub use features::{ConfidenceFeatures, FEATURES, features};
pub use file::{
    BUILT_IN_FILE, GuidelineFileError, GuidelineFileSource, GuidelineFileTrust, REPOSITORY_FILE,
    built_in, built_in_text, load, test,
};

/// When something is rated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatingPhase {
    /// The change, before its tests are run.
    Change,
    /// What the tests said of it.
    Verdict,
    /// Only where a second look is taken.
    Doubt,
}

/// Who rates a guideline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuidelineRater {
    /// A check in code, which is certain.
    Check(GuidelineCheck),
    /// A model that is not the author.
    Judge,
}

/// A rated statement of what a good change looks like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guideline {
    pub id: String,
    /// Which wording of it.
    pub version: u32,
    /// When it is rated.
    pub phase: RatingPhase,
    pub text: String,
    /// Only for tasks of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_for: Option<TaskIntent>,
    /// Only where such files are touched: beginnings of paths, or ends behind a `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    pub rater: GuidelineRater,
    /// How much is too much, for checks that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Whether a person is asked where it is not kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Whether a repository brought it: then it can speak against a change, never for one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tightens: bool,
}

impl Guideline {
    /// Whether it is about this work.
    pub fn applies(&self, work: &CodingState) -> bool {
        let files = work.proposal.as_ref().map_or(&[][..], |made| &made.files);
        let touched = |pattern: &String| {
            files.iter().any(|path| match pattern.strip_prefix('*') {
                Some(end) => path.ends_with(end),
                None => path.starts_with(pattern.as_str()),
            })
        };
        self.only_for.is_none_or(|intent| intent == work.intent())
            && (self.touches.is_empty() || self.touches.iter().any(touched))
    }

    /// What a rating of it counts.
    fn counted(&self, score: i8) -> i8 {
        let score = score.clamp(-2, 2);
        if self.tightens { score.min(0) } else { score }
    }
}

/// Everything a run was told about how changes are rated, when it began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuidelineSet {
    /// The guidelines in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidelines: Vec<Guideline>,
    /// What was learned from what people did with earlier changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<ConfidenceCalibration>,
    /// Models that may be asked to judge, none of whom judges its own change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judges: Vec<ModelChoice>,
    /// Whether a person is asked before delivery unless the run is sure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ask_unless_sure: bool,
    /// Whether a person agreed before there was anything to agree to. That says nothing of the
    /// change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agreed_beforehand: bool,
}

impl GuidelineSet {
    /// Whether nothing is rated.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What one guideline came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuidelineScore {
    pub id: String,
    /// Who rated it: `code`, or the name of a model.
    pub by: String,
    /// From −2, it is broken, to 2, it is kept; nothing where that cannot be told.
    pub score: Option<i8>,
    pub why: String,
    /// Whether a person is to be asked where it is negative.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// The ratings of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRating {
    pub phase: RatingPhase,
    /// Of which attempt, counted from 0.
    pub attempt: u32,
    pub scores: Vec<GuidelineScore>,
}

/// Longest reason that is kept.
const WHY: usize = 200;

/// Rates a step by code. Pure.
pub fn rate(work: &CodingState, phase: RatingPhase) -> StepRating {
    let own = work.task.guidelines();
    let scores = own
        .filter(|guideline| guideline.phase == phase)
        .filter_map(|guideline| {
            let GuidelineRater::Check(check) = guideline.rater else {
                return None;
            };
            let (score, why) = if guideline.applies(work) {
                checks::rate(check, guideline.limit, work)
            } else {
                (None, "it is not about this change".to_owned())
            };
            Some(guideline.scored("code", score, &why))
        });
    StepRating {
        phase,
        attempt: work.loops,
        scores: scores.collect(),
    }
}

impl Guideline {
    /// A rating of this one.
    fn scored(&self, by: &str, score: Option<i8>, why: &str) -> GuidelineScore {
        GuidelineScore {
            id: self.id.clone(),
            by: by.to_owned(),
            score: score.map(|score| self.counted(score)),
            why: why.chars().take(WHY).collect(),
            required: self.required,
        }
    }
}

/// The guidelines of the last attempt that must be kept and are not.
pub fn broken(work: &CodingState) -> Vec<&GuidelineScore> {
    let last = work.ratings.iter().filter(|one| one.attempt == work.loops);
    last.flat_map(|rating| &rating.scores)
        .filter(|score| score.required && score.score.is_some_and(|score| score < 0))
        .collect()
}
