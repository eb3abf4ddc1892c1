//! git, and the repository that a directory is part of.

use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_workspace::GitProgram;

use crate::error::HostError;
use crate::installation::Installation;

/// The git that the configuration names, or the first on the search path.
pub fn find_git(installation: &Installation) -> Result<GitProgram, HostError> {
    let directories = std::env::var_os("PATH");
    let configured = installation.config.get(&keys::GIT_PROGRAM);
    Ok(GitProgram::find(&configured, directories.as_deref())?)
}

/// The repository around a directory, which has to have a commit, and the directory itself.
pub fn around(named: Option<&Path>, git: &GitProgram) -> Result<(PathBuf, PathBuf), HostError> {
    let here = named.unwrap_or(Path::new("."));
    let here = here
        .canonicalize()
        .map_err(|error| HostError::NoSuchDirectory {
            path: here.to_owned(),
            error,
        })?;
    let top = git
        .run(&here, &["rev-parse", "--show-toplevel"])
        .map_err(|error| HostError::NotARepository {
            path: here.clone(),
            error,
        })?;
    let top = PathBuf::from(top.trim_end_matches('\n'));
    git.run(&top, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        .map_err(|_| HostError::EmptyRepository(top.clone()))?;
    Ok((top, here))
}
