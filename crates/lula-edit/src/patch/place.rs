//! Where the hunks of a patch stand in a text.

use super::PatchHunk;
use crate::EditError;
use crate::format::FileEdit;
use crate::nearest;

/// Lines of places that are listed, at most.
const LISTED: usize = 12;

/// The text after all hunks, or why hunks have no place. A place is where the hunk says, if its
/// lines stand there exactly (after the shift of the hunks before it); else the one place below what
/// it names; else the one place the ladder finds.
pub(super) fn apply(path: &str, text: &str, hunks: &[PatchHunk]) -> Result<String, Vec<String>> {
    let mut text = text.to_owned();
    let (mut shift, mut from) = (0_isize, 0);
    let mut failures = Vec::new();
    for (index, hunk) in hunks.iter().enumerate() {
        let said = match hunk.at {
            0 => 0,
            at => at.checked_add_signed(shift).unwrap_or(0),
        };
        let from_here = if hunk.ordered { from } else { 0 };
        match place(path, &text, hunk, said, from_here) {
            Ok((new, end)) => {
                shift += signed(hunk.new.len()) - signed(hunk.old.len());
                (text, from) = (new, end);
            }
            Err(why) => failures.push(format!(
                "{path}, hunk {} (line {} of the patch): {why}",
                index + 1,
                hunk.line
            )),
        }
    }
    if failures.is_empty() {
        Ok(text)
    } else {
        Err(failures)
    }
}

fn signed(length: usize) -> isize {
    isize::try_from(length).unwrap_or(isize::MAX)
}

fn bare(line: &str) -> &str {
    line.trim_end_matches('\n').trim_end_matches('\r')
}

/// The text with the hunk in its place, and the line after it, from 0.
fn place(
    path: &str,
    text: &str,
    hunk: &PatchHunk,
    said: usize,
    from: usize,
) -> Result<(String, usize), String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let there: Vec<&str> = lines.iter().map(|line| bare(line)).collect();
    let below = below(&there, &hunk.anchors, from)?;
    if hunk.old.is_empty() {
        let start = insertion(&there, hunk, said, below)?;
        return Ok((spliced(&lines, start, 0, hunk), start + hunk.new.len()));
    }
    // The named line may be repeated as the first of the hunk.
    let begin = if hunk.anchors.is_empty() {
        below
    } else {
        below - 1
    };
    let shorter = hunk.without_last_blank();
    for hunk in [Some(hunk), shorter.as_ref()].into_iter().flatten() {
        if let Some(start) = exact(&there, hunk, said, begin)? {
            let text = spliced(&lines, start, hunk.old.len(), hunk);
            return Ok((text, start + hunk.new.len()));
        }
    }
    alike(path, &lines, hunk, begin).map(|text| (text, begin))
}

/// Where a hunk that only adds puts its lines.
fn insertion(there: &[&str], hunk: &PatchHunk, said: usize, below: usize) -> Result<usize, String> {
    if !hunk.anchors.is_empty() {
        return Ok(below);
    }
    if hunk.ordered && (hunk.at == 0 || hunk.at_end) {
        return Ok(there.len());
    }
    // The number is all there is, and it counts the line before.
    if !there.is_empty() && said > there.len() {
        return Err(format!("the file has only {} lines", there.len()));
    }
    Ok(said.min(there.len()))
}

/// The line below the last of these, each looked for below the one before it.
fn below(there: &[&str], anchors: &[String], from: usize) -> Result<usize, String> {
    let mut begin = from;
    for anchor in anchors {
        let wanted = anchor.trim();
        let ways: [&dyn Fn(&str) -> bool; 3] = [
            &|line: &str| line.trim() == wanted,
            &|line: &str| line.trim_start().starts_with(wanted),
            &|line: &str| line.contains(wanted),
        ];
        let first = |start: usize| {
            let rest = there.get(start..).unwrap_or_default();
            ways.iter()
                .find_map(|is| rest.iter().position(|line| is(line)))
                .map(|at| start + at)
        };
        let Some(at) = first(begin).or_else(|| first(0)) else {
            let near = nearest::miss(there, &[wanted]);
            return Err(format!("there is no line `{wanted}`. {near}"));
        };
        begin = at + 1;
    }
    Ok(begin)
}

/// Where the old lines stand, word for word; an error where that is not clear.
fn exact(
    there: &[&str],
    hunk: &PatchHunk,
    said: usize,
    begin: usize,
) -> Result<Option<usize>, String> {
    let wanted: Vec<&str> = hunk.old.iter().map(|line| bare(line)).collect();
    if wanted.len() > there.len() {
        return Ok(None);
    }
    let stands_at = |start: usize| there.get(start..start + wanted.len()) == Some(&wanted[..]);
    let end = there.len() - wanted.len();
    if hunk.at_end && stands_at(end) {
        return Ok(Some(end));
    }
    if said > 0 && stands_at(said - 1) {
        return Ok(Some(said - 1));
    }
    let after: Vec<usize> = (begin..=end).filter(|start| stands_at(*start)).collect();
    match after[..] {
        [] if hunk.anchors.is_empty() => {}
        [] => return Ok(None),
        [start] => return Ok(Some(start)),
        [first, ..] if !hunk.anchors.is_empty() => return Ok(Some(first)),
        _ => return Err(several(after.iter().map(|start| start + 1), hunk)),
    }
    let before: Vec<usize> = (0..begin.min(end + 1))
        .filter(|start| stands_at(*start))
        .collect();
    match before[..] {
        [] => Ok(None),
        [start] => Ok(Some(start)),
        _ => Err(several(before.iter().map(|start| start + 1), hunk)),
    }
}

fn several(places: impl Iterator<Item = usize>, hunk: &PatchHunk) -> String {
    let lines: Vec<String> = places.take(LISTED).map(|line| line.to_string()).collect();
    let how = if hunk.ordered {
        "put a line above them that begins with @@ and names the function or class they are in"
    } else {
        "repeat more lines around them"
    };
    format!(
        "its old lines stand there several times, at lines {}: {how}",
        lines.join(", ")
    )
}

/// The text with the hunk where its old lines stand but for blanks, indentation or a comment.
fn alike(path: &str, lines: &[&str], hunk: &PatchHunk, begin: usize) -> Result<String, String> {
    let edit = FileEdit::Replace {
        path: path.to_owned(),
        search: joined(&hunk.old),
        replace: joined(&hunk.new),
    };
    let body = lines[begin..].concat();
    let error = match crate::apply(&edit, Some(&body)) {
        Ok((new, _)) => return Ok(lines[..begin].concat() + &new),
        Err(EditError::Several { lines: found, .. }) => {
            return Err(several(found.iter().map(|line| begin + line), hunk));
        }
        Err(error) => error,
    };
    if begin > 0
        && hunk.anchors.is_empty()
        && let Ok((new, _)) = crate::apply(&edit, Some(&lines.concat()))
    {
        return Ok(new);
    }
    if let EditError::Indentation { .. } = error {
        return Err(error.to_string());
    }
    let there: Vec<&str> = lines.iter().map(|line| bare(line)).collect();
    let wanted: Vec<&str> = hunk.old.iter().map(|line| bare(line)).collect();
    let near = nearest::miss(&there, &wanted);
    Err(format!("its old lines do not stand there. {near}"))
}

impl PatchHunk {
    /// The same without the blank line that ends it, which may be one between two parts of the patch.
    fn without_last_blank(&self) -> Option<Self> {
        let blank = |lines: &[String]| lines.last().is_some_and(|line| line.trim().is_empty());
        let is_such = self.ordered && self.old.len() > 1 && blank(&self.old) && blank(&self.new);
        is_such.then(|| {
            let mut shorter = self.clone();
            shorter.old.pop();
            shorter.new.pop();
            shorter
        })
    }
}

fn joined(lines: &[String]) -> String {
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}

fn spliced(lines: &[&str], start: usize, length: usize, hunk: &PatchHunk) -> String {
    let ending = if lines.iter().any(|line| line.ends_with("\r\n")) {
        "\r\n"
    } else {
        "\n"
    };
    let mut text: String = lines[..start].concat();
    if !text.is_empty() && !text.ends_with('\n') && !hunk.new.is_empty() {
        text.push_str(ending);
    }
    for (index, line) in hunk.new.iter().enumerate() {
        text.push_str(line.trim_end_matches('\r'));
        let last = index + 1 == hunk.new.len() && start + length == lines.len();
        if !(last && hunk.open_end) {
            text.push_str(ending);
        }
    }
    text.push_str(&lines[start + length..].concat());
    text
}
