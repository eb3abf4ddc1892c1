//! The flags of `lula exec`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lula_protocol::Tier;
use lula_sandbox::policy::Profile;

use super::values::{parse_duration, parse_profile, parse_tier};

const EXEC_HELP: &str = "\
The command runs in the repository this directory belongs to, or in the directory itself. It sees
that, the system's programs, your toolchains and the project's virtual environment, has no network
and none of your variables but those that name toolchains. It behaves like the command itself: standard input and output, signals, exit status.
What it changes in there is held back: `lula diff` shows it, `lula commit` takes it over. Files that git
ignores are left aside.

Examples:
  lula exec -- pytest -q
  lula exec --profile strict --timeout 10s -- ./untrusted.sh
  lula exec --receipt receipt.json -- make test
  lula exec --explain -- ./install.sh
  lula exec --on last -- git diff
  lula exec --write direct -- cargo fmt

Exit status: the command's own; 124 when its time ran out, 125 when the sandbox refused,
126 and 127 when the command cannot be executed or does not exist.";

#[derive(Debug, Args)]
#[command(after_help = EXEC_HELP)]
pub(crate) struct ExecFlags {
    /// Policy to start from: strict, build or browser
    #[arg(long, value_name = "NAME", default_value = "build", value_parser = parse_profile)]
    pub(crate) profile: Profile,
    /// A policy of your own, as TOML; a file outside the workspace
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub(crate) policy: Option<PathBuf>,
    /// Exactly this tier, or nothing; the only way to get `process`
    #[arg(long, value_name = "NAME", value_parser = parse_tier)]
    pub(crate) tier: Option<Tier>,
    /// What becomes of changes in the workspace
    #[arg(long, value_enum, default_value = "review")]
    pub(crate) write: Write,
    /// Go on in the workspace of that id, with the changes that wait there; `last` is the latest of
    /// this directory
    #[arg(long, value_name = "ID", conflicts_with = "workspace")]
    pub(crate) on: Option<String>,
    /// Wall clock, such as 90s; never longer than sandbox.timeout
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Write the posture receipt to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Say what was denied and what would grant it; looks at every path the command opens, which
    /// slows it down
    #[arg(long)]
    pub(crate) explain: bool,
    /// The directory to work in, instead of the repository around this one
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// What becomes of changes in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Write {
    /// The workspace is read-only
    None,
    /// Changes are held for `lula diff`, `lula commit` and `lula discard`
    Review,
    /// Changes are made in the workspace itself
    Direct,
}
