//! The built-in coder: makes failing tests pass by search, with no model.
//!
//! A project's tests are found ([`detect()`]), run, and where some fail, small edits of the code that
//! they execute are tried, the likeliest first, until the tests pass ([`repair`]). What comes back
//! is patches with their evidence, never a changed project. What tests say of any change is
//! found out the same way ([`trial`]).
//!
//! This crate decides and touches nothing: files and processes are behind [`ForkSource`], which hands
//! out private forks of the project. It must never edit a test, never take output that merely looks
//! like success for a result, and never outlive its budget.
//!
//! ```no_run
//! # fn show(ground: &dyn lula_repair::ForkSource) -> Result<(), lula_repair::RepairError> {
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
//!
//! # Where things are
//!
//! `detect/` says how a project is tested, `suite/` runs its own command with reporters in the
//! environment (`suite/reporter/`) that write where no test prints, `suite/broken/` tells an
//! environment that cannot run tests from code that fails them, `locate/` ranks lines by what
//! failing tests execute, `patches/` proposes edits of the syntax tree, `search/` tries them and
//! keeps those that pass every test and whose removal makes the tests fail again.
#![forbid(unsafe_code)]

pub mod detect;
pub mod environment;
pub mod ground;
mod locate;
pub mod outcome;
mod patches;
mod renamed;
pub mod report;
pub mod results;
mod search;
mod suite;
mod syntax;
pub mod trial;

pub use detect::{
    DetectedTests, ProjectDetection, TestFramework, TestSelection, detect, detect_in,
};
pub use environment::{BrokenEnvironment, CodeOrigin};
pub use ground::{ForkCommand, ForkCommandOutput, ForkSource, ForkSourceError, ProjectFork};
pub use locate::RecentChange;
pub use outcome::{RepairOutcome, RepairPatch, RepairReport};
pub use patches::PatchFamily;
pub use report::{TestCase, TestOutcome, TestReport};
pub use search::{
    RepairError, RepairTask, SearchProgress, TestExamination, examine, repair, run_tests,
};
pub use suite::SuiteError;
pub use syntax::{RepairLanguage, is_test_path};
