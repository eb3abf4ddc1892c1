//! The world outside: the only thing that acts, and what it has to promise.

use async_trait::async_trait;
use lula_protocol::{ApprovalId, BudgetAmounts, Digest, EffectClass, EffectId, RunId};
use serde::Serialize;
use serde_json::Value;

/// Something a node wants done.
#[derive(Debug, Clone)]
pub struct EffectRequest {
    pub(crate) class: EffectClass,
    pub(crate) name: String,
    pub(crate) request: Result<Value, String>,
    pub(crate) reserve: BudgetAmounts,
    pub(crate) approval: Option<(ApprovalId, Digest)>,
}

impl EffectRequest {
    /// Something of a class, by name. The request may name secrets, never hold them.
    pub fn new<T: Serialize + ?Sized>(class: EffectClass, name: &str, request: &T) -> Self {
        Self {
            class,
            name: name.to_owned(),
            request: serde_json::to_value(request).map_err(|error| error.to_string()),
            reserve: BudgetAmounts::none(),
            approval: None,
        }
    }

    /// Looks and changes nothing.
    pub fn read<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::Read, name, request)
    }

    /// An effect of asking a model.
    pub fn model<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::Model, name, request)
    }

    /// An effect of changing a workspace.
    pub fn tree<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::Tree, name, request)
    }

    /// Moves a reference from one known value to another.
    pub fn cas<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::Cas, name, request)
    }

    /// An effect of changing something outside, which may not be done twice.
    pub fn external<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::External, name, request)
    }

    /// The most it may cost. Held back before it is tried.
    #[must_use]
    pub fn reserving(mut self, amounts: BudgetAmounts) -> Self {
        self.reserve = amounts;
        self
    }

    /// Uses up an approval, which has to be for exactly this digest.
    #[must_use]
    pub fn approved(mut self, approval: ApprovalId, digest: Digest) -> Self {
        self.approval = Some((approval, digest));
        self
    }
}

/// An effect as it is handed to the world.
#[derive(Debug, Clone)]
pub struct EffectOrder {
    /// The run that orders it.
    pub run: RunId,
    /// Identity of the effect, the same however often it is ordered: the idempotency key.
    pub effect: EffectId,
    /// Who orders. An order of a lower epoch than one already seen for the run must be refused.
    pub epoch: u64,
    /// How often it was ordered before.
    pub attempt: u32,
    /// What may be done again.
    pub class: EffectClass,
    /// What is to be done.
    pub name: String,
    pub request: Value,
}

/// What an effect returned.
#[derive(Debug, Clone, Default)]
pub struct EffectOutput {
    pub value: Value,
    pub spent: BudgetAmounts,
}

impl EffectOutput {
    /// A value that cost nothing.
    pub const fn free(value: Value) -> Self {
        Self {
            value,
            spent: BudgetAmounts(std::collections::BTreeMap::new()),
        }
    }
}

/// Why an effect returned nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EffectTrouble {
    /// It was tried and did not work, for certain.
    #[error("{message}")]
    Failed {
        message: String,
        /// What it cost all the same.
        spent: BudgetAmounts,
    },
    /// It is not known: the connection broke after the order was sent. Treated like a crash.
    #[error("{0}")]
    Lost(String),
    /// It was not tried, for certain, and cannot be now. The run is tried again later.
    #[error("{0}")]
    Unreachable(String),
    /// It was not done: people are asked first, by the world, which would do it. The run waits, and then
    /// orders it again.
    #[error("{reason}")]
    Held {
        approval: ApprovalId,
        /// Why it is asked.
        reason: String,
    },
}

/// What is known of an effect after a crash.
#[derive(Debug, Clone)]
pub enum CrashEvidence {
    /// It was done, and returned this.
    Done(EffectOutput),
    /// It was not done, and will not be: an order still under way with a lower epoch is refused.
    NotDone,
    /// It is not known whether it was done.
    Unknown(String),
}

/// What lies outside of the engine: models, workspaces and their runners.
#[async_trait]
pub trait EffectWorld: Send + Sync + 'static {
    /// Does it. A world that can keeps a ledger: an effect it has done before is not done again,
    /// its result is returned; a result is written down before it is returned.
    async fn perform(&self, order: &EffectOrder) -> Result<EffectOutput, EffectTrouble>;

    /// Looks for evidence that an effect was done: in the ledger, by the idempotency key, or by its
    /// post-condition.
    async fn probe(&self, order: &EffectOrder) -> CrashEvidence {
        CrashEvidence::Unknown(format!("nothing is known of {}", order.name))
    }

    /// The workspace as it is before a [`EffectClass::Tree`] effect.
    async fn tree(&self, _order: &EffectOrder) -> Result<Option<Digest>, EffectTrouble> {
        Ok(None)
    }

    /// Brings the workspace back to what it was.
    async fn restore(
        &self,
        order: &EffectOrder,
        _tree: Option<Digest>,
    ) -> Result<(), EffectTrouble> {
        Err(EffectTrouble::Unreachable(format!(
            "{} cannot be undone here",
            order.name
        )))
    }

    /// Stops an effect that is under way. Returns when nothing of it is left running.
    async fn abort(&self, _order: &EffectOrder) {}
}

/// What is done about an effect that was announced and has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectRecovery {
    /// Order it again: doing it twice is harmless.
    Redo,
    /// Keep what the lost try may have cost charged, and do it again.
    ChargeAndRedo,
    /// Give up: it was lost too often.
    Fail,
    /// Restore the workspace, then do it again.
    RestoreAndRedo,
    /// Look whether it was done; if not, do it again; if that is not known, ask.
    Probe,
}

/// What is done about a lost effect of each class.
pub const fn recovery(class: EffectClass, attempt: u32) -> EffectRecovery {
    match class {
        EffectClass::Read => EffectRecovery::Redo,
        EffectClass::Model if attempt == 0 => EffectRecovery::ChargeAndRedo,
        EffectClass::Model => EffectRecovery::Fail,
        EffectClass::Tree => EffectRecovery::RestoreAndRedo,
        EffectClass::Cas | EffectClass::External => EffectRecovery::Probe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_outside_is_never_redone_without_looking() {
        for attempt in 0..10 {
            assert_eq!(
                recovery(EffectClass::External, attempt),
                EffectRecovery::Probe
            );
        }
    }

    #[test]
    fn a_lost_model_call_is_asked_again_once() {
        assert_eq!(
            recovery(EffectClass::Model, 0),
            EffectRecovery::ChargeAndRedo
        );
        assert_eq!(recovery(EffectClass::Model, 1), EffectRecovery::Fail);
    }
}
