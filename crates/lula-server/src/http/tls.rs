//! TLS of the server's own: a certificate and its key, read when it starts.

use std::path::Path;
use std::sync::Arc;

use lula_config::{Config, keys};
use lula_files::{FinalLink, read_private, read_regular};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Longest certificate chain or key, in bytes.
const MOST: u64 = 1 << 20;

/// Why the server cannot open TLS.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {why}")]
pub struct TlsSetupError {
    /// The key of the configuration that is wrong.
    pub key: &'static str,
    /// What is wrong with it.
    pub why: String,
}

fn wrong(key: &'static str, why: &dyn std::fmt::Display) -> TlsSetupError {
    TlsSetupError {
        key,
        why: why.to_string(),
    }
}

/// How TLS is opened; nothing where the server speaks plain HTTP.
pub(crate) fn acceptor(config: &Config) -> Result<Option<TlsAcceptor>, TlsSetupError> {
    const CERT: &str = "server.tls_cert";
    const KEY: &str = "server.tls_key";
    let (cert, key) = (
        config.get(&keys::SERVER_TLS_CERT),
        config.get(&keys::SERVER_TLS_KEY),
    );
    match (cert.is_empty(), key.is_empty()) {
        (true, true) => return Ok(None),
        (true, false) => return Err(wrong(CERT, &"server.tls_key is set, and this is not")),
        (false, true) => return Err(wrong(KEY, &"server.tls_cert is set, and this is not")),
        (false, false) => {}
    }
    let missing = |path: &str| format!("there is no file {path}");
    let chain = read_regular(Path::new(&cert), MOST, FinalLink::Followed);
    let chain = chain.map_err(|error| wrong(CERT, &error))?;
    let chain = chain.ok_or_else(|| wrong(CERT, &missing(&cert)))?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&chain)
        .collect::<Result<_, _>>()
        .map_err(|_| wrong(CERT, &"it is no certificate in PEM"))?;
    // A key that others can read is a key that others have.
    let secret = read_private(Path::new(&key), MOST, FinalLink::Followed);
    let secret = secret.map_err(|error| wrong(KEY, &error))?;
    let secret = secret.ok_or_else(|| wrong(KEY, &missing(&key)))?;
    let secret = PrivateKeyDer::from_pem_slice(&secret)
        .map_err(|_| wrong(KEY, &"it is no private key in PEM"))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let setup = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(CERT, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| wrong(CERT, &error))?;
    let mut setup = setup;
    setup.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(setup))))
}
