//! Where runs are kept.

use std::path::PathBuf;
use std::sync::Arc;

use lula_config::keys;
use lula_models::secret::KeyRef;
use lula_protocol::{Code, Exit};
use lula_store::postgres::PostgresOptions;
use lula_store::redis::RedisOptions;
use lula_store::sqlite::SqliteOptions;
use lula_store::{PostgresStore, RedisStore, SecretGuard, SqliteStore, Store};

use crate::failure::Failure;
use crate::session::Session;

/// Where the brain keeps what it knows, in the state directory.
pub(crate) const RUNS: &str = "runs";

fn unusable(message: impl Into<String>) -> Failure {
    Failure::new(Code::StoreUnusable, Exit::Environment, message)
        .remedy("`lula config explain store.url` shows where runs are kept")
}

/// The file of the default store.
pub(crate) fn default_file(session: &Session) -> Result<PathBuf, Failure> {
    // A directory of its own: whoever drives runs is kept out of the rest of the state.
    let directory = session.state_directory()?.join(RUNS);
    std::fs::create_dir_all(&directory).map_err(|error| {
        unusable(format!(
            "the state directory {} cannot be made: {error}",
            directory.display()
        ))
    })?;
    Ok(directory.join("runs.db"))
}

/// The store that the configuration names.
pub(crate) async fn open(session: &Session, guard: SecretGuard) -> Result<Arc<dyn Store>, Failure> {
    let url = session.config.get(&keys::STORE_URL);
    if url.is_empty() {
        let options = SqliteOptions {
            guard,
            ..SqliteOptions::default()
        };
        return Ok(Arc::new(SqliteStore::open(
            default_file(session)?,
            options,
        )?));
    }
    at(&url, guard).await
}

/// The store at an address, or at the address a reference leads to.
pub(crate) async fn at(url: &str, guard: SecretGuard) -> Result<Arc<dyn Store>, Failure> {
    let address = if let Ok(reference) = url.parse::<KeyRef>() {
        let secret = reference.resolve();
        let secret = secret.map_err(|error| unusable(error.to_string()))?;
        secret.lend(str::to_owned)
    } else {
        if has_password(url) {
            return Err(unusable(
                "the address of the store holds a password, and configuration is no place for \
                     one",
            )
            .remedy("keep the whole address elsewhere and name the place: env:NAME, file:PATH"));
        }
        url.to_owned()
    };
    let known = |kinds: &[&str]| kinds.iter().any(|kind| address.starts_with(kind));
    if known(&["postgres://", "postgresql://"]) {
        let options = PostgresOptions {
            guard,
            ..PostgresOptions::default()
        };
        return Ok(Arc::new(PostgresStore::connect(&address, options).await?));
    }
    if known(&["redis://", "rediss://", "unix://"]) {
        let options = RedisOptions {
            guard,
            ..RedisOptions::default()
        };
        return Ok(Arc::new(RedisStore::connect(&address, options).await?));
    }
    let path = address.strip_prefix("sqlite:").unwrap_or(&address);
    if path.contains("://") {
        return Err(unusable(
            "the address of the store begins with neither postgres:// nor redis://",
        ));
    }
    let options = SqliteOptions {
        guard,
        ..SqliteOptions::default()
    };
    Ok(Arc::new(SqliteStore::open(path, options)?))
}

/// Whether an address holds a password before its host.
fn has_password(url: &str) -> bool {
    url.split_once("://").is_some_and(|(_, rest)| {
        let before = rest.split_once('@').map_or("", |(user, _)| user);
        before.contains(':') || rest.contains("password=")
    })
}

#[cfg(test)]
mod tests {
    use super::has_password;

    #[test]
    fn a_password_in_an_address_is_seen() {
        assert!(has_password("postgres://ada:secret@host/db"));
        assert!(has_password("redis://:secret@host"));
        assert!(has_password("postgres://host/db?password=x"));
        assert!(!has_password("postgres://ada@host/db"));
        assert!(!has_password("runs.db"));
    }
}
