//! Encrypted connections to Postgres, and what an address says about them.
//!
//! It stands on the TLS stack that is there already; the usual crate brings a second cryptography
//! library. The server's certificate is verified, also under `sslmode=require`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use super::failed;
use crate::error::{StoreError, StoreResult};
use crate::transport::{ServerTransport, is_loopback};

/// What is to be done about encryption, as an address spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncryptionMode {
    Nothing,
    Clear,
    Verified,
}

/// Takes `sslmode` out of an address: the driver does not know every word of it.
fn take_mode(url: &str) -> StoreResult<(String, EncryptionMode)> {
    let Some((place, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), EncryptionMode::Nothing));
    };
    let mut asked = EncryptionMode::Nothing;
    let mut kept = Vec::new();
    for pair in query.split('&') {
        let Some(mode) = pair.strip_prefix("sslmode=") else {
            kept.push(pair);
            continue;
        };
        asked = match mode {
            "disable" => EncryptionMode::Clear,
            "require" | "verify-ca" | "verify-full" => EncryptionMode::Verified,
            other => {
                return Err(StoreError::Insecure(format!(
                    "sslmode={other} leaves it to the network whether the store is spoken to in \
                     clear: say sslmode=verify-full or sslmode=disable"
                )));
            }
        };
    }
    let url = if kept.is_empty() {
        place.to_owned()
    } else {
        format!("{place}?{}", kept.join("&"))
    };
    Ok((url, asked))
}

fn is_here(config: &Config) -> bool {
    let here = |host: &Host| match host {
        Host::Tcp(name) => is_loopback(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    // An address beside a name says where the connection really goes.
    let addresses = config.get_hostaddrs();
    if addresses.is_empty() {
        config.get_hosts().iter().all(here)
    } else {
        addresses.iter().all(std::net::IpAddr::is_loopback)
    }
}

/// Reads an address. Another machine is spoken to encrypted unless the address says otherwise.
pub(super) fn read_address(
    url: &str,
    transport: &ServerTransport,
) -> StoreResult<(Config, PostgresTls)> {
    let (url, asked) = take_mode(url)?;
    let mut config: Config = url.parse().map_err(failed)?;
    let here = is_here(&config);
    let encrypted = match asked {
        EncryptionMode::Verified => true,
        EncryptionMode::Clear => false,
        EncryptionMode::Nothing => !here,
    };
    if !encrypted {
        transport.check_cleartext(config.get_password().is_some(), here)?;
        config.ssl_mode(SslMode::Disable);
        return Ok((config, PostgresTls(None)));
    }
    config.ssl_mode(SslMode::Require);
    let mut client = transport.client_config()?;
    client.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok((config, PostgresTls(Some(Arc::new(client)))))
}

/// Makes connections that are encrypted, where that was decided.
#[derive(Clone)]
pub(super) struct PostgresTls(Option<Arc<ClientConfig>>);

/// One connection to a server of this name, which is empty where it is a socket file.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    name: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for PostgresTls {
    type Stream = TlsConnection<S>;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, domain: &str) -> StoreResult<Handshake, Infallible> {
        Ok(Handshake {
            config: self.0.clone(),
            name: domain.to_owned(),
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = TlsConnection<S>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<TlsConnection<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let config = self.config.ok_or_else(|| {
                std::io::Error::other("encryption was not asked for and is not set up")
            })?;
            let name = ServerName::try_from(self.name).map_err(std::io::Error::other)?;
            let stream = TlsConnector::from(config).connect(name, stream).await?;
            Ok(TlsConnection(stream))
        })
    }
}

/// An encrypted connection, as `tokio_postgres` takes it.
pub(super) struct TlsConnection<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for TlsConnection<S> {
    /// The name and the certificate were verified; a binding would prove the same again.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> StoreResult<SslMode> {
        let told = ServerTransport {
            cleartext_password: false,
            ..ServerTransport::default()
        };
        read_address(url, &told).map(|(config, _)| config.get_ssl_mode())
    }

    #[test]
    fn another_machine_is_spoken_to_encrypted_unless_the_address_says_otherwise() {
        assert_eq!(
            mode("postgres://ada@127.0.0.1/lula").unwrap(),
            SslMode::Disable
        );
        assert_eq!(
            mode("postgres://ada@db.example.com/lula").unwrap(),
            SslMode::Require
        );
        let clear = "postgres://ada@db.example.com/lula?sslmode=disable";
        assert_eq!(mode(clear).unwrap(), SslMode::Disable);
        for word in ["require", "verify-ca", "verify-full"] {
            let url = format!("postgres://ada@127.0.0.1/lula?connect_timeout=5&sslmode={word}");
            assert_eq!(mode(&url).unwrap(), SslMode::Require, "{word}");
        }
        // A name of this machine with an address of another one.
        let elsewhere = "postgres://ada@localhost/lula?hostaddr=192.0.2.1";
        assert_eq!(mode(elsewhere).unwrap(), SslMode::Require);
    }

    #[test]
    fn a_word_that_lets_the_network_decide_is_refused() {
        for word in ["prefer", "allow", ""] {
            let url = format!("postgres://ada@db.example.com/lula?sslmode={word}");
            let refused = mode(&url).unwrap_err().to_string();
            assert!(refused.contains("verify-full"), "{refused}");
        }
    }

    #[test]
    fn a_password_does_not_leave_the_machine_in_clear() {
        let url = "postgres://ada:hunter22@db.example.com/lula?sslmode=disable";
        let refused = mode(url).unwrap_err().to_string();
        assert!(refused.contains("in clear"), "{refused}");
        assert!(!refused.contains("hunter22"), "{refused}");
        mode("postgres://ada:hunter22@127.0.0.1/lula").unwrap();
        mode("postgres://ada:hunter22@db.example.com/lula").unwrap();
    }
}
