//! How a server on the network is spoken to: encrypted, and only to who it says it is.
//!
//! A server that is encrypted to is also verified, certificate and name: encryption to an unknown end
//! keeps nothing from an attacker in between.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::{StoreError, StoreResult};

/// How a server is spoken to.
#[derive(Debug, Clone, Default)]
pub struct ServerTransport {
    /// A file with certificates (PEM) of the authorities to trust instead of the machine's.
    pub ca: Option<PathBuf>,
    /// Send a password in clear to another machine all the same.
    pub cleartext_password: bool,
}

impl ServerTransport {
    /// Refuses to show a password to everybody on the way.
    pub(crate) fn check_cleartext(&self, has_password: bool, is_here: bool) -> StoreResult<()> {
        if !has_password || is_here || self.cleartext_password {
            return Ok(());
        }
        Err(StoreError::Insecure(
            "the password of the store would go over the network in clear: use TLS (rediss:// \
             for Redis, sslmode=verify-full for Postgres), or set store.cleartext_password = \"yes\""
                .to_owned(),
        ))
    }

    /// Trust in the given authorities, or in those of the machine.
    pub(crate) fn client_config(&self) -> StoreResult<ClientConfig> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &self.ca {
            for certificate in read_certificates(path)? {
                roots
                    .add(certificate)
                    .map_err(|error| unusable(path, &error))?;
            }
        } else {
            // One that cannot be read is one that is not trusted.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
        if roots.is_empty() {
            return Err(StoreError::Insecure(
                "this machine trusts no certificate authority: name a file of certificates in \
                 store.ca"
                    .to_owned(),
            ));
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::Insecure(error.to_string()))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }

    /// The bytes of the file of authorities.
    pub(crate) fn ca_bytes(&self) -> StoreResult<Option<Vec<u8>>> {
        let Some(path) = &self.ca else {
            return Ok(None);
        };
        // Read as certificates first, so that a wrong file is named before a connection is tried.
        read_certificates(path)?;
        let bytes = std::fs::read(path).map_err(|error| unusable(path, &error))?;
        Ok(Some(bytes))
    }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Insecure(format!(
        "{} (store.ca) cannot be used: {error}",
        path.display()
    ))
}

fn read_certificates(path: &Path) -> StoreResult<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, &error))?;
    let certificates: Vec<_> = read
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| unusable(path, &error))?;
    if certificates.is_empty() {
        return Err(unusable(path, &"there is no certificate in it"));
    }
    Ok(certificates)
}

/// Whether a host is this machine, so that nothing crosses a network.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_in_clear_only_where_nobody_listens_or_somebody_insists() {
        let strict = ServerTransport::default();
        strict.check_cleartext(true, true).unwrap();
        strict.check_cleartext(false, false).unwrap();
        let refused = strict.check_cleartext(true, false).unwrap_err().to_string();
        assert!(refused.contains("store.cleartext_password"), "{refused}");
        let told = ServerTransport {
            cleartext_password: true,
            ..ServerTransport::default()
        };
        told.check_cleartext(true, false).unwrap();
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for here in [
            "localhost",
            "LOCALHOST",
            "127.0.0.1",
            "127.8.9.1",
            "::1",
            "[::1]",
        ] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in [
            "db.example.com",
            "10.0.0.1",
            "localhost.example.com",
            "0.0.0.0",
            "",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn a_file_that_holds_no_certificate_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let transport = ServerTransport {
            ca: Some(path.clone()),
            ..ServerTransport::default()
        };
        let missing = transport.client_config().unwrap_err().to_string();
        assert!(missing.contains("ca.pem"), "{missing}");
        std::fs::write(&path, "nothing").unwrap();
        let empty = transport.ca_bytes().unwrap_err().to_string();
        assert!(empty.contains("no certificate"), "{empty}");
    }
}
