//! Numbers and digests as a database's columns have them: signed 64 bits, and bytes.

use lula_protocol::Digest;

use crate::error::{StoreError, StoreResult};

/// A number for a column. None of ours comes near the end of the range.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A number of a column; one that we did not write is zero.
pub(crate) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A digest of a column, or the backend's error for a row that it did not write.
pub(crate) fn digest(bytes: &[u8], corrupt: fn(&str) -> StoreError) -> StoreResult<Digest> {
    let bytes: [u8; 32] = bytes
        .try_into()
        .map_err(|_| corrupt("a digest has not 32 bytes"))?;
    Ok(Digest::from_bytes(bytes))
}
