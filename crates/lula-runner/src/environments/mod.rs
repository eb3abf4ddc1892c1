//! Environments that were built: kept below the state directory, found again by what went into them, and
//! shown in sandboxes.
//!
//! An environment is a directory that got its name in one step when it was whole (`build.rs`), and is never
//! written after that. It is named by the digest of everything that went into it, and it is found for a
//! project by comparing the files that it was made from with those at hand: nothing is run for that. Whatever
//! shows an environment to a command gets it from [`EnvironmentSource::toolchains`], so that an operator, a
//! model and a verifier see the same one.

mod build;
mod check;
mod error;
pub mod parcel;
mod record;
mod source;
mod store;
#[cfg(test)]
mod tests;

pub use build::{BuildProgress, EnvironmentBuild};
pub use check::{EnvironmentCheck, FailingTest};
pub use error::EnvironmentError;
pub use record::{EnvironmentRecord, FORMAT as INPUTS_FORMAT};
pub use source::{EnvironmentChoice, EnvironmentFit, EnvironmentSource};
pub use store::{EnvironmentStore, StoredEnvironment};
