//! What a repository needs, what its recipe is, and what is there already.

use std::path::Path;

use lula_env::{
    EnvironmentInputs, EnvironmentNeeds, EnvironmentRecipe, InputFile, ProjectFiles,
    REPOSITORY_RECIPE, detect,
};
use lula_protocol::Digest;
use lula_runner::environments::{EnvironmentFit, INPUTS_FORMAT};
use lula_workspace::SourceDirectory;
use serde::Serialize;

use super::recipes::{RecipeOrigin, written};
use super::{machine, source};
use crate::error::HostError;
use crate::installation::Installation;
use crate::repository;

/// Longest file that is read.
const LONGEST: u64 = 8 << 20;

/// What there is for a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EnvironmentState {
    /// This one was built from the files as they are.
    Ready {
        environment: String,
    },
    /// The developer's own set-up is used.
    OwnInstalled {
        place: String,
    },
    /// One was built before this file changed.
    Outdated {
        environment: String,
        file: String,
    },
    Missing,
    /// The operator wants none.
    Off,
}

/// What was found out about a repository.
#[derive(Debug, Serialize)]
pub struct EnvironmentSurvey {
    pub place: String,
    pub needs: EnvironmentNeeds,
    /// Where the recipe comes from.
    pub origin: RecipeOrigin,
    pub recipe: EnvironmentRecipe,
    #[serde(flatten)]
    pub state: EnvironmentState,
    /// What goes into an environment, and so its digest.
    #[serde(skip)]
    pub(super) inputs: EnvironmentInputs,
    /// The digest of an environment that would be built now.
    pub digest: Digest,
}

impl EnvironmentSurvey {
    /// What a developer's own set-up has in the place of what is built.
    pub(super) fn installed(&self) -> Vec<String> {
        let parts = self.needs.parts.iter();
        parts.flat_map(|part| part.installed.clone()).collect()
    }
}

/// Looks at a repository. Programs of the machine are asked for their version; nothing of the repository is
/// run.
pub fn survey(top: &Path, installation: &Installation) -> Result<EnvironmentSurvey, HostError> {
    let unreadable = |error| HostError::Workspace {
        path: top.to_owned(),
        error,
    };
    let directory = SourceDirectory::at(top).map_err(unreadable)?;
    let listing = directory.list();
    let files: Vec<String> = listing.files.into_iter().map(|file| file.path).collect();
    let read = |path: &str| {
        let bytes = directory.read(path, LONGEST).ok()?;
        String::from_utf8(bytes).ok()
    };
    let project = ProjectFiles::new(&files, &read);
    let tools = machine::tools(top);
    let date = commit_date(top, installation);
    let needs = detect(&project, &tools, date.as_deref());
    let mut inputs = project.inputs();
    inputs.push(InputFile {
        path: REPOSITORY_RECIPE.to_owned(),
        digest: read(REPOSITORY_RECIPE).map(|text| Digest::of_bytes(text.as_bytes())),
    });
    let (recipe, origin) = match written(top, installation)? {
        Some(written) => written,
        None => (needs.recipe(), RecipeOrigin::Detected),
    };
    for path in &recipe.inputs {
        if !inputs.iter().any(|input| input.path == *path) {
            let digest = read(path).map(|text| Digest::of_bytes(text.as_bytes()));
            inputs.push(InputFile {
                path: path.clone(),
                digest,
            });
        }
    }
    inputs.sort_by(|a, b| a.path.cmp(&b.path));
    inputs.dedup();
    let inputs = EnvironmentInputs {
        format: INPUTS_FORMAT,
        place: top.to_string_lossy().into_owned(),
        machine: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        files: inputs,
        tools: machine::named_in(&recipe, &tools),
        recipe: recipe.clone(),
    };
    Ok(EnvironmentSurvey {
        digest: inputs
            .digest()
            .map_err(|error| HostError::Internal(error.to_string()))?,
        place: inputs.place.clone(),
        state: state(top, installation)?,
        needs,
        origin,
        recipe,
        inputs,
    })
}

/// What there is, without looking at more than it takes.
fn state(top: &Path, installation: &Installation) -> Result<EnvironmentState, HostError> {
    let source = source(installation)?;
    if super::choice(installation) == lula_runner::environments::EnvironmentChoice::None {
        return Ok(EnvironmentState::Off);
    }
    Ok(match source.fit(top, top) {
        EnvironmentFit::Fits(found) => EnvironmentState::Ready {
            environment: found.record.name(),
        },
        EnvironmentFit::OwnInstalled(place) => EnvironmentState::OwnInstalled { place },
        EnvironmentFit::Outdated { name, file } => EnvironmentState::Outdated {
            environment: name,
            file,
        },
        EnvironmentFit::NotMade => EnvironmentState::Missing,
    })
}

/// When the commit at hand was made: what no lock file pins is taken as it was on that day.
fn commit_date(top: &Path, installation: &Installation) -> Option<String> {
    if !top.join(".git").exists() {
        return None;
    }
    let git = repository::find_git(installation).ok()?;
    let said = git.run(top, &["log", "-1", "--format=%cI", "HEAD"]).ok()?;
    let date = said.trim();
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | 'T' | '+' | 'Z');
    (date.len() >= 20 && date.len() <= 32 && date.chars().all(plain)).then(|| date.to_owned())
}
