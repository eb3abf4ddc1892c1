//! What an environment is built over, and what of a build belongs to it.
//!
//! A build sees the checkout as a fresh clone would have it: whatever git ignores (an older `.venv`, build
//! results, files with secrets) is hidden by a mask of whiteouts, and of `.git` the files in which credentials
//! may stand. The build writes into a layer. What it made anew is the environment; what it changed of the
//! project's own files is left out, and told.

mod harvest;

use std::path::{Path, PathBuf};

use crate::checkout::CheckoutResult;
use crate::git::GitProgram;
use crate::ignored::{Mask, MaskedListing};
use crate::tree::RootedTree;

pub use harvest::EnvironmentHarvest;

/// What of a git directory a build does not see: credentials may stand there, or programs.
const OF_GIT: [&str; 8] = [
    "config",
    "config.worktree",
    "FETCH_HEAD",
    "hooks",
    "logs",
    "lfs",
    "modules",
    "worktrees",
];

/// A checkout as a build of its environment sees it.
#[derive(Debug)]
pub struct EnvironmentGround {
    checkout: PathBuf,
    mask: PathBuf,
    /// Without a slash at their end.
    hidden: Vec<Vec<u8>>,
}

impl EnvironmentGround {
    /// Makes the mask in `directory`. `git` is asked where the checkout is one of git's.
    pub fn make(
        git: Option<&GitProgram>,
        checkout: &Path,
        directory: &Path,
    ) -> CheckoutResult<Self> {
        let real = RootedTree::open(checkout)?;
        let mut hidden = MaskedListing::of(git, checkout, &real)?;
        let git_directory = checkout.join(".git");
        if git_directory.is_dir() {
            hidden.extend(OF_GIT.map(|name| format!(".git/{name}").into_bytes()));
        } else {
            // A file that leads to a directory elsewhere, which no build sees.
            hidden.push(b".git".to_vec());
        }
        let path = directory.join("mask");
        let mask = Mask::make(&path, &real)?;
        for path in &hidden {
            mask.hide(path)?;
        }
        let plain = |path: Vec<u8>| path.strip_suffix(b"/").map_or(path.clone(), <[u8]>::to_vec);
        Ok(Self {
            checkout: checkout.to_owned(),
            mask: path,
            hidden: hidden.into_iter().map(plain).collect(),
        })
    }

    /// Directories to be mounted below the layer of the build, the uppermost first.
    pub fn lowers(&self) -> Vec<PathBuf> {
        vec![self.mask.clone(), self.checkout.clone()]
    }

    /// Takes what a build made out of its layer, which becomes the environment's upper part; single files go
    /// to `below`.
    pub fn harvest(&self, layer: &Path, below: &Path) -> CheckoutResult<EnvironmentHarvest> {
        EnvironmentHarvest::take(self, layer, below)
    }

    /// Whether the build did not see what lies there.
    fn hides(&self, path: &[u8]) -> bool {
        self.hidden.iter().any(|known| {
            path.strip_prefix(known.as_slice())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    }
}

#[cfg(test)]
mod tests;
