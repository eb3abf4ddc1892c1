//! The commands of `lula config`.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List every key with its value and the layer it comes from
    List,
    /// Print the value of a key
    #[command(after_help = "Example:\n  lula config get sandbox.timeout")]
    Get {
        /// Name of the key
        key: String,
    },
    /// Write a value into a configuration file
    #[command(
        after_help = "Examples:\n  lula config set sandbox.timeout 5m\n  lula config set --in repository sandbox.min_tier namespace"
    )]
    Set {
        /// Name of the key
        key: String,
        /// Its new value
        value: String,
        /// Which file
        #[arg(long = "in", value_enum, default_value = "user")]
        layer: FileLayer,
    },
    /// Remove a key from a configuration file
    Unset {
        /// Name of the key
        key: String,
        /// Which file
        #[arg(long = "in", value_enum, default_value = "user")]
        layer: FileLayer,
    },
    /// Show what each layer says about a key and which one won
    #[command(after_help = "Example:\n  lula config explain sandbox.min_tier")]
    Explain {
        /// Name of the key
        key: String,
    },
    /// Print the reference page of all keys
    Reference,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FileLayer {
    /// The machine's file
    System,
    /// Your file
    User,
    /// The file at the top of the repository
    Repository,
}
