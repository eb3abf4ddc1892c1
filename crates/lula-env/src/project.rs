//! The files of a repository, as detection sees them. What is asked for is remembered: an environment
//! is made anew where one of those files changed, came or went.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use lula_protocol::Digest;

use crate::inputs::InputFile;

/// Longest file that is read.
const LONGEST: usize = 8 << 20;

/// The files of a repository.
pub struct ProjectFiles<'a> {
    files: BTreeSet<&'a str>,
    read: &'a dyn Fn(&str) -> Option<String>,
    asked: RefCell<BTreeMap<String, Option<Digest>>>,
}

impl std::fmt::Debug for ProjectFiles<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProjectFiles")
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

impl<'a> ProjectFiles<'a> {
    /// Those names, relative to the top; `read` gives the text of one.
    pub fn new(files: &'a [String], read: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            files: files.iter().map(String::as_str).collect(),
            read,
            asked: RefCell::default(),
        }
    }

    /// The text of a file that decides what an environment holds.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = self.peek(path);
        let digest = text.as_ref().map(|text| Digest::of_bytes(text.as_bytes()));
        self.asked.borrow_mut().insert(path.to_owned(), digest);
        text
    }

    /// Whether there is such a file. It counts as one that decides.
    pub fn has(&self, path: &str) -> bool {
        self.text(path).is_some()
    }

    /// The text of a file that only helps to guess: a change of it alone changes no environment.
    pub fn peek(&self, path: &str) -> Option<String> {
        if !self.files.contains(path) {
            return None;
        }
        (self.read)(path).filter(|text| text.len() <= LONGEST)
    }

    /// The names of all files.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.files.iter().copied()
    }

    /// Whether a name is there, without counting.
    pub fn names(&self, path: &str) -> bool {
        self.files.contains(path)
    }

    /// What was asked for, with what was found.
    pub fn inputs(&self) -> Vec<InputFile> {
        let asked = self.asked.borrow();
        let files = asked.iter().map(|(path, digest)| InputFile {
            path: path.clone(),
            digest: *digest,
        });
        files.collect()
    }
}

/// A name in a folder; the top is the empty one.
pub(crate) fn within(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}
