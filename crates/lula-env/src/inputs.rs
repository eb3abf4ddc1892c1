//! Everything that goes into an environment, and its digest.

use lula_protocol::canonical::CanonicalError;
use lula_protocol::digest::{Digest, DigestDomain};
use serde::{Deserialize, Serialize};

use crate::recipe::EnvironmentRecipe;

/// A file that an environment depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// From the top of the repository.
    pub path: String,
    /// What it held; nothing where it was looked for and not there.
    pub digest: Option<Digest>,
}

/// What an environment is made of. Two environments with the same digest are the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentInputs {
    /// The form of environments that this program makes.
    pub format: u32,
    /// Where the repository lies: environments know their path.
    pub place: String,
    pub machine: String,
    /// The files of the repository that decide.
    pub files: Vec<InputFile>,
    pub recipe: EnvironmentRecipe,
    /// Programs of the machine that it was made with, each with what tells it from another version.
    pub tools: Vec<String>,
}

impl EnvironmentInputs {
    /// The digest that receipts and bundles name.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        Digest::of(DigestDomain::Environment, self)
    }
}
