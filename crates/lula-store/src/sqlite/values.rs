//! Numbers, digests and places as SQLite has them.

use lula_protocol::Digest;

use super::corrupt;
use crate::columns;
pub(super) use crate::columns::{int, uint};
use crate::error::{StoreError, StoreResult};

/// How many bits of a position say where in a log it is; a literal, so that SQL can say it too.
macro_rules! seq_bits {
    () => {
        24
    };
}
pub(super) use seq_bits;

pub(super) const SEQ_BITS: u32 = seq_bits!();

pub(super) fn digest(bytes: &[u8]) -> StoreResult<Digest> {
    columns::digest(bytes, |why| corrupt(why))
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
