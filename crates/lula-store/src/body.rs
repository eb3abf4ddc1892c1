//! How event bodies and blobs lie on disk: one tag byte, then the bytes, compressed where that
//! helps.
//!
//! A dictionary holds the texts that every event repeats, and how often each letter comes in them,
//! so that a short text need not bring a table of its own. It belongs to its tag for ever: a better
//! one gets another tag. The second was trained (`zstd --train`) on events with text and code of
//! this project in them.

use std::cell::RefCell;

use lula_protocol::Digest;
use zstd::bulk::{Compressor, Decompressor};

const RAW: u8 = 0;
const FIRST: u8 = 1;
const SECOND: u8 = 2;
const FIRST_DICTIONARY: &[u8] = include_bytes!("body.dict");
const SECOND_DICTIONARY: &[u8] = include_bytes!("body.2.dict");
const LEVEL: i32 = 1;
/// What is shorter is kept as it is: it would take longer to read and to write, and little less
/// room.
const WORTH_IT: usize = 96;

/// Largest value that is unpacked: a length field can lie.
pub const MAX_BYTES: usize = 256 << 20;

/// Why bytes cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[error("stored bytes cannot be unpacked: {0}")]
pub struct UnpackError(String);

type Slot = RefCell<Option<Decompressor<'static>>>;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static FIRST_READER: Slot = const { RefCell::new(None) };
    static SECOND_READER: Slot = const { RefCell::new(None) };
}

fn compressor(dictionary: &'static [u8]) -> std::io::Result<Compressor<'static>> {
    let mut compressor = Compressor::with_dictionary(LEVEL, dictionary)?;
    // The tag names the dictionary.
    compressor.include_dictid(false)?;
    Ok(compressor)
}

/// Packs bytes. Never fails: what does not compress is kept as it is.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let packed = COMPRESSOR.with_borrow_mut(|slot| {
        if bytes.len() < WORTH_IT {
            return None;
        }
        if slot.is_none() {
            *slot = compressor(SECOND_DICTIONARY).ok();
        }
        slot.as_mut()?.compress(bytes).ok()
    });
    match packed {
        Some(packed) if packed.len() + 5 < bytes.len() => {
            let mut out = Vec::with_capacity(packed.len() + 5);
            out.push(SECOND);
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

pub fn unpack(stored: &[u8]) -> Result<Vec<u8>, UnpackError> {
    match stored.split_first() {
        Some((&RAW, bytes)) => Ok(bytes.to_vec()),
        Some((&FIRST, rest)) => {
            FIRST_READER.with_borrow_mut(|slot| decompress(slot, FIRST_DICTIONARY, rest))
        }
        Some((&SECOND, rest)) => {
            SECOND_READER.with_borrow_mut(|slot| decompress(slot, SECOND_DICTIONARY, rest))
        }
        Some((tag, _)) => Err(UnpackError(format!("tag {tag} is not known"))),
        None => Err(UnpackError("there are none".to_owned())),
    }
}

/// Reads what follows the tag: the length, and that much when unpacked.
fn decompress(
    slot: &mut Option<Decompressor<'static>>,
    dictionary: &'static [u8],
    rest: &[u8],
) -> Result<Vec<u8>, UnpackError> {
    let (length, packed) = rest
        .split_first_chunk::<4>()
        .ok_or_else(|| UnpackError("the length is missing".to_owned()))?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_BYTES {
        return Err(UnpackError(format!("{length} bytes are claimed")));
    }
    if slot.is_none() {
        let fresh = Decompressor::with_dictionary(dictionary)
            .map_err(|error| UnpackError(error.to_string()))?;
        *slot = Some(fresh);
    }
    let decompressor = slot
        .as_mut()
        .ok_or_else(|| UnpackError("no decompressor".to_owned()))?;
    decompressor
        .decompress(packed, length)
        .map_err(|error| UnpackError(error.to_string()))
}

/// Unpacks a blob and checks that it has the bytes it is named by.
pub(crate) fn unpack_blob(digest: &Digest, stored: &[u8]) -> crate::StoreResult<Vec<u8>> {
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
    fn an_event_takes_about_half_its_bytes() {
        let body = br#"{"effect":"eff_01jd3x5a7c9e2g4j6m8p0r2t4v","kind":"effect_settled","result":{"done":{"inline":"3 passed, 1 failed: the parser returned no value for an empty line"}},"via":"executed"}"#;
        assert!(
            pack(body).len() * 100 < body.len() * 60,
            "{} of {}",
            pack(body).len(),
            body.len()
        );
    }

    #[test]
    fn the_dictionary_of_a_tag_never_changes() {
        let digests = [FIRST_DICTIONARY, SECOND_DICTIONARY].map(|d| Digest::of_bytes(d).short());
        assert_eq!(
            digests,
            ["c52297a92b42", "d9ef037665a6"],
            "logs written with this dictionary would become unreadable: add another tag"
        );
    }

    #[test]
    fn what_an_older_program_packed_is_read() {
        let body = br#"{"kind":"node_left","node":"verifier","outcome":"pass","visit":0}"#;
        let mut old = vec![FIRST];
        old.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        let packed = compressor(FIRST_DICTIONARY).unwrap().compress(body);
        old.extend(packed.unwrap());
        assert_eq!(unpack(&old).unwrap(), body);
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
