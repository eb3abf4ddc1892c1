//! What a run came to rest with: what the model said and did not stream, what a command printed, how much is
//! changed, and what came of it in the end.

use lula_agents::chat::TurnEnd;
use lula_host::HostError;
use lula_host::chat::{ChatView, ChatWait};
use lula_host::report::{Notice, RunReport};
use lula_host::story::evidence;
use lula_host::text::{plain, visible};
use lula_protocol::RunExit;

use super::Talk;
use crate::code::size;
use crate::markdown::Markdown;
use crate::style::{BAD, DIM, GOOD, WARN, paint, wrapped};
use crate::working;

/// Most lines of a command's output that are shown.
const OUTPUT: usize = 60;

impl Talk<'_> {
    /// Tells what the run came to rest with, as far as it was not seen as it came.
    pub(super) fn rested(&mut self) -> Result<(), HostError> {
        let columns = self.screen.columns();
        let Some(chat) = &mut self.chat else {
            return Ok(());
        };
        let view = chat.session.view()?;
        let Some(state) = view.known.state.chat.as_deref() else {
            return Ok(());
        };
        let mut rows = Vec::new();
        let mut changed = false;
        if state.turns > chat.turns {
            chat.turns = state.turns;
            let unseen = unseen(&state.words, &chat.said);
            chat.said.clear();
            let mut markdown = Markdown::default();
            rows.extend(unseen.lines().flat_map(|line| markdown.line(line, columns)));
            match &state.ended {
                Some(TurnEnd::Stopped) => {
                    rows.push(paint(WARN, "■ stopped; what was done is kept"));
                }
                Some(TurnEnd::Refused) => {
                    rows.push(paint(WARN, "■ refused; the model waits for you"));
                }
                Some(TurnEnd::OutOfSteps) => {
                    rows.push(paint(
                        WARN,
                        "■ the turn has no steps left; say `go on` for more",
                    ));
                }
                Some(TurnEnd::Failed { why }) => {
                    rows.extend(wrapped(BAD, &format!("✗ {}", plain(why, 800)), columns));
                }
                Some(TurnEnd::Answered) | None => {}
            }
            changed = true;
        } else if state.number > chat.number
            && let Some(shown) = &state.shown
        {
            let lines: Vec<String> = shown.lines().filter_map(unframed).collect();
            let left = lines.len().saturating_sub(OUTPUT);
            let text = |line: &str| visible(&line.replace('\t', "    "));
            rows.extend(
                lines
                    .iter()
                    .skip(left)
                    .map(|line| format!("  {}", text(line))),
            );
            if left > 0 {
                rows.insert(0, paint(DIM, format!("  … {left} lines before")));
            }
            changed = true;
        }
        chat.number = state.number;
        let over = matches!(view.wait, ChatWait::Over);
        if changed && !over && !state.points.is_empty() && chat.session.ask_change() {
            match working::change(&chat.heard) {
                Some((diff, files)) if !files.is_empty() => {
                    let text = format!("{} changed", size(&diff, files.len()));
                    rows.push(paint(
                        DIM,
                        format!("{text} · /diff · /test · /commit · /undo"),
                    ));
                }
                _ => {}
            }
        }
        self.print(&rows)?;
        if over {
            return Ok(());
        }
        self.offer_grants()
    }
}

/// A line without what only tells a model where output begins and ends, or that nothing went wrong.
fn unframed(line: &str) -> Option<String> {
    const FRAMES: [&str; 6] = [
        "exit status 0",
        "<stdout>",
        "</stdout>",
        "<stderr>",
        "</stderr>",
        "</test>",
    ];
    if FRAMES.contains(&line.trim_end()) {
        return None;
    }
    let test = line.strip_prefix("<test name=\"");
    let test = test.and_then(|rest| rest.strip_suffix("\">"));
    Some(test.unwrap_or(line).to_owned())
}

/// What the model said that was not seen as it came.
fn unseen<'t>(words: &'t str, said: &str) -> &'t str {
    let seen = said.trim();
    if seen.is_empty() {
        return words;
    }
    if seen.ends_with(words.trim()) {
        return "";
    }
    // What stands in a call is not streamed: it follows the words of the answer.
    let paragraphs = words.match_indices("\n\n").map(|(at, _)| at);
    let mut paragraphs: Vec<usize> = paragraphs.collect();
    paragraphs.reverse();
    let told = paragraphs
        .into_iter()
        .find(|at| seen.ends_with(words[..*at].trim()));
    told.map_or(words, |at| words[at..].trim_start())
}

/// What came of a run that is over.
pub(super) fn ended(report: &RunReport, view: &ChatView) -> Vec<String> {
    let style = match report.exit {
        RunExit::Verified => GOOD,
        RunExit::Inconclusive => WARN,
        _ => BAD,
    };
    let word = paint(style, format!("{}:", report.word()));
    let mut rows = vec![format!("{word} {}", plain(&report.summary, 400))];
    for (name, text) in evidence::rows(&view.known.state) {
        rows.push(paint(DIM, format!("{name}: {}", visible(&text))));
    }
    for notice in report.delivery() {
        rows.push(match notice {
            Notice::Fact(text) => visible(&text),
            Notice::Hint(text) => paint(DIM, visible(&text)),
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_streamed_is_not_said_again() {
        assert_eq!(unseen("It works.", "Let me look.It works."), "");
        assert_eq!(unseen("It works.", ""), "It works.");
        assert_eq!(unseen("It works.\n\nSummary.", "It works."), "Summary.");
        assert_eq!(unseen("Another.", "It works."), "Another.");
    }
}
