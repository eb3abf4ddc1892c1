//! The flags of `lula doctor`.

use clap::Args;
use lula_protocol::IsolationTier;

use crate::cli::values::parse_tier;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  lula doctor\n  lula doctor --attack\n  lula doctor --attack --tier landlock --json\n\nWith --attack the exit status is 1 if one probe gets through."
)]
pub(crate) struct DoctorFlags {
    /// Attack the sandbox on this machine with every built-in probe
    #[arg(long)]
    pub(crate) attack: bool,
    /// Isolation tier to attack, instead of the strongest available one
    #[arg(long, value_name = "NAME", requires = "attack", value_parser = parse_tier)]
    pub(crate) tier: Option<IsolationTier>,
}
