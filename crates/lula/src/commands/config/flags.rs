//! The commands of `lula config`.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every key with its value and origin
    List,
    /// Print the value of a key
    #[command(after_help = "Example:\n  lula config get sandbox.timeout")]
    Get {
        /// Configuration key, such as sandbox.timeout
        key: String,
    },
    /// Write a value into a configuration file
    #[command(
        after_help = "Examples:\n  lula config set sandbox.timeout 5m\n  lula config set --in repository sandbox.min_tier namespace"
    )]
    Set {
        /// Configuration key, such as sandbox.timeout
        key: String,
        /// New value
        value: String,
        /// Which configuration file to change
        #[arg(long = "in", value_enum, default_value = "user")]
        layer: FileLayer,
    },
    /// Remove a key from a configuration file
    Unset {
        /// Configuration key, such as sandbox.timeout
        key: String,
        /// Which configuration file to change
        #[arg(long = "in", value_enum, default_value = "user")]
        layer: FileLayer,
    },
    /// Show the value of a key in each layer and which one is in force
    #[command(after_help = "Example:\n  lula config explain sandbox.min_tier")]
    Explain {
        /// Configuration key, such as sandbox.timeout
        key: String,
    },
    /// Print the reference page of all keys
    Reference,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FileLayer {
    /// The configuration file of the machine
    System,
    /// Your own configuration file
    User,
    /// `.lula.toml` at the top of the repository
    Repository,
}
