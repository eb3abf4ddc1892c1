//! The keys that sign answers: HMAC-SHA256, each with an id, a holder and roles.
//!
//! The file lies in the state directory, readable by its owner only, and is made on first use. A
//! rotated key still verifies what it signed until it is retired; only the newest one signs.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use lula_files::{FinalLink, PrivateFileError};
use lula_protocol::canonical;
use lula_protocol::{ApprovalChallenge, ApprovalDecision, ApprovalToken, Principal};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Name of the file in the state directory.
pub const FILE_NAME: &str = "approval-keys.json";
/// The role of the user who owns the state directory.
pub const OWNER_ROLE: &str = "owner";
const DOMAIN: &[u8] = b"lula/approval-token/v1\0";
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalKeyError {
    /// The file cannot be read or written: others can read it, or it is not a file of our own.
    #[error("the key file {} cannot be used: {source}", path.display())]
    File {
        path: PathBuf,
        source: PrivateFileError,
    },
    /// The file does not hold keys.
    #[error("the key file {} is damaged: {reason}", path.display())]
    Damaged {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No key may sign for this principal in this role.
    #[error("no key here may sign for {principal} as {role:?}")]
    NoKeyFor {
        /// Who wants to answer.
        principal: Principal,
        /// The role that no key has for them.
        role: String,
    },
    /// There is no such key.
    #[error("there is no key {0:?}")]
    NoSuchKey(String),
    /// The system gave no random bytes.
    #[error("the system has no random bytes for a key")]
    NoRandomness,
    /// The answer has no canonical bytes to sign.
    #[error("the answer cannot be signed: one of its numbers is out of range")]
    Unsignable,
}

/// Why a token is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalTokenError {
    /// Signed with a key that is not known, or one that was retired.
    #[error("the answer is signed with an unknown or retired key")]
    UnknownKey,
    /// The signature is not the key's over these fields.
    #[error("the answer's signature is wrong")]
    BadSignature,
    /// The key speaks for another principal, or not in this role.
    #[error("the key that signed may not answer as {approver} in the role {role:?}")]
    NotTheirs {
        /// Who the token says answered.
        approver: Principal,
        /// The role that the answer claims.
        role: String,
    },
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    id: String,
    secret: String,
    /// For whom it signs; where no principal is named, for `local:UID` principals whose identity the
    /// process holding the key took from peer credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<Principal>,
    roles: Vec<String>,
    #[serde(default)]
    retired: bool,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("id", &self.id)
            .field("principal", &self.principal)
            .field("roles", &self.roles)
            .field("retired", &self.retired)
            .finish_non_exhaustive()
    }
}

impl Key {
    fn speaks_for(&self, principal: &Principal, role: &str) -> bool {
        let theirs = match &self.principal {
            Some(holder) => holder == principal,
            None => principal.as_str().starts_with("local:"),
        };
        theirs && self.roles.iter().any(|held| held == role)
    }

    /// Over every field of the token but the signature itself.
    fn mac(&self, token: &ApprovalToken) -> Option<Hmac<Sha256>> {
        let mut unsigned = serde_json::to_value(token).ok()?;
        if let Some(fields) = unsigned.as_object_mut() {
            fields.remove("mac");
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(&unhex(&self.secret)?).ok()?;
        mac.update(DOMAIN);
        mac.update(&canonical::to_vec(&unsigned).ok()?);
        Some(mac)
    }
}

/// What may be told about a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalKeyView {
    pub id: String,
    /// For whom it signs; where no principal is named, for the owner of the state directory.
    pub principal: Option<Principal>,
    /// The roles in which it may sign.
    pub roles: Vec<String>,
    /// Whether it no longer counts.
    pub retired: bool,
}

/// Every key of a state directory.
#[derive(Debug, Clone)]
pub struct ApprovalKeyring {
    path: PathBuf,
    keys: Vec<Key>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    keys: Vec<Key>,
}

impl ApprovalKeyring {
    /// The keys of a state directory; a first one is made where there are none.
    pub fn open(state_directory: &Path) -> Result<Self, ApprovalKeyError> {
        let path = state_directory.join(FILE_NAME);
        if let Some(keys) = read(&path)? {
            return Ok(Self { path, keys });
        }
        let ring = Self {
            path,
            keys: vec![new_key(None, vec![OWNER_ROLE.to_owned()])?],
        };
        // Of two first users one wins, and both read the winner's key.
        ring.create()?;
        Self::from_file(&ring.path)
    }

    /// Adds a newer key with the holder and roles of the newest local one and signs with it from
    /// now on. Returns its id.
    pub fn rotate(&mut self) -> Result<String, ApprovalKeyError> {
        self.add(None, vec![OWNER_ROLE.to_owned()])
    }

    /// Adds a key for a named principal. Returns its id.
    pub fn add_for(
        &mut self,
        principal: Principal,
        roles: Vec<String>,
    ) -> Result<String, ApprovalKeyError> {
        self.add(Some(principal), roles)
    }

    fn add(
        &mut self,
        principal: Option<Principal>,
        roles: Vec<String>,
    ) -> Result<String, ApprovalKeyError> {
        let key = new_key(principal, roles)?;
        let id = key.id.clone();
        self.keys.push(key);
        self.save()?;
        Ok(id)
    }

    /// Writes one key into a private file of its own, for the person it is for.
    pub fn hand_out(&self, id: &str, file: &Path) -> Result<(), ApprovalKeyError> {
        let key = self.keys.iter().find(|key| key.id == id);
        let key = key.ok_or_else(|| ApprovalKeyError::NoSuchKey(id.to_owned()))?;
        let one = Self {
            path: file.to_owned(),
            keys: vec![key.clone()],
        };
        if one.create()? {
            return Ok(());
        }
        let source = PrivateFileError::Io(io::ErrorKind::AlreadyExists.into());
        Err(unusable(file)(source))
    }

    /// The keys in a file that was handed out.
    pub fn from_file(file: &Path) -> Result<Self, ApprovalKeyError> {
        let keys = read(file)?
            .ok_or_else(|| unusable(file)(PrivateFileError::Io(io::ErrorKind::NotFound.into())))?;
        Ok(Self {
            path: file.to_owned(),
            keys,
        })
    }

    /// Every key, the oldest first. No secret is among what is told.
    pub fn listed(&self) -> Vec<ApprovalKeyView> {
        self.keys
            .iter()
            .map(|key| ApprovalKeyView {
                id: key.id.clone(),
                principal: key.principal.clone(),
                roles: key.roles.clone(),
                retired: key.retired,
            })
            .collect()
    }

    /// Makes a key worthless: what it signed no longer counts.
    pub fn retire(&mut self, id: &str) -> Result<(), ApprovalKeyError> {
        let key = self.keys.iter_mut().find(|key| key.id == id);
        key.ok_or_else(|| ApprovalKeyError::NoSuchKey(id.to_owned()))?
            .retired = true;
        self.save()
    }

    /// Signs an answer with the newest key that may. The caller vouches for the approver's identity.
    pub fn sign(
        &self,
        challenge: &ApprovalChallenge,
        approver: &Principal,
        role: &str,
        decision: ApprovalDecision,
    ) -> Result<ApprovalToken, ApprovalKeyError> {
        let may = |key: &&Key| !key.retired && key.speaks_for(approver, role);
        let key = self
            .keys
            .iter()
            .rev()
            .find(may)
            .ok_or_else(|| ApprovalKeyError::NoKeyFor {
                principal: approver.clone(),
                role: role.to_owned(),
            })?;
        let mut token = ApprovalToken {
            id: challenge.id.clone(),
            digest: challenge.digest,
            approver: approver.clone(),
            role: role.to_owned(),
            decision,
            nonce: challenge.nonce.clone(),
            expires_ms: challenge.expires_ms,
            key_id: key.id.clone(),
            mac: String::new(),
        };
        let mac = key.mac(&token).ok_or(ApprovalKeyError::Unsignable)?;
        token.mac = hex(&mac.finalize().into_bytes());
        Ok(token)
    }

    /// Whether a token is what it says it is: compared in constant time.
    pub fn verify(&self, token: &ApprovalToken) -> Result<(), ApprovalTokenError> {
        let key = self
            .keys
            .iter()
            .find(|key| key.id == token.key_id && !key.retired)
            .ok_or(ApprovalTokenError::UnknownKey)?;
        let given = unhex(&token.mac).ok_or(ApprovalTokenError::BadSignature)?;
        key.mac(token)
            .ok_or(ApprovalTokenError::BadSignature)?
            .verify_slice(&given)
            .map_err(|_| ApprovalTokenError::BadSignature)?;
        if key.speaks_for(&token.approver, &token.role) {
            Ok(())
        } else {
            Err(ApprovalTokenError::NotTheirs {
                approver: token.approver.clone(),
                role: token.role.clone(),
            })
        }
    }

    fn save(&self) -> Result<(), ApprovalKeyError> {
        lula_files::replace_private(&self.path, &self.text()?).map_err(unusable(&self.path))
    }

    /// Writes the file where there is none, and says whether it did.
    fn create(&self) -> Result<bool, ApprovalKeyError> {
        let unusable = unusable(&self.path);
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(|error| unusable(error.into()))?;
        }
        lula_files::create_private(&self.path, &self.text()?).map_err(unusable)
    }

    fn text(&self) -> Result<Vec<u8>, ApprovalKeyError> {
        let file = KeyFile {
            keys: self.keys.clone(),
        };
        serde_json::to_vec_pretty(&file).map_err(|error| ApprovalKeyError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        })
    }
}

fn unusable(path: &Path) -> impl Fn(PrivateFileError) -> ApprovalKeyError {
    let path = path.to_owned();
    move |source| ApprovalKeyError::File {
        path: path.clone(),
        source,
    }
}

fn new_key(principal: Option<Principal>, roles: Vec<String>) -> Result<Key, ApprovalKeyError> {
    let mut random = [0; 40];
    getrandom::fill(&mut random).map_err(|_| ApprovalKeyError::NoRandomness)?;
    Ok(Key {
        id: format!("k_{}", hex(&random[..8])),
        secret: hex(&random[8..]),
        principal,
        roles,
        retired: false,
    })
}

fn read(path: &Path) -> Result<Option<Vec<Key>>, ApprovalKeyError> {
    let damaged = |reason: String| ApprovalKeyError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let bytes = lula_files::read_private(path, MAX_FILE_BYTES, FinalLink::Refused)
        .map_err(unusable(path))?;
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let file: KeyFile =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if file.keys.is_empty() {
        return Err(damaged("it holds no key".to_owned()));
    }
    // A short secret would be an easy one.
    if let Some(key) = file
        .keys
        .iter()
        .find(|key| unhex(&key.secret).is_none_or(|secret| secret.len() < 32))
    {
        return Err(damaged(format!(
            "the secret of key {} is not one of ours",
            key.id
        )));
    }
    Ok(Some(file.keys))
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Lower case only: one value has one spelling.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}
