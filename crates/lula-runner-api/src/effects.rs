//! What makes an order happen once.

use lula_protocol::{EffectId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An order with the identity of the effect that it is: the runner's ledger knows it by that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectCall<T> {
    /// Identity of the effect: the same id never happens twice.
    pub effect: EffectId,
    /// Lease epoch of the caller. An older one than the runner has seen is refused.
    pub epoch: u64,
    /// The run on whose behalf it is done.
    pub run: RunId,
    /// What is to be done.
    pub order: T,
}
