//! How a model writes edits.

use serde::{Deserialize, Serialize};

use crate::anchor::LineAnchor;

/// A way of writing edits, from strong models to weak ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EditFormat {
    /// Blocks of old lines and new lines.
    SearchReplace,
    /// Numbered lines, each with a short hash that proves which text was seen.
    LineRange,
    /// Whole files: a path and a fence, as weak models write by themselves.
    Whole,
    /// Whole functions, chosen by their number from a list.
    Function,
}

/// The path and the text of the forms that are shown. They are no example on purpose: a small model
/// repeats an example as if it were the change that is wanted, and finds a form hard to repeat.
const FORM: (&str, &str) = ("path/of/the/file", "(the new lines)");

impl EditFormat {
    /// What a model is told, with the form to fill in.
    pub const fn instructions(self) -> &'static str {
        match self {
            Self::SearchReplace => {
                "Write each change as a block under the path of its file. SEARCH holds whole lines \
                 exactly as they are in the file now, enough of them to be found once; REPLACE \
                 holds what they become. An empty SEARCH makes a new file. The form is:\n\n\
                 path/of/the/file\n<<<<<<< SEARCH\n(the old lines)\n=======\n(the new lines)\n\
                 >>>>>>> REPLACE"
            }
            Self::LineRange => {
                "Files are shown as NUMBER:HASH|line. Write each change as a block under the path \
                 of its file. It names the first and the last line it replaces, with numbers and \
                 hashes as shown, and holds the new lines without them. The form is:\n\n\
                 path/of/the/file\n<<<<<<< LINES 2:a3f4-2:a3f4\n(the new lines)\n>>>>>>> END"
            }
            Self::Whole => {
                "Write each changed file whole, with all of its new text, in the form that files \
                 are shown in:\n\n<file path=\"path/of/the/file\">\n(the new lines)\n</file>"
            }
            Self::Function => {
                "Write each changed function whole, as a block under the path of its file, with \
                 its number from the list. The form is:\n\npath/of/the/file\n<<<<<<< FUNCTION \
                 1\n(the new lines)\n>>>>>>> END"
            }
        }
    }

    /// The format to fall back to, for a model that keeps failing at this one.
    pub const fn weaker(self) -> Option<Self> {
        match self {
            Self::SearchReplace | Self::LineRange => Some(Self::Whole),
            Self::Whole | Self::Function => None,
        }
    }
}

/// One change to a file, as a model asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FileEdit {
    /// These lines become those.
    Replace {
        path: String,
        /// Lines as they are; empty makes a new file.
        search: String,
        /// Lines as they shall be.
        replace: String,
    },
    /// The lines from one anchor to another become these.
    Lines {
        path: String,
        /// The first line replaced.
        first: LineAnchor,
        /// The last line replaced.
        last: LineAnchor,
        /// Lines as they shall be.
        text: String,
    },
    /// The whole file becomes this.
    File { path: String, text: String },
    /// One function becomes this.
    Function {
        path: String,
        /// Its number in the list of [`crate::functions::list`], from 1.
        number: usize,
        text: String,
    },
}

impl FileEdit {
    /// The file it changes.
    pub fn path(&self) -> &str {
        match self {
            Self::Replace { path, .. }
            | Self::Lines { path, .. }
            | Self::File { path, .. }
            | Self::Function { path, .. } => path,
        }
    }
}

/// Why an answer holds no edits that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditFormatError {
    /// A block has no path above it.
    #[error("the block at line {0} has no path on the line above it")]
    NoPath(usize),
    /// A block is not ended.
    #[error("the block at line {line} is not ended with {end:?}")]
    NotEnded {
        /// Where it begins, in the answer.
        line: usize,
        /// The text that should have ended it.
        end: &'static str,
    },
    /// A block has more than one divider.
    #[error("the block at line {0} has more than one ======= line: write smaller blocks")]
    TwoDividers(usize),
    /// A path that leaves the repository or is none.
    #[error("{0:?} is not a path inside the repository")]
    BadPath(String),
    /// The form of the instructions, repeated as it is.
    #[error("the block at line {0} is the form itself: fill it in with the change")]
    Form(usize),
    /// A header that cannot be read.
    #[error("{0:?} is not understood: copy the numbers and hashes from the file")]
    BadHeader(String),
}

/// Every edit of the answer. Words around the blocks are ignored; a broken block is an error.
pub fn parse(format: EditFormat, answer: &str) -> Result<Vec<FileEdit>, EditFormatError> {
    let lines: Vec<&str> = answer.lines().collect();
    let mut edits = Vec::new();
    let mut path: Option<String> = None;
    let mut at = 0;
    while at < lines.len() {
        let Some(header) = opening(lines[at]) else {
            if let Some((edit, next)) = shown_file(format, &lines, at)? {
                edits.push(edit);
                at = next;
            } else if let Some((edit, next)) = fenced_file(format, &lines, at)? {
                edits.push(edit);
                at = next;
            } else if let (EditFormat::LineRange, Some((anchor, text))) =
                (format, numbered(lines[at]))
            {
                path = path_above(&lines, at).or(path);
                let path = path.clone().ok_or(EditFormatError::NoPath(at + 1))?;
                inside(&path)?;
                let text = format!("{text}\n");
                edits.push(FileEdit::Lines {
                    path,
                    first: anchor.clone(),
                    last: anchor,
                    text,
                });
                at += 1;
            } else {
                at += 1;
            }
            continue;
        };
        path = path_above(&lines, at).or(path);
        let path = path.clone().ok_or(EditFormatError::NoPath(at + 1))?;
        inside(&path)?;
        let (edit, next) = block(header, path, &lines, at)?;
        not_the_form(&edit, at)?;
        edits.push(edit);
        at = next;
    }
    Ok(edits)
}

/// The header after the opening mark of a block.
fn opening(line: &str) -> Option<&str> {
    let rest = line.trim_end().strip_prefix("<<<<<<<")?;
    let header = rest.trim_start_matches('<').trim();
    ["SEARCH", "LINES", "FILE", "FUNCTION"]
        .iter()
        .any(|word| header.starts_with(word))
        .then_some(header)
}

fn block(
    header: &str,
    path: String,
    lines: &[&str],
    at: usize,
) -> Result<(FileEdit, usize), EditFormatError> {
    let end = if header.starts_with("SEARCH") {
        "REPLACE"
    } else {
        "END"
    };
    let closes = |line: &str| {
        line.trim_end().strip_prefix(">>>>>>>").is_some_and(|rest| {
            let word = rest.trim_start_matches('>').trim();
            word == end || (word.is_empty() && end == "END")
        })
    };
    let body_start = at + 1;
    let length = lines[body_start..]
        .iter()
        .position(|line| closes(line))
        .ok_or(EditFormatError::NotEnded {
            line: at + 1,
            end: if end == "END" {
                ">>>>>>> END"
            } else {
                ">>>>>>> REPLACE"
            },
        })?;
    let body = &lines[body_start..body_start + length];
    let next = body_start + length + 1;
    let edit = match header.split_once(' ').unwrap_or((header, "")) {
        ("SEARCH", _) => {
            let is_divider = |line: &&str| line.trim_end() == "=======";
            let mut dividers = body.iter().enumerate().filter(|(_, line)| is_divider(line));
            let divider =
                dividers
                    .next()
                    .map(|(index, _)| index)
                    .ok_or(EditFormatError::NotEnded {
                        line: at + 1,
                        end: "=======",
                    })?;
            if dividers.next().is_some() {
                return Err(EditFormatError::TwoDividers(at + 1));
            }
            FileEdit::Replace {
                path,
                search: joined(&body[..divider]),
                replace: joined(&body[divider + 1..]),
            }
        }
        ("LINES", range) => {
            let (first, last) = range
                .split_once('-')
                .map_or((range, range), |(first, last)| (first, last));
            let anchor = |text: &str| {
                text.trim()
                    .parse::<LineAnchor>()
                    .map_err(|_| EditFormatError::BadHeader(header.to_owned()))
            };
            FileEdit::Lines {
                path,
                first: anchor(first)?,
                last: anchor(last)?,
                text: joined(body),
            }
        }
        ("FUNCTION", number) => FileEdit::Function {
            path,
            number: number
                .trim()
                .parse()
                .map_err(|_| EditFormatError::BadHeader(header.to_owned()))?,
            text: joined(body),
        },
        _ => FileEdit::File {
            path,
            text: joined(body),
        },
    };
    Ok((edit, next))
}

fn not_the_form(edit: &FileEdit, at: usize) -> Result<(), EditFormatError> {
    let (FileEdit::Replace { replace: text, .. }
    | FileEdit::Lines { text, .. }
    | FileEdit::File { text, .. }
    | FileEdit::Function { text, .. }) = edit;
    let is_form = edit.path() == FORM.0 || text.lines().eq([FORM.1]);
    if is_form {
        Err(EditFormatError::Form(at + 1))
    } else {
        Ok(())
    }
}

/// A line of the file as it was shown, its text perhaps changed: weak models repeat the file so.
/// The anchor proves which line is meant.
fn numbered(line: &str) -> Option<(LineAnchor, &str)> {
    let (anchor, text) = line.split_once('|')?;
    Some((anchor.parse().ok()?, text))
}

/// A whole file in the form that files are shown in: what small models answer with, whatever they
/// are told.
fn shown_file(
    format: EditFormat,
    lines: &[&str],
    at: usize,
) -> Result<Option<(FileEdit, usize)>, EditFormatError> {
    fn named<'a>(line: &'a &str) -> Option<&'a str> {
        let rest = line.trim().strip_prefix("<file path=")?;
        Some(rest.strip_suffix('>')?.trim_matches(['"', '\'', ' ']))
    }
    let whole_lines = matches!(format, EditFormat::Whole | EditFormat::SearchReplace);
    let Some(path) = named(&lines[at]).filter(|_| whole_lines) else {
        return Ok(None);
    };
    let rest = &lines[at + 1..];
    let until = rest.iter().position(|line| named(line).is_some());
    // The last end before the next file: a text may hold such a line itself.
    let end = rest[..until.unwrap_or(rest.len())]
        .iter()
        .rposition(|line| line.trim() == "</file>")
        .ok_or(EditFormatError::NotEnded {
            line: at + 1,
            end: "</file>",
        })?;
    inside(path)?;
    let mut body = &rest[..end];
    if let [first, inner @ .., last] = body
        && first.starts_with("```")
        && last.trim_end() == "```"
    {
        body = inner;
    }
    if body.iter().any(|line| opening(line).is_some()) {
        return Ok(None);
    }
    let edit = FileEdit::File {
        path: path.strip_prefix("./").unwrap_or(path).to_owned(),
        text: joined(body),
    };
    not_the_form(&edit, at)?;
    Ok(Some((edit, at + end + 2)))
}

/// Weak models write a path and a fence, whatever they are told.
fn fenced_file(
    format: EditFormat,
    lines: &[&str],
    at: usize,
) -> Result<Option<(FileEdit, usize)>, EditFormatError> {
    if format != EditFormat::Whole
        || !lines[at].starts_with("```")
        || lines[at].trim() == "```" && at == 0
    {
        return Ok(None);
    }
    let Some(path) = path_above(lines, at) else {
        return Ok(None);
    };
    let Some(length) = lines[at + 1..]
        .iter()
        .position(|line| line.trim_end() == "```")
    else {
        return Err(EditFormatError::NotEnded {
            line: at + 1,
            end: "```",
        });
    };
    let body = &lines[at + 1..at + 1 + length];
    // A fence around blocks is not a file.
    if body.iter().any(|line| opening(line).is_some()) {
        return Ok(None);
    }
    inside(&path)?;
    let (edit, next) = (
        FileEdit::File {
            path,
            text: joined(body),
        },
        at + length + 2,
    );
    not_the_form(&edit, at)?;
    Ok(Some((edit, next)))
}

fn joined(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [*line, "\n"]).collect()
}

/// The path on the nearest line above that is not blank and not a fence.
fn path_above(lines: &[&str], at: usize) -> Option<String> {
    let line = lines[..at]
        .iter()
        .rev()
        .take(3)
        .find(|line| !line.trim().is_empty() && !line.trim_start().starts_with("```"))?;
    let word = line
        .trim()
        .trim_start_matches(['#', '*', '-', '>', ' '])
        .trim_start_matches("File:")
        .trim_start_matches("file:")
        .trim_matches(['`', '*', ':', ' ', '"', '\'']);
    let looks_like_a_path = !word.is_empty()
        && !word.contains(|c: char| c.is_whitespace() || c == '|')
        && !word.starts_with(['<', '>', '='])
        && (word.contains('.') || word.contains('/') || word == "Makefile" || word == "Dockerfile");
    looks_like_a_path.then(|| word.strip_prefix("./").unwrap_or(word).to_owned())
}

/// The runner checks paths by handle; this catches the plain mistakes where they can be told.
fn inside(path: &str) -> Result<(), EditFormatError> {
    let fine = !path.starts_with(['/', '~'])
        && !path.contains('\\')
        && !path.chars().any(char::is_control)
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..");
    if fine {
        Ok(())
    } else {
        Err(EditFormatError::BadPath(path.to_owned()))
    }
}
