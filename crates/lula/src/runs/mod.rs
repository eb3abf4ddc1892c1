//! Runs as the commands use them: where they are kept, who drives them, and what is seen of them.

pub(crate) mod board;
pub(crate) mod consent;
pub(crate) mod contest;
pub(crate) mod crew;
pub(crate) mod environment;
pub(crate) mod evidence;
pub(crate) mod fence;
pub(crate) mod follow;
pub(crate) mod labels;
pub(crate) mod lessons;
pub(crate) mod mailbox;
pub(crate) mod minds;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod standing;
pub(crate) mod store;
pub(crate) mod story;
pub(crate) mod view;
pub(crate) mod words;
pub(crate) mod worker;

use std::future::Future;
use std::sync::Arc;

use lula_agents::{Coding, NoWorld};
use lula_graph::{Engine, EngineError, Options, SigningKey};
use lula_protocol::{Code, Exit, RunId};
use lula_store::{RunFilter, Store, StoreError};

use crate::failure::Failure;
use crate::session::Session;

/// Runs something that waits, and leaves no thread waited for behind it.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            let message = format!("this process cannot wait for anything: {error}");
            Failure::new(Code::Internal, Exit::Environment, message)
        })?;
    let done = runtime.block_on(work);
    // A search in a fork that nobody waits for any more ends with the process.
    runtime.shutdown_background();
    done
}

/// An engine that only looks.
pub(crate) fn reader(store: Arc<dyn Store>) -> Result<Engine<Coding>, Failure> {
    Ok(Engine::new(
        Coding,
        store,
        Arc::new(NoWorld),
        Options::default(),
    )?)
}

/// The key this installation seals logs with, made when it is first needed.
pub(crate) fn seal_key(session: &Session) -> Result<SigningKey, Failure> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let directory = session.state_directory()?;
    let path = directory.join("seal.key");
    let unusable = |error: &dyn std::fmt::Display| {
        let message = format!("the key {} cannot be used: {error}", path.display());
        Failure::new(Code::FileAccess, Exit::Environment, message)
    };
    // Where runs are kept in a server, nothing else has made it.
    std::fs::create_dir_all(&directory).map_err(|error| unusable(&error))?;
    let mut fresh = [0; 32];
    getrandom::fill(&mut fresh).map_err(|error| unusable(&error))?;
    let create = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    match create {
        Ok(mut file) => {
            file.write_all(&fresh).map_err(|error| unusable(&error))?;
            file.sync_all().map_err(|error| unusable(&error))?;
            Ok(SigningKey::from_bytes(&fresh))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let bytes = std::fs::read(&path).map_err(|error| unusable(&error))?;
            let bytes: [u8; 32] = bytes
                .try_into()
                .map_err(|_| unusable(&"it does not hold 32 bytes"))?;
            Ok(SigningKey::from_bytes(&bytes))
        }
        Err(error) => Err(unusable(&error)),
    }
}

/// The run a person means: an id, the end of one, or `last`.
pub(crate) async fn named(store: &dyn Store, name: &str) -> Result<RunId, Failure> {
    let none = |message: String| {
        Failure::new(Code::NoSuchRun, Exit::Usage, message).remedy("`lula runs` lists them")
    };
    if let Ok(run) = name.parse::<RunId>() {
        return match store.run(&run).await? {
            Some(_) => Ok(run),
            None => Err(none(format!("there is no run {run} here"))),
        };
    }
    let rows = store.runs(&RunFilter::default()).await?;
    if name == "last" {
        let last = rows.last().map(|row| row.run.clone());
        return last.ok_or_else(|| none("there is no run here yet".to_owned()));
    }
    let mut fitting = rows.iter().filter(|row| row.run.as_str().ends_with(name));
    match (fitting.next(), fitting.next()) {
        (Some(row), None) => Ok(row.run.clone()),
        (None, _) => Err(none(format!("no run is called {name:?}"))),
        (Some(_), Some(_)) => Err(none(format!("several runs end with {name:?}"))),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (code, exit, remedy) = match &error {
            StoreError::NoRun(_) => (Code::NoSuchRun, Exit::Usage, "`lula runs` lists them"),
            StoreError::CorruptBlob(_)
            | StoreError::NoBlob(_)
            | StoreError::CorruptEvent { .. }
            | StoreError::BrokenLog { .. } => (
                Code::LogBroken,
                Exit::Failed,
                "do not rely on it; `lula store restore FILE` brings a backup back",
            ),
            StoreError::Fenced { .. } => (
                Code::RunBusy,
                Exit::Failed,
                "another process went on with the run",
            ),
            _ => (
                Code::StoreUnusable,
                Exit::Environment,
                "`lula config explain store.url` shows where runs are kept",
            ),
        };
        Self::new(code, exit, error.to_string()).remedy(remedy)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::History { .. } | EngineError::Payload { .. } => {
                Self::new(Code::LogBroken, Exit::Failed, error.to_string())
            }
            EngineError::Fork { .. } | EngineError::Version { .. } => {
                Self::new(Code::RunRefused, Exit::Usage, error.to_string())
            }
            EngineError::Table { .. } | EngineError::Random(_) => {
                Self::new(Code::Internal, Exit::Failed, error.to_string())
            }
        }
    }
}
