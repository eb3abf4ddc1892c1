//! How event bodies and blobs lie on disk: one tag byte, then the bytes, compressed where that
//! helps.
//!
//! The dictionary holds the texts that every event repeats. It belongs to its tag for ever: a
//! better one gets another tag.

use std::cell::RefCell;

use lula_protocol::Digest;
use zstd::bulk::{Compressor, Decompressor};

const RAW: u8 = 0;
const ZSTD: u8 = 1;
const DICTIONARY: &[u8] = include_bytes!("body.dict");
const LEVEL: i32 = 1;

/// Largest value that is unpacked: a length field can lie.
pub const MAX_BYTES: usize = 256 << 20;

/// Why bytes cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[error("stored bytes cannot be unpacked: {0}")]
pub struct Unpackable(String);

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Packs bytes. Never fails: what does not compress is kept as it is.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let packed = COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Compressor::with_dictionary(LEVEL, DICTIONARY).ok();
        }
        slot.as_mut()?.compress(bytes).ok()
    });
    match packed {
        Some(packed) if packed.len() + 5 < bytes.len() => {
            let mut out = Vec::with_capacity(packed.len() + 5);
            out.push(ZSTD);
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&packed);
            out
        }
        _ => {
            let mut out = Vec::with_capacity(bytes.len() + 1);
            out.push(RAW);
            out.extend_from_slice(bytes);
            out
        }
    }
}

/// Unpacks bytes.
pub fn unpack(stored: &[u8]) -> Result<Vec<u8>, Unpackable> {
    match stored.split_first() {
        Some((&RAW, bytes)) => Ok(bytes.to_vec()),
        Some((&ZSTD, rest)) => {
            let (length, packed) = rest
                .split_first_chunk::<4>()
                .ok_or_else(|| Unpackable("the length is missing".to_owned()))?;
            let length = u32::from_le_bytes(*length) as usize;
            if length > MAX_BYTES {
                return Err(Unpackable(format!("{length} bytes are claimed")));
            }
            DECOMPRESSOR.with_borrow_mut(|slot| {
                if slot.is_none() {
                    let fresh = Decompressor::with_dictionary(DICTIONARY)
                        .map_err(|error| Unpackable(error.to_string()))?;
                    *slot = Some(fresh);
                }
                let decompressor = slot
                    .as_mut()
                    .ok_or_else(|| Unpackable("no decompressor".to_owned()))?;
                decompressor
                    .decompress(packed, length)
                    .map_err(|error| Unpackable(error.to_string()))
            })
        }
        Some((tag, _)) => Err(Unpackable(format!("tag {tag} is not known"))),
        None => Err(Unpackable("there are none".to_owned())),
    }
}

/// Unpacks a blob and checks that it has the bytes it is named by.
pub(crate) fn unpack_blob(digest: &Digest, stored: &[u8]) -> crate::Result<Vec<u8>> {
    let bytes = unpack(stored).map_err(|_| crate::StoreError::CorruptBlob(*digest))?;
    if Digest::of_bytes(&bytes) == *digest {
        Ok(bytes)
    } else {
        Err(crate::StoreError::CorruptBlob(*digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_event_takes_less_than_half_its_bytes() {
        let body = br#"{"kind":"node_left","node":"verifier","outcome":"pass","visit":0}"#;
        assert!(pack(body).len() * 2 < body.len(), "{}", pack(body).len());
    }

    #[test]
    fn the_dictionary_of_a_tag_never_changes() {
        assert_eq!(
            Digest::of_bytes(DICTIONARY).short(),
            "c52297a92b42",
            "logs written with this dictionary would become unreadable: add another tag"
        );
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(bytes: Vec<u8>, repeat in 1_usize..50) {
            let bytes = bytes.repeat(repeat);
            prop_assert_eq!(unpack(&pack(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn hostile_bytes_fail_without_panic(bytes: Vec<u8>) {
            let _ = unpack(&bytes);
        }
    }
}
