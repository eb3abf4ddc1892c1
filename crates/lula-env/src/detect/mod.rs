//! What a repository needs, and how that is set up, from its files alone.
//!
//! Each language has a file here, which says what it found, why, and by which commands a developer would set
//! it up. `hints.rs` collects what the project wrote for others (CI, containers, make): that is shown and
//! never run.

mod cmake;
mod go;
mod hints;
mod java;
mod node;
mod others;
mod python;
mod requirements;
mod rust;
mod tox;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::MachineTools;
use crate::project::ProjectFiles;
use crate::recipe::{EnvironmentRecipe, RecipeStep};

/// Why something is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NeedReason {
    /// The file that says so, from the top of the repository.
    pub file: String,
    pub what: String,
}

/// A version that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolVersionNeed {
    pub tool: String,
    /// As the file writes it.
    pub wanted: String,
    pub file: String,
    /// What is going to be used.
    pub used: Option<String>,
}

/// Something that the environment cannot be made without, or only in part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingTool {
    pub what: String,
    pub remedy: String,
}

/// What one package manager is to set up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EnvironmentPart {
    pub language: &'static str,
    pub manager: &'static str,
    /// From the top of the repository; empty for the top.
    pub folder: String,
    pub because: Vec<NeedReason>,
    pub versions: Vec<ToolVersionNeed>,
    pub missing: Vec<MissingTool>,
    /// Groups of network names.
    pub network: Vec<String>,
    pub path: Vec<String>,
    pub variables: BTreeMap<String, String>,
    pub steps: Vec<RecipeStep>,
    /// Files and directories that are there where a developer has set the project up by hand.
    pub installed: Vec<String>,
}

impl EnvironmentPart {
    fn reason(&mut self, file: impl Into<String>, what: impl Into<String>) {
        self.because.push(NeedReason {
            file: file.into(),
            what: what.into(),
        });
    }

    fn step(&mut self, run: impl Into<String>, because: impl Into<String>) -> &mut RecipeStep {
        self.steps.push(RecipeStep {
            run: run.into(),
            folder: self.folder.clone(),
            because: because.into(),
            ..RecipeStep::default()
        });
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }
}

/// A service that tests may want.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NeededService {
    /// `postgres`, `mysql`, `redis`, …
    pub name: &'static str,
    pub file: String,
    pub line: String,
}

/// What a project wrote for others. It is shown, and never run by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupProposal {
    pub file: String,
    pub what: &'static str,
    pub commands: Vec<String>,
}

/// Everything that was found out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EnvironmentNeeds {
    pub parts: Vec<EnvironmentPart>,
    pub services: Vec<NeededService>,
    pub proposals: Vec<SetupProposal>,
}

impl EnvironmentNeeds {
    /// The commands of all parts.
    pub fn recipe(&self) -> EnvironmentRecipe {
        let mut recipe = EnvironmentRecipe::default();
        for part in &self.parts {
            for group in &part.network {
                if !recipe.network.contains(group) {
                    recipe.network.push(group.clone());
                }
            }
            for path in &part.path {
                if !recipe.path.contains(path) {
                    recipe.path.push(path.clone());
                }
            }
            recipe.variables.extend(part.variables.clone());
            recipe.steps.extend(part.steps.iter().cloned());
        }
        recipe
    }

    /// Whether there is nothing to be set up.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.steps.is_empty())
    }
}

/// What detection knows beside the files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) machine: &'a MachineTools,
    /// Packages that no lock file names are taken as they were on that day (`2024-05-31T00:00:00Z`).
    pub(crate) date: Option<&'a str>,
}

/// Looks at a repository. `date` is the day of the commit at hand: where no lock file says otherwise, packages
/// are taken as they were then.
pub fn detect(
    project: &ProjectFiles<'_>,
    machine: &MachineTools,
    date: Option<&str>,
) -> EnvironmentNeeds {
    let around = Surroundings { machine, date };
    let mut parts = Vec::new();
    let folders = folders(project);
    for folder in &folders {
        parts.extend(python::look(project, folder, around));
        parts.extend(node::look(project, folder, around));
        parts.extend(rust::look(project, folder, around));
        parts.extend(go::look(project, folder, around));
        parts.extend(java::look(project, folder, around));
        parts.extend(cmake::look(project, folder, around));
        parts.extend(others::look(project, folder, around));
        // What lies below a project at the top is part of it.
        if !parts.is_empty() && folder.is_empty() {
            break;
        }
    }
    EnvironmentNeeds {
        parts,
        services: hints::services(project),
        proposals: hints::proposals(project),
    }
}

/// Files that make a folder a project.
const MANIFESTS: [&str; 13] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "Pipfile",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "CMakeLists.txt",
    "Gemfile",
    "composer.json",
    "build.gradle",
];
/// Most projects of a repository that are set up.
const MOST: usize = 8;

/// The top, and where no project is there the folders below that are one.
fn folders(project: &ProjectFiles<'_>) -> Vec<String> {
    let mut found = vec![String::new()];
    for path in project.all() {
        let Some((folder, name)) = path.rsplit_once('/') else {
            continue;
        };
        let aside = |part: &str| {
            matches!(
                part,
                "fixtures"
                    | "test"
                    | "tests"
                    | "testdata"
                    | "examples"
                    | "templates"
                    | "docs"
                    | "node_modules"
                    | "target"
                    | "vendor"
                    | "third_party"
                    | ".venv"
                    | "venv"
            ) || part.starts_with('.')
        };
        let nested = |known: &String| !known.is_empty() && folder.starts_with(&format!("{known}/"));
        if MANIFESTS.contains(&name)
            && folder.split('/').count() <= 2
            && !folder.split('/').any(aside)
            && !found.iter().any(|known| known == folder || nested(known))
        {
            found.push(folder.to_owned());
        }
    }
    found.truncate(MOST + 1);
    found
}

#[cfg(test)]
mod tests;
