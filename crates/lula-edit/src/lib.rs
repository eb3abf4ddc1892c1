//! Edits that a model wrote: reading them, finding the one place they mean, checking the result.
//!
//! [`parse`] reads an answer in one of three [`EditFormat`]s, [`apply()`] finds the place of each edit
//! on a ladder from exact to alike and builds the new text in memory, and [`syntax::check`] says
//! whether the result still parses. All of it is pure: nothing here touches a file, and an edit
//! whose place is not certain is an error that quotes what to look at, never a guess.
//!
//! [`replace_passages`] replaces texts that stand in a file once, and [`patch`] reads patches over several
//! files, in the two forms that models write.
//!
//! [`bounded_parse`] is how every crate parses text that is not trusted.
//!
//! It depends on no other crate of this workspace, so that the driver, which asks
//! the model, and the runner, which changes the file, share one understanding of where an edit goes.
#![forbid(unsafe_code)]

pub mod anchor;
mod apply;
pub mod bounded_parse;
mod diffs;
mod format;
pub mod functions;
mod ladder;
mod lines;
mod nearest;
mod numbered;
mod passages;
pub mod patch;
mod skeleton;
pub mod symbols;
pub mod syntax;

pub use apply::{AppliedEdit, EditBatchResult, EditError, apply, apply_all};
pub use diffs::{diff_excerpt, diff_stat};
pub use format::{EditFormat, EditFormatError, FileEdit, parse};
pub use ladder::{MatchRung, SAME_ENOUGH};
pub use numbered::{changed_lines, changed_places, numbered};
pub use passages::{PassageEdit, PassageError, replace_passages};
