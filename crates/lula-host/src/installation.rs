//! One installation: the configuration in force, and where it keeps its state.

use std::path::PathBuf;

use lula_config::{Config, ConfigFileLocations};

use crate::error::HostError;

/// What everything here works under.
#[derive(Debug)]
pub struct Installation {
    /// The configuration in force.
    pub config: Config,
    /// Where the files of its layers lie.
    pub locations: ConfigFileLocations,
}

impl Installation {
    /// Where state is kept.
    pub fn state_directory(&self) -> Result<PathBuf, HostError> {
        let configured = self.config.get(&lula_config::keys::STATE_DIR);
        if !configured.is_empty() {
            return Ok(configured.into());
        }
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
            .map(|base| base.join("lula"))
            .ok_or(HostError::NoStateDirectory)
    }
}
