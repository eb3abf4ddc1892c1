//! Connections to services: TCP, and TLS over it with the certificates that this machine trusts.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::client::HttpError;
use crate::url::ServiceUrl;

pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

/// How this machine opens TLS. The certificates are read once: a process that locks itself out of files
/// makes it before.
pub(crate) fn trusted() -> Result<TlsConnector, HttpError> {
    let unfit = |error: &dyn std::fmt::Display| HttpError::Tls(error.to_string());
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unfit(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

pub(crate) async fn connect(
    url: &ServiceUrl,
    tls: &TlsConnector,
) -> Result<Box<dyn ByteStream>, HttpError> {
    let failed = |error: &dyn std::fmt::Display| HttpError::Unreachable {
        url: url.to_string(),
        why: error.to_string(),
    };
    let stream = TcpStream::connect((url.host(), url.port())).await;
    let stream = stream.map_err(|error| failed(&error))?;
    let _ = stream.set_nodelay(true);
    if !url.is_secure() {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(url.host().to_owned()).map_err(|error| failed(&error))?;
    let stream = tls.connect(name, stream).await;
    Ok(Box::new(stream.map_err(|error| failed(&error))?))
}
