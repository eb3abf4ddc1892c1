//! How far the driver of a run is kept away from what the run works on.

use std::sync::Arc;

use lula_protocol::WorkspaceId;
use serde::{Deserialize, Serialize};

/// Something that the driver of a run must not be able to do, tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverFenceProbe {
    /// What the driver tried.
    pub what: String,
    /// Whether it was refused.
    pub refused: bool,
    /// What the system said.
    pub said: String,
}

/// How far the driver of a run is kept away from what it works on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverFenceReport {
    /// Whether it has locked itself out.
    pub locked: bool,
    /// By what, or why not.
    pub how: String,
    /// What was tried, and what came of it.
    pub probes: Vec<DriverFenceProbe>,
}

/// Tries whether a repository and a workspace are out of reach.
pub type DriverFence = Arc<dyn Fn(&str, &WorkspaceId) -> DriverFenceReport + Send + Sync>;
