//! Questions of a runner elsewhere. What it shows is checked against what would be signed: a runner
//! cannot have something approved that it did not show.

use std::path::Path;

use lula_config::variables::RUNNER_KEY;
use lula_protocol::{ApprovalDecision, ApprovalId};
use lula_runner_api::ApprovalView;
use lula_runner_api::client::{RunnerAddress, RunnerClient};

use crate::approvals::sign;
use crate::error::HostError;
use crate::runs::block_on;

/// A runner that is asked about its questions.
pub struct RemoteApprovals {
    client: RunnerClient,
}

impl RemoteApprovals {
    /// The runner at an address, with the key of this environment.
    pub fn at(address: &str) -> Result<Self, HostError> {
        let address = address
            .parse::<RunnerAddress>()
            .map_err(|error| HostError::TaskRefused {
                why: error.to_string(),
                remedy: "for example --runner 10.0.0.5:7070",
            })?;
        let bearer = std::env::var(RUNNER_KEY).ok().filter(|key| !key.is_empty());
        Ok(Self {
            client: RunnerClient::new(address, bearer.map(Into::into)),
        })
    }

    /// A question, where the runner shows what it asks about.
    pub fn question(&self, id: &ApprovalId) -> Result<ApprovalView, HostError> {
        let view = block_on(async {
            let asked = self.client.approval(id).await;
            asked.map_err(HostError::VoteRefused)
        })?;
        if view.is_intact() {
            Ok(view)
        } else {
            Err(HostError::ApprovalForged(id.clone()))
        }
    }

    /// Answers with the key in a file.
    pub fn answer(
        &self,
        question: &ApprovalView,
        key: Option<&Path>,
        decision: ApprovalDecision,
    ) -> Result<ApprovalView, HostError> {
        let Some(file) = key else {
            return Err(HostError::TaskRefused {
                why: "there is no key to answer with".to_owned(),
                remedy: "give --key FILE",
            });
        };
        let role = question.role.as_deref();
        let token = sign(file, &question.challenge, role, decision)?;
        block_on(async {
            let voted = self.client.vote(&token).await;
            voted.map_err(HostError::VoteRefused)
        })
    }
}
