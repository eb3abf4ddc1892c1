//! The lessons of a repository, derived from the logs of its runs; and those a person wants
//! forgotten, which stand beside the runs because a log is never changed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use lula_agents::Work;
use lula_agents::lessons::{Past, Record, derive};
use lula_agents::work::Event;
use lula_graph::RunState;
use lula_protocol::{Exit, RunId};
use lula_store::{RunFilter, Store, StoreError};
use serde_json::Value;

use super::follow::fetch;
use super::reader;
use super::store::RUNS;
use crate::failure::Failure;
use crate::record::now_ms;
use crate::session::Session;

/// Older runs teach little, and each has to be read.
const RECENT: usize = 200;
/// Whose runs these are, as they are begun here.
const TENANT: &str = "local";

fn file(session: &Session) -> Result<PathBuf, Failure> {
    Ok(session.state_directory()?.join(RUNS).join("forgotten.txt"))
}

fn forgotten(session: &Session) -> Result<BTreeSet<String>, Failure> {
    match std::fs::read_to_string(file(session)?) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error.into()),
    }
}

/// Forgets a lesson for good.
pub(crate) fn forget(id: &str, session: &Session) -> Result<(), Failure> {
    let mut known = forgotten(session)?;
    known.insert(id.to_owned());
    let path = file(session)?;
    let fresh = path.with_extension("new");
    let lines: Vec<String> = known.into_iter().collect();
    std::fs::write(&fresh, format!("{}\n", lines.join("\n")))?;
    Ok(std::fs::rename(&fresh, &path)?)
}

/// The lessons of a repository, of nobody else's runs.
pub(crate) async fn of(
    repository: &str,
    store: Arc<dyn Store>,
    session: &Session,
) -> Result<Vec<Record>, Failure> {
    let filter = RunFilter {
        tenant: Some(TENANT.to_owned()),
        ..RunFilter::default()
    };
    let rows = store.runs(&filter).await?;
    let engine = reader(Arc::clone(&store))?;
    let mut pasts = Vec::new();
    for row in rows.iter().rev().take(RECENT) {
        // A run that cannot be read teaches nothing.
        let Ok(known) = engine.show(&row.run, None).await else {
            continue;
        };
        if known.state.task.repository == repository {
            pasts.push(past(&row.run, &known, &*store).await?);
        }
    }
    Ok(derive(repository, &pasts, &forgotten(session)?, now_ms()))
}

async fn past(run: &RunId, known: &RunState<Work>, store: &dyn Store) -> Result<Past, StoreError> {
    let first = store.read(run, 0, 1).await?;
    let ended = known.progress.ended.as_ref();
    let mut past = Past {
        run: run.clone(),
        at_ms: first.first().map_or(0, |record| record.at_ms),
        failures: Vec::new(),
        recalled: known.state.recalled.clone(),
        verified: ended.map(|ended| ended.exit == Exit::Verified),
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
                if let Ok(Event::Failed { failure }) = serde_json::from_value(value) {
                    past.failures.push((record.seq, failure));
                }
            }
        }
    }
}
