//! What tests are run in: whether it can run them, and whether they test the project's own code.

use serde::{Deserialize, Serialize};

/// The tests could not be run, for a reason that no change of the code helps. Nothing is searched for
/// and no model is asked: the developer has to install something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BrokenEnvironment {
    /// In one sentence, what is wrong.
    pub what: String,
    /// What is missing, by the name it is installed under.
    pub missing: Vec<String>,
    /// The interpreter or toolchain that was used, with its version.
    pub interpreter: Option<String>,
    /// The exact command that was run.
    pub command: String,
    /// The last lines of what it printed.
    pub output: String,
    /// The command that would install what is missing.
    pub remedy: Option<String>,
}

impl std::fmt::Display for BrokenEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

/// Where the code that tests exercise was found to come from, before a baseline is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CodeOrigin {
    /// What was asked for, as in `import flask`.
    pub name: String,
    /// The path it resolves to inside.
    pub path: String,
}
