//! The world outside: the only thing that acts, and what it has to promise.

use async_trait::async_trait;
use lula_protocol::{Amounts, ApprovalId, Digest, EffectClass, EffectId, RunId};
use serde::Serialize;
use serde_json::Value;

/// Something a node wants done.
#[derive(Debug, Clone)]
pub struct Effect {
    pub(crate) class: EffectClass,
    pub(crate) name: String,
    pub(crate) request: Result<Value, String>,
    pub(crate) reserve: Amounts,
    pub(crate) approval: Option<(ApprovalId, Digest)>,
}

impl Effect {
    /// Something of a class, by name. The request may name secrets, never hold them.
    pub fn new<T: Serialize + ?Sized>(class: EffectClass, name: &str, request: &T) -> Self {
        Self {
            class,
            name: name.to_owned(),
            request: serde_json::to_value(request).map_err(|error| error.to_string()),
            reserve: Amounts::none(),
            approval: None,
        }
    }

    /// Looks and changes nothing.
    pub fn read<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::Read, name, request)
    }

    /// Asks a model.
    pub fn model<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::Model, name, request)
    }

    /// Changes a workspace.
    pub fn tree<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::Tree, name, request)
    }

    /// Moves a reference from one known value to another.
    pub fn cas<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::Cas, name, request)
    }

    /// Changes something outside.
    pub fn external<T: Serialize + ?Sized>(name: &str, request: &T) -> Self {
        Self::new(EffectClass::External, name, request)
    }

    /// The most it may cost. Held back before it is tried.
    #[must_use]
    pub fn reserving(mut self, amounts: Amounts) -> Self {
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
pub struct Order {
    /// The run.
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
    /// With what.
    pub request: Value,
}

/// What an effect returned.
#[derive(Debug, Clone, Default)]
pub struct Performed {
    /// The value.
    pub value: Value,
    /// What it cost.
    pub spent: Amounts,
}

impl Performed {
    /// A value that cost nothing.
    pub const fn free(value: Value) -> Self {
        Self {
            value,
            spent: Amounts(std::collections::BTreeMap::new()),
        }
    }
}

/// Why an effect returned nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It was tried and did not work, for certain.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
        /// What it cost all the same.
        spent: Amounts,
    },
    /// Nobody knows: the connection broke after the order was sent. Treated like a crash.
    #[error("{0}")]
    Lost(String),
    /// It was not tried, for certain, and cannot be now. The run is tried again later.
    #[error("{0}")]
    Unreachable(String),
    /// It was not done: people are asked first, by whoever would do it. The run waits, and then
    /// orders it again.
    #[error("{reason}")]
    Held {
        /// The question.
        approval: ApprovalId,
        /// Why it is asked.
        reason: String,
    },
}

/// What is known of an effect after a crash.
#[derive(Debug, Clone)]
pub enum Evidence {
    /// It was done, and returned this.
    Done(Performed),
    /// It was not done, and will not be: an order still under way with a lower epoch is refused.
    NotDone,
    /// Nobody knows.
    Unknown(String),
}

/// The world outside.
#[async_trait]
pub trait World: Send + Sync + 'static {
    /// Does it. A world that can keeps a ledger: an effect it has done before is not done again,
    /// its result is returned; a result is written down before it is returned.
    async fn perform(&self, order: &Order) -> Result<Performed, Trouble>;

    /// Looks for evidence that an effect was done: in the ledger, by the idempotency key, or by its
    /// post-condition.
    async fn probe(&self, order: &Order) -> Evidence {
        Evidence::Unknown(format!("nothing is known of {}", order.name))
    }

    /// The workspace as it is before a [`EffectClass::Tree`] effect.
    async fn tree(&self, _order: &Order) -> Result<Option<Digest>, Trouble> {
        Ok(None)
    }

    /// Brings the workspace back to what it was.
    async fn restore(&self, order: &Order, _tree: Option<Digest>) -> Result<(), Trouble> {
        Err(Trouble::Unreachable(format!(
            "{} cannot be undone here",
            order.name
        )))
    }

    /// Stops an effect that is under way. Returns when nothing of it is left running.
    async fn abort(&self, _order: &Order) {}
}

/// What is done about an effect that was announced and has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Do it again.
    Redo,
    /// Keep what the lost try may have cost charged, and do it again.
    ChargeAndRedo,
    /// Give up: it was lost too often.
    Fail,
    /// Restore the workspace, then do it again.
    RestoreAndRedo,
    /// Look whether it was done; if not, do it again; if nobody knows, ask.
    Probe,
}

/// The reconciliation table.
pub const fn recovery(class: EffectClass, attempt: u32) -> Recovery {
    match class {
        EffectClass::Read => Recovery::Redo,
        EffectClass::Model if attempt == 0 => Recovery::ChargeAndRedo,
        EffectClass::Model => Recovery::Fail,
        EffectClass::Tree => Recovery::RestoreAndRedo,
        EffectClass::Cas | EffectClass::External => Recovery::Probe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_outside_is_never_redone_without_looking() {
        for attempt in 0..10 {
            assert_eq!(recovery(EffectClass::External, attempt), Recovery::Probe);
        }
    }

    #[test]
    fn a_lost_model_call_is_asked_again_once() {
        assert_eq!(recovery(EffectClass::Model, 0), Recovery::ChargeAndRedo);
        assert_eq!(recovery(EffectClass::Model, 1), Recovery::Fail);
    }
}
