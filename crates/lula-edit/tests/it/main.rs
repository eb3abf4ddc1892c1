//! Edits from end to end: a corpus of answers as models write them, and what must come of each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod generated;
