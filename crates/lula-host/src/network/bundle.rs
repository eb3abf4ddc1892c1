//! The certificates that programs inside trust: those of this machine, and the authority of their door.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lula_sandbox::CERTIFICATES_INSIDE;
use tempfile::NamedTempFile;

use crate::error::HostError;

/// Where systems keep theirs in one file.
const OF_SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// Variables by which programs are told where certificates are.
const VARIABLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
];

/// A file of certificates for one sandbox. It is gone with this value.
#[derive(Debug)]
pub(super) struct TrustBundle {
    file: NamedTempFile,
}

impl TrustBundle {
    /// One with the certificates of this machine.
    pub(super) fn new(directory: &Path) -> Result<Self, HostError> {
        let failed = |error| HostError::File {
            path: directory.to_owned(),
            error,
        };
        let mut file = NamedTempFile::with_suffix_in(".pem", directory).map_err(failed)?;
        let own = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        let mut places = own.into_iter().chain(OF_SYSTEM.map(PathBuf::from));
        if let Some(text) = places.find_map(|path| std::fs::read(path).ok()) {
            file.write_all(&text).map_err(failed)?;
        }
        // It holds no secret, and the sandbox has another user.
        let readable = Permissions::from_mode(0o644);
        file.as_file().set_permissions(readable).map_err(failed)?;
        Ok(Self { file })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Adds a certificate. The file is the same as before, wherever it is shown.
    pub(super) fn add(&mut self, pem: &str) -> std::io::Result<()> {
        self.file.write_all(b"\n")?;
        self.file.write_all(pem.as_bytes())?;
        self.file.flush()
    }

    /// Variables that lead programs to it inside.
    pub(super) fn variables() -> BTreeMap<String, String> {
        let inside = || CERTIFICATES_INSIDE.to_owned();
        VARIABLES.map(|name| (name.to_owned(), inside())).into()
    }
}
