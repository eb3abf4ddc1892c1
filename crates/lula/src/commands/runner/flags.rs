//! The flags of `lula runner`.

use std::path::PathBuf;

use clap::Args;
use lula_sandbox::policy::Profile;

use crate::cli::runs::ApproveMode;
use crate::cli::values::parse_profile;

const RUNNER_HELP: &str = include_str!("../../cli/help/runner.txt");

#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
#[command(after_help = RUNNER_HELP)]
pub(crate) struct RunnerFlags {
    /// Listen address, unix:PATH or HOST:PORT; by default a socket in the state directory
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Allow workspaces below this directory; repeatable
    #[arg(long = "root", value_name = "DIR", required = true)]
    pub(crate) roots: Vec<PathBuf>,
    /// Private file with the bearer key of the port
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Rules file, in addition to the built-in rules; repeatable
    #[arg(long = "rules", value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// With `auto`, approve in advance what your rules allow (`[approval] beforehand = "tree"`)
    #[arg(long, value_enum)]
    pub(crate) approve: Option<ApproveMode>,
    /// Ask an approver before any change is committed, whatever else the rules say
    #[arg(long)]
    pub(crate) hold_commits: bool,
    /// Sandbox policy: strict, build or browser
    #[arg(long, value_name = "NAME", default_value = "build", value_parser = parse_profile)]
    pub(crate) profile: Profile,
    /// List denied paths in receipts, each with the reason and the smallest grant that allows it
    #[arg(long)]
    pub(crate) explain: bool,
    /// Internal: exit when standard input closes
    #[arg(long, hide = true)]
    pub(crate) with_parent: bool,
    /// Internal: restart the runner when it dies, until standard input closes
    #[arg(long, hide = true)]
    pub(crate) supervised: bool,
}
