//! Why there is no environment.

use std::io;
use std::path::{Path, PathBuf};

use lula_protocol::canonical::CanonicalError;
use lula_sandbox::SandboxError;
use lula_workspace::checkout::CheckoutError;

/// Why an environment was not made, or is not found.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A command of the recipe failed, and so did what was to be run instead.
    #[error("step {number} of {of} failed: {line}")]
    Step {
        number: usize,
        of: usize,
        line: String,
        /// The end of what it printed.
        tail: String,
        /// What it was denied on the way.
        denied: Vec<String>,
        /// Where everything that was printed is.
        log: PathBuf,
    },
    /// The sandbox refuses, or broke.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The checkout cannot be read as a build needs it.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// What goes into an environment has no digest.
    #[error(transparent)]
    Digest(#[from] CanonicalError),
    /// The operating system said no.
    #[error("cannot use {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// No environment has that name.
    #[error("there is no environment {0:?}")]
    Unknown(String),
    /// An environment was named that was made for another place.
    #[error("environment {name} was made for {place}")]
    ElsewhereMade { name: String, place: String },
    /// A file is no exported environment.
    #[error("{path} is no exported environment: {why}")]
    NotExported { path: PathBuf, why: String },
}

impl EnvironmentError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}
