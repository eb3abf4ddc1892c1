//! Spend that cannot exceed its cap: prices in data, the worst case of a call computed before it,
//! and a ledger that reserves it, settles what was used, and never lends.

mod ledger;
mod price;
mod purse;
mod worst;

pub use ledger::{SpendHoldId, SpendLedger, SpendLedgerError, SpendOverrun, SpendRefusal};
pub use price::{ModelLimits, ModelPrice, PriceError, PriceTable};
pub use purse::{SharedSpendAccount, SharedSpendLedger, SpendAccount, UnlimitedSpend};
pub use worst::{actual, input_bound, worst_case};
