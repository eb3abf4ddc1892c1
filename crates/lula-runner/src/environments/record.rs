//! What is kept about an environment, beside it.

use std::path::Path;

use lula_env::EnvironmentInputs;
use lula_protocol::Digest;
use lula_sandbox::ProjectEnvironment;
use serde::{Deserialize, Serialize};

/// How environments are laid out. Another number is another environment.
pub const FORMAT: u32 = 1;

/// An environment, as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentRecord {
    /// The digest of the inputs.
    pub digest: Digest,
    pub inputs: EnvironmentInputs,
    /// Directories that it brings into the project, from the top.
    pub directories: Vec<String>,
    /// Files that it brings where the project has none.
    pub files: Vec<String>,
    /// The project's own files that the build changed: they are shown as they are in the project.
    pub changed: Vec<String>,
    /// What a developer's own set-up has in the place of these directories.
    pub installed: Vec<String>,
    pub bytes: u64,
    /// When it was whole, in Unix milliseconds.
    pub made_ms: u64,
    pub took_ms: u64,
}

impl EnvironmentRecord {
    /// The name in commands and messages.
    pub fn name(&self) -> String {
        name_of(&self.digest)
    }

    /// As sandboxes show it, from the directory that it is kept in.
    pub(super) fn shown(&self, directory: &Path) -> ProjectEnvironment {
        let part = |name: &str| {
            let path = directory.join(name);
            path.is_dir().then_some(path)
        };
        let (path, variables) = surroundings(&self.inputs);
        ProjectEnvironment {
            digest: Some(self.digest),
            above: part(ABOVE),
            below: part(BELOW),
            brings: self
                .directories
                .iter()
                .chain(&self.files)
                .cloned()
                .collect(),
            home: part(HOME),
            being_made: false,
            path,
            variables,
        }
    }
}

/// Names of the parts of an environment in its directory.
pub(super) const ABOVE: &str = "above";
pub(super) const BELOW: &str = "below";
pub(super) const HOME: &str = "home";

pub(super) fn name_of(digest: &Digest) -> String {
    format!("env-{}", digest.short())
}

/// The search path and the variables of commands in an environment with these inputs.
pub(super) fn surroundings(
    inputs: &EnvironmentInputs,
) -> (Vec<String>, std::collections::BTreeMap<String, String>) {
    let place = Path::new(&inputs.place);
    let mut variables = inputs.recipe.variables.clone();
    let mut path = Vec::new();
    for one in &inputs.recipe.path {
        // An absolute one stays as it is.
        let whole = place.join(one).to_string_lossy().into_owned();
        if let Some(virtualenv) = whole.strip_suffix("/.venv/bin") {
            let virtualenv = format!("{virtualenv}/.venv");
            variables
                .entry("VIRTUAL_ENV".to_owned())
                .or_insert(virtualenv);
        }
        path.push(whole);
    }
    (path, variables)
}
