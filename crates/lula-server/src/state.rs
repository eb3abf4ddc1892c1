//! What every request has at hand.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lula_agents::{CodingGraph, CodingState};
use lula_graph::{GraphEngine, RunState};
use lula_host::Installation;
use lula_protocol::{Code, RunId};
use lula_store::{RunRow, RunStore};

use crate::drivers::Drivers;
use crate::events::Feeds;
use crate::identity::{Identity, IdentityCheck};
use crate::limits::RequestLimits;
use crate::metrics::ServerMetrics;
use crate::problem::{ApiRefusal, ApiResult};
use crate::records::ServerRecords;
use crate::repositories::Repositories;
use crate::runs::summaries::Summaries;

/// Everything of one server that requests share.
pub(crate) struct ServerState {
    pub(crate) installation: Arc<Installation>,
    pub(crate) store: Arc<dyn RunStore>,
    /// An engine that only looks.
    pub(crate) reader: GraphEngine<CodingGraph>,
    pub(crate) repositories: Arc<Repositories>,
    pub(crate) records: Arc<ServerRecords>,
    pub(crate) drivers: Arc<Drivers>,
    pub(crate) feeds: Feeds,
    pub(crate) summaries: Summaries,
    pub(crate) identity: IdentityCheck,
    pub(crate) limits: RequestLimits,
    pub(crate) metrics: Arc<ServerMetrics>,
    /// Whether a person may not approve what their own run asks.
    pub(crate) four_eyes: bool,
    /// Set while the server ends.
    pub(crate) draining: AtomicBool,
}

impl ServerState {
    /// A run that the caller may see, by its whole id.
    pub(crate) async fn row(&self, name: &str, identity: &Identity) -> ApiResult<RunRow> {
        let none = || ApiRefusal::new(404, Code::NoSuchRun, "there is no run of that id");
        let run = name.parse::<RunId>().map_err(|_| none())?;
        let row = self.store.run(&run).await?.ok_or_else(none)?;
        let repository = self.summaries.repository(&row, self).await;
        match repository {
            Some(repository) if identity.sees(&repository) => Ok(row),
            _ => Err(none()),
        }
    }

    /// The same, also where it is an agent's part of such a run.
    pub(crate) async fn row_or_agent(&self, name: &str, identity: &Identity) -> ApiResult<RunRow> {
        let refusal = match self.row(name, identity).await {
            Ok(row) => return Ok(row),
            Err(refusal) => refusal,
        };
        let Ok(run) = name.parse::<RunId>() else {
            return Err(refusal);
        };
        let Some(row) = self.store.run(&run).await? else {
            return Err(refusal);
        };
        let known = self.reader.show(&run, None).await?;
        match &known.state.task.handoff {
            Some(handoff) => {
                self.row(handoff.parent.as_str(), identity).await?;
                Ok(row)
            }
            None => Err(refusal),
        }
    }

    /// The state of a run that the caller may see.
    pub(crate) async fn known(
        &self,
        name: &str,
        identity: &Identity,
    ) -> ApiResult<RunState<CodingState>> {
        let row = self.row(name, identity).await?;
        Ok(self.reader.show(&row.run, None).await?)
    }
}
