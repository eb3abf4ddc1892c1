//! The public keys of an issuer: read when the server starts, again and again while it runs, and once more
//! where a token names a key that is not known. Keys that could not be read again for a while count for
//! nothing: an issuer that took a key back may be what cannot be reached.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use lula_files::{FinalLink, read_regular};
use lula_http::header::{ACCEPT, HeaderValue};
use lula_http::{HeaderMap, HttpClient, HttpRequest, Method, ServiceUrl, StatusCode};
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
    Url(ServiceUrl),
}

impl KeySource {
    /// A file, or a URL that is safe to be believed.
    pub(super) fn of(place: &str) -> Result<Self, String> {
        if !place.contains("://") {
            return Ok(Self::File(place.into()));
        }
        let url = ServiceUrl::private(place).map_err(|error| error.to_string())?;
        Ok(Self::Url(url))
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
            Self::Url(url) => fetch(url).await?,
        };
        let set: JwkSet = serde_json::from_slice(&bytes)
            .map_err(|error| format!("what is there is no key set: {error}"))?;
        Ok(set.keys)
    }
}

/// One request, without following where it may lead.
async fn fetch(url: &ServiceUrl) -> Result<Bytes, String> {
    let client = HttpClient::new().map_err(|error| error.to_string())?;
    let request = HttpRequest {
        method: Method::GET,
        url,
        path: "",
        headers: HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]),
        body: Bytes::new(),
        within: WITHIN,
        most: MOST,
    };
    let answer = client.send(request).await;
    let answer = answer.map_err(|error| format!("the issuer: {error}"))?;
    if answer.status != StatusCode::OK {
        return Err(format!("the issuer answers with {}", answer.status));
    }
    Ok(answer.body)
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
