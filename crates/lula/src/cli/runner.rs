//! The flags of `lula runner`.

use std::path::PathBuf;

use clap::Args;
use lula_sandbox::policy::Profile;

use super::runs::Approve;
use super::values::parse_profile;

const RUNNER_HELP: &str = "\
Workspaces are private views of directories below a root: nothing reaches the directory itself
before a commit of exactly the reviewed change. A Unix socket is for its owner alone; a port needs
a key, from --key-file or $LULA_RUNNER_KEY. `GET /v1/openapi.json` describes the interface.

Examples:
  lula runner --root ~/src
  lula runner --root ~/src --listen unix:/run/user/1000/lula.sock
  lula runner --root /srv/work --listen 0.0.0.0:7420 --key-file /etc/lula/runner.key";

#[derive(Debug, Args)]
#[command(after_help = RUNNER_HELP)]
pub(crate) struct RunnerFlags {
    /// Where to listen: unix:PATH or HOST:PORT; a socket in the state directory when left out
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Workspaces can be opened below this directory; can be given several times
    #[arg(long = "root", value_name = "DIR", required = true)]
    pub(crate) roots: Vec<PathBuf>,
    /// A private file that holds the bearer key of a port
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// A file of rules that say when to ask, beside the built-in ones; can be given several times
    #[arg(long = "rules", value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// auto agrees beforehand to what the rules leave to you (`[approval] beforehand = "tree"`)
    #[arg(long, value_enum)]
    pub(crate) approve: Option<Approve>,
    /// Policy of the sandboxes to start from: strict, build or browser
    #[arg(long, value_name = "NAME", default_value = "build", value_parser = parse_profile)]
    pub(crate) profile: Profile,
    /// Say in receipts which paths commands were denied, why, and the smallest grant that would allow each
    #[arg(long)]
    pub(crate) explain: bool,
    /// End when standard input ends
    #[arg(long, hide = true)]
    pub(crate) with_parent: bool,
    /// Start another one when it dies, until standard input ends
    #[arg(long, hide = true)]
    pub(crate) supervised: bool,
}
