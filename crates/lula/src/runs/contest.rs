//! Several candidates for one task as a person sees them.

use std::fmt::Write;

use lula_agents::dag::JobId;
use lula_agents::glean::Confidence;
use lula_agents::team::{Contest, Rival};
use lula_agents::work::Event;
use lula_protocol::RunId;
use serde::Serialize;

use crate::term::{BAD, DIM, GOOD, STRONG, Table, WARN, paint, plain};

/// One candidate, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct Candidate {
    name: JobId,
    run: RunId,
    model: String,
    /// How freely the model answered, in hundredths.
    temperature_percent: u32,
    /// Why this model.
    because: String,
    /// `running`, `proven`, `unproven`, `failed` or `dismissed`.
    standing: &'static str,
    summary: String,
    confidence: Option<Confidence>,
    files: Vec<String>,
    /// Lines that it adds and removes.
    lines: u64,
    chosen: bool,
}

/// Candidates and which of them was taken, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct BestOf {
    candidates: Vec<Candidate>,
    /// Who was taken.
    chosen: Option<JobId>,
    /// Why, or why nobody was.
    because: Option<String>,
}

impl From<&Contest> for BestOf {
    fn from(contest: &Contest) -> Self {
        let decided = contest.decided.as_ref();
        let chosen = decided.and_then(|decided| decided.id.clone());
        let candidate = |rival: &Rival| {
            let back = rival.back();
            Candidate {
                name: rival.id.clone(),
                run: rival.run.clone(),
                model: rival.model.clone(),
                temperature_percent: rival.temperature_percent,
                because: rival.because.clone(),
                standing: rival.word(),
                summary: rival.summary().to_owned(),
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

impl BestOf {
    /// One candidate on a line, and why one of them was taken.
    pub(crate) fn table(&self) -> String {
        let mut table = Table::default();
        for one in &self.candidates {
            let style = match one.standing {
                "proven" => GOOD,
                "failed" => BAD,
                "unproven" => WARN,
                "running" => STRONG,
                _ => DIM,
            };
            let mark = if one.chosen {
                paint(GOOD, "●")
            } else {
                paint(DIM, "○")
            };
            let size = if one.files.is_empty() {
                String::new()
            } else {
                format!("{} lines", one.lines)
            };
            let sure = one.confidence.as_ref();
            table.row([
                mark,
                one.name.to_string(),
                paint(style, one.standing),
                plain(&one.model, 40),
                warmth(one.temperature_percent),
                size,
                sure.map(|sure| format!("0.{:03}", sure.permille.min(999)))
                    .unwrap_or_default(),
                plain(&one.summary, 80),
            ]);
        }
        let mut text = table.render(0).trim_end().to_owned();
        if let Some(because) = &self.because {
            let who = self.chosen.as_ref();
            let taken = match who {
                Some(id) => format!("{id} was taken: "),
                None => String::new(),
            };
            let _ = write!(text, "\n{}{}", paint(STRONG, taken), plain(because, 400));
        }
        text
    }
}

fn warmth(percent: u32) -> String {
    format!("t {}.{:02}", percent / 100, percent % 100)
}

/// What happened among several candidates, in words.
pub(crate) fn told(event: &Event) -> Option<(String, Option<bool>)> {
    Some(match event {
        Event::Entered { rivals } => {
            let who = rivals.iter().map(|rival| {
                let warmth = warmth(rival.temperature_percent);
                format!("{} by {} ({warmth})", rival.id, rival.model)
            });
            let who: Vec<String> = who.collect();
            (format!("{} try it: {}", rivals.len(), who.join(", ")), None)
        }
        Event::CameBack { returned } => {
            let text = format!("{} is back: {}", returned.by, returned.summary);
            (text, None)
        }
        Event::Dismissed { back } => {
            let text = match back.len() {
                0 => "one is proven, the others were stopped".to_owned(),
                more => format!("one is proven, {more} more were done, the others were stopped"),
            };
            (text, None)
        }
        Event::Chosen { decided } => match &decided.id {
            Some(id) => (format!("{id} was taken: {}", decided.because), Some(true)),
            None => (String::new(), Some(false)),
        },
        _ => return None,
    })
}
