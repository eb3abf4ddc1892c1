//! One installation: the configuration in force, and where it keeps its state.

use std::path::{Path, PathBuf};

use lula_config::{
    Config, ConfigFileLocations, ConfigKeySpec, ConfigOrigin, ConfigSetting, variables,
};

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

    /// The same for another directory: with the settings of this command line, and with what the
    /// repository around that directory may say.
    pub fn around(&self, directory: &Path) -> Result<Self, HostError> {
        let variable = |name: &str| std::env::var(name).ok();
        let all = self.config.entries().iter();
        let said = all.flat_map(|entry| &entry.history);
        let flags = said.map(|considered| considered.setting.clone());
        let flags = flags.filter(|setting| matches!(setting.origin, ConfigOrigin::Flag(_)));
        Self::read(
            ConfigFileLocations::usual(variable, directory),
            flags.collect(),
        )
    }

    /// Those of a command line's arguments that stand for configuration keys, as they were given.
    pub fn flags_given(&self, arguments: impl Iterator<Item = String>) -> Vec<String> {
        let entries = self.config.entries().iter();
        let flags: Vec<&String> = entries
            .filter_map(|entry| match &entry.winner().origin {
                ConfigOrigin::Flag(flag) => Some(flag),
                _ => None,
            })
            .collect();
        let mut given = Vec::new();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let (name, whole) = match argument.split_once('=') {
                Some((name, _)) => (name, true),
                None => (argument.as_str(), false),
            };
            if !flags.iter().any(|flag| *flag == name) {
                continue;
            }
            given.push(argument);
            if !whole {
                given.extend(arguments.next());
            }
        }
        given
    }

    /// Whether the command line itself says something of a key.
    pub fn is_given(&self, spec: &ConfigKeySpec) -> bool {
        let entry = self.config.entry(spec);
        entry.is_some_and(|entry| matches!(entry.winner().origin, ConfigOrigin::Flag(_)))
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
