//! Accounts in a tree. Each spender reserves the worst case in its own account and in every
//! account above it first, so that `settled + reserved ≤ limit` holds everywhere, always.

use std::collections::BTreeMap;

use lula_protocol::{BudgetAmounts, BudgetDimension};
use serde::{Deserialize, Serialize};

/// Names a reservation until it is settled or released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpendHoldId(pub u64);

/// Why a reservation was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the budget of {account} does not cover it: {wanted} {dimension} could be needed, {left} are left; raise the limit to go on"
)]
pub struct SpendRefusal {
    /// The account that lacks it.
    pub account: String,
    pub dimension: BudgetDimension,
    /// The worst case asked for.
    pub wanted: u64,
    pub left: u64,
}

/// More was used than was reserved: the provider broke its own bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpendOverrun(pub BudgetAmounts);

/// A mistake in using the ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpendLedgerError {
    /// There is no such account.
    #[error("there is no account {0:?}")]
    NoAccount(String),
    /// There is an account of this name.
    #[error("the account {0:?} exists already")]
    Exists(String),
    /// The reservation was settled or released before.
    #[error("the reservation {0} is not open")]
    NotHeld(u64),
    /// A limit may be raised, never lowered below what is bound.
    #[error(
        "the limit of {account} for {dimension} cannot be {limit}: {bound} are spent or reserved"
    )]
    Below {
        /// The account whose limit was to change.
        account: String,
        /// The dimension in which it was to change.
        dimension: BudgetDimension,
        /// The limit asked for.
        limit: u64,
        /// What is spent or reserved.
        bound: u64,
    },
    /// Refused for lack of budget.
    #[error(transparent)]
    Refused(#[from] SpendRefusal),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    above: Option<String>,
    limit: BudgetAmounts,
    settled: BudgetAmounts,
    reserved: BudgetAmounts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hold {
    account: String,
    amounts: BudgetAmounts,
}

/// The tree. Serializable, so that a crash loses nothing that was written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SpendLedger {
    accounts: BTreeMap<String, Row>,
    holds: BTreeMap<SpendHoldId, Hold>,
    next: u64,
}

impl SpendLedger {
    /// Opens an account, below another or at the top. It can spend no more than its own limit,
    /// and no more than is left above it.
    pub fn open(
        &mut self,
        account: &str,
        above: Option<&str>,
        limit: BudgetAmounts,
    ) -> Result<(), SpendLedgerError> {
        if self.accounts.contains_key(account) {
            return Err(SpendLedgerError::Exists(account.to_owned()));
        }
        if let Some(above) = above {
            self.row(above)?;
        }
        let row = Row {
            above: above.map(str::to_owned),
            limit,
            settled: BudgetAmounts::none(),
            reserved: BudgetAmounts::none(),
        };
        self.accounts.insert(account.to_owned(), row);
        Ok(())
    }

    /// Reserves the worst case of something about to be done.
    pub fn reserve(
        &mut self,
        account: &str,
        worst: &BudgetAmounts,
    ) -> Result<SpendHoldId, SpendLedgerError> {
        let path = self.path(account)?;
        for name in &path {
            let row = self.row(name)?;
            for (dimension, wanted) in worst.iter() {
                if let Some(left) = row.left(dimension)
                    && wanted > left
                {
                    let account = name.clone();
                    return Err(SpendRefusal {
                        account,
                        dimension,
                        wanted,
                        left,
                    }
                    .into());
                }
            }
        }
        for name in &path {
            if let Some(row) = self.accounts.get_mut(name) {
                add(&mut row.reserved, worst);
            }
        }
        let hold = SpendHoldId(self.next);
        self.next += 1;
        self.holds.insert(
            hold,
            Hold {
                account: account.to_owned(),
                amounts: worst.clone(),
            },
        );
        Ok(hold)
    }

    /// Turns a reservation into what was used. What was used beyond it is booked and reported.
    pub fn settle(
        &mut self,
        hold: SpendHoldId,
        used: &BudgetAmounts,
    ) -> Result<SpendOverrun, SpendLedgerError> {
        let booked = self
            .holds
            .remove(&hold)
            .ok_or(SpendLedgerError::NotHeld(hold.0))?;
        for name in self.path(&booked.account)? {
            if let Some(row) = self.accounts.get_mut(&name) {
                subtract(&mut row.reserved, &booked.amounts);
                add(&mut row.settled, used);
            }
        }
        let beyond = used
            .iter()
            .filter_map(|(dimension, used)| {
                let more = used.saturating_sub(booked.amounts.get(dimension).unwrap_or(0));
                (more > 0).then_some((dimension, more))
            })
            .collect();
        Ok(SpendOverrun(beyond))
    }

    /// Gives a reservation back: nothing was done.
    pub fn release(&mut self, hold: SpendHoldId) -> Result<(), SpendLedgerError> {
        self.settle(hold, &BudgetAmounts::none()).map(|_| ())
    }

    /// After a crash: whatever is still reserved may have been spent, so it counts as spent.
    pub fn recover(&mut self) -> usize {
        let open: Vec<_> = self
            .holds
            .iter()
            .map(|(hold, row)| (*hold, row.amounts.clone()))
            .collect();
        for (hold, amounts) in &open {
            // The hold was just listed, so it is there.
            let _ = self.settle(*hold, amounts);
        }
        open.len()
    }

    /// Sets a limit anew, by decision of an operator.
    pub fn set_limit(
        &mut self,
        account: &str,
        dimension: BudgetDimension,
        limit: u64,
    ) -> Result<(), SpendLedgerError> {
        let row = self.row(account)?;
        let bound = row.bound(dimension);
        if limit < bound {
            let account = account.to_owned();
            return Err(SpendLedgerError::Below {
                account,
                dimension,
                limit,
                bound,
            });
        }
        if let Some(row) = self.accounts.get_mut(account) {
            row.limit = row.limit.clone().with(dimension, limit);
        }
        Ok(())
    }

    /// What was used so far.
    pub fn settled(&self, account: &str) -> Option<&BudgetAmounts> {
        self.accounts.get(account).map(|row| &row.settled)
    }

    /// What an account may still spend of a dimension, its own limit and those above counted;
    /// `None` where nothing limits it.
    pub fn left(&self, account: &str, dimension: BudgetDimension) -> Option<u64> {
        self.path(account)
            .ok()?
            .iter()
            .filter_map(|name| self.accounts.get(name)?.left(dimension))
            .min()
    }

    /// Whether every account is within its limits.
    pub fn is_within_limits(&self) -> bool {
        self.accounts.values().all(|row| {
            row.limit
                .iter()
                .all(|(dimension, limit)| row.bound(dimension) <= limit)
        })
    }

    fn row(&self, account: &str) -> Result<&Row, SpendLedgerError> {
        self.accounts
            .get(account)
            .ok_or_else(|| SpendLedgerError::NoAccount(account.to_owned()))
    }

    /// The account and all above it.
    fn path(&self, account: &str) -> Result<Vec<String>, SpendLedgerError> {
        let mut path = vec![account.to_owned()];
        let mut row = self.row(account)?;
        while let Some(above) = &row.above {
            path.push(above.clone());
            row = self.row(above)?;
        }
        Ok(path)
    }
}

impl Row {
    fn bound(&self, dimension: BudgetDimension) -> u64 {
        let settled = self.settled.get(dimension).unwrap_or(0);
        settled.saturating_add(self.reserved.get(dimension).unwrap_or(0))
    }

    fn left(&self, dimension: BudgetDimension) -> Option<u64> {
        let limit = self.limit.get(dimension)?;
        Some(limit.saturating_sub(self.bound(dimension)))
    }
}

fn add(to: &mut BudgetAmounts, more: &BudgetAmounts) {
    for (dimension, amount) in more.iter() {
        let sum = to.get(dimension).unwrap_or(0).saturating_add(amount);
        to.0.insert(dimension, sum);
    }
}

fn subtract(from: &mut BudgetAmounts, less: &BudgetAmounts) {
    for (dimension, amount) in less.iter() {
        let rest = from.get(dimension).unwrap_or(0).saturating_sub(amount);
        from.0.insert(dimension, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(amount: u64) -> BudgetAmounts {
        BudgetAmounts::none().with(BudgetDimension::MicroUsd, amount)
    }

    #[test]
    fn a_child_spends_from_everyone_above_it() {
        let mut ledger = SpendLedger::default();
        ledger.open("run", None, usd(100)).unwrap();
        ledger.open("agent", Some("run"), usd(80)).unwrap();
        ledger.open("other", Some("run"), usd(80)).unwrap();
        let hold = ledger.reserve("agent", &usd(70)).unwrap();
        let refused = ledger.reserve("other", &usd(40)).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("the budget of run does not cover it"),
            "{refused}"
        );
        ledger.settle(hold, &usd(20)).unwrap();
        ledger.reserve("other", &usd(40)).unwrap();
        assert_eq!(ledger.left("agent", BudgetDimension::MicroUsd), Some(40));
    }

    #[test]
    fn what_a_crash_left_open_counts_as_spent() {
        let mut ledger = SpendLedger::default();
        ledger.open("run", None, usd(100)).unwrap();
        ledger.reserve("run", &usd(60)).unwrap();
        let bytes = serde_json::to_vec(&ledger).unwrap();
        let mut after: SpendLedger = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(after.recover(), 1);
        assert_eq!(after.settled("run"), Some(&usd(60)));
    }

    #[test]
    fn a_reservation_is_settled_once() {
        let mut ledger = SpendLedger::default();
        ledger.open("run", None, usd(100)).unwrap();
        let hold = ledger.reserve("run", &usd(60)).unwrap();
        ledger.release(hold).unwrap();
        assert_eq!(
            ledger.settle(hold, &usd(1)),
            Err(SpendLedgerError::NotHeld(0))
        );
    }

    #[test]
    fn a_limit_is_raised_and_the_run_goes_on() {
        let mut ledger = SpendLedger::default();
        ledger.open("run", None, usd(10)).unwrap();
        assert!(ledger.reserve("run", &usd(20)).is_err());
        ledger
            .set_limit("run", BudgetDimension::MicroUsd, 20)
            .unwrap();
        ledger.reserve("run", &usd(20)).unwrap();
        assert!(matches!(
            ledger.set_limit("run", BudgetDimension::MicroUsd, 5),
            Err(SpendLedgerError::Below { bound: 20, .. })
        ));
    }

    #[test]
    fn a_provider_that_breaks_its_bound_is_reported() {
        let mut ledger = SpendLedger::default();
        ledger.open("run", None, usd(100)).unwrap();
        let hold = ledger.reserve("run", &usd(10)).unwrap();
        assert_eq!(ledger.settle(hold, &usd(15)).unwrap(), SpendOverrun(usd(5)));
    }
}
