//! Runs by name, an engine that only looks at them, and the key their logs are sealed with.

use std::future::Future;
use std::sync::Arc;

use lula_agents::{CodingGraph, ReadOnlyWorld};
use lula_graph::{EngineOptions, GraphEngine, SigningKey};
use lula_protocol::RunId;
use lula_store::{RunFilter, RunStore};

use crate::error::HostError;
use crate::installation::Installation;

/// Runs something that waits, and leaves no thread waited for behind it.
pub fn block_on<T, E: From<HostError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(HostError::NoRuntime)?;
    let done = runtime.block_on(work);
    // A search in a fork that nobody waits for any more ends with the process.
    runtime.shutdown_background();
    done
}

/// An engine that only looks.
pub fn reader(store: Arc<dyn RunStore>) -> Result<GraphEngine<CodingGraph>, HostError> {
    Ok(GraphEngine::new(
        CodingGraph,
        store,
        Arc::new(ReadOnlyWorld),
        EngineOptions::default(),
    )?)
}

/// The key this installation seals logs with, made when it is first needed.
pub fn seal_key(installation: &Installation) -> Result<SigningKey, HostError> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let directory = installation.state_directory()?;
    let path = directory.join("seal.key");
    let unusable = |error: &dyn std::fmt::Display| HostError::SealKey {
        path: path.clone(),
        why: error.to_string(),
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
pub async fn named(store: &dyn RunStore, name: &str) -> Result<RunId, HostError> {
    let none = HostError::NoSuchRun;
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
