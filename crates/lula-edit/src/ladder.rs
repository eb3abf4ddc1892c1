//! Finding the one place that old lines mean.
//!
//! Rungs from exact to alike. On each rung all places are looked for: one is the answer, several
//! are an error, none leads to the next rung.

use serde::{Deserialize, Serialize};
use similar::TextDiff;

use crate::skeleton;

/// How alike a place must be on the last rung.
pub const SAME_ENOUGH: f32 = 0.92;
/// Lines of code a search must have before likeness is trusted.
const LEAST_CODE: usize = 2;

/// How a place was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchRung {
    /// Every character is the same.
    Exact,
    /// All but blanks at line ends.
    TrailingSpace,
    /// All but one common shift of the indentation.
    Indentation,
    /// The same code; comments, quotes, blank lines or commas differ a little.
    Alike,
}

/// A place: lines of the file, and which of them each searched line stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MatchPosition {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) aligned: Vec<Option<usize>>,
    pub(crate) shift: IndentationShift,
    pub(crate) rung: MatchRung,
}

/// How the file's indentation differs from the searched lines'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndentationShift {
    None,
    Deeper(String),
    Shallower(String),
    /// The file indents by tabs where the search has this many spaces.
    SpacesToTabs(usize),
    /// The file indents by this many spaces where the search has tabs.
    TabsToSpaces(usize),
}

impl IndentationShift {
    /// A line of the search or its replacement as it stands in the file; `None` where it cannot.
    pub(crate) fn line(&self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return Some(String::new());
        }
        match self {
            Self::None => Some(line.to_owned()),
            Self::Deeper(prefix) => Some(format!("{prefix}{line}")),
            Self::Shallower(prefix) => line.strip_prefix(prefix.as_str()).map(str::to_owned),
            Self::SpacesToTabs(width) => {
                let body = line.trim_start_matches(' ');
                let spaces = line.len() - body.len();
                (spaces.is_multiple_of(*width) && !body.starts_with('\t'))
                    .then(|| format!("{}{body}", "\t".repeat(spaces / width)))
            }
            Self::TabsToSpaces(width) => {
                let body = line.trim_start_matches('\t');
                let tabs = line.len() - body.len();
                (!body.starts_with(' ')).then(|| format!("{}{body}", " ".repeat(tabs * width)))
            }
        }
    }
}

/// Why there is no one place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NoUniqueMatch {
    /// Several places; the lines they start at, from 0.
    Several(Vec<usize>, MatchRung),
    Nowhere,
}

/// The one place of these lines in the file.
pub(crate) fn find(file: &[&str], search: &[&str]) -> Result<MatchPosition, NoUniqueMatch> {
    for (rung, places) in [
        (
            MatchRung::Exact,
            windows(file, search, |a, b| a == b, MatchRung::Exact),
        ),
        (
            MatchRung::TrailingSpace,
            windows(
                file,
                search,
                |a, b| a.trim_end() == b.trim_end(),
                MatchRung::TrailingSpace,
            ),
        ),
        (MatchRung::Indentation, shifted(file, search)),
        (MatchRung::Alike, alike(file, search)),
    ] {
        let mut places = places;
        match places.len() {
            0 => {}
            1 => return Ok(places.remove(0)),
            _ => {
                return Err(NoUniqueMatch::Several(
                    places.iter().map(|place| place.start).collect(),
                    rung,
                ));
            }
        }
    }
    Err(NoUniqueMatch::Nowhere)
}

fn windows(
    file: &[&str],
    search: &[&str],
    same: impl Fn(&str, &str) -> bool,
    rung: MatchRung,
) -> Vec<MatchPosition> {
    if search.is_empty() || search.len() > file.len() || search.iter().all(|l| l.trim().is_empty())
    {
        return Vec::new();
    }
    (0..=file.len() - search.len())
        .filter(|start| file[*start..].iter().zip(search).all(|(a, b)| same(a, b)))
        .map(|start| straight(start, search.len(), IndentationShift::None, rung))
        .collect()
}

fn straight(
    start: usize,
    length: usize,
    shift: IndentationShift,
    rung: MatchRung,
) -> MatchPosition {
    MatchPosition {
        start,
        end: start + length,
        aligned: (start..start + length).map(Some).collect(),
        shift,
        rung,
    }
}

fn shifted(file: &[&str], search: &[&str]) -> Vec<MatchPosition> {
    let Some(lead) = search.iter().position(|line| !line.trim().is_empty()) else {
        return Vec::new();
    };
    if search.len() > file.len() {
        return Vec::new();
    }
    (0..=file.len() - search.len())
        .filter_map(|start| {
            let window = &file[start..start + search.len()];
            shifts(window[lead], search[lead])
                .into_iter()
                .find(|shift| {
                    window.iter().zip(search).all(|(there, line)| {
                        shift
                            .line(line)
                            .is_some_and(|moved| moved.trim_end() == there.trim_end())
                    })
                })
                .map(|shift| straight(start, search.len(), shift, MatchRung::Indentation))
        })
        .collect()
}

/// The shifts that could turn this line of the search into that line of the file.
fn shifts(there: &str, line: &str) -> Vec<IndentationShift> {
    let mut out = Vec::new();
    let (there, line) = (there.trim_end(), line.trim_end());
    let blank = |prefix: &str| !prefix.is_empty() && prefix.trim().is_empty();
    if let Some(prefix) = there.strip_suffix(line).filter(|prefix| blank(prefix)) {
        out.push(IndentationShift::Deeper(prefix.to_owned()));
    }
    if let Some(prefix) = line.strip_suffix(there).filter(|prefix| blank(prefix)) {
        out.push(IndentationShift::Shallower(prefix.to_owned()));
    }
    if there.trim_start() == line.trim_start() {
        out.extend([4, 2, 8].map(IndentationShift::SpacesToTabs));
        out.extend([4, 2, 8].map(IndentationShift::TabsToSpaces));
    }
    out
}

/// Places with the same code, line by line; blank lines may be missing on either side.
fn alike(file: &[&str], search: &[&str]) -> Vec<MatchPosition> {
    let wanted: Vec<String> = search.iter().map(|line| skeleton::of(line)).collect();
    if wanted.iter().filter(|code| !code.is_empty()).count() < LEAST_CODE {
        return Vec::new();
    }
    let there: Vec<String> = file.iter().map(|line| skeleton::of(line)).collect();
    (0..file.len())
        .filter(|start| !file[*start].trim().is_empty())
        .filter_map(|start| walk(file, &there, search, &wanted, start))
        .collect()
}

fn walk(
    file: &[&str],
    there: &[String],
    search: &[&str],
    wanted: &[String],
    start: usize,
) -> Option<MatchPosition> {
    let mut aligned = vec![None; search.len()];
    let mut at = start;
    for (index, line) in search.iter().enumerate() {
        if line.trim().is_empty() {
            // A blank line of the search may stand for one of the file, or for none.
            if file.get(at).is_some_and(|line| line.trim().is_empty()) && at > start {
                aligned[index] = Some(at);
                at += 1;
            }
            continue;
        }
        while at > start && file.get(at).is_some_and(|line| line.trim().is_empty()) {
            at += 1;
        }
        if *there.get(at)? != wanted[index] {
            return None;
        }
        aligned[index] = Some(at);
        at += 1;
    }
    let shift = common_shift(file, search, &aligned)?;
    let ours: String = search
        .iter()
        .map(|line| line.trim())
        .filter(|l| !l.is_empty())
        .collect();
    let theirs: String = file[start..at]
        .iter()
        .map(|l| l.trim())
        .filter(|l| !l.is_empty())
        .collect();
    if TextDiff::from_chars(&ours, &theirs).ratio() < SAME_ENOUGH {
        return None;
    }
    Some(MatchPosition {
        start,
        end: at,
        aligned,
        shift,
        rung: MatchRung::Alike,
    })
}

/// The one shift that every aligned line agrees on.
fn common_shift(
    file: &[&str],
    search: &[&str],
    aligned: &[Option<usize>],
) -> Option<IndentationShift> {
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    let pairs: Vec<(String, String)> = search
        .iter()
        .zip(aligned)
        .filter_map(|(line, at)| at.map(|at| (indent(line), indent(file[at]), file[at])))
        .filter(|(_, _, there)| !there.trim().is_empty())
        .map(|(ours, theirs, _)| (ours, theirs))
        .collect();
    let (ours, theirs) = pairs.first()?;
    let mut candidates = vec![IndentationShift::None];
    candidates.extend(shifts(&format!("{theirs}x"), &format!("{ours}x")));
    candidates.into_iter().find(|shift| {
        pairs.iter().all(|(ours, theirs)| {
            shift
                .line(&format!("{ours}x"))
                .is_some_and(|moved| moved == format!("{theirs}x"))
        })
    })
}

/// The lines of the file most like the searched ones: where to look.
pub(crate) fn nearest(file: &[&str], search: &[&str]) -> Option<std::ops::Range<usize>> {
    let length = search.len().min(file.len());
    if length == 0 {
        return None;
    }
    let score = |start: usize| -> usize {
        file[start..start + length]
            .iter()
            .filter(|line| {
                let line = line.trim();
                !line.is_empty() && search.iter().any(|wanted| wanted.trim() == line)
            })
            .count()
    };
    let start =
        (0..=file.len() - length).max_by_key(|start| (score(*start), usize::MAX - start))?;
    (score(start) > 0).then(|| start..start + length)
}
