//! Runs by name, an engine that only looks at them, and the key their logs are sealed with.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use lula_agents::{CodingGraph, ReadOnlyWorld};
use lula_files::{PrivateFileError, private_or_new};
use lula_graph::{EngineOptions, GraphEngine, SigningKey};
use lula_protocol::RunId;
use lula_store::{RunFilter, RunStore};

use crate::error::HostError;
use crate::installation::Installation;

const SEAL_KEY_BYTES: usize = 32;

/// Runs something that waits, and leaves no thread waited for behind it.
pub fn block_on<T, E: From<HostError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(HostError::NoRuntime)?;
    let done = runtime.block_on(work);
    // A search in a fork that no caller waits for any more ends with the process.
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
    seal_key_in(&installation.state_directory()?)
}

fn seal_key_in(directory: &Path) -> Result<SigningKey, HostError> {
    let path = directory.join("seal.key");
    let unusable = |error: &dyn std::fmt::Display| HostError::SealKey {
        path: path.clone(),
        why: error.to_string(),
    };
    // Where runs are kept in a server, nothing else has made it.
    std::fs::create_dir_all(directory).map_err(|error| unusable(&error))?;
    let bytes = private_or_new(&path, SEAL_KEY_BYTES as u64, || {
        let mut fresh = vec![0; SEAL_KEY_BYTES];
        getrandom::fill(&mut fresh).map_err(|_| PrivateFileError::NoRandomness)?;
        Ok::<_, PrivateFileError>(fresh)
    })
    .map_err(|error| unusable(&error))?;
    let bytes: [u8; SEAL_KEY_BYTES] = bytes
        .try_into()
        .map_err(|_| unusable(&"it does not hold 32 bytes"))?;
    Ok(SigningKey::from_bytes(&bytes))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_seal_key_is_made_once_and_private() {
        let state = tempfile::tempdir().unwrap();
        let directory = state.path().join("state");
        let first = seal_key_in(&directory).unwrap();
        let again = seal_key_in(&directory).unwrap();
        assert_eq!(first.to_bytes(), again.to_bytes());
        let path = directory.join("seal.key");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_seal_key_that_others_can_read_is_refused() {
        let state = tempfile::tempdir().unwrap();
        seal_key_in(state.path()).unwrap();
        let path = state.path().join("seal.key");
        for mode in [0o644, 0o640, 0o602] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let error = seal_key_in(state.path()).unwrap_err().to_string();
            assert!(error.contains("not private"), "{error}");
        }
    }
}
