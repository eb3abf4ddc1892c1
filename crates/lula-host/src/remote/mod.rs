//! Runs of a server: looked at and acted on from the command line as those of this machine are.
//!
//! A server keeps the logs; [`ServerStore`] reads them as a store does, so everything that is folded from a
//! log is folded here, by the same code, and its chain is checked on the way. What people do goes through
//! the routes of the API, and by whom it is done is what the server finds out by itself.

mod acts;
mod client;
mod follow;
mod page;
mod request;
mod store;

pub use acts::{RemoteApproval, RunAccess};
pub use client::ServerClient;
pub use follow::follow;
pub use page::RunLogPage;
pub use request::create_run;
pub use store::ServerStore;
