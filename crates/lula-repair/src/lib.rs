//! The built-in coder: makes failing tests pass by search, with no model.
//!
//! A project's tests are found ([`detect()`]), run, and where some fail, small edits of the code that
//! they execute are tried, the likeliest first, until the tests pass ([`repair`]). What comes back
//! is patches with their evidence, never a changed project. What tests say of any change is
//! found out the same way ([`trial`]).
//!
//! This crate decides and touches nothing: files and processes are behind [`Ground`], which hands
//! out private forks of the project. It must never edit a test, never take output that merely looks
//! like success for a result, and never outlive its budget.
//!
//! ```no_run
//! # fn show(ground: &dyn lula_repair::Ground) -> Result<(), lula_repair::RepairError> {
//! use lula_repair::{RepairTask, repair};
//!
//! let report = repair(ground, &RepairTask::default(), &|progress| drop(progress))?;
//! for patch in &report.patches {
//!     let diff = &patch.diff;
//! #   let _ = diff;
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod detect;
pub mod environment;
pub mod ground;
mod locate;
pub mod outcome;
mod patches;
pub mod report;
pub mod results;
mod search;
mod suite;
mod syntax;
pub mod trial;

pub use detect::{Detection, Framework, TestsFound, TestsWanted, detect, detect_in};
pub use environment::{BrokenEnvironment, CodeOrigin};
pub use ground::{Command, Fork, Ground, GroundError, Ran};
pub use locate::RecentChange;
pub use outcome::{Patch, RepairOutcome, RepairReport};
pub use patches::Family;
pub use report::{Outcome, TestCase, TestReport};
pub use search::{Examined, Progress, RepairError, RepairTask, examine, repair, run_tests};
pub use suite::SuiteError;
pub use syntax::{Language, is_test_path};
