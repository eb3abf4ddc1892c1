//! What can be wrong with configuration. Each error names what, where and what to do.

use std::path::PathBuf;

use lula_protocol::Code;

use crate::keys::{self, ConfigKeySpec};
use crate::layer::ConfigOrigin;
use crate::suggest::nearest;

/// A configuration that cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A key that does not exist.
    #[error("there is no configuration key `{name}`")]
    UnknownKey {
        /// The name as written.
        name: String,
        /// Where it stands, unless it was asked for by name.
        origin: Option<ConfigOrigin>,
        /// The key with the most similar name, where one is near enough.
        nearest: Option<&'static str>,
    },
    /// A value that the key does not take.
    #[error("`{}` cannot be {given}", spec.name)]
    BadValue {
        spec: &'static ConfigKeySpec,
        /// The value as written.
        given: String,
        /// Where it stands, unless it was given directly.
        origin: Option<ConfigOrigin>,
    },
    /// A file that is not TOML.
    #[error("this file is not TOML: {message}")]
    BadToml {
        origin: ConfigOrigin,
        /// What the parser says.
        message: String,
    },
    /// A file that cannot be used.
    #[error("cannot use {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// A repository's file may not hold this.
    #[error("`{}` cannot be set by a repository", spec.name)]
    RepositoryOverreach {
        spec: &'static ConfigKeySpec,
        reason: String,
    },
}

impl ConfigError {
    /// A key that was asked for by name and does not exist.
    pub fn unknown_key(name: &str) -> Self {
        let nearest = nearest(name, keys::all().map(|spec| spec.name));
        Self::UnknownKey {
            name: name.to_owned(),
            origin: None,
            nearest,
        }
    }

    pub const fn code(&self) -> Code {
        match self {
            Self::UnknownKey { .. } => Code::UnknownKey,
            Self::BadValue { .. } => Code::BadValue,
            Self::BadToml { .. } => Code::BadToml,
            Self::Unreadable { .. } => Code::ConfigUnreadable,
            Self::RepositoryOverreach { .. } => Code::RepositoryOverreach,
        }
    }

    /// Where the mistake stands.
    pub const fn origin(&self) -> Option<&ConfigOrigin> {
        match self {
            Self::UnknownKey { origin, .. } | Self::BadValue { origin, .. } => origin.as_ref(),
            Self::BadToml { origin, .. } => Some(origin),
            Self::Unreadable { .. } | Self::RepositoryOverreach { .. } => None,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::UnknownKey {
                nearest: Some(name),
                ..
            } => {
                format!("did you mean `{name}`? `lula config list` shows every key")
            }
            Self::UnknownKey { nearest: None, .. } => "`lula config list` shows every key".into(),
            Self::BadValue { spec, .. } => format!("write {}", spec.kind.expected()),
            Self::BadToml { .. } => {
                "correct the file; it looks like\n[output]\ncolor = \"never\"".into()
            }
            Self::Unreadable { path, .. } => {
                format!(
                    "make {} a readable regular file, or remove it",
                    path.display()
                )
            }
            Self::RepositoryOverreach { reason, .. } => reason.clone(),
        }
    }
}
