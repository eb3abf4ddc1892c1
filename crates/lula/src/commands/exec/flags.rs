//! The flags of `lula exec`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lula_host::exec::{ExecInvocation, ExecNetwork, ExecWriteMode};
use lula_protocol::IsolationTier;
use lula_sandbox::policy::Profile;

use crate::cli::values::{parse_duration, parse_profile, parse_tier};

const EXEC_HELP: &str = include_str!("../../cli/help/exec.txt");

#[derive(Debug, Args)]
#[command(after_help = EXEC_HELP)]
pub(crate) struct ExecFlags {
    /// Sandbox policy: strict, build or browser
    #[arg(long, value_name = "NAME", default_value = "build", value_parser = parse_profile)]
    pub(crate) profile: Profile,
    /// Your own sandbox policy (TOML); the file must be outside the workspace
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    pub(crate) policy: Option<PathBuf>,
    /// Use exactly this isolation tier or fail; required for the `process` tier
    #[arg(long, value_name = "NAME", value_parser = parse_tier)]
    pub(crate) tier: Option<IsolationTier>,
    /// What to do with changes in the workspace
    #[arg(long, value_enum, default_value = "review")]
    write: WriteMode,
    /// Continue in this workspace with the changes it holds; `last` is the latest of this directory
    #[arg(long, value_name = "ID", conflicts_with = "workspace")]
    pub(crate) on: Option<String>,
    /// Wall-clock timeout such as 90s; sandbox.timeout is the upper limit
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Write the sandbox receipt (which protections were in force) to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Report what the sandbox denied and which grant would allow it; watches every path the
    /// command opens, which is slower
    #[arg(long)]
    pub(crate) explain: bool,
    /// Give the command the host's network: every host this machine reaches, and the machine itself
    #[arg(long)]
    net_host: bool,
    /// Workspace directory, instead of the repository around this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl ExecFlags {
    /// What is asked for.
    pub(crate) fn request(&self) -> ExecInvocation<'_> {
        ExecInvocation {
            command: &self.command,
            workspace: self.workspace.clone(),
            on: self.on.as_deref(),
            write: match self.write {
                WriteMode::None => ExecWriteMode::None,
                WriteMode::Review => ExecWriteMode::Review,
                WriteMode::Direct => ExecWriteMode::Direct,
            },
            policy: self.policy.clone(),
            profile: self.profile,
            tier: self.tier,
            explain: self.explain,
            timeout: self.timeout,
            network: if self.net_host {
                ExecNetwork::Host
            } else {
                ExecNetwork::Granted
            },
        }
    }
}

/// What `lula exec` does with changes in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WriteMode {
    /// Make the workspace read-only
    None,
    /// Hold changes for `lula diff`, `lula commit` and `lula discard`
    Review,
    /// Write to the workspace itself
    Direct,
}
