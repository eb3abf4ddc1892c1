//! The commands of `lula models`.

use std::time::Duration;

use clap::Subcommand;

use crate::cli::values::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the configured models and the providers found on this machine
    List,
    /// Test a model with three small questions and report what it can do
    #[command(
        after_help = "Examples:\n  lula models test ollama/qwen2.5-coder:7b\n  lula models test openai-compatible@http://127.0.0.1:8080/v1/my-model --json\n\nExit status: 0 the model answers, 1 it does not, 6 its key is not available."
    )]
    Test {
        /// Model name: PROVIDER/MODEL or PROVIDER@URL/MODEL
        model: String,
        /// Timeout for each question
        #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
        timeout: Duration,
    },
    /// Show how each model did in past runs: verified changes and cost
    #[command(
        after_help = "With several models configured, a run prefers the one that did better at this kind of task, and records why."
    )]
    Stats,
    /// Test a model and make it the preferred one
    #[command(
        after_help = "Example:\n  lula models use anthropic/claude-sonnet-4-5\n\nWrites models.use in your configuration file, unless the model does not answer."
    )]
    Use {
        /// Model name: PROVIDER/MODEL or PROVIDER@URL/MODEL
        model: String,
        /// Skip the test
        #[arg(long)]
        untried: bool,
        /// Timeout for each question
        #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
        timeout: Duration,
    },
}
