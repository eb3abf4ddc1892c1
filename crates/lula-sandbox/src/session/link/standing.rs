//! Waiting until a sandbox stands, and what is known of it then.

use std::time::{Duration, Instant};

use lula_protocol::receipt::{ProtectionLayer, UnappliedProtection};

use super::outcome::micros;
use super::{HelperLink, setup_error};
use crate::error::SandboxError;
use crate::frames::{KernelPosture, UnavailableProtection};

/// How long it took until the sandbox stood, and what it had to do without.
pub(super) struct SandboxReadiness {
    pub(super) setup_us: u64,
    pub(super) held_back: Vec<UnappliedProtection>,
}

impl HelperLink {
    /// Waits until the sandbox stands.
    pub(crate) fn wait_ready(
        &self,
        within: Duration,
    ) -> Result<(KernelPosture, Vec<UnavailableProtection>), SandboxError> {
        let answer = self.wait_until(Some(Instant::now() + within), |state| {
            if let Some((stage, detail, errno)) = state.setup_failure.take() {
                return Some(Err(setup_error(stage, detail, errno)));
            }
            state.ready.clone().map(Ok)
        })?;
        answer.ok_or_else(|| SandboxError::Ended {
            reason: Some("it was not ready in time".to_owned()),
        })
    }

    /// Takes note that the sandbox stands.
    pub(crate) fn stands(&self, after: Duration, held_back: Vec<UnavailableProtection>) {
        let held_back = held_back.into_iter().map(|held| UnappliedProtection {
            asked: held.asked,
            reason: held.reason,
        });
        let _ = self.standing.set(SandboxReadiness {
            setup_us: micros(after),
            held_back: held_back.collect(),
        });
    }

    /// What the sandbox had to do without, as far as it stands.
    pub(crate) fn held_back(&self) -> &[UnappliedProtection] {
        self.standing
            .get()
            .map_or(&[], |standing| &standing.held_back)
    }

    /// The layers a command would have now, from what the sandbox said of itself.
    pub(crate) fn standing_layers(&self, posture: &KernelPosture) -> Vec<ProtectionLayer> {
        let names: Vec<String> = self
            .environment
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        self.context.layers(posture, posture, &names)
    }
}
