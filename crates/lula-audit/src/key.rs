//! The key that seals the log.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use lula_files::{PrivateFileError, private_or_new};
use lula_protocol::Digest;
use lula_protocol::digest::DigestDomain;

use crate::error::AuditError;

const FILE_NAME: &str = "seal.key";
const PUBLIC_NAME: &str = "seal.pub";
const MAX_FILE_BYTES: u64 = 1024;

/// The private half. Never printed.
pub struct AuditSealKey(SigningKey);

impl fmt::Debug for AuditSealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SealKey").field(&self.public()).finish()
    }
}

/// The public half, written as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPublicKey(String);

impl fmt::Display for AuditPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AuditPublicKey {
    type Err = AuditError;
    fn from_str(text: &str) -> Result<Self, AuditError> {
        let text = text.trim();
        unhex::<32>(text)
            .and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok())
            .map(|_| Self(text.to_owned()))
            .ok_or_else(|| AuditError::NotAKey(text.chars().take(80).collect()))
    }
}

/// What a seal signs: its place and everything before it.
fn signed(seq: u64, previous: &Digest) -> Digest {
    Digest::of_canonical(
        DigestDomain::Seal,
        &[b"audit\0", &seq.to_be_bytes(), previous.as_bytes()],
    )
}

impl AuditSealKey {
    /// The key of a directory, made on first use, readable by its owner only.
    pub fn open(directory: &Path) -> Result<Self, AuditError> {
        let path = directory.join(FILE_NAME);
        let bytes = private_or_new(&path, MAX_FILE_BYTES, || {
            let mut seed = [0; 32];
            getrandom::fill(&mut seed).map_err(|_| PrivateFileError::NoRandomness)?;
            Ok(hex(&seed).into_bytes())
        })
        .map_err(AuditError::key(&path))?;
        let text = String::from_utf8_lossy(&bytes);
        let seed = unhex::<32>(text.trim())
            .ok_or_else(|| AuditError::NotAKey(path.display().to_string()))?;
        let key = Self(SigningKey::from_bytes(&seed));
        let public = directory.join(PUBLIC_NAME);
        if !public.exists() {
            fs::write(&public, format!("{}\n", key.public())).map_err(AuditError::io(&public))?;
        }
        Ok(key)
    }

    pub fn public(&self) -> AuditPublicKey {
        AuditPublicKey(hex(self.0.verifying_key().as_bytes()))
    }

    pub(crate) fn sign(&self, seq: u64, previous: &Digest) -> String {
        hex(&self.0.sign(signed(seq, previous).as_bytes()).to_bytes())
    }
}

impl AuditPublicKey {
    /// The public key of a directory, where it has one.
    pub fn of(directory: &Path) -> Result<Option<Self>, AuditError> {
        let path = directory.join(PUBLIC_NAME);
        match fs::read_to_string(&path) {
            Ok(text) => text.parse().map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AuditError::io(&path)(error)),
        }
    }

    pub(crate) fn verifies(&self, signature: &str, seq: u64, previous: &Digest) -> bool {
        let key = unhex::<32>(&self.0).and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok());
        let (Some(key), Some(signature)) = (key, unhex::<64>(signature)) else {
            return false;
        };
        key.verify_strict(
            signed(seq, previous).as_bytes(),
            &Signature::from_bytes(&signature),
        )
        .is_ok()
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Lower case only: one value has one spelling.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
