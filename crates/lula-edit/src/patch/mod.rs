//! Patches over several files, as models and git write them.
//!
//! Two forms are read: the one that begins with `*** Begin Patch`, which current models are trained
//! on, and unified diffs. Both are read leniently where nothing depends on it (counts, offsets, the
//! words around), strictly where something does (which file, which lines).

mod envelope;
mod place;
mod unified;

#[cfg(test)]
mod tests;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilePatch {
    /// Its path before; none where the patch makes it.
    pub old: Option<String>,
    /// Its path after; none where the patch removes it.
    pub new: Option<String>,
    /// Permissions, where the patch names them.
    pub mode: Option<u32>,
    /// Whether it is removed whatever it holds: its lines are not listed.
    pub outright: bool,
    pub(crate) hunks: Vec<PatchHunk>,
}

/// Lines that stand somewhere and what they become.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PatchHunk {
    /// Where the old lines are said to begin, from 1; 0 where nothing is said.
    at: usize,
    /// Lines above it that say which of several places is meant, the outermost first.
    anchors: Vec<String>,
    /// Whether it stands after the hunk before it, as this form has it.
    ordered: bool,
    /// Whether it stands at the end of the file.
    at_end: bool,
    old: Vec<String>,
    new: Vec<String>,
    /// Whether the new text ends without a newline.
    open_end: bool,
    /// Line of the patch it begins at, from 1.
    line: usize,
}

/// Why a patch cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the patch is not understood at line {line}: {why}")]
pub struct PatchError {
    /// Line of the patch, from 1.
    pub line: usize,
    pub why: String,
}

impl PatchError {
    fn at(index: usize, why: impl Into<String>) -> Self {
        Self {
            line: index + 1,
            why: why.into(),
        }
    }
}

/// Every file of a patch, in whichever of the two forms it is written.
pub fn parse(patch: &str) -> Result<Vec<FilePatch>, PatchError> {
    let patches = if envelope::is_one(patch) {
        envelope::parse(patch)?
    } else {
        unified::parse(patch)?
    };
    if patches.is_empty() {
        return Err(PatchError::at(
            0,
            "it changes no file: begin with `*** Begin Patch` and `*** Update File: PATH`, or with \
             `--- a/PATH` and `+++ b/PATH`",
        ));
    }
    Ok(patches)
}

impl FilePatch {
    /// Every path that it names.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let new = self
            .new
            .as_deref()
            .filter(|new| self.old.as_deref() != Some(*new));
        self.old.as_deref().into_iter().chain(new)
    }

    /// The text after all hunks, or why hunks have no place.
    pub fn apply(&self, current: &str) -> Result<String, Vec<String>> {
        let path = self.new.as_deref().or(self.old.as_deref());
        place::apply(path.unwrap_or_default(), current, &self.hunks)
    }

    fn does_something(&self) -> bool {
        !self.hunks.is_empty() || self.old != self.new || self.mode.is_some()
    }
}
