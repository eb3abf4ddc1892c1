//! Bearer keys as they are kept: names, roles, and digests of secrets. A secret is shown once, when it is
//! made, and is nowhere afterwards.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lula_files::{FinalLink, PrivateFileError, read_private, replace_private};
use lula_protocol::{Code, Digest, FailureReport, Principal, RunExit};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ServerRole;

/// How every key begins: scanners for secrets know it by that.
pub const PREFIX: &str = "lula_";
/// The file of the keys, in the state directory.
pub(super) const FILE: &str = "server-keys.json";
/// Longest file of keys.
pub(super) const MOST: u64 = 1 << 20;
const SECRET_BYTES: usize = 32;
const ID_BYTES: usize = 9;

/// What a key lets do, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerKey {
    /// Names the key, also in the token.
    pub id: String,
    /// The person or program that holds it.
    pub principal: Principal,
    pub roles: BTreeSet<ServerRole>,
    /// The roles of approval rules in which its holder answers.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub votes_as: BTreeSet<String>,
    /// The repositories it is good for; all where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repositories: Option<BTreeSet<String>>,
    /// Unix time in milliseconds.
    pub made_ms: u64,
    /// Unix time in milliseconds from which it counts for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Whether it was taken back.
    #[serde(default)]
    pub revoked: bool,
    /// Digest of the secret.
    pub(super) digest: Digest,
}

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct ServerKeyRequest {
    pub principal: Principal,
    pub roles: Vec<ServerRole>,
    /// The roles of approval rules in which its holder answers.
    pub votes_as: Vec<String>,
    /// The repositories it is good for; all where none is named.
    pub repositories: Vec<String>,
    /// How long it counts; until it is revoked where nothing is said.
    pub expires: Option<Duration>,
}

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerKeyError {
    /// The file cannot be read or written safely.
    #[error("the keys in {} cannot be used: {why}", path.display())]
    File { path: PathBuf, why: String },
    /// No key has that id.
    #[error("no key has the id {0:?}")]
    NoSuchKey(String),
    /// The machine gives no random numbers.
    #[error("this machine gives no random numbers")]
    NoRandomness,
    /// Such a key would open nothing, or too much.
    #[error("{0}")]
    Refused(&'static str),
}

impl From<ServerKeyError> for FailureReport {
    fn from(error: ServerKeyError) -> Self {
        let (code, exit) = match error {
            ServerKeyError::NoSuchKey(_) => (Code::NothingThere, RunExit::Usage),
            ServerKeyError::Refused(_) => (Code::BadCommandLine, RunExit::Usage),
            _ => (Code::KeysUnusable, RunExit::Environment),
        };
        Self {
            code,
            message: error.to_string(),
            place: None,
            remedy: Some("`lula server keys list` shows those there are".to_owned()),
            exit,
        }
    }
}

/// The keys of a server.
#[derive(Debug)]
pub struct ServerKeys {
    path: PathBuf,
    keys: Vec<ServerKey>,
}

/// The secret of a token, as a digest can be taken of it.
pub(super) fn digest(secret: &str) -> Digest {
    Digest::of_bytes(secret.as_bytes())
}

/// A token's id and secret.
pub(super) fn parts(token: &str) -> Option<(&str, &str)> {
    token.strip_prefix(PREFIX)?.split_once('.')
}

pub(super) fn read(path: &Path) -> Result<Vec<ServerKey>, ServerKeyError> {
    let unusable = |why: String| ServerKeyError::File {
        path: path.to_owned(),
        why,
    };
    let bytes = read_private(path, MOST, FinalLink::Refused);
    let bytes = bytes.map_err(|error: PrivateFileError| unusable(error.to_string()))?;
    match bytes {
        None => Ok(Vec::new()),
        Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string())),
    }
}

fn random(count: usize) -> Result<String, ServerKeyError> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(|_| ServerKeyError::NoRandomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

impl ServerKeys {
    /// The keys in a state directory; none where there is no file yet.
    pub fn open(state: &Path) -> Result<Self, ServerKeyError> {
        let path = state.join(FILE);
        let keys = read(&path)?;
        Ok(Self { path, keys })
    }

    /// Every key, also those that count for nothing any more.
    pub fn listed(&self) -> &[ServerKey] {
        &self.keys
    }

    /// The same for programs: everything but the digests.
    pub fn document(&self) -> Value {
        let shown = self.keys.iter().map(|key| {
            json!({
                "id": key.id, "for": key.principal, "roles": key.roles, "votes_as": key.votes_as,
                "repositories": key.repositories, "made_ms": key.made_ms,
                "expires_ms": key.expires_ms, "revoked": key.revoked,
            })
        });
        Value::Array(shown.collect())
    }

    /// Makes a key, and tells it: the only time it can be read.
    pub fn add(&mut self, asked: ServerKeyRequest, now_ms: u64) -> Result<String, ServerKeyError> {
        if asked.roles.is_empty() {
            return Err(ServerKeyError::Refused(
                "a key without a role opens nothing",
            ));
        }
        if asked.principal.as_str().starts_with("local:") {
            let why = "local: names users of this machine, who need no key";
            return Err(ServerKeyError::Refused(why));
        }
        let expires_ms = asked.expires.map(|time| {
            let lasts = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            now_ms.saturating_add(lasts)
        });
        if expires_ms == Some(now_ms) {
            return Err(ServerKeyError::Refused(
                "the key would have expired already",
            ));
        }
        // An id is typed as an argument, and must not begin as a flag does.
        let (id, secret) = (format!("k{}", random(ID_BYTES)?), random(SECRET_BYTES)?);
        self.keys.push(ServerKey {
            id: id.clone(),
            principal: asked.principal,
            roles: asked.roles.into_iter().collect(),
            votes_as: asked.votes_as.into_iter().collect(),
            repositories: (!asked.repositories.is_empty())
                .then(|| asked.repositories.into_iter().collect()),
            made_ms: now_ms,
            expires_ms,
            revoked: false,
            digest: digest(&secret),
        });
        self.save()?;
        Ok(format!("{PREFIX}{id}.{secret}"))
    }

    /// Takes a key back: from here on it opens nothing.
    pub fn revoke(&mut self, id: &str) -> Result<(), ServerKeyError> {
        let key = self.keys.iter_mut().find(|key| key.id == id);
        key.ok_or_else(|| ServerKeyError::NoSuchKey(id.to_owned()))?
            .revoked = true;
        self.save()
    }

    fn save(&self) -> Result<(), ServerKeyError> {
        let unusable = |why: String| ServerKeyError::File {
            path: self.path.clone(),
            why,
        };
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(|error| unusable(error.to_string()))?;
        }
        let text = serde_json::to_vec_pretty(&self.keys);
        let text = text.map_err(|error| unusable(error.to_string()))?;
        replace_private(&self.path, &text).map_err(|error| unusable(error.to_string()))
    }
}
