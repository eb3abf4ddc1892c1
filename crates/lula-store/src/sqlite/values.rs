//! Numbers, digests and places as SQLite has them.

use lula_protocol::Digest;

use super::corrupt;
use crate::error::{StoreError, StoreResult};

/// How many bits of a position say where in a log it is; a literal, so that SQL can say it too.
macro_rules! seq_bits {
    () => {
        24
    };
}
pub(super) use seq_bits;

pub(super) const SEQ_BITS: u32 = seq_bits!();

pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

pub(super) fn digest(bytes: &[u8]) -> StoreResult<Digest> {
    let bytes: [u8; 32] = bytes
        .try_into()
        .map_err(|_| corrupt("a digest has not 32 bytes"))?;
    Ok(Digest::from_bytes(bytes))
}

pub(super) fn position(run: i64, seq: u64) -> StoreResult<i64> {
    if seq >> SEQ_BITS != 0 {
        return Err(StoreError::Full(format!(
            "a log holds at most {} events",
            1 << SEQ_BITS
        )));
    }
    Ok((run << SEQ_BITS) | int(seq))
}
