//! The arguments of `lula env`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::values::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum EnvironmentCommand {
    /// Show what this repository needs, why, and by which commands it is set up
    #[command(
        after_help = "Nothing of the repository is run. What its files for CI, containers and make propose is shown apart.\n\nExamples:\n  lula env show\n  lula env show --json"
    )]
    Show(PlaceFlags),
    /// Build the environment in a sandbox that reaches the registries it needs and nothing else
    #[command(
        after_help = "Commands, tests and agents get the environment from then on. It is built once for the same lock files,\nrecipe and tools.\n\nExamples:\n  lula env build\n  lula env build --net repo.example.org\n  lula env build --again\n\nExit status: 0 it is there, 2 a rule forbids or asks about a command, 6 it could not be built."
    )]
    Build(BuildFlags),
    /// Run the tests of the clean project twice, and remember what they said
    #[command(
        after_help = "Examples:\n  lula env check\n  lula env check --tests 'pytest -q tests/unit'\n\nExit status: 0 tests run and pass, 1 none passes, 6 they cannot be run."
    )]
    Check(CheckFlags),
    /// List the environments that are there
    List,
    /// Remove environments that were not used for long, whose repository is gone, or that take too much
    #[command(
        after_help = "Examples:\n  lula env prune\n  lula env prune --older 30d --max 5GiB\n  lula env prune env-1a2b3c4d5e6f"
    )]
    Prune(PruneFlags),
    /// Edit the recipe of this repository, kept beside the environments
    #[command(
        after_help = "Your editor is $VISUAL or $EDITOR. `.lula-environment.toml` in the repository has the same form; yours goes\nover it.\n\nExamples:\n  lula env edit\n  lula env edit --from recipe.toml\n  lula env edit --reset"
    )]
    Edit(EditFlags),
    /// Write an environment into one file, for a machine without network
    #[command(
        after_help = "The other machine needs the repository at the same path and the same interpreters.\n\nExample:\n  lula env export cart.environment"
    )]
    Export {
        /// File to write
        file: PathBuf,
        /// Environment, instead of the one of this repository
        name: Option<String>,
    },
    /// Take an environment in from a file that `lula env export` wrote
    Import {
        /// The file
        file: PathBuf,
    },
    /// Open a shell in the environment
    #[command(after_help = "Changes are held, as with `lula exec`.\n\nExample:\n  lula env shell")]
    Shell(PlaceFlags),
}

#[derive(Debug, Args)]
pub(crate) struct PlaceFlags {
    /// Repository, instead of the one around this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BuildFlags {
    #[command(flatten)]
    pub(crate) place: PlaceFlags,
    /// Build it anew if it is there
    #[arg(long)]
    pub(crate) again: bool,
    /// Agree to what a rule asks about
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckFlags {
    #[command(flatten)]
    pub(crate) place: PlaceFlags,
    /// Test command, instead of the detected one
    #[arg(long, value_name = "CMD")]
    pub(crate) tests: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PruneFlags {
    /// Environments to remove, whatever their age
    pub(crate) names: Vec<String>,
    /// Remove what was not used for so long, such as 30d
    #[arg(long, value_name = "TIME", value_parser = parse_age)]
    pub(crate) older: Option<Duration>,
    /// What the rest may take on disk, instead of the configured size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct EditFlags {
    #[command(flatten)]
    pub(crate) place: PlaceFlags,
    /// Take the recipe from this file instead of an editor
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Forget your own recipe
    #[arg(long, conflicts_with = "from")]
    pub(crate) reset: bool,
}

/// Days, or a duration of less than one.
fn parse_age(text: &str) -> Result<Duration, String> {
    let days: Option<u32> = text.strip_suffix('d').and_then(|days| days.parse().ok());
    match days {
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        None => parse_duration(text),
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    lula_protocol::units::parse_size(text).ok_or_else(|| "a size such as 500MiB or 5GiB".to_owned())
}
