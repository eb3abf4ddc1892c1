//! What a repository's tests need, told from its own files, and the recipe that makes it.
//!
//! [`detect()`] looks at files and at the programs of the machine, and says with reasons which interpreters,
//! package managers, groups and services a repository asks for, and by which commands that is set up. An
//! [`EnvironmentRecipe`] is those commands as data: the one that was found out, or one that a person wrote.
//! What goes into an environment has a digest ([`EnvironmentInputs`]), and so has the environment.
//!
//! This crate runs nothing, opens no file and reaches no network: files come through a function of the
//! caller. What a repository says is a proposal. Commands run in a sandbox, elsewhere. It depends on
//! `lula-protocol` only.
#![forbid(unsafe_code)]

pub mod detect;
mod inputs;
mod machine;
mod project;
mod recipe;
mod version;

pub use detect::{
    EnvironmentNeeds, EnvironmentPart, MissingTool, NeedReason, NeededService, SetupProposal,
    ToolVersionNeed, detect,
};
pub use inputs::{EnvironmentInputs, InputFile};
pub use machine::{MachineTools, ProgramVersion};
pub use project::ProjectFiles;
pub use recipe::{EnvironmentRecipe, InvalidRecipe, REPOSITORY_RECIPE, RecipeStep, TOOLS_HOME};
pub use version::{VersionNumber, VersionRange};
