//! What works on this machine, and why not. Each check looks at one thing and changes nothing.

pub mod attack;
mod machine;
mod network;
mod providers;
mod tiers;

use lula_models::discover::DiscoveredProvider;
use serde::Serialize;

use crate::installation::Installation;

pub use network::NETWORK_ATTACKER;
pub use tiers::TierReport;

/// Everything that was found.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    /// Whether the main job can run here.
    pub fit: bool,
    /// The same in a sentence.
    pub summary: String,
    /// Every sandbox tier, strongest first.
    pub tiers: Vec<TierReport>,
    /// Everything else the job needs.
    pub checks: Vec<DoctorCheck>,
    /// Where models could come from.
    pub providers: Vec<DiscoveredProvider>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct DoctorCheck {
    pub name: &'static str,
    pub state: DoctorCheckState,
    pub reason: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DoctorCheckState {
    Good,
    /// The main job runs, but not everything does.
    Limited,
    /// The main job cannot run.
    Bad,
}

impl DoctorCheck {
    fn good(name: &'static str, reason: impl Into<String>) -> Self {
        Self {
            name,
            state: DoctorCheckState::Good,
            reason: reason.into(),
            remedy: None,
        }
    }

    fn not(
        name: &'static str,
        state: DoctorCheckState,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state,
            reason: reason.into(),
            remedy: Some(remedy.into()),
        }
    }
}

/// Examines the whole installation; probes of tiers start real sandboxes.
pub fn examine(installation: &Installation) -> DoctorReport {
    // The servers are asked at the same time as the tiers are tried: both mostly wait.
    let (tiers, providers) = std::thread::scope(|scope| {
        let providers = scope.spawn(|| crate::models::providers(&installation.config));
        (tiers::examine(), providers.join().unwrap_or_default())
    });
    let mut checks = vec![tiers::floor(&tiers, installation)];
    checks.extend(machine::checks(installation));
    checks.push(providers::check(&providers));
    let bad: Vec<_> = checks
        .iter()
        .filter(|check| check.state == DoctorCheckState::Bad)
        .map(|check| check.name)
        .collect();
    let summary = if bad.is_empty() {
        "Lula can work on this machine.".to_owned()
    } else {
        format!(
            "Lula cannot work on this machine yet: see {}.",
            bad.join(", ")
        )
    };
    DoctorReport {
        fit: bad.is_empty(),
        summary,
        tiers,
        checks,
        providers,
    }
}
