//! A conversation with a run, in the terminal.
//!
//! It does: read what a person types, show what the model says and does as it comes, ask in the person's
//! flow what the run asks, and tell the run what they say. What a chat is, is `lula_agents::chat`; how it
//! is driven, in another process, is `lula_host::chat`.
//!
//! It never: holds a model's key, opens a workspace, or sends the terminal a control character that a
//! model, a tool or a repository wrote. It depends on `lula-host` and what that gives it.
#![forbid(unsafe_code)]

mod code;
mod commands;
mod editor;
mod lines;
mod markdown;
mod questions;
mod raw;
mod screen;
mod story;
mod style;
mod talk;
mod told;
mod working;

use std::path::PathBuf;

use lula_agents::RunTask;
use lula_host::{HostError, Installation};
use lula_protocol::{BudgetAmounts, RunExit};

/// What a conversation begins with.
pub struct ChatSetup<'a> {
    pub installation: &'a Installation,
    /// The task of a new chat from its first words; without words the person goes first.
    pub task: &'a dyn Fn(&str) -> Result<RunTask, HostError>,
    /// What it may spend.
    pub limits: BudgetAmounts,
    /// Flags of the command line that are settings: they hold for the driver too.
    pub flags: Vec<String>,
    /// The run to go on with.
    pub run: Option<String>,
    /// What is said first.
    pub words: Option<String>,
    pub repository: PathBuf,
    /// Whether the terminal shows colours.
    pub colour: bool,
}

/// Talks with a program over standard input and output, a JSON document on each line.
pub fn converse_in_json(setup: &ChatSetup<'_>) -> Result<RunExit, HostError> {
    lines::converse(setup)
}

/// Talks with a person at a terminal until they leave.
pub fn converse(setup: &ChatSetup<'_>) -> Result<RunExit, HostError> {
    talk::Talk::begin(setup)?.go()
}
