//! Applying edits in memory.

use std::collections::BTreeMap;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::anchor::{self, LineAnchor};
use crate::format::FileEdit;
use crate::functions;
use crate::ladder::{self, IndentationShift, MatchPosition, MatchRung, NoUniqueMatch};
use crate::lines::TextLines;
use crate::syntax::{self, SyntaxVerdict};

/// Lines quoted in an error.
const QUOTED: usize = 12;

/// What an edit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppliedEdit {
    /// It changed lines, found on this rung.
    Changed(MatchRung),
    /// It made a file or wrote one anew.
    Written,
    /// The file already was as the edit wants it.
    Nothing,
}

/// Why an edit was not applied. The words are for the model that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is no such file.
    #[error("there is no file {0}: to make it, write a block with an empty SEARCH")]
    NoFile(String),
    /// A new file would overwrite one.
    #[error("the file {0} exists: SEARCH must hold the lines to change")]
    Exists(String),
    /// The lines are nowhere.
    #[error("these lines are not in {path}; SEARCH must repeat the file exactly. {hint}")]
    NotFound {
        path: String,
        /// The nearest lines, or what else to look at.
        hint: String,
    },
    /// The lines are in several places.
    #[error("these lines are in {path} {} times, at lines {}: repeat more lines around them", .lines.len(), numbers(.lines))]
    Several {
        path: String,
        /// The lines where each place begins, from 1.
        lines: Vec<usize>,
    },
    /// An anchor's hash is not the line's.
    #[error("{anchor} is not a line of {path} as it is now. {hint}")]
    Stale {
        path: String,
        /// The anchor as it was written.
        anchor: String,
        /// The line as it is.
        hint: String,
    },
    /// Two edits of one answer change the same lines.
    #[error("two blocks change line {line} of {path}: write one block")]
    Overlap {
        path: String,
        /// The line, from 1.
        line: usize,
    },
    /// The new lines cannot take the file's indentation.
    #[error(
        "the lines are in {path} at line {line}, indented otherwise, and the new lines cannot be indented likewise: repeat the file's indentation"
    )]
    Indentation {
        path: String,
        /// The line where the place begins, from 1.
        line: usize,
    },
    /// There is no function of this number.
    #[error("{path} has no function {number}: it has {count}")]
    NoFunction {
        path: String,
        /// The number asked for.
        number: usize,
        /// How many there are.
        count: usize,
    },
}

fn numbers(lines: &[usize]) -> String {
    lines
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// What became of an answer: the new texts, and the fate of each edit in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditBatchResult {
    /// Files as they would be, with every edit that could be applied.
    pub files: BTreeMap<String, String>,
    /// One entry for each edit.
    pub results: Vec<Result<AppliedEdit, EditError>>,
}

impl EditBatchResult {
    /// Whether every edit found its place. Only then may the files become an effect.
    pub fn is_whole(&self) -> bool {
        self.results.iter().all(Result::is_ok)
    }

    /// The files whose syntax the edits broke, with the place.
    pub fn broken(&self, read: impl Fn(&str) -> Option<String>) -> Vec<(String, SyntaxVerdict)> {
        self.files
            .iter()
            .map(|(path, text)| {
                (
                    path.clone(),
                    syntax::check(path, read(path).as_deref(), text),
                )
            })
            .filter(|(_, verdict)| matches!(verdict, SyntaxVerdict::Broken { .. }))
            .collect()
    }

    /// The edits to ask for again, by their place in the answer, and why.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &EditError)> {
        self.results
            .iter()
            .enumerate()
            .filter_map(|(index, result)| result.as_ref().err().map(|error| (index, error)))
    }
}

/// Applies all edits of an answer to files as `read` gives them.
pub fn apply_all(edits: &[FileEdit], read: impl Fn(&str) -> Option<String>) -> EditBatchResult {
    let mut by_path: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, edit) in edits.iter().enumerate() {
        by_path.entry(edit.path()).or_default().push(index);
    }
    let mut fates: Vec<Option<Result<AppliedEdit, EditError>>> = vec![None; edits.len()];
    let mut files = BTreeMap::new();
    for (path, indexes) in by_path {
        let current = read(path);
        let own: Vec<&FileEdit> = indexes.iter().map(|index| &edits[*index]).collect();
        let (text, results) = apply_to(current.as_deref(), &own);
        if let Some(text) = text.filter(|text| Some(text) != current.as_ref()) {
            files.insert(path.to_owned(), text);
        }
        for (index, result) in indexes.into_iter().zip(results) {
            fates[index] = Some(result);
        }
    }
    EditBatchResult {
        files,
        results: fates.into_iter().flatten().collect(),
    }
}

/// Applies one edit to a text.
pub fn apply(edit: &FileEdit, current: Option<&str>) -> Result<(String, AppliedEdit), EditError> {
    let (text, mut results) = apply_to(current, &[edit]);
    match results.remove(0) {
        Ok(applied) => Ok((text.unwrap_or_default(), applied)),
        Err(error) => Err(error),
    }
}

/// All edits of one file. Each is placed on the text as it was, so their order does not matter.
fn apply_to(
    current: Option<&str>,
    edits: &[&FileEdit],
) -> (Option<String>, Vec<Result<AppliedEdit, EditError>>) {
    let lines = current.map(TextLines::of);
    let mut text = current.map(str::to_owned);
    let mut changes: Vec<(Range<usize>, Vec<String>)> = Vec::new();
    let mut results = Vec::new();
    let mut written = false;
    for edit in edits {
        let planned = plan(edit, current, lines.as_ref()).and_then(|plan| match plan {
            Plan::Nothing => Ok(AppliedEdit::Nothing),
            Plan::Write(_) if written || !changes.is_empty() => Err(overlap(edit, 0)),
            Plan::Write(new) => {
                text = Some(new);
                written = true;
                Ok(AppliedEdit::Written)
            }
            Plan::Change(..) if written => Err(overlap(edit, 0)),
            Plan::Change(range, new, rung) => {
                let clash = changes.iter().find(|(other, _)| touch(other, &range));
                if let Some((other, _)) = clash {
                    return Err(overlap(edit, other.start.max(range.start)));
                }
                changes.push((range, new));
                Ok(AppliedEdit::Changed(rung))
            }
        });
        results.push(planned);
    }
    if let (Some(lines), false) = (&lines, changes.is_empty()) {
        changes.sort_by_key(|(range, _)| range.start);
        text = Some(lines.splice(&changes));
    }
    (text, results)
}

fn touch(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn overlap(edit: &FileEdit, line: usize) -> EditError {
    EditError::Overlap {
        path: edit.path().to_owned(),
        line: line + 1,
    }
}

enum Plan {
    Nothing,
    Write(String),
    Change(Range<usize>, Vec<String>, MatchRung),
}

fn plan(
    edit: &FileEdit,
    current: Option<&str>,
    lines: Option<&TextLines>,
) -> Result<Plan, EditError> {
    let path = edit.path();
    let missing = || EditError::NoFile(path.to_owned());
    match edit {
        FileEdit::File { text, .. } => Ok(match lines {
            Some(lines) => {
                let new = TextLines::of(text).texts().map(str::to_owned).collect();
                let text = lines.splice(&[(0..lines.len(), new)]);
                if Some(text.as_str()) == current {
                    Plan::Nothing
                } else {
                    Plan::Write(text)
                }
            }
            None => Plan::Write(text.clone()),
        }),
        FileEdit::Replace {
            search, replace, ..
        } if search.trim().is_empty() => match current {
            None => Ok(Plan::Write(replace.clone())),
            Some(text) if text.trim().is_empty() => Ok(Plan::Write(replace.clone())),
            Some(_) => Err(EditError::Exists(path.to_owned())),
        },
        FileEdit::Replace {
            search, replace, ..
        } => replace_lines(path, lines.ok_or_else(missing)?, search, replace),
        FileEdit::Lines {
            first, last, text, ..
        } => {
            let lines = lines.ok_or_else(missing)?;
            let range = anchored(path, current.unwrap_or_default(), lines, first, last)?;
            Ok(change(
                lines,
                range,
                TextLines::of(text).texts().map(str::to_owned).collect(),
                MatchRung::Exact,
            ))
        }
        FileEdit::Function { number, text, .. } => {
            let lines = lines.ok_or_else(missing)?;
            let all = functions::list(path, current.unwrap_or_default());
            let function = number
                .checked_sub(1)
                .and_then(|index| all.get(index))
                .ok_or_else(|| EditError::NoFunction {
                    path: path.to_owned(),
                    number: *number,
                    count: all.len(),
                })?;
            let range = function.first - 1..function.last;
            let there: Vec<&str> = lines.texts().skip(range.start).take(1).collect();
            let new: Vec<&str> = text.lines().collect();
            let indented = indent_like(&new, there.first().copied().unwrap_or_default());
            let new = indented.ok_or_else(|| EditError::Indentation {
                path: path.to_owned(),
                line: function.first,
            })?;
            Ok(change(lines, range, new, MatchRung::Exact))
        }
    }
}

fn change(lines: &TextLines, range: Range<usize>, new: Vec<String>, rung: MatchRung) -> Plan {
    let same = lines
        .texts()
        .skip(range.start)
        .take(range.len())
        .eq(new.iter().map(String::as_str));
    if same {
        Plan::Nothing
    } else {
        Plan::Change(range, new, rung)
    }
}

/// A function written from the margin takes the place's indentation.
fn indent_like(new: &[&str], there: &str) -> Option<Vec<String>> {
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let ours = new
        .iter()
        .find(|line| !line.trim().is_empty())
        .map(|line| indent(line))?;
    let theirs = indent(there);
    let shift = if ours == theirs {
        IndentationShift::None
    } else if let Some(more) = theirs.strip_suffix(ours.as_str()) {
        IndentationShift::Deeper(more.to_owned())
    } else {
        IndentationShift::Shallower(ours.strip_suffix(theirs.as_str())?.to_owned())
    };
    new.iter().map(|line| shift.line(line)).collect()
}

fn anchored(
    path: &str,
    current: &str,
    lines: &TextLines,
    first: &LineAnchor,
    last: &LineAnchor,
) -> Result<Range<usize>, EditError> {
    let hashes = anchor::hashes(current);
    for anchor in [first, last] {
        if hashes.get(anchor.line - 1) != Some(&anchor.hash) {
            let hint = match (
                lines.texts().nth(anchor.line - 1),
                hashes.get(anchor.line - 1),
            ) {
                (Some(line), Some(hash)) => format!("It is now {}:{hash}|{line}", anchor.line),
                _ => format!("The file has {} lines", lines.len()),
            };
            return Err(EditError::Stale {
                path: path.to_owned(),
                anchor: anchor.to_string(),
                hint,
            });
        }
    }
    if last.line < first.line {
        return Err(EditError::Stale {
            path: path.to_owned(),
            anchor: format!("{first}-{last}"),
            hint: "The range ends before it begins".to_owned(),
        });
    }
    Ok(first.line - 1..last.line)
}

fn replace_lines(
    path: &str,
    lines: &TextLines,
    search: &str,
    replace: &str,
) -> Result<Plan, EditError> {
    let file: Vec<&str> = lines.texts().collect();
    let (old, new) = without_outer_blanks(search, replace);
    if old == new {
        return Ok(Plan::Nothing);
    }
    let place = ladder::find(&file, &old).map_err(|lost| match lost {
        NoUniqueMatch::Several(starts, _) => EditError::Several {
            path: path.to_owned(),
            lines: starts.into_iter().map(|start| start + 1).collect(),
        },
        NoUniqueMatch::Nowhere => EditError::NotFound {
            path: path.to_owned(),
            hint: hint(&file, &old, &new),
        },
    })?;
    let written = rewrite(&file, &place, &old, &new).ok_or_else(|| EditError::Indentation {
        path: path.to_owned(),
        line: place.start + 1,
    })?;
    Ok(change(lines, place.start..place.end, written, place.rung))
}

/// Blank lines that open or close both sides alike say nothing about the place.
fn without_outer_blanks<'a>(search: &'a str, replace: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut old: Vec<&str> = TextLines::texts_of(search);
    let mut new: Vec<&str> = TextLines::texts_of(replace);
    let blank = |line: Option<&&str>| line.is_some_and(|line| line.trim().is_empty());
    while blank(old.first()) && blank(new.first()) {
        old.remove(0);
        new.remove(0);
    }
    while blank(old.last()) && blank(new.last()) {
        old.pop();
        new.pop();
    }
    (old, new)
}

/// The new lines of a place. Lines that search and replacement share stay as the file has them:
/// what the model did not mean to change, it does not change.
fn rewrite(
    file: &[&str],
    place: &MatchPosition,
    old: &[&str],
    new: &[&str],
) -> Option<Vec<String>> {
    let mut out = Vec::new();
    let mut next = place.start;
    // Blank lines of the file that the search left out stay.
    let keep_to = |out: &mut Vec<String>, next: &mut usize, to: usize| {
        while *next < to {
            out.push(file[*next].to_owned());
            *next += 1;
        }
    };
    for op in capture_diff_slices(Algorithm::Myers, old, new) {
        let (tag_equal, old_range, new_range) = match op {
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } => (true, old_index..old_index + len, new_index..new_index + len),
            other => (false, other.old_range(), other.new_range()),
        };
        for index in old_range {
            if let Some(at) = place.aligned[index] {
                keep_to(&mut out, &mut next, at);
                if tag_equal {
                    out.push(file[at].to_owned());
                }
                next = at + 1;
            }
        }
        if !tag_equal {
            for line in &new[new_range] {
                out.push(place.shift.line(line)?);
            }
        }
    }
    keep_to(&mut out, &mut next, place.end);
    Some(out)
}

fn hint(file: &[&str], old: &[&str], new: &[&str]) -> String {
    if !new.is_empty() && ladder::find(file, new).is_ok() {
        return "The new lines are already there: SEARCH holds old lines, REPLACE new ones.".into();
    }
    match ladder::nearest(file, old) {
        Some(range) => {
            let quoted: Vec<String> = file[range.clone()]
                .iter()
                .take(QUOTED)
                .enumerate()
                .map(|(index, line)| format!("{}: {line}", range.start + index + 1))
                .collect();
            format!("The nearest lines are\n{}", quoted.join("\n"))
        }
        None => format!("Nothing in its {} lines is like them.", file.len()),
    }
}
