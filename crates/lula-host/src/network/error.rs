//! What can go wrong with a network by name, and what to do about it.

use std::path::PathBuf;

use lula_egress::{EgressError, InvalidEgress};
use lula_protocol::{Code, RunExit};

use crate::error::HostError;

/// Why a network by name was not given, or not changed.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A word is no rule.
    #[error(transparent)]
    Rule(#[from] InvalidEgress),
    /// What serves a network cannot be started, or does not take a rule.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// A file of network rules says something wrong.
    #[error("the network rules in {} cannot be used: {why}", path.display())]
    File {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A group has no names.
    #[error("the group {group:?} of names cannot be had: {why}")]
    Group { group: String, why: String },
    /// The secret of a credential cannot be had.
    #[error("the credential {name:?} cannot be had: {why}")]
    Credential { name: String, why: String },
    /// A server inside cannot be reached from outside.
    #[error("{port} cannot be published: {why}")]
    Published { port: String, why: String },
    /// No sandbox with a network by name is meant.
    #[error("no sandbox of that name has a network by name now")]
    NoDoor,
    /// The process that serves a network refuses a rule.
    #[error("the rule was not taken: {0}")]
    Refused(String),
}

impl From<InvalidEgress> for HostError {
    fn from(error: InvalidEgress) -> Self {
        NetworkError::from(error).into()
    }
}

impl From<EgressError> for HostError {
    fn from(error: EgressError) -> Self {
        NetworkError::from(error).into()
    }
}

impl NetworkError {
    pub(crate) const fn code(&self) -> Code {
        match self {
            Self::NoDoor => Code::NothingThere,
            _ => Code::NetworkRefused,
        }
    }

    pub(crate) const fn exit(&self) -> RunExit {
        match self {
            Self::Egress(_) | Self::Credential { .. } => RunExit::Environment,
            _ => RunExit::Usage,
        }
    }

    pub(crate) const fn remedy(&self) -> &'static str {
        match self {
            Self::Rule(_) => {
                "write NAME, NAME:PORT or `METHOD NAME/PATH`, for example --net pypi.org"
            }
            Self::Egress(_) => "`lula doctor` shows what works here",
            Self::File { .. } => "docs/network.md shows the form of the file",
            Self::Group { .. } => {
                "`lula net groups` shows those of this machine; name the hosts instead, or write a \
                 group into your file of network rules"
            }
            Self::Credential { .. } => {
                "correct its reference in your file of network rules, or leave the credential out"
            }
            Self::Published { .. } => {
                "choose another port of this machine, as --publish 3001:8080; --publish 0:8080 takes any \
                 that is free"
            }
            Self::NoDoor => "`lula net list` shows those there are",
            Self::Refused(_) => "start the command again with --net",
        }
    }
}
