//! Public projects as recipes: where the source is, how a developer sets it up, what its tests say.
//! Nothing of the projects themselves is in this repository.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

const RECIPES: &str = include_str!("../../../eval/real/projects.json");

/// One real project, with the bugs that are put into it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    pub(super) name: String,
    pub(super) registry: Registry,
    /// The `owner/name` of a public repository, where the source is taken from git.
    #[serde(default)]
    pub(super) repository: Option<String>,
    /// Of a repository, the commit.
    #[serde(alias = "commit")]
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
    /// Whether the bug has to be mended. Where this is not said, it is told and not judged; where it is
    /// false, its language is not repaired, and nothing may be.
    #[serde(default)]
    pub(super) repaired: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Registry {
    Pypi,
    Crates,
    Npm,
    Debian,
    Git,
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

impl Recipe {
    /// What the format cannot say: a repository has a name, and its commit is whole.
    fn check(&self) -> Result<()> {
        let Self {
            name,
            repository,
            version,
            ..
        } = self;
        if self.registry != Registry::Git {
            ensure!(
                repository.is_none(),
                "{name}: only a source from git has a repository"
            );
            return Ok(());
        }
        let Some((owner, project)) = repository.as_deref().and_then(|text| text.split_once('/'))
        else {
            bail!("{name}: a source from git needs a repository, as owner/name");
        };
        let plain = |text: &str| {
            let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
            !text.is_empty() && !text.contains(odd)
        };
        ensure!(
            plain(owner) && plain(project),
            "{name}: {owner}/{project} is no owner/name"
        );
        ensure!(
            version.len() == 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{name}: a commit has 40 hexadecimal digits, not {version:?}"
        );
        Ok(())
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
pub(super) fn chosen(names: &[String], file: Option<&Path>) -> Result<Vec<Recipe>> {
    let mut recipes: Vec<Recipe> = match file {
        Some(path) => {
            let place = || path.display().to_string();
            serde_json::from_str(&fs::read_to_string(path).with_context(place)?)
                .with_context(place)?
        }
        None => serde_json::from_str(RECIPES).context("eval/real/projects.json")?,
    };
    for recipe in &recipes {
        recipe.check()?;
    }
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
        let all = chosen(&[], None).unwrap();
        assert!(all.len() >= 12, "{}", all.len());
        for recipe in &all {
            assert_ne!(recipe.bug.old, recipe.bug.new, "{}", recipe.name);
            assert!(recipe.expected.passed > 0, "{}", recipe.name);
        }
        assert!(chosen(&["nothing".to_owned()], None).is_err());
    }

    #[test]
    fn a_source_from_git_needs_its_repository_and_a_whole_commit() {
        let recipe = |source: &str| {
            let text = format!(
                r#"{{"name": "one", {source}, "setup": [], "test": "true",
                    "expected": {{"passed": 1}}, "bug": {{"file": "a", "old": "b", "new": "c"}}}}"#
            );
            serde_json::from_str::<Recipe>(&text).unwrap().check()
        };
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let git = |repository: &str, commit: &str| {
            recipe(&format!(
                r#""registry": "git", "repository": "{repository}", "commit": "{commit}""#
            ))
        };
        assert!(git("owner/name.js", commit).is_ok());
        assert!(git("owner/name.js", "main").is_err());
        assert!(git("owner", commit).is_err());
        assert!(git("owner/name/more", commit).is_err());
        assert!(git("owner/$(name)", commit).is_err());
        assert!(recipe(&format!(r#""registry": "git", "commit": "{commit}""#)).is_err());
        let of_npm = r#""registry": "npm", "repository": "owner/name", "version": "1.0.0""#;
        assert!(recipe(of_npm).is_err());
    }
}
