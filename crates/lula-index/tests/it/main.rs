//! The index as its callers use it: files in memory, no workspace anywhere.
#![expect(clippy::unwrap_used, reason = "a test says no by panicking")]

mod kept;
mod languages;
mod maps;
mod project;
mod properties;
mod reach;
mod search;
