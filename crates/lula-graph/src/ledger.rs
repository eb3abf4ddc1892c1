//! The budget of a run: held back before, settled after. Pure.
//!
//! In every state `settled + reserved <= limit`. What an effect spent beyond everything that was
//! allowed cannot be undone; it is counted apart as overrun, and nothing more is allowed in that
//! dimension until the limit is raised above it.

use std::collections::BTreeMap;

use lula_protocol::{BudgetAmounts, BudgetDimension};
use lula_store::LedgerRow;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Line {
    limit: Option<u64>,
    reserved: u64,
    settled: u64,
    overrun: u64,
}

impl Line {
    fn free(&self) -> u64 {
        if self.overrun > 0 {
            return 0;
        }
        self.limit.map_or(u64::MAX, |limit| {
            limit
                .saturating_sub(self.reserved)
                .saturating_sub(self.settled)
        })
    }
}

/// What does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetExcess {
    /// The limit in the way.
    pub dimension: BudgetDimension,
    /// How much was asked.
    pub asked: u64,
    /// How much is left.
    pub free: u64,
}

/// What a run may spend, holds back and has spent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BudgetLedger {
    lines: BTreeMap<BudgetDimension, Line>,
    held: BTreeMap<String, BudgetAmounts>,
}

impl BudgetLedger {
    /// A ledger with limits and nothing spent.
    pub fn new(limits: &BudgetAmounts) -> Self {
        let line = |(dimension, limit)| {
            let line = Line {
                limit: Some(limit),
                ..Line::default()
            };
            (dimension, line)
        };
        Self {
            lines: limits.iter().map(line).collect(),
            held: BTreeMap::new(),
        }
    }

    /// How much is left.
    pub fn free(&self, dimension: BudgetDimension) -> u64 {
        self.lines.get(&dimension).map_or(u64::MAX, Line::free)
    }

    /// How much was spent, overruns included.
    pub fn spent(&self, dimension: BudgetDimension) -> u64 {
        let line = self.lines.get(&dimension).copied().unwrap_or_default();
        line.settled.saturating_add(line.overrun)
    }

    /// How much is held back.
    pub fn reserved(&self, dimension: BudgetDimension) -> u64 {
        self.lines.get(&dimension).map_or(0, |line| line.reserved)
    }

    /// The limit in one dimension; `None` for no limit.
    pub fn limit(&self, dimension: BudgetDimension) -> Option<u64> {
        self.lines.get(&dimension).and_then(|line| line.limit)
    }

    /// Whether amounts could be held back.
    pub fn allows(&self, amounts: &BudgetAmounts) -> Result<(), BudgetExcess> {
        for (dimension, asked) in amounts.iter() {
            let free = self.free(dimension);
            if asked > free {
                return Err(BudgetExcess {
                    dimension,
                    asked,
                    free,
                });
            }
        }
        Ok(())
    }

    /// Holds amounts back for a holder: an effect, or a child run.
    pub fn reserve(&mut self, holder: &str, amounts: &BudgetAmounts) -> Result<(), BudgetExcess> {
        self.allows(amounts)?;
        for (dimension, amount) in amounts.iter() {
            let line = self.lines.entry(dimension).or_default();
            line.reserved = line.reserved.saturating_add(amount);
            let held = self.held.entry(holder.to_owned()).or_default();
            *held.0.entry(dimension).or_default() += amount;
        }
        Ok(())
    }

    /// Lets go of what a holder held and counts what it spent.
    pub fn settle(&mut self, holder: &str, spent: &BudgetAmounts) {
        for (dimension, amount) in self.held.remove(holder).unwrap_or_default().iter() {
            let line = self.lines.entry(dimension).or_default();
            line.reserved = line.reserved.saturating_sub(amount);
        }
        for (dimension, amount) in spent.iter() {
            let line = self.lines.entry(dimension).or_default();
            let fits = amount.min(line.free());
            line.settled = line.settled.saturating_add(fits);
            line.overrun = line.overrun.saturating_add(amount - fits);
        }
    }

    /// Counts all that a holder held as spent: what it cost is not known.
    pub fn lose(&mut self, holder: &str) {
        let held = self.held.get(holder).cloned().unwrap_or_default();
        self.settle(holder, &held);
    }

    /// Lets go of what a holder held.
    pub fn release(&mut self, holder: &str) {
        self.settle(holder, &BudgetAmounts::none());
    }

    /// Raises a limit. An overrun that fits below the new limit is counted as spent.
    pub fn raise(&mut self, dimension: BudgetDimension, to: u64) {
        let line = self.lines.entry(dimension).or_default();
        if line.limit.is_some_and(|limit| to > limit) {
            line.limit = Some(to);
            let overrun = std::mem::take(&mut line.overrun);
            let fits = overrun.min(line.free());
            line.settled += fits;
            line.overrun = overrun - fits;
        }
    }

    /// The rows of some dimensions as a store keeps them.
    pub fn rows(&self, dimensions: impl Iterator<Item = BudgetDimension>) -> Vec<LedgerRow> {
        let row = |dimension| {
            let line = self.lines.get(&dimension)?;
            Some(LedgerRow {
                dimension,
                limit: line.limit,
                reserved: line.reserved,
                settled: line.settled,
            })
        };
        dimensions.filter_map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum LedgerMove {
        Reserve(u8, u64),
        Settle(u8, u64),
        Lose(u8),
        Release(u8),
        Raise(u64),
    }

    fn any_move() -> impl Strategy<Value = LedgerMove> {
        prop_oneof![
            (0_u8..4, 0_u64..60).prop_map(|(holder, amount)| LedgerMove::Reserve(holder, amount)),
            (0_u8..4, 0_u64..90).prop_map(|(holder, amount)| LedgerMove::Settle(holder, amount)),
            (0_u8..4).prop_map(LedgerMove::Lose),
            (0_u8..4).prop_map(LedgerMove::Release),
            (0_u64..300).prop_map(LedgerMove::Raise),
        ]
    }

    const DIM: BudgetDimension = BudgetDimension::MicroUsd;

    fn of(amount: u64) -> BudgetAmounts {
        BudgetAmounts::none().with(DIM, amount)
    }

    proptest! {
        #[test]
        fn no_order_of_moves_breaks_the_limit_or_forgets_a_cost(
            moves in prop::collection::vec(any_move(), 0..60),
        ) {
            let mut ledger = BudgetLedger::new(&of(100));
            let mut cost = 0;
            for step in moves {
                match step {
                    LedgerMove::Reserve(holder, amount) => {
                        let before = ledger.clone();
                        if ledger.reserve(&holder.to_string(), &of(amount)).is_err() {
                            prop_assert_eq!(&ledger, &before);
                        }
                    }
                    LedgerMove::Settle(holder, amount) => {
                        ledger.settle(&holder.to_string(), &of(amount));
                        cost += amount;
                    }
                    LedgerMove::Lose(holder) => {
                        let held = ledger.held.get(&holder.to_string()).cloned();
                        cost += held.and_then(|held| held.get(DIM)).unwrap_or(0);
                        ledger.lose(&holder.to_string());
                    }
                    LedgerMove::Release(holder) => ledger.release(&holder.to_string()),
                    LedgerMove::Raise(to) => ledger.raise(DIM, to),
                }
                let row = ledger.rows(std::iter::once(DIM))[0];
                prop_assert!(row.holds(), "{row:?}");
                prop_assert_eq!(ledger.spent(DIM), cost);
                let held: u64 = ledger.held.values().filter_map(|held| held.get(DIM)).sum();
                prop_assert_eq!(ledger.reserved(DIM), held);
            }
        }

        #[test]
        fn what_children_carve_out_is_never_more_than_the_parent_has(
            carves in prop::collection::vec((0_u64..60, 0_u64..60), 1..8),
        ) {
            let mut parent = BudgetLedger::new(&of(100));
            let mut children = Vec::new();
            for (index, (carve, spend)) in carves.into_iter().enumerate() {
                if parent.reserve(&format!("child {index}"), &of(carve)).is_ok() {
                    children.push((index, BudgetLedger::new(&of(carve)), spend));
                }
            }
            let carved: u64 = children.iter().filter_map(|(_, child, _)| child.limit(DIM)).sum();
            prop_assert_eq!(parent.reserved(DIM), carved);
            let mut total = 0;
            for (index, mut child, spend) in children {
                if child.reserve("effect", &of(spend)).is_ok() {
                    child.settle("effect", &of(spend));
                }
                total += child.spent(DIM);
                parent.settle(&format!("child {index}"), &of(child.spent(DIM)));
            }
            prop_assert_eq!(parent.spent(DIM), total);
            prop_assert_eq!(parent.reserved(DIM), 0);
            prop_assert!(total <= 100);
        }
    }

    #[test]
    fn an_overrun_is_not_hidden_and_stops_everything_until_the_limit_is_raised() {
        let mut ledger = BudgetLedger::new(&of(100));
        ledger.reserve("call", &of(80)).unwrap();
        ledger.settle("call", &of(130));
        assert_eq!(ledger.spent(DIM), 130);
        assert_eq!(ledger.reserve("next", &of(1)).unwrap_err().free, 0);
        ledger.raise(DIM, 140);
        assert_eq!(ledger.spent(DIM), 130);
        ledger.reserve("next", &of(10)).unwrap();
    }
}
