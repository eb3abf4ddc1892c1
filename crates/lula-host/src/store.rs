//! Where runs are kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lula_config::keys;
use lula_models::secret::ModelKeyReference;
use lula_store::postgres::PostgresOptions;
use lula_store::redis::RedisOptions;
use lula_store::sqlite::SqliteOptions;
use lula_store::{
    Durability, PostgresStore, RedisStore, RunStore, SecretGuard, ServerTransport, SqliteStore,
    StoreError,
};

use crate::error::HostError;
use crate::installation::Installation;

/// Where the driver keeps what it knows, in the state directory.
pub const RUNS: &str = "runs";
/// Name of the database where the configuration names no store.
const FILE: &str = "runs.db";

fn unusable(message: impl Into<String>) -> HostError {
    HostError::StoreAddress(message.into())
}

/// The file of the default store.
pub fn default_file(installation: &Installation) -> Result<PathBuf, HostError> {
    // A directory of its own: a driver is kept out of the rest of the state.
    let directory = installation.state_directory()?.join(RUNS);
    std::fs::create_dir_all(&directory).map_err(|error| {
        unusable(format!(
            "the state directory {} cannot be made: {error}",
            directory.display()
        ))
    })?;
    Ok(directory.join(FILE))
}

/// Whether there is anything to look at: the default file comes into being with the first run.
pub fn is_there(installation: &Installation) -> Result<bool, HostError> {
    let elsewhere = !installation.config.get(&keys::STORE_URL).is_empty();
    Ok(elsewhere
        || installation
            .state_directory()?
            .join(RUNS)
            .join(FILE)
            .exists())
}

/// How stores are opened: everything the configuration says but the address.
pub struct StoreOpenOptions {
    durability: Durability,
    accept_loss: bool,
    transport: ServerTransport,
    guard: SecretGuard,
}

impl StoreOpenOptions {
    /// As the configuration says, and watching for these secrets.
    pub fn of(installation: &Installation, guard: SecretGuard) -> Self {
        let config = &installation.config;
        let ca = config.get(&keys::STORE_CA);
        Self {
            durability: match config.get(&keys::STORE_DURABILITY).as_str() {
                "process-crash" => Durability::ProcessCrash,
                _ => Durability::PowerLoss,
            },
            accept_loss: config.get(&keys::STORE_ACCEPT_LOSS) == "yes",
            transport: ServerTransport {
                ca: (!ca.is_empty()).then(|| PathBuf::from(ca)),
                cleartext_password: config.get(&keys::STORE_CLEARTEXT_PASSWORD) == "yes",
            },
            guard,
        }
    }

    /// A store in a file.
    pub fn file(self, path: impl AsRef<Path>) -> Result<SqliteStore, HostError> {
        let options = SqliteOptions {
            durability: self.durability,
            guard: self.guard,
            ..SqliteOptions::default()
        };
        let path = path.as_ref();
        SqliteStore::open(path, options).map_err(|error| explained(path, error))
    }

    /// The store at an address, or at the address a reference leads to.
    pub async fn at(self, url: &str) -> Result<Arc<dyn RunStore>, HostError> {
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
pub async fn open(
    installation: &Installation,
    guard: SecretGuard,
) -> Result<Arc<dyn RunStore>, HostError> {
    let manner = StoreOpenOptions::of(installation, guard);
    let url = installation.config.get(&keys::STORE_URL);
    if url.is_empty() {
        return Ok(Arc::new(manner.file(default_file(installation)?)?));
    }
    manner.at(&url).await
}

/// The store of a process that is going to drive runs, opened once: what it looked up before it is locked
/// in and what it writes afterwards go through it.
pub struct DriverStore {
    /// Where the runs are kept.
    pub runs: Arc<dyn RunStore>,
    /// Learns the keys of models as soon as a task names them.
    pub(crate) guard: SecretGuard,
}

impl DriverStore {
    /// Opens the store that the configuration names. It has no thread until it is written to by several:
    /// the lock of the driver's process holds for threads that begin after it.
    pub async fn open(installation: &Installation) -> Result<Self, HostError> {
        let guard = SecretGuard::default();
        let runs = open(installation, guard.clone()).await?;
        Ok(Self { runs, guard })
    }
}

/// SQLite says that it cannot open a file, not why.
fn explained(file: &Path, error: StoreError) -> HostError {
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
fn address(url: &str) -> Result<String, HostError> {
    if let Ok(reference) = url.parse::<ModelKeyReference>() {
        let secret = reference.resolve();
        let secret = secret.map_err(|error| unusable(error.to_string()))?;
        return Ok(secret.lend(str::to_owned));
    }
    if has_password(url) {
        return Err(HostError::PasswordInAddress);
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
