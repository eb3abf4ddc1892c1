//! The arguments of `lula try`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Copies a sample project with a real bug to a temporary git repository, finds the bug, fixes it in the\nsandbox, verifies the fix, shows and approves it, delivers a branch, checks the audit log and undoes\nthe delivery. A configured model (`lula models use`) writes the fix, otherwise the built-in search.\nYour files are not touched; the run stays on record for `lula show last`."
)]
pub(crate) struct TryFlags {
    /// Keep the sample repository and print where it is
    #[arg(long)]
    pub(crate) keep: bool,
}
