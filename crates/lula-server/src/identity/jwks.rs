//! The public keys of an issuer: read when the server starts, again and again while it runs, and once more
//! where a token names a key that is not known. Keys that could not be read again for a while count for
//! nothing: an issuer that took a key back may be what cannot be reached.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use lula_files::{FinalLink, read_regular};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How often the keys are read again.
const EVERY: Duration = Duration::from_mins(5);
/// Keys that are older count for nothing.
const OLDEST: Duration = Duration::from_mins(15);
/// A token that names an unknown key has them read again, but not more often than this.
const UNKNOWN_EVERY: Duration = Duration::from_secs(10);
/// How long reading them may take.
const WITHIN: Duration = Duration::from_secs(5);
/// Longest set of keys, in bytes.
const MOST: usize = 256 << 10;

/// Where keys are read from.
#[derive(Debug, Clone)]
pub(super) enum KeySource {
    File(PathBuf),
    Url(Uri),
}

trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

impl KeySource {
    /// A file, or a URL that is safe to be believed.
    pub(super) fn of(place: &str) -> Result<Self, String> {
        if !place.contains("://") {
            return Ok(Self::File(place.into()));
        }
        let url: Uri = place.parse().map_err(|_| format!("{place:?} is no URL"))?;
        let host = url.host().unwrap_or_default();
        let near = ["127.0.0.1", "[::1]", "localhost"].contains(&host);
        match url.scheme_str() {
            Some("https") => Ok(Self::Url(url)),
            Some("http") if near => Ok(Self::Url(url)),
            _ => Err("keys are read over https, or over http from this machine".to_owned()),
        }
    }

    async fn read(&self) -> Result<Vec<Jwk>, String> {
        let bytes = match self {
            Self::File(path) => {
                let path = path.clone();
                let read = move || read_regular(&path, MOST as u64, FinalLink::Followed);
                let read = tokio::task::spawn_blocking(read).await;
                let read = read.map_err(|error| error.to_string())?;
                let read = read.map_err(|error| error.to_string())?;
                Bytes::from(read.ok_or("there is no such file")?)
            }
            Self::Url(url) => tokio::time::timeout(WITHIN, fetch(url))
                .await
                .map_err(|_| "the issuer does not answer".to_owned())??,
        };
        let set: JwkSet = serde_json::from_slice(&bytes)
            .map_err(|error| format!("what is there is no key set: {error}"))?;
        Ok(set.keys)
    }
}

async fn connect(url: &Uri) -> Result<Box<dyn ByteStream>, String> {
    let text = |error: &dyn std::fmt::Display| format!("the issuer cannot be reached: {error}");
    let secure = url.scheme_str() == Some("https");
    let host = url.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let stream = TcpStream::connect((bare, port)).await;
    let stream = stream.map_err(|error| text(&error))?;
    if !secure {
        return Ok(Box::new(stream));
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| text(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(bare.to_owned()).map_err(|error| text(&error))?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await;
    Ok(Box::new(stream.map_err(|error| text(&error))?))
}

/// One request, without following where it may lead.
async fn fetch(url: &Uri) -> Result<Bytes, String> {
    let text = |error: &dyn std::fmt::Display| format!("the issuer does not answer: {error}");
    let io = TokioIo::new(connect(url).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io)
        .await
        .map_err(|error| text(&error))?;
    let connection = tokio::spawn(connection);
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    let host = url.authority().map_or("", |authority| authority.as_str());
    let request = Request::get(path)
        .header(hyper::header::HOST, host)
        .header(hyper::header::ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|error| text(&error))?;
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| text(&error))?;
    if response.status() != hyper::StatusCode::OK {
        return Err(format!("the issuer answers with {}", response.status()));
    }
    let body = Limited::new(response.into_body(), MOST).collect().await;
    let body = body.map_err(|error| text(&error))?.to_bytes();
    connection.abort();
    Ok(body)
}

struct ReadKeys {
    keys: Arc<Vec<Jwk>>,
    at: Instant,
}

/// Keys that are kept fresh.
pub(super) struct KeySet {
    source: KeySource,
    read: RwLock<ReadKeys>,
    /// When a token last had them read.
    asked: Mutex<Option<Instant>>,
}

impl KeySet {
    /// Reads the keys. Refused where they cannot be read: the server would take no token.
    pub(super) async fn open(source: KeySource) -> Result<Arc<Self>, String> {
        let keys = source.read().await?;
        let set = Arc::new(Self {
            source,
            read: RwLock::new(ReadKeys {
                keys: Arc::new(keys),
                at: Instant::now(),
            }),
            asked: Mutex::new(None),
        });
        let kept = Arc::downgrade(&set);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                let Some(set) = kept.upgrade() else { return };
                set.refresh().await;
            }
        });
        Ok(set)
    }

    /// The keys, where they are fresh enough to be believed.
    pub(super) fn now(&self) -> Option<Arc<Vec<Jwk>>> {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        (read.at.elapsed() < OLDEST).then(|| Arc::clone(&read.keys))
    }

    /// Reads them again, unless a token had that done a moment ago.
    pub(super) async fn look_again(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at.elapsed() < UNKNOWN_EVERY) {
            return;
        }
        *asked = Some(Instant::now());
        self.refresh().await;
    }

    async fn refresh(&self) {
        match self.source.read().await {
            Ok(keys) => {
                let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
                *read = ReadKeys {
                    keys: Arc::new(keys),
                    at: Instant::now(),
                };
            }
            Err(why) => tracing::warn!(why, "the keys of the issuer could not be read again"),
        }
    }

    #[cfg(test)]
    pub(super) fn age(&self, by: Duration) {
        let mut read = self.read.write().unwrap();
        read.at = read.at.checked_sub(by).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_https_or_from_this_machine() {
        for good in [
            "/etc/lula/keys.json",
            "https://id.example.org/keys",
            "http://127.0.0.1:8000/keys",
            "http://[::1]/keys",
        ] {
            assert!(KeySource::of(good).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example.org/keys",
            "http://127.0.0.1.example.org/keys",
            "ftp://127.0.0.1/keys",
            "https://",
        ] {
            assert!(KeySource::of(bad).is_err(), "{bad}");
        }
    }
}
