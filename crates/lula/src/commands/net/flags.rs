//! The arguments of `lula net` and `lula grant`.

use clap::{Args, Subcommand};

use crate::commands::exec::flags::ExecFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum NetCommand {
    /// Run a command, record each name it asks for, and propose the smallest allowlist
    #[command(
        after_help = "Nothing is let out that --net does not name. A command often stops at its first name: repeat\nwith the names you accept.\n\nExamples:\n  lula net learn -- pip download requests\n  lula net learn --net pypi.org -- pip download requests"
    )]
    Learn(ExecFlags),
    /// Show what sandboxes asked for and reached
    Log {
        /// Only this sandbox, or the sandboxes of this run
        door: Option<String>,
        /// Only what was denied
        #[arg(long)]
        denied: bool,
        /// Number of entries, the latest
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
    },
    /// Explain whether a sandbox here reaches a host, and which rule says so
    #[command(
        after_help = "Examples:\n  lula net explain pypi.org\n  lula net explain db.example.org:5432"
    )]
    Explain {
        /// Host name, with a port if it is not 443
        host: String,
    },
    /// Show groups of names, as the tools of this machine say them
    #[command(after_help = "Examples:\n  lula net groups\n  lula net groups pypi npm --refresh")]
    Groups {
        /// Groups to show; without them, all there are
        groups: Vec<String>,
        /// Ask the tools again
        #[arg(long)]
        refresh: bool,
    },
    /// List sandboxes that have a network by name now
    List,
}

const GRANT_HELP: &str = include_str!("../../cli/help/grant.txt");

#[derive(Debug, Args)]
#[command(after_help = GRANT_HELP)]
pub(crate) struct GrantFlags {
    /// Sandbox or run; `last` is the latest sandbox
    pub(crate) target: String,
    /// Name with a port, or a rule about requests
    #[arg(required_unless_present = "port", conflicts_with = "port")]
    pub(crate) rule: Option<String>,
    /// Instead of a name: make a server inside reachable from this machine; PORT, OUTSIDE:INSIDE or
    /// NAME=PORT
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<String>,
    /// Take it back
    #[arg(long)]
    pub(crate) revoke: bool,
}
