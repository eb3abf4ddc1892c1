//! Sandbox tiers: tried, not guessed.

use std::time::Duration;

use lula_config::keys;
use lula_protocol::IsolationTier;
use lula_sandbox::policy::Profile;
use lula_sandbox::{HostToolchains, Sandbox, SandboxCommand, SandboxEngine, SandboxError};
use serde::Serialize;

use super::{DoctorCheck, DoctorCheckState};
use crate::installation::Installation;

/// How long a tier has to run `/bin/true`.
const TRIAL: Duration = Duration::from_secs(3);

/// How a tier stands on this machine.
#[derive(Debug, Serialize)]
pub struct TierReport {
    pub name: IsolationTier,
    /// Whether a command ran in it.
    pub available: bool,
    /// Why, or why not.
    pub reason: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// What stands around a command there.
    pub layers: Vec<String>,
}

/// Every tier, strongest first. A tier works if a command ran through it just now.
pub(super) fn examine() -> Vec<TierReport> {
    let engine = SandboxEngine::start();
    let report = |name: IsolationTier| match &engine {
        Ok(engine) => attempt(engine, name),
        Err(error) => unavailable(name, error.to_string(), None),
    };
    IsolationTier::ALL.into_iter().rev().map(report).collect()
}

fn attempt(engine: &SandboxEngine, name: IsolationTier) -> TierReport {
    let mut policy = Profile::Build.policy();
    policy.min_tier = name;
    if name == IsolationTier::Process {
        // It is no boundary and has no layers to require.
        policy.required_layers.clear();
    }
    let sandbox = Sandbox::new(policy, std::env::temp_dir())
        .tier(name)
        .toolchains(HostToolchains::none());
    let command = SandboxCommand::new("/bin/true")
        .directory("/")
        .timeout(TRIAL);
    match engine
        .open(&sandbox)
        .and_then(|installation| installation.run(&command))
    {
        Ok(finished) if finished.succeeded() => TierReport {
            name,
            available: true,
            reason: if name == IsolationTier::Process {
                "works, but is no boundary: only by name".to_owned()
            } else {
                "works".to_owned()
            },
            remedy: None,
            layers: finished
                .receipt
                .layers
                .iter()
                .map(|layer| layer.name().to_owned())
                .collect(),
        },
        Ok(finished) => unavailable(
            name,
            format!("/bin/true ended with {:?}", finished.receipt.ended),
            None,
        ),
        Err(SandboxError::Setup {
            stage,
            detail,
            source,
            remedy,
        }) => unavailable(name, format!("{stage} ({detail}): {source}"), remedy),
        Err(SandboxError::FloorNotMet { refusals, .. }) if refusals.len() == 1 => {
            let refusal = &refusals[0];
            unavailable(name, refusal.reason.clone(), refusal.remedy.clone())
        }
        Err(error) => unavailable(name, error.to_string(), None),
    }
}

fn unavailable(name: IsolationTier, reason: String, remedy: Option<String>) -> TierReport {
    TierReport {
        name,
        available: false,
        reason,
        remedy,
        layers: Vec::new(),
    }
}

/// Whether some tier meets the floor.
pub(super) fn floor(tiers: &[TierReport], installation: &Installation) -> DoctorCheck {
    let floor = installation.config.get(&keys::SANDBOX_MIN_TIER);
    let floor = IsolationTier::from_name(&floor).unwrap_or(IsolationTier::Microvm);
    let met = tiers
        .iter()
        .find(|tier| tier.available && tier.name >= floor);
    match met {
        Some(tier) => DoctorCheck::good(
            "sandbox",
            format!("{} (at least {floor} is wanted)", tier.name),
        ),
        None => DoctorCheck::not(
            "sandbox",
            DoctorCheckState::Bad,
            format!("no tier at or above {floor} works here"),
            "see the reasons above, or lower sandbox.min_tier",
        ),
    }
}
