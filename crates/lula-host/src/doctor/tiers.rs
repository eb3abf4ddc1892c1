//! Sandbox tiers: tried, not guessed.

use lula_config::keys;
use lula_protocol::{IsolationTier, SandboxReceipt};
use lula_sandbox::policy::Profile;
use lula_sandbox::{SandboxEngine, tiers};
use serde::Serialize;

use super::{DoctorCheck, DoctorCheckState};
use crate::installation::Installation;

/// How a tier stands on this machine.
#[derive(Debug, Serialize)]
pub struct TierReport {
    pub name: IsolationTier,
    /// Whether a command ran in it.
    pub available: bool,
    /// Whether it is all that it stands for, so that a policy may name it as its least tier.
    pub is_floor: bool,
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
    let refusal = match tiers::attempt(engine, policy.clone(), name) {
        Ok(receipt) => {
            let text = if name == IsolationTier::Process {
                "works, but is no boundary: only by name"
            } else {
                "works"
            };
            return available(name, text.to_owned(), &receipt);
        }
        Err(refusal) => refusal,
    };
    if name != IsolationTier::Namespace {
        return unavailable(name, refusal.reason, refusal.remedy);
    }
    // It may still be better than the tiers below it.
    policy.min_tier = IsolationTier::Landlock;
    match tiers::attempt(engine, policy, name) {
        Ok(receipt) => {
            let missing = receipt.not_applied.iter();
            let reason = missing
                .filter(|missing| missing.asked == tiers::OWN_PROC)
                .map(|missing| format!(", without {}: {}", missing.asked, missing.reason));
            let reason: String = reason.collect();
            TierReport {
                is_floor: false,
                remedy: refusal.remedy,
                ..available(
                    name,
                    format!("works where less is allowed{reason}"),
                    &receipt,
                )
            }
        }
        Err(_) => unavailable(name, refusal.reason, refusal.remedy),
    }
}

fn available(name: IsolationTier, reason: String, receipt: &SandboxReceipt) -> TierReport {
    TierReport {
        name,
        available: true,
        is_floor: true,
        reason,
        remedy: None,
        layers: receipt
            .layers
            .iter()
            .map(|layer| layer.name().to_owned())
            .collect(),
    }
}

fn unavailable(name: IsolationTier, reason: String, remedy: Option<String>) -> TierReport {
    TierReport {
        name,
        available: false,
        is_floor: false,
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
        .find(|tier| tier.available && (tier.name > floor || tier.is_floor && tier.name == floor));
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
