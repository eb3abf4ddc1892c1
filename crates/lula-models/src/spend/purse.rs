//! Paying for calls: what the client asks before each try and tells after it.

use std::sync::{Arc, Mutex, PoisonError};

use lula_protocol::{BudgetAmounts, BudgetDimension};

use super::ledger::{SpendHoldId, SpendLedger, SpendLedgerError};
use crate::transport::BoxedFuture;

/// Whatever can pay. A journaled ledger writes before it answers.
pub trait SpendAccount: Send + Sync {
    /// Reserves the worst case of one try.
    fn reserve<'a>(
        &'a self,
        worst: &'a BudgetAmounts,
    ) -> BoxedFuture<'a, Result<SpendHoldId, SpendLedgerError>>;
    /// Books what the try used. Nothing used gives the reservation back.
    fn settle<'a>(
        &'a self,
        hold: SpendHoldId,
        used: &'a BudgetAmounts,
    ) -> BoxedFuture<'a, Result<(), SpendLedgerError>>;
    /// What is left of a dimension; `None` where nothing limits it.
    fn left(&self, dimension: BudgetDimension) -> Option<u64>;
}

/// An account that refuses nothing and counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnlimitedSpend;

impl SpendAccount for UnlimitedSpend {
    fn reserve<'a>(
        &'a self,
        _: &'a BudgetAmounts,
    ) -> BoxedFuture<'a, Result<SpendHoldId, SpendLedgerError>> {
        Box::pin(async { Ok(SpendHoldId(0)) })
    }

    fn settle<'a>(
        &'a self,
        _: SpendHoldId,
        _: &'a BudgetAmounts,
    ) -> BoxedFuture<'a, Result<(), SpendLedgerError>> {
        Box::pin(async { Ok(()) })
    }

    fn left(&self, _: BudgetDimension) -> Option<u64> {
        None
    }
}

/// A ledger that many calls spend from at once.
#[derive(Debug, Clone, Default)]
pub struct SharedSpendLedger(Arc<Mutex<SpendLedger>>);

impl SharedSpendLedger {
    /// A ledger that several clients can pay from.
    pub fn new(ledger: SpendLedger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Does something with the ledger, alone.
    pub fn with<T>(&self, act: impl FnOnce(&mut SpendLedger) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One account as a purse.
    pub fn account(&self, name: impl Into<String>) -> SharedSpendAccount {
        SharedSpendAccount {
            ledger: self.clone(),
            name: name.into(),
        }
    }
}

/// One account of a shared ledger.
#[derive(Debug, Clone)]
pub struct SharedSpendAccount {
    ledger: SharedSpendLedger,
    name: String,
}

impl SpendAccount for SharedSpendAccount {
    fn reserve<'a>(
        &'a self,
        worst: &'a BudgetAmounts,
    ) -> BoxedFuture<'a, Result<SpendHoldId, SpendLedgerError>> {
        Box::pin(async move { self.ledger.with(|ledger| ledger.reserve(&self.name, worst)) })
    }

    fn settle<'a>(
        &'a self,
        hold: SpendHoldId,
        used: &'a BudgetAmounts,
    ) -> BoxedFuture<'a, Result<(), SpendLedgerError>> {
        Box::pin(async move {
            self.ledger
                .with(|ledger| ledger.settle(hold, used))
                .map(|_| ())
        })
    }

    fn left(&self, dimension: BudgetDimension) -> Option<u64> {
        self.ledger
            .with(|ledger| ledger.left(&self.name, dimension))
    }
}
