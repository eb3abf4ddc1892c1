//! What `lula chat` takes.

use std::path::PathBuf;

use clap::Args;

use crate::cli::runs::{DeliverFlag, LimitFlags};

const CHAT_HELP: &str = include_str!("../../cli/help/chat.txt");

#[derive(Debug, Args)]
#[command(after_help = CHAT_HELP)]
pub(crate) struct ChatFlags {
    /// Run to go on with: its id, the end of one, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Say this first
    #[arg(long, value_name = "TEXT")]
    pub(crate) say: Option<String>,
    /// Repository, instead of the one around this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// Model to talk with; repeatable, the preferred one first
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Vec<String>,
    /// How much the model thinks
    #[arg(long, value_name = "EFFORT", value_parser = ["off", "low", "medium", "high"])]
    pub(crate) effort: Option<String>,
    /// Command that runs the tests, instead of the detected one
    #[arg(long, value_name = "CMD")]
    pub(crate) tests: Option<String>,
    /// Command that must succeed when the change is committed; repeatable
    #[arg(long, value_name = "CMD")]
    pub(crate) accept: Vec<String>,
    /// Command that finishes a change before it is committed, such as a formatter; repeatable
    #[arg(long, value_name = "CMD")]
    pub(crate) finish: Vec<String>,
    /// How to deliver the change
    #[arg(long, value_enum, default_value = "branch")]
    pub(crate) deliver: DeliverFlag,
    /// Maximum number of steps of the model in one turn
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) max_turns: u32,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// Internal: this process drives the run
    #[arg(long, hide = true, value_name = "RUN")]
    pub(crate) drive: Option<String>,
}
