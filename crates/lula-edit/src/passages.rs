//! Replacing passages of one text: each is any text that stands there exactly once.
//!
//! A passage is looked for letter by letter first, wherever it begins and ends. Where it does not
//! stand there like that, it is taken as whole lines and looked for on the ladder that forgives blanks
//! and indentation. All passages are replaced, each in what those before it left, or none.

use crate::apply::{AppliedEdit, apply};
use crate::format::FileEdit;
use crate::ladder::MatchRung;
use crate::nearest;

/// Lines of places that are listed, at most.
const LISTED: usize = 12;

/// A text that stands in a file, and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageEdit {
    pub old: String,
    pub new: String,
    /// Whether it is replaced wherever it stands, and not in one place only.
    pub all: bool,
}

/// Why a passage was not replaced. The words are for the model that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PassageError {
    /// There is no such file.
    #[error("there is no file {0}: write_file makes one")]
    NoFile(String),
    /// It says nothing of where.
    #[error("`old` is empty, and {0} is not: `old` is the text that is to be replaced")]
    Empty(String),
    /// It is to become what it is.
    #[error("`old` and `new` are the same")]
    Same,
    /// It is nowhere in the file.
    #[error("`old` does not stand in {path}. {hint}")]
    NotFound {
        path: String,
        /// The nearest place and what differs, or what else to look at.
        hint: String,
    },
    /// It is in several places.
    #[error(
        "`old` stands in {path} {count} times, at {}: make it longer until it stands there once, or \
         say `all`: true to replace every one", listed(.lines)
    )]
    Several {
        path: String,
        count: usize,
        /// The lines where the first places begin, from 1.
        lines: Vec<usize>,
    },
}

fn listed(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let more = if lines.len() < LISTED { "" } else { ", …" };
    format!("lines {}{more}", shown.join(", "))
}

/// The text after all edits, or every edit that has no place, by its number from 0.
pub fn replace_passages(
    path: &str,
    current: Option<&str>,
    edits: &[PassageEdit],
) -> Result<String, Vec<(usize, PassageError)>> {
    let mut text = current.map(str::to_owned);
    let mut failures = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        match replaced(path, text.as_deref(), edit) {
            Ok(new) => text = Some(new),
            Err(error) => failures.push((index, error)),
        }
    }
    match (failures.is_empty(), text) {
        (true, Some(text)) => Ok(text),
        (true, None) => Err(vec![(0, PassageError::NoFile(path.to_owned()))]),
        (false, _) => Err(failures),
    }
}

fn replaced(path: &str, current: Option<&str>, edit: &PassageEdit) -> Result<String, PassageError> {
    if edit.old == edit.new {
        return Err(PassageError::Same);
    }
    let Some(text) = current else {
        return if edit.old.trim().is_empty() {
            Ok(edit.new.clone())
        } else {
            Err(PassageError::NoFile(path.to_owned()))
        };
    };
    if edit.old.is_empty() {
        return if text.trim().is_empty() {
            Ok(edit.new.clone())
        } else {
            Err(PassageError::Empty(path.to_owned()))
        };
    }
    let (old, new) = (
        as_the_file_ends(text, &edit.old),
        as_the_file_ends(text, &edit.new),
    );
    let (count, lines) = places(text, &old);
    if count == 1 {
        return Ok(text.replacen(&old, &new, 1));
    }
    if count > 1 && edit.all {
        return Ok(text.replace(&old, &new));
    }
    // As whole lines: more forgiving, or, where it stands in several places, less.
    let whole = FileEdit::Replace {
        path: path.to_owned(),
        search: edit.old.clone(),
        replace: edit.new.clone(),
    };
    match apply(&whole, Some(text)) {
        Ok((new, AppliedEdit::Changed(rung))) if count == 0 || rung == MatchRung::Exact => Ok(new),
        Err(crate::EditError::Several { lines, .. }) if count == 0 => {
            Err(several(path, lines.len(), lines))
        }
        _ if count > 1 => Err(several(path, count, lines)),
        Err(error @ crate::EditError::Indentation { .. }) => Err(PassageError::NotFound {
            path: path.to_owned(),
            hint: error.to_string(),
        }),
        _ => Err(PassageError::NotFound {
            path: path.to_owned(),
            hint: hint(text, &old, &new),
        }),
    }
}

fn several(path: &str, count: usize, mut lines: Vec<usize>) -> PassageError {
    lines.truncate(LISTED);
    PassageError::Several {
        path: path.to_owned(),
        count,
        lines,
    }
}

/// How often a text stands in another, overlapping places included, and the lines where the first of
/// them begin.
fn places(text: &str, old: &str) -> (usize, Vec<usize>) {
    let (mut count, mut lines) = (0, Vec::new());
    let (mut from, mut line, mut counted) = (0, 1, 0);
    while let Some(found) = text[from..].find(old) {
        let at = from + found;
        count += 1;
        if lines.len() < LISTED {
            line += text[counted..at].matches('\n').count();
            counted = at;
            lines.push(line);
        }
        let step = text[at..].chars().next().map_or(1, char::len_utf8);
        from = at + step;
    }
    (count, lines)
}

/// A text with the line endings of the file, where the file has others than it.
fn as_the_file_ends(file: &str, text: &str) -> String {
    let windows = file.matches("\r\n").count();
    let all = file.matches('\n').count();
    if windows * 2 > all && !text.contains('\r') {
        text.replace('\n', "\r\n")
    } else {
        text.to_owned()
    }
}

fn hint(text: &str, old: &str, new: &str) -> String {
    if !new.trim().is_empty()
        && let (1.., lines) = places(text, new)
    {
        let line = lines.first().copied().unwrap_or(1);
        return format!("`new` stands there already, at line {line}.");
    }
    let file: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.lines().collect();
    nearest::miss(&file, &wanted)
}

#[cfg(test)]
mod tests;
