//! What a build of an environment does not see of a checkout: everything that a fresh clone would not have,
//! but work that a person has not added yet.

use std::path::Path;

use super::{IgnoredListing, is_installed, secrets};
use crate::checkout::CheckoutResult;
use crate::git::GitProgram;
use crate::tree::RootedTree;

/// Names of directories that are installed or built, where no rule of git says so.
const INSTALLED: [&str; 7] = [
    ".venv/",
    "venv/",
    "env/",
    "node_modules/",
    "target/",
    "build/",
    ".tox/",
];

/// Paths to be hidden.
pub(crate) struct MaskedListing;

impl MaskedListing {
    /// What git ignores, what is known to hold secrets, and what is installed.
    pub(crate) fn of(
        git: Option<&GitProgram>,
        checkout: &Path,
        real: &RootedTree,
    ) -> CheckoutResult<Vec<Vec<u8>>> {
        let inside = git.filter(|git| {
            let said = git.run(checkout, &["rev-parse", "--is-inside-work-tree"]);
            checkout.join(".git").exists() && said.is_ok_and(|text| text.trim() == "true")
        });
        let Some(git) = inside else {
            let installed = INSTALLED.map(|name| name.as_bytes().to_vec());
            let mut hidden: Vec<Vec<u8>> = installed
                .into_iter()
                .filter(|path| is_installed(real, path))
                .collect();
            hidden.extend(secrets::among(real, &super::children(&real.top, b"")));
            return Ok(hidden);
        };
        let listed = IgnoredListing::ask(git, checkout)?;
        let mut hidden = listed.ignored;
        hidden.extend(secrets::among(real, &listed.untracked));
        let installed = listed.untracked.into_iter();
        hidden.extend(installed.filter(|path| is_installed(real, path)));
        for path in listed.submodules {
            hidden.push([&path, b"/.git".as_slice()].concat());
        }
        Ok(hidden)
    }
}
