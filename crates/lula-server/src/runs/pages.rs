//! `GET /v1/runs`: the newest first, page by page.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use lula_protocol::RunId;
use lula_store::{RunFilter, RunStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::summaries::RunSummary;
use crate::http::call::RouteCall;
use crate::problem::{ApiRefusal, ApiResult};
use crate::state::ServerState;
use crate::text::json;

/// Runs of a page where no number is asked for, and the most that may be.
const USUAL: usize = 50;
const MOST: usize = 200;
/// So many runs are looked at for one page; where a filter leaves few, the next page goes on.
const LOOKED_AT: usize = 1000;

/// What is asked of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunQuery {
    status: Option<String>,
    standing: Option<String>,
    repository: Option<String>,
    q: Option<String>,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// Runs, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunPage {
    runs: Vec<RunSummary>,
    /// Where the next page begins; nothing after the last.
    next: Option<String>,
}

impl RunQuery {
    fn status(&self) -> ApiResult<Option<RunStatus>> {
        let Some(name) = &self.status else {
            return Ok(None);
        };
        let status = RunStatus::from_name(name);
        let wrong = || {
            ApiRefusal::bad(format!(
                "status is ready, running, suspended or done, not {name:?}"
            ))
        };
        status.map(Some).ok_or_else(wrong)
    }

    fn before(&self) -> ApiResult<Option<RunId>> {
        let cursor = self.cursor.as_deref().map(str::parse::<RunId>);
        let wrong = |_| ApiRefusal::bad("the cursor is none that a page named");
        cursor.transpose().map_err(wrong)
    }

    fn limit(&self) -> ApiResult<usize> {
        match self.limit {
            None => Ok(USUAL),
            Some(limit) if (1..=MOST).contains(&limit) => Ok(limit),
            Some(_) => Err(ApiRefusal::bad(format!(
                "limit is a number from 1 to {MOST}"
            ))),
        }
    }

    fn lets(&self, run: &RunSummary) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        let words = self.q.as_deref().unwrap_or_default().to_lowercase();
        is(&self.standing, &run.standing)
            && is(&self.repository, &run.repository)
            && (run.task.to_lowercase().contains(&words)
                || run.summary.to_lowercase().contains(&words))
    }
}

/// The handler of `GET /v1/runs`.
pub(crate) async fn list(state: Arc<ServerState>, call: RouteCall) -> ApiResult<Response<Body>> {
    let query: RunQuery = call.query()?;
    let (before, limit) = (query.before()?, query.limit()?);
    let filter = RunFilter {
        status: query.status()?,
        ..RunFilter::default()
    };
    let mut rows = state.store.runs(&filter).await?;
    if let Some(before) = before {
        rows.retain(|row| row.run < before);
    }
    let mut page = RunPage {
        runs: Vec::new(),
        next: None,
    };
    for (looked_at, row) in rows.iter().rev().enumerate() {
        if page.runs.len() == limit || looked_at == LOOKED_AT {
            let last = rows.len() - looked_at;
            page.next = rows.get(last).map(|row| row.run.to_string());
            break;
        }
        if let Some(summary) = state.summaries.of(row, &state).await
            && call.identity.sees(&summary.repository)
            && query.lets(&summary)
        {
            page.runs.push(summary);
        }
    }
    json(&page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_size_and_a_cursor_is_a_run() {
        let query = |limit, cursor: Option<&str>| RunQuery {
            limit,
            cursor: cursor.map(str::to_owned),
            ..RunQuery::default()
        };
        assert_eq!(query(None, None).limit().unwrap(), USUAL);
        assert_eq!(query(Some(MOST), None).limit().unwrap(), MOST);
        for bad in [0, MOST + 1] {
            assert_eq!(query(Some(bad), None).limit().unwrap_err().status(), 400);
        }
        assert!(query(None, Some("../x")).before().is_err());
        assert!(query(None, None).before().unwrap().is_none());
    }
}
