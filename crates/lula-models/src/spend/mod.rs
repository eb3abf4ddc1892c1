//! Spend that cannot exceed its cap: prices in data, the worst case of a call computed before it,
//! and a ledger that reserves it, settles what was used, and never lends.

mod ledger;
mod price;
mod purse;
mod worst;

pub use ledger::{HoldId, Ledger, LedgerError, Overrun, Refusal};
pub use price::{Price, PriceError, PriceTable};
pub use purse::{Account, Purse, SharedLedger, Unlimited};
pub use worst::{actual, input_bound, worst_case};
