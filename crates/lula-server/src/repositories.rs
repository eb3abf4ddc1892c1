//! The repositories this server works on. A request names one of them; it never names a path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lula_config::keys;
use lula_host::repository::{around, find_git};
use lula_host::{HostError, Installation};
use serde::Serialize;
use utoipa::ToSchema;

use crate::identity::Identity;
use crate::problem::{ApiRefusal, ApiResult};

/// Longest name of a repository.
const LONGEST: usize = 64;

/// A repository as requests know it.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredRepository {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The configuration as it is in this repository.
    pub(crate) installation: Arc<Installation>,
}

impl RegisteredRepository {
    /// Refuses a model that the configuration of this repository does not name.
    pub(crate) fn offers(&self, model: &str) -> ApiResult<()> {
        let usual = self.installation.config.get(&keys::MODELS_USE);
        if usual.iter().any(|one| one == model) {
            return Ok(());
        }
        Err(
            ApiRefusal::forbidden(format!("{model:?} is no model of this server"))
                .remedy("models.use holds those that may be named"),
        )
    }
}

/// All of them, by the order of the configuration.
#[derive(Debug)]
pub(crate) struct Repositories(Vec<RegisteredRepository>);

/// One of them, for clients.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RepositoryEntry {
    /// As a request names it.
    name: String,
}

/// The repositories that a caller may use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RepositoryEntries {
    repositories: Vec<RepositoryEntry>,
}

fn refused(why: String) -> HostError {
    HostError::TaskRefused {
        why,
        remedy: "server.repositories holds PATH or NAME=PATH, with names of letters, digits, '.', '_' and '-'",
    }
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !text.is_empty() && text.len() <= LONGEST && text.chars().all(plain)
}

/// A name and a path from one entry of the configuration. A name of its own stands before `=`.
fn named(entry: &str) -> (Option<&str>, &Path) {
    match entry.split_once('=') {
        Some((name, path)) if is_name(name) => (Some(name), Path::new(path)),
        _ => (None, Path::new(entry)),
    }
}

impl Repositories {
    /// Those of the configuration, or the one around this directory.
    pub(crate) fn of(installation: &Installation) -> Result<Self, HostError> {
        let git = find_git(installation)?;
        let mut entries = installation.config.get(&keys::SERVER_REPOSITORIES);
        if entries.is_empty() {
            entries.push(".".to_owned());
        }
        let mut all: Vec<RegisteredRepository> = Vec::new();
        for entry in &entries {
            let (name, path) = named(entry);
            let (top, _) = around(Some(path), &git)?;
            let last = top.file_name().map(|name| name.to_string_lossy());
            let last = last.unwrap_or_default();
            let name = name.unwrap_or(&last).to_owned();
            if !is_name(&name) {
                let why = format!("the repository {} needs a name", top.display());
                return Err(refused(why));
            }
            if let Some(same) = all.iter().find(|one| one.name == name || one.path == top) {
                let why = format!(
                    "{} and {} are registered as one",
                    same.path.display(),
                    entry
                );
                return Err(refused(why));
            }
            let installation = Arc::new(installation.around(&top)?);
            all.push(RegisteredRepository {
                name,
                path: top,
                installation,
            });
        }
        Ok(Self(all))
    }

    /// The name of the repository at a path.
    pub(crate) fn name_of(&self, path: &str) -> Option<&str> {
        let found = self.0.iter().find(|one| one.path == Path::new(path));
        found.map(|one| one.name.as_str())
    }

    /// The one of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&RegisteredRepository> {
        self.0.iter().find(|one| one.name == name)
    }

    /// Those that the caller may use.
    fn seen<'a>(&'a self, by: &'a Identity) -> impl Iterator<Item = &'a RegisteredRepository> {
        self.0.iter().filter(|one| by.sees(&one.name))
    }

    /// The one that a request means: by its name, or the only one there is.
    pub(crate) fn meant<'a>(
        &'a self,
        name: Option<&str>,
        by: &'a Identity,
    ) -> ApiResult<&'a RegisteredRepository> {
        let mut seen = self.seen(by);
        let Some(name) = name else {
            return match (seen.next(), seen.next()) {
                (Some(only), None) => Ok(only),
                _ => Err(ApiRefusal::bad(
                    "several repositories are registered: name one",
                )),
            };
        };
        let found = seen.find(|one| one.name == name);
        found.ok_or_else(|| ApiRefusal::nowhere(format!("no repository {name:?} is registered")))
    }

    pub(crate) fn entries(&self, by: &Identity) -> RepositoryEntries {
        let entry = |one: &RegisteredRepository| RepositoryEntry {
            name: one.name.clone(),
        };
        RepositoryEntries {
            repositories: self.seen(by).map(entry).collect(),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|one| one.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_path_or_is_its_last_part() {
        assert_eq!(named("/srv/a"), (None, Path::new("/srv/a")));
        assert_eq!(named("api=/srv/a"), (Some("api"), Path::new("/srv/a")));
        // No name, so part of the path.
        assert_eq!(named("/srv/a=b"), (None, Path::new("/srv/a=b")));
        assert!(!is_name("") && !is_name("../x") && !is_name(&"x".repeat(65)));
    }
}
