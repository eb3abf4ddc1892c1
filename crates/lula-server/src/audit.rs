//! The record of what was done. What a person asks of the server is written down before it is carried out:
//! such an entry says that it was asked, and what came of it is in the log of the run.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use lula_audit::{AuditEnding, AuditFilter};
use lula_config::keys;
use lula_host::record::{self, OperatorAct, append, begin, entry_by};
use lula_protocol::RunId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::call::RouteCall;
use crate::identity::Identity;
use crate::problem::{ApiRefusal, ApiResult};
use crate::runs::OpenDocument;
use crate::state::ServerState;
use crate::text::json;

/// Entries where no number is asked for, and the most that may be.
const USUAL: usize = 100;
const MOST: usize = 1000;

/// Something the server does for a person.
pub(crate) struct ServerAct<'a> {
    pub(crate) tool: &'static str,
    pub(crate) about: String,
    pub(crate) run: Option<&'a RunId>,
}

/// Entries of the record, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditPage {
    /// Whether a record is kept at all.
    kept: bool,
    entries: Vec<OpenDocument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    run: Option<String>,
    limit: Option<usize>,
}

/// Writes down what is about to be done, where a record is kept: what cannot be recorded is not done.
pub(crate) async fn record(
    act: &ServerAct<'_>,
    call: &impl Serialize,
    identity: &Identity,
    state: &Arc<ServerState>,
) -> ApiResult<()> {
    if state.installation.config.get(&keys::AUDIT_MODE) == "off" {
        return Ok(());
    }
    let mut entry = entry_by(
        identity.principal.clone(),
        OperatorAct {
            tool: act.tool,
            about: act.about.clone(),
            call,
            outcome: AuditEnding::Done { status: None },
            receipt: None,
            diff: None,
        },
    )?;
    entry.run = act.run.cloned();
    let installation = Arc::clone(&state.installation);
    let written = tokio::task::spawn_blocking(move || match begin(&installation)? {
        Some(mut log) => append(&mut log, entry),
        None => Ok(()),
    });
    let written = written
        .await
        .map_err(|error| ApiRefusal::internal(&error))?;
    Ok(written?)
}

/// The handler of `GET /v1/audit`.
pub(crate) async fn list(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let query: AuditQuery = call.query()?;
    let run = query.run.as_deref().map(str::parse::<RunId>);
    let run = run
        .transpose()
        .map_err(|_| ApiRefusal::bad("run is no id of a run"))?;
    let limit = query.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(ApiRefusal::bad(format!(
            "limit is a number from 1 to {MOST}"
        )));
    }
    let kept = state.installation.config.get(&keys::AUDIT_MODE) != "off";
    let directory = record::directory(&state.installation)?;
    let filter = AuditFilter {
        run,
        last: Some(limit),
        ..AuditFilter::default()
    };
    let shown = tokio::task::spawn_blocking(move || {
        if directory.exists() {
            lula_audit::show(&directory, &filter)
        } else {
            Ok(Vec::new())
        }
    });
    let shown = shown.await.map_err(|error| ApiRefusal::internal(&error))?;
    let shown = shown.map_err(lula_host::HostError::from)?;
    let entries = shown.iter().map(|entry| {
        let value = serde_json::to_value(entry);
        value
            .map(OpenDocument)
            .map_err(|error| ApiRefusal::internal(&error))
    });
    json(&AuditPage {
        kept,
        entries: entries.collect::<ApiResult<_>>()?,
    })
}
