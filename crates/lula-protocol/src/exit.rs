//! What an exit status of `lula` means. Scripts rely on these numbers.

use serde::{Deserialize, Serialize};

/// How a command of `lula` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunExit {
    /// The work was done and there is evidence for it.
    Verified,
    /// The work was attempted and failed.
    Failed,
    /// The command line or the configuration is wrong; nothing was changed.
    Usage,
    /// The run waits for a person's approval.
    WaitingForApproval,
    /// A budget ended; the run can be resumed with a larger one.
    Budget,
    /// There is no evidence either way.
    Inconclusive,
    /// This machine cannot do the job as it is.
    Environment,
}

impl RunExit {
    /// The process exit status.
    pub const fn status(self) -> u8 {
        match self {
            Self::Verified => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::WaitingForApproval => 3,
            Self::Budget => 4,
            Self::Inconclusive => 5,
            Self::Environment => 6,
        }
    }
}
