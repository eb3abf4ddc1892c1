//! One installation: the configuration in force, and where it keeps its state.

use std::path::PathBuf;

use lula_config::{Config, ConfigFileLocations, ConfigSetting, variables};

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
    /// Reads the files and variables around a directory, and the settings of the command line.
    pub fn read(
        locations: ConfigFileLocations,
        flags: Vec<ConfigSetting>,
    ) -> Result<Self, HostError> {
        let mut settings = locations.read()?;
        settings.extend(variables::from_environment(utf8_variables())?);
        settings.extend(flags);
        Ok(Self {
            config: Config::resolve(settings),
            locations,
        })
    }

    /// As if nothing were configured.
    pub fn built_in(locations: ConfigFileLocations) -> Self {
        Self {
            config: Config::built_in(),
            locations,
        }
    }

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

/// A variable that is not text cannot be one of ours.
fn utf8_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        Some((name, value.to_string_lossy().into_owned()))
    })
}
