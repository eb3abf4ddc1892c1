//! Questions of the runner, which it keeps in the state directory.

use std::sync::Arc;

use lula_gate::approvals::{ApprovalDesk, ApprovalsError, StoredApproval};
use lula_host::HostError;
use lula_host::approvals::local_desk;
use lula_protocol::{ApprovalId, Code};

use crate::problem::{ApiRefusal, ApiResult};
use crate::state::ServerState;

/// A question of the runner, with exactly what it shows.
pub(crate) struct HeldQuestion {
    pub(crate) stored: StoredApproval,
}

impl HeldQuestion {
    /// The question of that id; nothing where the runner has none. Refused where what is kept is not what
    /// was asked.
    pub(crate) async fn load(id: &ApprovalId, state: &Arc<ServerState>) -> ApiResult<Option<Self>> {
        let (id, installation) = (id.clone(), Arc::clone(&state.installation));
        let loaded = tokio::task::spawn_blocking(move || {
            let Some(mut desk) = local_desk(&installation)? else {
                return Ok(None);
            };
            match desk.load(&id) {
                Ok(stored) => Ok(Some(stored)),
                Err(ApprovalsError::Unknown(_)) => Ok(None),
                Err(error) => Err(HostError::from(error)),
            }
        });
        let loaded = loaded
            .await
            .map_err(|error| ApiRefusal::internal(&error))??;
        match loaded {
            Some(stored) if !stored.is_intact() => {
                let detail = format!("what is stored for {} is not what was asked", stored.id());
                Err(ApiRefusal::new(409, Code::ApprovalsUnusable, detail)
                    .remedy("do not approve it: begin the run again"))
            }
            stored => Ok(stored.map(|stored| Self { stored })),
        }
    }
}
