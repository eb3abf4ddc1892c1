//! Why the log cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use lula_files::PrivateFileError;
use lula_protocol::canonical::CanonicalError;

/// Why the log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A file cannot be read or written.
    #[error("the audit log cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The key file cannot be used: others can read it, or it is not a file of our own.
    #[error("the key file {} cannot be used: {source}", path.display())]
    Key {
        path: PathBuf,
        source: PrivateFileError,
    },
    /// A key that is none.
    #[error("{0} does not hold a key: expected hexadecimal digits")]
    NotAKey(String),
    /// The end of the log is not an entry, so nothing can follow it.
    #[error("the last line of {} is not an entry: `lula audit verify` shows what happened to it", path.display())]
    Damaged { path: PathBuf },
    /// An entry has no canonical bytes.
    #[error("an audit entry cannot be encoded: {0}")]
    Canonical(#[from] CanonicalError),
    /// A file that is no bundle.
    #[error("it is not an exported audit log: {0}")]
    NotABundle(String),
}

impl AuditError {
    pub(crate) fn key(path: &Path) -> impl Fn(PrivateFileError) -> Self {
        let path = path.to_owned();
        move |source| Self::Key {
            path: path.clone(),
            source,
        }
    }

    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            path: path.clone(),
            source,
        }
    }
}
