//! The certificates that programs inside trust: those of this machine, and the authority of their door.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lula_egress::java_trust_store;
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

/// The certificates for one sandbox, in a file for most programs and in one for Java. They are gone with this
/// value.
#[derive(Debug)]
pub(super) struct TrustBundle {
    pem: String,
    file: NamedTempFile,
    java: NamedTempFile,
}

impl TrustBundle {
    /// One with the certificates of this machine.
    pub(super) fn new(directory: &Path) -> Result<Self, HostError> {
        let failed = |error| HostError::File {
            path: directory.to_owned(),
            error,
        };
        let own = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        let mut places = own.into_iter().chain(OF_SYSTEM.map(PathBuf::from));
        let text = places.find_map(|path| std::fs::read(path).ok());
        let pem = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let made = |suffix| {
            let file = NamedTempFile::with_suffix_in(suffix, directory)?;
            // It holds no secret, and the sandbox has another user.
            let readable = Permissions::from_mode(0o644);
            file.as_file().set_permissions(readable)?;
            Ok(file)
        };
        let mut bundle = Self {
            file: made(".pem").map_err(failed)?,
            java: made(".jks").map_err(failed)?,
            pem,
        };
        bundle.write().map_err(failed)?;
        Ok(bundle)
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where this machine has no certificates of its own that we can read, Java's are left as they are.
    pub(super) fn java_path(&self) -> Option<&Path> {
        (!self.pem.is_empty()).then(|| self.java.path())
    }

    /// Adds a certificate. The files are the same as before, wherever they are shown.
    pub(super) fn add(&mut self, pem: &str) -> io::Result<()> {
        self.pem.push('\n');
        self.pem.push_str(pem);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        // Neither ever becomes shorter.
        self.file.rewind()?;
        self.file.write_all(self.pem.as_bytes())?;
        self.java.rewind()?;
        self.java.write_all(&java_trust_store(&self.pem))
    }

    /// Variables that lead programs to it inside.
    pub(super) fn variables() -> BTreeMap<String, String> {
        let inside = || CERTIFICATES_INSIDE.to_owned();
        VARIABLES.map(|name| (name.to_owned(), inside())).into()
    }
}
