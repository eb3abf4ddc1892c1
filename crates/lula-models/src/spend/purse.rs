//! Paying for calls: what the client asks before each try and tells after it.

use std::sync::{Arc, Mutex, PoisonError};

use lula_protocol::{Amounts, Dimension};

use super::ledger::{HoldId, Ledger, LedgerError};
use crate::transport::Later;

/// Whatever can pay. A journaled ledger writes before it answers.
pub trait Purse: Send + Sync {
    /// Reserves the worst case of one try.
    fn reserve<'a>(&'a self, worst: &'a Amounts) -> Later<'a, Result<HoldId, LedgerError>>;
    /// Books what the try used. Nothing used gives the reservation back.
    fn settle<'a>(&'a self, hold: HoldId, used: &'a Amounts) -> Later<'a, Result<(), LedgerError>>;
    /// What is left of a dimension; `None` where nothing limits it.
    fn left(&self, dimension: Dimension) -> Option<u64>;
}

/// Pays everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Purse for Unlimited {
    fn reserve<'a>(&'a self, _: &'a Amounts) -> Later<'a, Result<HoldId, LedgerError>> {
        Box::pin(async { Ok(HoldId(0)) })
    }

    fn settle<'a>(&'a self, _: HoldId, _: &'a Amounts) -> Later<'a, Result<(), LedgerError>> {
        Box::pin(async { Ok(()) })
    }

    fn left(&self, _: Dimension) -> Option<u64> {
        None
    }
}

/// A ledger that many calls spend from at once.
#[derive(Debug, Clone, Default)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// Shares a ledger.
    pub fn new(ledger: Ledger) -> Self {
        Self(Arc::new(Mutex::new(ledger)))
    }

    /// Does something with the ledger, alone.
    pub fn with<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One account as a purse.
    pub fn account(&self, name: impl Into<String>) -> Account {
        Account {
            ledger: self.clone(),
            name: name.into(),
        }
    }
}

/// One account of a shared ledger.
#[derive(Debug, Clone)]
pub struct Account {
    ledger: SharedLedger,
    name: String,
}

impl Purse for Account {
    fn reserve<'a>(&'a self, worst: &'a Amounts) -> Later<'a, Result<HoldId, LedgerError>> {
        Box::pin(async move { self.ledger.with(|ledger| ledger.reserve(&self.name, worst)) })
    }

    fn settle<'a>(&'a self, hold: HoldId, used: &'a Amounts) -> Later<'a, Result<(), LedgerError>> {
        Box::pin(async move {
            self.ledger
                .with(|ledger| ledger.settle(hold, used))
                .map(|_| ())
        })
    }

    fn left(&self, dimension: Dimension) -> Option<u64> {
        self.ledger
            .with(|ledger| ledger.left(&self.name, dimension))
    }
}
