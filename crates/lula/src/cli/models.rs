//! The commands of `lula models`.

use std::time::Duration;

use clap::Subcommand;

use super::values::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the models in use and what could serve one here
    List,
    /// Ask a model three small questions and tell what it can do
    #[command(
        after_help = "Examples:\n  lula models test ollama/qwen2.5-coder:7b\n  lula models test openai-compatible@http://127.0.0.1:8080/v1/my-model --json\n\nExit status: 0 when it answers, 1 when it does not, 6 when its key cannot be had."
    )]
    Test {
        /// PROVIDER/MODEL or PROVIDER@URL/MODEL
        model: String,
        /// Longest wait for each question
        #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
        timeout: Duration,
    },
    /// Tell how models did in the runs kept here: what was verified, and at what cost
    #[command(
        after_help = "Where several models are in use, runs prefer the one that did better at the kind of task, and write down why."
    )]
    Stats,
    /// Try a model and put it first among those in use
    #[command(
        after_help = "Example:\n  lula models use anthropic/claude-sonnet-4-5\n\nWrites models.use in your configuration file; a model that does not answer changes nothing."
    )]
    Use {
        /// PROVIDER/MODEL or PROVIDER@URL/MODEL
        model: String,
        /// Take it without asking it anything
        #[arg(long)]
        untried: bool,
        /// Longest wait for each question
        #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
        timeout: Duration,
    },
}
