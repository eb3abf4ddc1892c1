//! Patches between `*** Begin Patch` and `*** End Patch`.

use super::{FilePatch, PatchError, PatchHunk};

const UPDATE: &str = "*** Update File:";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// Whether a patch is of this form.
pub(super) fn is_one(patch: &str) -> bool {
    patch.lines().any(|line| {
        let line = line.trim_end();
        line == "*** Begin Patch"
            || [UPDATE, ADD, DELETE]
                .iter()
                .any(|head| line.starts_with(head))
    })
}

/// What the lines that follow a head belong to.
#[derive(Debug, PartialEq)]
enum Section {
    /// Before the first file, or after the last.
    Outside,
    Added,
    Updated,
    Deleted,
}

/// A patch as far as it was read.
struct Reading {
    patches: Vec<FilePatch>,
    section: Section,
    /// The hunk whose lines are read.
    hunk: Option<PatchHunk>,
    /// Blank lines of a new file that are part of it if more lines follow.
    blanks: usize,
}

pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let mut reading = Reading {
        patches: Vec::new(),
        section: Section::Outside,
        hunk: None,
        blanks: 0,
    };
    let mut last = 0;
    for (index, line) in patch.split('\n').enumerate() {
        last = index;
        let line = line.strip_suffix('\r').unwrap_or(line);
        reading.line(index, line)?;
    }
    reading.close_file(last)?;
    Ok(reading.patches)
}

impl Reading {
    fn line(&mut self, index: usize, line: &str) -> Result<(), PatchError> {
        let head = |prefix: &str| line.strip_prefix(prefix).map(|rest| rest.trim().to_owned());
        if let Some(path) = head(UPDATE) {
            return self.open_file(index, Section::Updated, &path);
        }
        if let Some(path) = head(ADD) {
            return self.open_file(index, Section::Added, &path);
        }
        if let Some(path) = head(DELETE) {
            return self.open_file(index, Section::Deleted, &path);
        }
        if let Some(to) = head(MOVE) {
            return self.moved(index, &to);
        }
        match line.trim_end() {
            "*** Begin Patch" | "*** End Patch" => {
                self.close_file(index)?;
                self.section = Section::Outside;
                return Ok(());
            }
            END_OF_FILE => {
                if let Some(hunk) = &mut self.hunk {
                    hunk.at_end = true;
                }
                return self.close_hunk(index);
            }
            _ => {}
        }
        match self.section {
            // What people and models write around patches.
            Section::Outside => Ok(()),
            Section::Deleted if line.trim().is_empty() => Ok(()),
            Section::Deleted => Err(PatchError::at(index, "a file that is deleted has no lines")),
            Section::Added => self.added(index, line),
            Section::Updated => self.updated(index, line),
        }
    }

    fn open_file(&mut self, index: usize, section: Section, path: &str) -> Result<(), PatchError> {
        self.close_file(index)?;
        if path.is_empty() {
            return Err(PatchError::at(index, "a path is missing"));
        }
        let path = path.strip_prefix("./").unwrap_or(path).to_owned();
        let (old, new) = match section {
            Section::Added => (None, Some(path)),
            Section::Deleted => (Some(path), None),
            Section::Updated | Section::Outside => (Some(path.clone()), Some(path)),
        };
        self.patches.push(FilePatch {
            old,
            new,
            outright: section == Section::Deleted,
            ..FilePatch::default()
        });
        if section == Section::Added {
            self.hunk = Some(PatchHunk {
                ordered: true,
                line: index + 1,
                ..PatchHunk::default()
            });
        }
        self.section = section;
        Ok(())
    }

    fn moved(&mut self, index: usize, to: &str) -> Result<(), PatchError> {
        let fresh = self.section == Section::Updated && self.hunk.is_none();
        match self.patches.last_mut() {
            Some(patch) if fresh && patch.hunks.is_empty() && !to.is_empty() => {
                patch.new = Some(to.strip_prefix("./").unwrap_or(to).to_owned());
                Ok(())
            }
            _ => Err(PatchError::at(
                index,
                "`*** Move to: PATH` stands right below `*** Update File: PATH`",
            )),
        }
    }

    fn added(&mut self, index: usize, line: &str) -> Result<(), PatchError> {
        let Some(hunk) = &mut self.hunk else {
            return Err(PatchError::at(index, "a line without a file above it"));
        };
        if let Some(text) = line.strip_prefix('+') {
            let blanks = std::mem::take(&mut self.blanks);
            hunk.new.extend(std::iter::repeat_n(String::new(), blanks));
            hunk.new.push(text.to_owned());
        } else if line.trim().is_empty() {
            self.blanks += 1;
        } else {
            return Err(PatchError::at(
                index,
                "each line of a new file begins with +",
            ));
        }
        Ok(())
    }

    fn updated(&mut self, index: usize, line: &str) -> Result<(), PatchError> {
        if let Some(anchor) = line.strip_prefix("@@") {
            return self.anchor(index, anchor.trim());
        }
        let Some((sign, text)) = signed(line) else {
            return Err(PatchError::at(
                index,
                "a line of a file that is updated begins with a blank, - or +, and a place with @@",
            ));
        };
        if self.hunk.is_none() && line.is_empty() {
            return Ok(());
        }
        let hunk = self.hunk.get_or_insert_with(|| PatchHunk {
            ordered: true,
            line: index + 1,
            ..PatchHunk::default()
        });
        if sign != '+' {
            hunk.old.push(text.to_owned());
        }
        if sign != '-' {
            hunk.new.push(text.to_owned());
        }
        Ok(())
    }

    /// A line that says where the next hunk stands. Several below each other lead further in.
    fn anchor(&mut self, index: usize, anchor: &str) -> Result<(), PatchError> {
        let begun = self
            .hunk
            .as_ref()
            .is_some_and(|hunk| !hunk.old.is_empty() || !hunk.new.is_empty());
        if begun {
            self.close_hunk(index)?;
        }
        let hunk = self.hunk.get_or_insert_with(|| PatchHunk {
            ordered: true,
            line: index + 1,
            ..PatchHunk::default()
        });
        // `@@ -12,3 +12,4 @@` of the other form says a line, and perhaps what it is in.
        let anchor = match anchor
            .strip_prefix('-')
            .and_then(|rest| rest.split_once("@@"))
        {
            Some((numbers, inside)) => {
                let digits: String = numbers.chars().take_while(char::is_ascii_digit).collect();
                hunk.at = digits.parse().unwrap_or(0);
                inside.trim()
            }
            None => anchor.strip_suffix("@@").map_or(anchor, str::trim_end),
        };
        if !anchor.is_empty() && hunk.at == 0 {
            hunk.anchors.push(anchor.to_owned());
        }
        Ok(())
    }

    fn close_hunk(&mut self, index: usize) -> Result<(), PatchError> {
        self.blanks = 0;
        let Some(hunk) = self.hunk.take() else {
            return Ok(());
        };
        let added = self.section == Section::Added;
        if hunk.old == hunk.new && !added {
            let line = index.max(1) - 1;
            return Err(PatchError::at(line, "a place that changes nothing"));
        }
        if let Some(patch) = self.patches.last_mut()
            && !(added && hunk.new.is_empty())
        {
            patch.hunks.push(hunk);
        }
        Ok(())
    }

    fn close_file(&mut self, index: usize) -> Result<(), PatchError> {
        self.close_hunk(index)?;
        if let Some(patch) = self.patches.last()
            && self.section == Section::Updated
            && !patch.does_something()
        {
            return Err(PatchError::at(
                index,
                "the file above it is updated by no line",
            ));
        }
        self.section = Section::Outside;
        Ok(())
    }
}

/// What a line of a hunk does, and its text. Editors strip the blank of an empty line.
fn signed(line: &str) -> Option<(char, &str)> {
    match line.as_bytes().first() {
        None => Some((' ', "")),
        Some(b' ') => Some((' ', &line[1..])),
        Some(b'-') => Some(('-', &line[1..])),
        Some(b'+') => Some(('+', &line[1..])),
        // A line of context that lost its blank, in a file indented by tabs.
        Some(b'\t') => Some((' ', line)),
        _ => None,
    }
}
