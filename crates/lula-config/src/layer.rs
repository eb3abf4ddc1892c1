//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

use crate::keys::ConfigKeySpec;
use crate::kind::ConfigValue;

/// The layers, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigLayer {
    /// The default in the table of keys.
    BuiltIn,
    /// The file of the machine, for every user.
    System,
    /// The file in the user's configuration directory.
    User,
    /// The repository's file: restricted.
    Repository,
    /// A variable of the environment, `LULA_` and the key.
    Environment,
    /// A flag on the command line.
    Flag,
}

impl ConfigLayer {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::System => "system",
            Self::User => "user",
            Self::Repository => "repository",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

impl fmt::Display for ConfigLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The exact place a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigOrigin {
    /// The table of keys.
    Default,
    /// A line of a file.
    File {
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
    },
    /// An environment variable, by name.
    Variable(String),
    /// A flag, with its dashes.
    Flag(String),
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// One value for one key in one layer.
#[derive(Debug, Clone)]
pub struct ConfigSetting {
    pub spec: &'static ConfigKeySpec,
    pub value: ConfigValue,
    /// The layer it stands in.
    pub layer: ConfigLayer,
    pub origin: ConfigOrigin,
}
