//! The pool: what the logs of one repository's runs add up to. Pure.

use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::RunId;

use super::{LONGEST, Lesson, LessonEvidence, LessonSelection};
use crate::recovery::{AttemptFailure, AttemptFailureClass};

/// Most lessons a run begins with.
pub const MOST: usize = 40;
/// How long a lesson is shown after it was last seen.
const KEPT_MS: u64 = 90 * 24 * 3_600_000;
/// Most places that show one lesson.
const EVIDENCE: usize = 5;
/// From so many uses on a lesson that does harm is no longer shown.
const TRIED: u32 = 20;

/// What one run says of lessons.
#[derive(Debug, Clone)]
pub struct RunLessonHistory {
    /// The run that the lessons come from.
    pub run: RunId,
    /// When it began, Unix time in milliseconds.
    pub at_ms: u64,
    /// Its failed attempts, each with the event that says so.
    pub failures: Vec<(u64, AttemptFailure)>,
    /// The lessons that the run recalled; none where it did not look.
    pub recalled: Option<LessonSelection>,
    /// Whether it was verified; nothing while it is not over.
    pub verified: Option<bool>,
}

/// A lesson with what decides whether it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LessonRecord {
    pub lesson: Lesson,
    /// Why it is not shown any more, where it is not.
    pub retired: Option<&'static str>,
}

/// Whether tests or commands showed the failure: nothing is learned from words.
const fn teaches(class: AttemptFailureClass) -> bool {
    matches!(
        class,
        AttemptFailureClass::TestFail
            | AttemptFailureClass::Acceptance
            | AttemptFailureClass::TestTampering
    )
}

fn text(failure: &AttemptFailure) -> String {
    // The change that was tried stands behind what was seen, and is too long for a lesson.
    let seen = failure
        .evidence
        .split("\n\nThe change that was tried:")
        .next();
    let seen = seen.unwrap_or_default().replace('\n', " ");
    let seen: String = seen.chars().filter(|c| !c.is_control()).collect();
    let text = format!("An attempt failed ({:?}): {seen}", failure.class);
    text.chars().take(LONGEST).collect()
}

/// The lessons of one repository's runs, those seen last first. The caller brings only runs of
/// one tenant and one repository.
pub fn derive(
    repository: &str,
    runs: &[RunLessonHistory],
    forgotten: &BTreeSet<String>,
    now_ms: u64,
) -> Vec<LessonRecord> {
    let mut pool: BTreeMap<String, Lesson> = BTreeMap::new();
    let mut ordered: Vec<&RunLessonHistory> = runs.iter().collect();
    ordered.sort_by_key(|past| past.at_ms);
    for past in ordered {
        for (event, failure) in &past.failures {
            if !teaches(failure.class) || failure.evidence.trim().is_empty() {
                continue;
            }
            let name = format!("{repository}\n{}", failure.fingerprint);
            let id = blake3::hash(name.as_bytes()).to_hex()[..12].to_owned();
            let lesson = pool.entry(id.clone()).or_insert_with(|| Lesson {
                id,
                fingerprint: failure.fingerprint.clone(),
                text: String::new(),
                evidence: Vec::new(),
                author: String::new(),
                uses: 0,
                wins: 0,
                losses: 0,
                held_back: 0,
                held_back_wins: 0,
                expires_ms: 0,
            });
            // The same failure is the same lesson; what was seen last is what is said.
            lesson.text = text(failure);
            lesson.author.clone_from(&failure.by);
            lesson.expires_ms = past.at_ms.saturating_add(KEPT_MS);
            lesson.evidence.push(LessonEvidence {
                run: past.run.clone(),
                event: *event,
            });
            let over = lesson.evidence.len().saturating_sub(EVIDENCE);
            lesson.evidence.drain(..over);
        }
    }
    for past in runs {
        let (Some(recalled), Some(verified)) = (&past.recalled, past.verified) else {
            continue;
        };
        for id in &recalled.shown {
            if let Some(lesson) = pool.get_mut(id) {
                lesson.uses += 1;
                lesson.wins += u32::from(verified);
                lesson.losses += u32::from(!verified);
            }
        }
        for id in &recalled.held_back {
            if let Some(lesson) = pool.get_mut(id) {
                lesson.held_back += 1;
                lesson.held_back_wins += u32::from(verified);
            }
        }
    }
    let mut records: Vec<LessonRecord> = pool
        .into_values()
        .filter(|lesson| !forgotten.contains(&lesson.id))
        .map(|lesson| LessonRecord {
            retired: retired(&lesson, now_ms),
            lesson,
        })
        .collect();
    records.sort_by(|a, b| {
        let age = |record: &LessonRecord| std::cmp::Reverse(record.lesson.expires_ms);
        age(a)
            .cmp(&age(b))
            .then_with(|| a.lesson.id.cmp(&b.lesson.id))
    });
    records
}

fn retired(lesson: &Lesson, now_ms: u64) -> Option<&'static str> {
    if lesson.expires_ms <= now_ms {
        return Some("expired");
    }
    let harms = lesson.uses >= TRIED && lesson.uplift().is_some_and(|uplift| uplift < 0);
    harms.then_some("runs do better without it")
}
