//! Public projects as recipes: where the source is, how a developer sets it up, what its tests say.
//! Nothing of the projects themselves is in this repository.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

const RECIPES: &str = include_str!("../../../eval/real/projects.json");

/// One real project, with the bugs that are put into it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    pub(super) name: String,
    pub(super) registry: Registry,
    pub(super) version: String,
    /// Commands that set it up, as its developers do.
    pub(super) setup: Vec<String>,
    /// The command that a developer types.
    pub(super) test: String,
    pub(super) expected: Counts,
    pub(super) bug: Bug,
    /// Whether its tests need nothing installed, so that a fresh clone can be worked on as it is.
    #[serde(default)]
    pub(super) standalone: bool,
    /// What is given to `lula run --tests`, where the command is not to be found out.
    #[serde(default)]
    pub(super) tests: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Registry {
    Pypi,
    Crates,
    Npm,
}

/// How many tests ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counts {
    pub(super) passed: usize,
    #[serde(default)]
    pub(super) failed: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.passed, self.failed)
    }
}

/// A bug that is put into the project: one operator, changed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bug {
    pub(super) file: String,
    pub(super) old: String,
    pub(super) new: String,
}

/// Those of these names, or all.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Recipe>> {
    let mut recipes: Vec<Recipe> =
        serde_json::from_str(RECIPES).context("eval/real/projects.json")?;
    for name in names {
        ensure!(
            recipes.iter().any(|recipe| recipe.name == *name),
            "no recipe is called {name:?}; there are: {}",
            recipes
                .iter()
                .map(|recipe| recipe.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    recipes.retain(|recipe| names.is_empty() || names.contains(&recipe.name));
    Ok(recipes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_can_be_read_and_there_are_enough() {
        let all = chosen(&[]).unwrap();
        assert!(all.len() >= 12, "{}", all.len());
        for recipe in &all {
            assert_ne!(recipe.bug.old, recipe.bug.new, "{}", recipe.name);
            assert!(recipe.expected.passed > 0, "{}", recipe.name);
        }
        assert!(chosen(&["nothing".to_owned()]).is_err());
    }
}
