//! Sandbox tiers: tried, not guessed.

use std::time::Duration;

use lula_config::keys;
use lula_protocol::Tier;
use lula_sandbox::policy::Profile;
use lula_sandbox::{Command, Engine, Sandbox, SandboxError, Toolchains};
use serde::Serialize;

use super::{Check, State};
use crate::session::Session;

/// How long a tier has to run `/bin/true`.
const TRIAL: Duration = Duration::from_secs(3);

/// How a tier stands on this machine.
#[derive(Debug, Serialize)]
pub(crate) struct TierReport {
    pub(crate) name: Tier,
    pub(crate) available: bool,
    pub(crate) reason: String,
    pub(crate) remedy: Option<String>,
    pub(crate) layers: Vec<String>,
}

/// Every tier, strongest first. A tier works if a command ran through it just now.
pub(super) fn examine() -> Vec<TierReport> {
    let engine = Engine::start();
    let report = |name: Tier| match &engine {
        Ok(engine) => attempt(engine, name),
        Err(error) => unavailable(name, error.to_string(), None),
    };
    Tier::ALL.into_iter().rev().map(report).collect()
}

fn attempt(engine: &Engine, name: Tier) -> TierReport {
    let mut policy = Profile::Build.policy();
    policy.min_tier = name;
    if name == Tier::Process {
        // It is no boundary and has no layers to require.
        policy.required_layers.clear();
    }
    let sandbox = Sandbox::new(policy, std::env::temp_dir())
        .tier(name)
        .toolchains(Toolchains::none());
    let command = Command::new("/bin/true").directory("/").timeout(TRIAL);
    match engine
        .open(&sandbox)
        .and_then(|session| session.run(&command))
    {
        Ok(finished) if finished.succeeded() => TierReport {
            name,
            available: true,
            reason: if name == Tier::Process {
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

fn unavailable(name: Tier, reason: String, remedy: Option<String>) -> TierReport {
    TierReport {
        name,
        available: false,
        reason,
        remedy,
        layers: Vec::new(),
    }
}

/// Whether some tier meets the floor.
pub(super) fn floor(tiers: &[TierReport], session: &Session) -> Check {
    let floor = session.config.get(&keys::SANDBOX_MIN_TIER);
    let floor = Tier::from_name(&floor).unwrap_or(Tier::Microvm);
    let met = tiers
        .iter()
        .find(|tier| tier.available && tier.name >= floor);
    match met {
        Some(tier) => Check::good(
            "sandbox",
            format!("{} (at least {floor} is wanted)", tier.name),
        ),
        None => Check::not(
            "sandbox",
            State::Bad,
            format!("no tier at or above {floor} works here"),
            "see the reasons above, or lower sandbox.min_tier",
        ),
    }
}
