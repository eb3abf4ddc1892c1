//! Environments of projects: what one needs, building it, proving it, and keeping the store in order.
//!
//! Set-up and work have two networks: a build reaches the registries that its recipe names, and what runs in
//! the environment afterwards reaches what it is granted. A repository proposes: its files are read here and
//! nothing of it is run outside of a sandbox, and a recipe that it brings along names no host.

mod build;
mod check;
mod error;
mod machine;
mod manage;
mod recipes;
mod survey;

use std::path::Path;

use lula_config::keys;
use lula_runner::environments::{EnvironmentChoice, EnvironmentSource};

use crate::error::HostError;
use crate::installation::Installation;

pub use build::{BuildRequest, BuiltEnvironment, build};
pub use check::check;
pub use error::BuildRefusal;
pub use manage::{EnvironmentListing, PrunedEnvironments, export, import, list, prune, remove};
pub use recipes::{RecipeOrigin, draft, operators_recipe, save};
pub use survey::{EnvironmentState, EnvironmentSurvey, survey};

/// The word of `--env` that has a run build what is missing.
pub const BUILD: &str = "build";

/// Where environments come from, as the configuration has it.
pub fn source(installation: &Installation) -> Result<EnvironmentSource, HostError> {
    let state = installation.state_directory()?;
    Ok(EnvironmentSource::new(&state, choice(installation)))
}

/// What the environment of a repository brings into it, from its top; nothing where it has none.
pub fn brought(top: &Path, installation: &Installation) -> Result<Vec<String>, HostError> {
    let found = source(installation)?.find(top, top)?;
    Ok(found
        .map(|found| found.record.directories)
        .unwrap_or_default())
}

/// What the operator said about the environment.
pub fn choice(installation: &Installation) -> EnvironmentChoice {
    let word = installation.config.get(&keys::ENVIRONMENT_USE);
    let Ok(choice) = word.parse();
    choice
}

/// Builds the environment of a repository before a run, where the operator wants that and none fits.
pub fn ensure(
    top: &Path,
    watch: &dyn lula_runner::environments::BuildProgress,
    installation: &Installation,
) -> Result<Option<BuiltEnvironment>, HostError> {
    if installation.config.get(&keys::ENVIRONMENT_USE) != BUILD {
        return Ok(None);
    }
    let survey = survey(top, installation)?;
    if !matches!(
        survey.state,
        EnvironmentState::Missing | EnvironmentState::Outdated { .. }
    ) || survey.recipe.steps.is_empty()
    {
        return Ok(None);
    }
    build(&BuildRequest::of(top), watch, installation).map(Some)
}
