//! Lessons: what failed attempts of earlier runs showed, for the coder that tries next.
//!
//! The logs of runs are where lessons stand; a pool of them is derived, never kept beside. A run
//! takes the pool it begins with into its first event and chooses from that, so it chooses the same
//! when it is replayed. Some are held back at random: only so can it be told whether they help.
//!
//! They belong to one tenant and one repository. They are in every store that runs are in, and a
//! log that is dropped takes its lessons along.

mod pool;
mod recall;
#[cfg(test)]
mod tests;

use lula_protocol::RunId;
use serde::{Deserialize, Serialize};

pub use pool::{LessonRecord, MOST, RunLessonHistory, derive};
pub use recall::{fenced, recall};

/// Longest text of a lesson.
pub const LONGEST: usize = 400;

/// The attempt that showed it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LessonEvidence {
    pub run: RunId,
    /// The event of its log that says so.
    pub event: u64,
}

/// What a failed attempt showed, to be told to later ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// Its name: the same for the same failure in the same repository.
    pub id: String,
    /// The fingerprint of the failure.
    pub fingerprint: String,
    /// What it says. Untrusted: material, never an instruction.
    pub text: String,
    pub evidence: Vec<LessonEvidence>,
    /// Whose attempt it was.
    pub author: String,
    /// How often it was shown in runs that are over.
    pub uses: u32,
    /// How often such a run was verified.
    pub wins: u32,
    /// How often such a run was not verified.
    pub losses: u32,
    /// How often it was held back where it would have been shown, and such a run was verified.
    pub held_back: u32,
    /// Of those, how many were verified.
    pub held_back_wins: u32,
    /// When it is no longer shown, Unix time in milliseconds.
    pub expires_ms: u64,
}

impl Lesson {
    /// How much more often runs are verified with it than without, in thousandths; nothing where
    /// either was never seen.
    pub fn uplift(&self) -> Option<i64> {
        let rate =
            |part: u32, whole: u32| (whole > 0).then(|| i64::from(part) * 1000 / i64::from(whole));
        Some(rate(self.wins, self.uses)? - rate(self.held_back_wins, self.held_back)?)
    }
}

/// A lesson as a run knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownLesson {
    pub id: String,
    /// The fingerprint of the failure.
    pub fingerprint: String,
    pub text: String,
    /// How often it was shown, and how often such a run was verified.
    pub record: (u32, u32),
    /// Whether this run does without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
}

/// The lessons a run begins with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LessonView {
    pub lessons: Vec<KnownLesson>,
    /// A digest over them, for people who compare.
    pub digest: String,
}

impl LessonView {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lessons.is_empty()
    }

    /// Of these, each held back where its number of the dice, from 0 to 255, is below a tenth.
    pub fn new(lessons: &[Lesson], dice: impl Fn(usize) -> u8) -> Self {
        let lessons: Vec<KnownLesson> = lessons
            .iter()
            .take(MOST)
            .enumerate()
            .map(|(number, lesson)| KnownLesson {
                id: lesson.id.clone(),
                fingerprint: lesson.fingerprint.clone(),
                text: lesson.text.clone(),
                record: (lesson.uses, lesson.wins),
                held_back: dice(number) < 26,
            })
            .collect();
        let text = serde_json::to_string(&lessons).unwrap_or_default();
        Self {
            digest: blake3::hash(text.as_bytes()).to_hex()[..32].to_owned(),
            lessons,
        }
    }
}

/// Which lessons were chosen for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LessonSelection {
    /// Shown to the coder.
    pub shown: Vec<String>,
    /// Held back, to see whether they help.
    pub held_back: Vec<String>,
}
