//! Approvals: a question about exact bytes, signed answers, and one use.
//!
//! [`Approval`] is the pure state machine. `question`, [`table`] and [`keys`] are
//! its edges: what is asked, where it is kept, and who may answer. Everything that touches the
//! database works inside the caller's transaction, so that spending an approval and writing down
//! the effect it allows are one commit.

mod desk;
pub mod keys;
mod question;
mod state;
pub mod table;
mod terms;
#[cfg(test)]
mod tests;

pub use desk::{ApprovalDesk, LocalApprovalDesk};
pub use keys::{ApprovalKeyError, ApprovalKeyring};
pub use question::{ApprovalQuestion, ApprovalVote, StoredApproval};
pub use state::{Approval, ApprovalRefusal, ApprovalStanding, SettledApproval, VoteRefusal};
pub use table::{
    ApprovalsError, challenge, expire, for_call, load, migrate, pending, redeem, vote,
};
pub use terms::{AdvanceApproval, ApprovalExpiryPolicy, ApprovalTerms};
