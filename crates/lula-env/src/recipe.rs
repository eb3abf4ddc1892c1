//! The commands that make an environment, as data that a person can read and edit.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// A recipe that a repository brings along. It proposes: it names no host, and its commands run in the
/// sandbox like any other.
pub const REPOSITORY_RECIPE: &str = ".lula-environment.toml";

/// Where an environment keeps what does not lie in the repository: tools, package caches. The same inside
/// every sandbox.
pub const TOOLS_HOME: &str = "/home/user/.environment";

/// Most commands, and the longest of them.
const STEPS: usize = 64;
const LONGEST: usize = 16 << 10;
/// Names that decide what a program loads, or belong to the sandbox.
const RESERVED: [&str; 5] = ["HOME", "USER", "TMPDIR", "SHELL", "LD_PRELOAD"];

/// One command of a recipe.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeStep {
    /// A line for the shell.
    pub run: String,
    /// The folder in which it runs, from the top of the repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// What is run instead where it fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<String>,
    /// Whether the environment is good without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Why it is there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub because: String,
}

/// How an environment is made, and what commands in it are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentRecipe {
    /// Groups of network names that the commands reach (`lula net groups`).
    #[serde(default)]
    pub network: Vec<String>,
    /// Files beside those that were looked at, a change of which makes another environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Directories before all others on the search path: from the top of the repository, or absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Variables of everything that runs in the environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    #[serde(default, rename = "step")]
    pub steps: Vec<RecipeStep>,
}

/// Why a text is no recipe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecipe {
    #[error("{0}")]
    Toml(String),
    #[error("{0}")]
    Content(String),
}

impl EnvironmentRecipe {
    pub fn from_toml(text: &str) -> Result<Self, InvalidRecipe> {
        let recipe: Self =
            toml::from_str(text).map_err(|error| InvalidRecipe::Toml(error.to_string()))?;
        recipe.checked()
    }

    fn checked(self) -> Result<Self, InvalidRecipe> {
        let bad = |text: String| Err(InvalidRecipe::Content(text));
        if self.steps.len() > STEPS {
            return bad(format!("a recipe has at most {STEPS} steps"));
        }
        for step in &self.steps {
            let lines = std::iter::once(&step.run).chain(&step.otherwise);
            if step.run.trim().is_empty() {
                return bad("a step has a command in `run`".to_owned());
            }
            if lines.into_iter().any(|line| line.len() > LONGEST) {
                return bad(format!("a command has at most {LONGEST} bytes"));
            }
            if !is_below(&step.folder) {
                return bad(format!("folder {:?} is not in the repository", step.folder));
            }
        }
        for path in &self.inputs {
            if !is_below(path) {
                return bad(format!("input {path:?} is not in the repository"));
            }
        }
        for path in &self.path {
            let inside = path.starts_with(&format!("{TOOLS_HOME}/"));
            if path.contains([':', '\n']) || path.contains("..") || !(is_below(path) || inside) {
                return bad(format!(
                    "path {path:?} is neither in the repository nor below {TOOLS_HOME}"
                ));
            }
        }
        for (name, value) in &self.variables {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(plain) || value.contains('\0') {
                return bad(format!("{name:?} is no variable"));
            }
            if RESERVED.contains(&name.as_str()) || name.starts_with("LULA_") {
                return bad(format!("the variable {name} belongs to the sandbox"));
            }
        }
        Ok(self)
    }

    /// For a person, with its reasons.
    pub fn to_toml(&self) -> String {
        let mut text = format!("network = {}\n", list(&self.network));
        for (name, values) in [("inputs", &self.inputs), ("path", &self.path)] {
            if !values.is_empty() {
                let _ = writeln!(text, "{name} = {}", list(values));
            }
        }
        if !self.variables.is_empty() {
            text.push_str("\n[variables]\n");
            for (name, value) in &self.variables {
                let _ = writeln!(text, "{name} = {}", quoted(value));
            }
        }
        for step in &self.steps {
            text.push_str("\n[[step]]\n");
            if !step.because.is_empty() {
                let _ = writeln!(text, "because = {}", quoted(&step.because));
            }
            if !step.folder.is_empty() {
                let _ = writeln!(text, "folder = {}", quoted(&step.folder));
            }
            let _ = writeln!(text, "run = {}", quoted(&step.run));
            if !step.otherwise.is_empty() {
                let _ = writeln!(text, "otherwise = {}", list(&step.otherwise));
            }
            if step.optional {
                text.push_str("optional = true\n");
            }
        }
        text
    }
}

/// Whether a path of plain names lies below the top, or is the top.
fn is_below(path: &str) -> bool {
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    path.is_empty() || (!path.contains('\0') && path.split('/').all(plain))
}

/// A string of TOML. Those of JSON are, but for one character that they may hold as it is.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}

fn list(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read_as_it_was_written() {
        let recipe = EnvironmentRecipe {
            network: vec!["pypi".to_owned()],
            inputs: vec!["deps/list.txt".to_owned()],
            path: vec![".venv/bin".to_owned()],
            variables: [("A".to_owned(), "say \"x\"\n".to_owned())].into(),
            steps: vec![RecipeStep {
                run: "pip install -e '.[test]'".to_owned(),
                folder: "python".to_owned(),
                otherwise: vec!["pip install -e .".to_owned()],
                optional: true,
                because: "pyproject.toml has an extra `test`".to_owned(),
            }],
        };
        assert_eq!(EnvironmentRecipe::from_toml(&recipe.to_toml()), Ok(recipe));
    }

    #[test]
    fn a_recipe_reaches_neither_outside_nor_into_the_sandbox() {
        for bad in [
            "[[step]]\nrun = \"a\"\nfolder = \"../x\"",
            "[[step]]\nrun = \"a\"\nfolder = \"/etc\"",
            "[[step]]\nrun = \"\"",
            "inputs = [\"../secret\"]",
            "path = [\"/usr/bin\"]",
            "path = [\"/home/user/.environment/../x\"]",
            "[variables]\nLD_PRELOAD = \"x.so\"",
            "[variables]\nLULA_STATE = \"x\"",
            "[variables]\n\"A B\" = \"x\"",
            "hosts = [\"evil.example\"]",
        ] {
            assert!(EnvironmentRecipe::from_toml(bad).is_err(), "{bad}");
        }
    }
}
