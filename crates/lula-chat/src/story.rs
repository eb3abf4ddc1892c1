//! What of the log is worth a row: what was changed, run and judged. What was only looked at shares one.

use anstyle::Style;
use lula_agents::chat::STOPPED;
use lula_host::chat::DriverNews;
use lula_host::text::plain;

use crate::style::{BAD, DIM, GOOD, WARN};

/// What a thing in the log is to the person.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Nothing,
    /// The model's answer is whole.
    Answer,
    /// Something was looked at.
    Look(String),
    Row(Style, &'static str, String),
}

/// Tools that only look.
const LOOKS: [&str; 6] = [
    "read_file",
    "list_files",
    "search",
    "outline",
    "git",
    "take_change",
];
/// Bookkeeping that a person need not see.
const QUIET: [&str; 13] = [
    "open",
    "fence",
    "survey",
    "snapshot",
    "undo",
    "judge",
    "fetch",
    "pick_tests",
    "reset",
    "verify",
    "deliver",
    "waits",
    "answer",
];
/// Nodes whose end is told.
const TOLD: [&str; 3] = ["verifier", "reporter", "executor"];

/// What of the news about the log is shown.
pub(crate) fn moment(news: &DriverNews) -> Moment {
    let DriverNews::Happened {
        kind,
        node,
        name,
        text,
        good,
        ..
    } = news
    else {
        return Moment::Nothing;
    };
    let text = plain(text, 240);
    match (kind.as_str(), name.as_str()) {
        // What the person had done is shown to them as a whole.
        ("act" | "trouble", name) if node == "chat" && name != "run_tests" => Moment::Nothing,
        ("act", "take_change") if node != "coder" => Moment::Nothing,
        ("act", "ask") => Moment::Answer,
        ("act", name) if QUIET.contains(&name) => Moment::Nothing,
        ("act", name) if LOOKS.contains(&name) => {
            let what = match name {
                "read_file" => "read",
                "search" => "searched",
                "list_files" => "listed",
                "take_change" => "looked at the change",
                other => other,
            };
            Moment::Look(format!("{what} {text}").trim_end().to_owned())
        }
        // That something was written is told by what it did.
        ("act", "write_file" | "apply_patch") if text.is_empty() => Moment::Nothing,
        ("act", "todo") => Moment::Row(DIM, "  ☐", text),
        ("act", name) => {
            let (style, mark) = match good {
                Some(false) => (BAD, "  ✗"),
                _ => (GOOD, "  ✓"),
            };
            let what = match name {
                "exec" => "ran",
                "write_file" => "wrote",
                "apply_patch" => "edited",
                "run_tests" => "tests:",
                "search_patch" => "search:",
                other => other,
            };
            Moment::Row(style, mark, format!("{what} {text}").trim_end().to_owned())
        }
        ("trouble", _) if text.contains(STOPPED) => Moment::Row(WARN, "  ■", "stopped".to_owned()),
        // What was asked about is ordered again once it is answered.
        ("trouble", _) if text.ends_with("is done again (try 1)") => Moment::Nothing,
        ("trouble", name) => Moment::Row(WARN, "  !", format!("{name} {text}")),
        ("step", _) if TOLD.contains(&node.as_str()) => {
            let (style, mark) = match good {
                Some(true) => (GOOD, "•"),
                Some(false) => (BAD, "✗"),
                None => (WARN, "•"),
            };
            Moment::Row(style, mark, format!("{node}: {text}"))
        }
        _ => Moment::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happened(kind: &str, name: &str, text: &str, good: Option<bool>) -> DriverNews {
        DriverNews::Happened {
            seq: 1,
            kind: kind.to_owned(),
            event: "read_done".to_owned(),
            node: "coder".to_owned(),
            name: name.to_owned(),
            text: text.to_owned(),
            good,
            took_ms: None,
        }
    }

    #[test]
    fn changes_have_a_row_and_looks_share_one() {
        let look = moment(&happened("act", "read_file", "items.py", None));
        assert_eq!(look, Moment::Look("read items.py".to_owned()));
        let edit = moment(&happened("act", "apply_patch", "items.py", None));
        assert_eq!(edit, Moment::Row(GOOD, "  ✓", "edited items.py".to_owned()));
        assert_eq!(
            moment(&happened("act", "survey", "", None)),
            Moment::Nothing
        );
    }

    #[test]
    fn what_a_log_holds_cannot_act_on_the_terminal() {
        let row = moment(&happened("act", "exec", "echo \u{1b}[2J", None));
        assert_eq!(
            row,
            Moment::Row(GOOD, "  ✓", "ran echo \\u{1b}[2J".to_owned())
        );
    }
}
