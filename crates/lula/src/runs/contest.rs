//! Several candidates for one task as a table.

use std::fmt::Write;

use lula_agents::team::contest::CandidateOutcome;
use lula_host::story::contest::{ContestView, warmth};

use crate::term::{BAD, DIM, GOOD, STRONG, TextTable, WARN, paint, plain};

/// One candidate on a line, and why one of them was taken.
pub(crate) fn table(best_of: &ContestView) -> String {
    let mut table = TextTable::default();
    for one in &best_of.candidates {
        let style = match one.standing {
            CandidateOutcome::Proven => GOOD,
            CandidateOutcome::Failed => BAD,
            CandidateOutcome::Unproven => WARN,
            CandidateOutcome::Running => STRONG,
            CandidateOutcome::Dismissed => DIM,
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
        let others = one.others_tests.as_ref().map_or_else(String::new, |tests| {
            format!("{} tests of others", tests.told())
        });
        let sure = one.confidence.as_ref();
        table.row([
            mark,
            one.name.to_string(),
            paint(style, one.standing.word()),
            plain(&one.model, 40),
            warmth(one.temperature_percent),
            size,
            others,
            sure.map(|sure| format!("0.{:03}", sure.permille.min(999)))
                .unwrap_or_default(),
            plain(&one.summary, 80),
        ]);
    }
    let mut text = table.render(0).trim_end().to_owned();
    if let Some(because) = &best_of.because {
        let who = best_of.chosen.as_ref();
        let taken = match who {
            Some(id) => format!("{id} was taken: "),
            None => String::new(),
        };
        let _ = write!(text, "\n{}{}", paint(STRONG, taken), plain(because, 400));
    }
    text
}
