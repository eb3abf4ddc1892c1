//! Where the mistake probably is, and what it looks like from outside.

mod clues;
mod frames;
mod heat;
mod kinds;

pub(crate) use clues::Clues;
pub(crate) use frames::frames;
pub(crate) use heat::{Heat, LinesOfTest};
pub(crate) use kinds::{TypesByVariable, ValueSort, Variables};

use serde::{Deserialize, Serialize};

/// Lines that changed lately; mistakes are often among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentChange {
    /// The file, relative to the project's root.
    pub path: String,
    /// First changed line, from one.
    pub first: usize,
    /// Last changed line, from one and included.
    pub last: usize,
}
