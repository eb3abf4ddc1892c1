//! Several candidates for one task as a person sees them.

use lula_agents::guidelines::ChangeConfidence;
use lula_agents::plan::StepId;
use lula_agents::team::contest::CandidateOutcome;
use lula_agents::team::{CandidateContest, ContestCandidate, OthersTests};
use lula_agents::work::RunStateEvent;
use lula_protocol::RunId;
use serde::Serialize;

/// One candidate, for programs.
#[derive(Debug, Serialize)]
pub struct CandidateView {
    /// What it is called.
    pub name: StepId,
    pub run: RunId,
    pub model: String,
    /// How freely the model answered, in hundredths.
    pub temperature_percent: u32,
    pub because: String,
    /// `running`, `proven`, `unproven`, `failed` or `dismissed`.
    pub standing: CandidateOutcome,
    /// What came of it.
    pub summary: String,
    /// How many of the new tests of the others pass with it, where those were run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_tests: Option<OthersTests>,
    /// How sure to be of it.
    pub confidence: Option<ChangeConfidence>,
    pub files: Vec<String>,
    /// Lines that it adds and removes.
    pub lines: u64,
    /// Whether it was taken.
    pub chosen: bool,
}

/// Candidates and which of them was taken, for programs.
#[derive(Debug, Serialize)]
pub struct ContestView {
    pub candidates: Vec<CandidateView>,
    /// The candidate that was taken; none while it is open, or where none was good enough.
    pub chosen: Option<StepId>,
    /// Why it was taken, or why none was.
    pub because: Option<String>,
}

impl From<&CandidateContest> for ContestView {
    fn from(contest: &CandidateContest) -> Self {
        let decided = contest.decided.as_ref();
        let chosen = decided.and_then(|decided| decided.id.clone());
        let candidate = |rival: &ContestCandidate| {
            let back = rival.back();
            CandidateView {
                name: rival.id.clone(),
                run: rival.run.clone(),
                model: rival.model.clone(),
                temperature_percent: rival.temperature_percent,
                because: rival.because.clone(),
                standing: rival.outcome(),
                summary: rival.summary().to_owned(),
                others_tests: contest.others.as_ref().and_then(|others| {
                    let known = others.get(&rival.id);
                    known.filter(|tests| tests.of > 0).cloned()
                }),
                confidence: back.and_then(|back| back.confidence.clone()),
                files: back.map(|back| back.files.clone()).unwrap_or_default(),
                lines: back.map_or(0, |back| back.lines),
                chosen: chosen.as_ref() == Some(&rival.id),
            }
        };
        Self {
            candidates: contest.rivals.iter().map(candidate).collect(),
            because: decided.map(|decided| decided.because.clone()),
            chosen,
        }
    }
}

/// Hundredths of a temperature in short: `t 0.70`.
pub fn warmth(percent: u32) -> String {
    format!("t {}.{:02}", percent / 100, percent % 100)
}

/// What happened among several candidates, in words.
pub fn summary(event: &RunStateEvent) -> Option<(String, Option<bool>)> {
    Some(match event {
        RunStateEvent::Entered { rivals } => {
            let who = rivals.iter().map(|rival| {
                let warmth = warmth(rival.temperature_percent);
                format!("{} by {} ({warmth})", rival.id, rival.model)
            });
            let who: Vec<String> = who.collect();
            (format!("{} try it: {}", rivals.len(), who.join(", ")), None)
        }
        RunStateEvent::CameBack { returned } => {
            let text = format!("{} is back: {}", returned.by, returned.summary);
            (text, None)
        }
        RunStateEvent::Dismissed { back } => {
            let text = match back.len() {
                0 => "one is proven, the others were stopped".to_owned(),
                more => format!("one is proven, {more} more were done, the others were stopped"),
            };
            (text, None)
        }
        RunStateEvent::Compared { others } => {
            let told = others
                .iter()
                .map(|(id, tests)| format!("{id} passes {} new tests of the others", tests.told()));
            let told: Vec<String> = told.collect();
            let text = if told.is_empty() {
                "no new test of one could be run with the code of another".to_owned()
            } else {
                told.join(", ")
            };
            (text, None)
        }
        RunStateEvent::Chosen { decided } => match &decided.id {
            Some(id) => (format!("{id} was taken: {}", decided.because), Some(true)),
            None => (String::new(), Some(false)),
        },
        _ => return None,
    })
}
