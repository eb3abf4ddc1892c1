//! Signatures over logs.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use lula_protocol::digest::DigestDomain;
use lula_protocol::{Digest, EventBody};

/// What a seal signs: the digest of the entry before it, in a domain of its own.
fn signed(previous: &Digest) -> Digest {
    Digest::of_canonical(DigestDomain::Seal, &[previous.as_bytes()])
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// A public key as it is written in seals.
pub fn public_key(key: &SigningKey) -> String {
    hex(key.verifying_key().as_bytes())
}

/// The event that vouches for everything up to `previous`.
pub(crate) fn seal(key: &SigningKey, previous: &Digest) -> EventBody {
    let signature = key.sign(signed(previous).as_bytes());
    EventBody::Sealed {
        key: public_key(key),
        signature: hex(&signature.to_bytes()),
    }
}

/// Whether a seal's signature is its key's, over `previous`. Whose key it is, the caller has to
/// know.
pub fn verify_seal(key: &str, signature: &str, previous: &Digest) -> bool {
    let (Some(key), Some(signature)) = (unhex::<32>(key), unhex::<64>(signature)) else {
        return false;
    };
    let Ok(key) = VerifyingKey::from_bytes(&key) else {
        return false;
    };
    key.verify_strict(
        signed(previous).as_bytes(),
        &Signature::from_bytes(&signature),
    )
    .is_ok()
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    hex(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_for_one_digest_and_one_key() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let head = Digest::of_bytes(b"head");
        let EventBody::Sealed {
            key: public,
            signature,
        } = seal(&key, &head)
        else {
            panic!("not a seal");
        };
        assert!(verify_seal(&public, &signature, &head));
        assert!(!verify_seal(
            &public,
            &signature,
            &Digest::of_bytes(b"other")
        ));
        let other = public_key(&SigningKey::from_bytes(&[8; 32]));
        assert!(!verify_seal(&other, &signature, &head));
        assert!(!verify_seal(&public, "zz", &head));
        assert!(!verify_seal("é", &signature, &head));
    }
}
