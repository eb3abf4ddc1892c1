//! The lessons of a repository, derived from the logs of its runs; and those a person wants
//! forgotten, which stand beside the runs because a log is never changed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lula_agents::CodingState;
use lula_agents::lessons::{LessonRecord, RunLessonHistory, derive};
use lula_agents::work::RunStateEvent;
use lula_graph::RunState;
use lula_protocol::{RunExit, RunId};
use lula_store::{RunStore, StoreError};
use serde_json::Value;

use super::History;
use crate::error::HostError;
use crate::installation::Installation;
use crate::record::now_ms;
use crate::store::RUNS;
use crate::story::follow::fetch;

/// Whose runs these are, as they are begun here.
const TENANT: &str = "local";

fn file(installation: &Installation) -> Result<PathBuf, HostError> {
    Ok(installation
        .state_directory()?
        .join(RUNS)
        .join("forgotten.txt"))
}

fn forgotten(installation: &Installation) -> Result<BTreeSet<String>, HostError> {
    let path = file(installation)?;
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(HostError::File { path, error }),
    }
}

/// Forgets a lesson for good.
pub fn forget(id: &str, installation: &Installation) -> Result<(), HostError> {
    let mut known = forgotten(installation)?;
    known.insert(id.to_owned());
    let path = file(installation)?;
    let fresh = path.with_extension("new");
    let lines: Vec<String> = known.into_iter().collect();
    std::fs::write(&fresh, format!("{}\n", lines.join("\n")))
        .and_then(|()| std::fs::rename(&fresh, &path))
        .map_err(|error| HostError::File { path, error })
}

impl History {
    /// The lessons of a repository, of one tenant's runs.
    pub async fn lessons(
        &self,
        repository: &str,
        installation: &Installation,
    ) -> Result<Vec<LessonRecord>, HostError> {
        let mut pasts = Vec::new();
        for (tenant, known) in &self.runs {
            if tenant == TENANT && known.state.task.repository(0) == repository {
                pasts.push(past(&known.progress.run, known, &*self.store).await?);
            }
        }
        let forgotten = forgotten(installation)?;
        Ok(derive(repository, &pasts, &forgotten, now_ms()))
    }
}

async fn past(
    run: &RunId,
    known: &RunState<CodingState>,
    store: &dyn RunStore,
) -> Result<RunLessonHistory, StoreError> {
    let first = store.read(run, 0, 1).await?;
    let ended = known.progress.ended.as_ref();
    let mut past = RunLessonHistory {
        run: run.clone(),
        at_ms: first.first().map_or(0, |record| record.at_ms),
        failures: Vec::new(),
        recalled: known.state.recalled.clone(),
        verified: ended.map(|ended| ended.exit == RunExit::Verified),
    };
    if known.state.failures.is_empty() {
        return Ok(past);
    }
    let mut next = 0;
    loop {
        let page = store.read(run, next, 256).await?;
        let Some(last) = page.last() else {
            return Ok(past);
        };
        next = last.seq + 1;
        for record in &page {
            for payload in record.read_body()?.payloads() {
                let value: Value = fetch(store, payload).await;
                if let Ok(RunStateEvent::Failed { failure }) = serde_json::from_value(value) {
                    past.failures.push((record.seq, failure));
                }
            }
        }
    }
}
