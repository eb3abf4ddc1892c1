//! Which recipe counts: the operator's own, kept beside the environments, then one that the repository brings
//! along, then the one that was found out.

use std::path::{Path, PathBuf};

use lula_env::{EnvironmentRecipe, REPOSITORY_RECIPE};
use lula_files::FinalLink;
use lula_protocol::Digest;
use serde::Serialize;

use super::error::BuildRefusal;
use crate::error::HostError;
use crate::installation::Installation;
use crate::network::groups;

const LONGEST: u64 = 256 << 10;

/// Where a recipe comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipeOrigin {
    /// From the files of the project.
    Detected,
    /// From a file in the repository.
    Repository,
    /// From a file of the operator.
    Operator,
}

/// The operator's own recipe for a repository: where it is kept, whether it is there or not.
pub fn operators_recipe(top: &Path, installation: &Installation) -> Result<PathBuf, HostError> {
    let state = installation.state_directory()?;
    let name = Digest::of_bytes(top.as_os_str().as_encoded_bytes()).short();
    Ok(state
        .join("environments/recipes")
        .join(format!("{name}.toml")))
}

/// The recipe that a person wrote for this repository, with its text.
pub(super) fn written(
    top: &Path,
    installation: &Installation,
) -> Result<Option<(EnvironmentRecipe, RecipeOrigin)>, HostError> {
    let own = operators_recipe(top, installation)?;
    if let Some(text) = read(&own, FinalLink::Followed)? {
        return Ok(Some((parse(&text, &own)?, RecipeOrigin::Operator)));
    }
    let brought = top.join(REPOSITORY_RECIPE);
    let Some(text) = read(&brought, FinalLink::Refused)? else {
        return Ok(None);
    };
    let recipe = parse(&text, &brought)?;
    for group in &recipe.network {
        if !groups::names().any(|known| known == group) {
            let file = REPOSITORY_RECIPE.to_owned();
            let group = group.clone();
            return Err(BuildRefusal::StrangeGroup { file, group }.into());
        }
    }
    Ok(Some((recipe, RecipeOrigin::Repository)))
}

fn read(path: &Path, link: FinalLink) -> Result<Option<String>, HostError> {
    lula_files::read_regular_text(path, LONGEST, link).map_err(|error| {
        let file = path.display().to_string();
        let why = error.to_string();
        BuildRefusal::Recipe { file, why }.into()
    })
}

fn parse(text: &str, file: &Path) -> Result<EnvironmentRecipe, HostError> {
    EnvironmentRecipe::from_toml(text).map_err(|error| {
        let file = file.display().to_string();
        let why = error.to_string();
        BuildRefusal::Recipe { file, why }.into()
    })
}

/// The text that an operator begins to edit with: their own recipe, or the one that counts now.
pub fn draft(top: &Path, installation: &Installation) -> Result<String, HostError> {
    let own = operators_recipe(top, installation)?;
    if let Some(text) = read(&own, FinalLink::Followed)? {
        return Ok(text);
    }
    let survey = super::survey(top, installation)?;
    let head = format!(
        "# How the environment of {} is made.\n\
         # `network` names groups (`lula net groups`) or hosts that the steps reach; `path` is put before the\n\
         # search path; each step is a line for the shell, run in the sandbox in `folder`.\n\n",
        top.display()
    );
    Ok(head + &survey.recipe.to_toml())
}

/// Keeps a recipe of the operator, once it was read.
pub fn save(top: &Path, text: &str, installation: &Installation) -> Result<PathBuf, HostError> {
    let path = operators_recipe(top, installation)?;
    parse(text, &path)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(|error| HostError::NoDirectory {
        path: directory.to_owned(),
        error,
    })?;
    crate::output::write_whole(&path, text)?;
    Ok(path)
}
