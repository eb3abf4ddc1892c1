//! Where runs are kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lula_config::keys;
use lula_models::secret::KeyRef;
use lula_protocol::{Code, Exit};
use lula_store::postgres::PostgresOptions;
use lula_store::redis::RedisOptions;
use lula_store::sqlite::SqliteOptions;
use lula_store::{
    Durability, PostgresStore, RedisStore, SecretGuard, SqliteStore, Store, StoreError, Transport,
};

use crate::failure::Failure;
use crate::session::Session;

/// Where the brain keeps what it knows, in the state directory.
pub(crate) const RUNS: &str = "runs";
/// The default file.
const FILE: &str = "runs.db";

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
    Ok(directory.join(FILE))
}

/// Whether there is anything to look at: the default file comes into being with the first run.
pub(crate) fn is_there(session: &Session) -> Result<bool, Failure> {
    let elsewhere = !session.config.get(&keys::STORE_URL).is_empty();
    Ok(elsewhere || session.state_directory()?.join(RUNS).join(FILE).exists())
}

/// How stores are opened: everything the configuration says but the address.
pub(crate) struct Manner {
    durability: Durability,
    accept_loss: bool,
    transport: Transport,
    guard: SecretGuard,
}

impl Manner {
    /// As the configuration says, and watching for these secrets.
    pub(crate) fn of(session: &Session, guard: SecretGuard) -> Self {
        let config = &session.config;
        let ca = config.get(&keys::STORE_CA);
        Self {
            durability: match config.get(&keys::STORE_DURABILITY).as_str() {
                "process-crash" => Durability::ProcessCrash,
                _ => Durability::PowerLoss,
            },
            accept_loss: config.get(&keys::STORE_ACCEPT_LOSS) == "yes",
            transport: Transport {
                ca: (!ca.is_empty()).then(|| PathBuf::from(ca)),
                cleartext_password: config.get(&keys::STORE_CLEARTEXT_PASSWORD) == "yes",
            },
            guard,
        }
    }

    /// A store in a file.
    pub(crate) fn file(self, path: impl AsRef<Path>) -> Result<SqliteStore, Failure> {
        let options = SqliteOptions {
            durability: self.durability,
            guard: self.guard,
            ..SqliteOptions::default()
        };
        let path = path.as_ref();
        SqliteStore::open(path, options).map_err(|error| explained(path, error))
    }

    /// The store at an address, or at the address a reference leads to.
    pub(crate) async fn at(self, url: &str) -> Result<Arc<dyn Store>, Failure> {
        let address = address(url)?;
        let known = |kinds: &[&str]| kinds.iter().any(|kind| address.starts_with(kind));
        if known(&["postgres://", "postgresql://"]) {
            let options = PostgresOptions {
                durability: self.durability,
                transport: self.transport,
                guard: self.guard,
                ..PostgresOptions::default()
            };
            return Ok(Arc::new(PostgresStore::connect(&address, options).await?));
        }
        if known(&["redis://", "rediss://", "unix://"]) {
            let options = RedisOptions {
                durability: self.durability,
                accept_loss: self.accept_loss,
                transport: self.transport,
                guard: self.guard,
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
        Ok(Arc::new(self.file(path)?))
    }
}

/// The store that the configuration names.
pub(crate) async fn open(session: &Session, guard: SecretGuard) -> Result<Arc<dyn Store>, Failure> {
    let manner = Manner::of(session, guard);
    let url = session.config.get(&keys::STORE_URL);
    if url.is_empty() {
        return Ok(Arc::new(manner.file(default_file(session)?)?));
    }
    manner.at(&url).await
}

/// SQLite says that it cannot open a file, not why.
fn explained(file: &Path, error: StoreError) -> Failure {
    let opened = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(file);
    match opened {
        Ok(_) => error.into(),
        Err(reason) => unusable(format!("{} cannot be written: {reason}", file.display())),
    }
}

/// An address as it is, or the one that a reference leads to.
fn address(url: &str) -> Result<String, Failure> {
    if let Ok(reference) = url.parse::<KeyRef>() {
        let secret = reference.resolve();
        let secret = secret.map_err(|error| unusable(error.to_string()))?;
        return Ok(secret.lend(str::to_owned));
    }
    if has_password(url) {
        return Err(unusable(
            "the address of the store holds a password, and configuration is no place for one",
        )
        .remedy("keep the whole address elsewhere and name the place: env:NAME, file:PATH"));
    }
    Ok(url.to_owned())
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
