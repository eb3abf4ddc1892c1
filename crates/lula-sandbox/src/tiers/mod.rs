//! Which isolation works here: found by running a command through each tier, not by looking.

mod cache;
mod keeper;
mod remedy;

use std::time::Duration;

use lula_protocol::{IsolationTier, SandboxReceipt};

use crate::built_in::TRIAL;
use crate::error::SandboxError;
use crate::mounts::HostToolchains;
use crate::policy::{Profile, SandboxPolicy};
use crate::session::{Sandbox, SandboxCommand, SandboxEngine};

pub(crate) use remedy::remedy;

/// How long a tier has to run a program that does nothing.
const LONGEST_TRIAL: Duration = Duration::from_secs(3);

/// The tiers this engine can build, strongest first. `process` is not among them: it is never
/// chosen, only named.
const CHOSEN: [IsolationTier; 2] = [IsolationTier::Namespace, IsolationTier::Landlock];

/// What a receipt says a sandbox was to have, where `/proc` shows processes outside of it.
pub const OWN_PROC: &str = "a /proc of its own";

/// Why a tier is not used.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierRefusal {
    /// The tier that is not used.
    pub tier: IsolationTier,
    pub reason: String,
    /// What a person can do about it, where we know.
    pub remedy: Option<String>,
}

/// Whether this engine knows how to build a tier at all.
pub(crate) fn is_built_here(tier: IsolationTier) -> bool {
    tier == IsolationTier::Process || CHOSEN.contains(&tier)
}

impl TierRefusal {
    pub(crate) fn not_built(tier: IsolationTier) -> Self {
        Self {
            tier,
            reason: "this version does not have it yet".to_owned(),
            remedy: None,
        }
    }

    pub(crate) fn below_floor(tier: IsolationTier) -> Self {
        Self {
            tier,
            reason: "it is weaker than the policy's floor".to_owned(),
            remedy: Some("lower min_tier in the policy".to_owned()),
        }
    }
}

impl std::fmt::Display for TierRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.tier, self.reason)?;
        if let Some(remedy) = &self.remedy {
            write!(f, " ({remedy})")?;
        }
        Ok(())
    }
}

/// The strongest tier at or above the floor that runs a command here.
pub(crate) fn choose(
    engine: &SandboxEngine,
    floor: IsolationTier,
) -> Result<IsolationTier, SandboxError> {
    let mut refusals = Vec::new();
    for tier in CHOSEN {
        if tier < floor {
            refusals.push(TierRefusal::below_floor(tier));
            continue;
        }
        match verdict(engine, tier, floor) {
            Ok(()) => return Ok(tier),
            Err(refusal) => refusals.push(refusal),
        }
    }
    Err(SandboxError::FloorNotMet { floor, refusals })
}

/// Whether each tier works here in some way, tried now or remembered from the same boot and program.
pub fn survey(engine: &SandboxEngine) -> Vec<(IsolationTier, Result<(), TierRefusal>)> {
    CHOSEN
        .into_iter()
        .chain([IsolationTier::Process])
        .map(|tier| (tier, verdict(engine, tier, IsolationTier::Process)))
        .collect()
}

fn verdict(
    engine: &SandboxEngine,
    tier: IsolationTier,
    floor: IsolationTier,
) -> Result<(), TierRefusal> {
    let mut policy = Profile::Strict.policy();
    // As a floor, a tier has to be all that it stands for.
    policy.min_tier = floor.min(tier);
    // What the tier itself stands for, and not what control groups add to it.
    policy
        .required_layers
        .retain(|layer| layers_of(tier).contains(&layer.name()));
    let key = cache::TierCacheKey::of(engine.helper(), tier, policy.min_tier);
    if let Some(key) = &key
        && let Some(known) = cache::recall(key)
    {
        return known;
    }
    let verdict = attempt(engine, policy, tier).map(drop);
    if let Some(key) = &key {
        cache::remember(key, &verdict);
    }
    verdict
}

/// Runs a program through a tier that does nothing and is part of the helper, and gives its receipt.
pub fn attempt(
    engine: &SandboxEngine,
    policy: SandboxPolicy,
    tier: IsolationTier,
) -> Result<SandboxReceipt, TierRefusal> {
    let refused = |reason: String, remedy| TierRefusal {
        tier,
        reason,
        remedy,
    };
    let sandbox = Sandbox::new(policy, std::env::temp_dir())
        .tier(tier)
        .toolchains(HostToolchains::none());
    let run = engine.open_in(tier, &sandbox).and_then(|session| {
        let command = SandboxCommand::built_in(TRIAL.name)
            .directory("/")
            .timeout(LONGEST_TRIAL);
        session.run(&command)
    });
    match run {
        Ok(finished) if finished.succeeded() => Ok(finished.receipt),
        Ok(finished) => Err(refused(
            format!("a program in it ended with {:?}", finished.receipt.ended),
            None,
        )),
        Err(SandboxError::Setup {
            stage,
            detail,
            source,
            remedy,
        }) => Err(refused(format!("{stage} ({detail}): {source}"), remedy)),
        Err(SandboxError::FloorNotMet { mut refusals, .. }) if refusals.len() == 1 => {
            Err(refusals.remove(0))
        }
        Err(error) => Err(refused(error.to_string(), None)),
    }
}

/// Layers without which a tier is not that tier.
fn layers_of(tier: IsolationTier) -> &'static [&'static str] {
    match tier {
        IsolationTier::Namespace => &[
            "namespaces",
            "private_root",
            "landlock",
            "seccomp",
            "no_new_privileges",
            "no_capabilities",
            "no_network",
            "clean_environment",
        ],
        IsolationTier::Landlock => &[
            "landlock",
            "seccomp",
            "no_new_privileges",
            "no_capabilities",
            "no_network",
            "clean_environment",
        ],
        _ => &["clean_environment"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weakest_tier_is_never_chosen() {
        assert!(!CHOSEN.contains(&IsolationTier::Process));
        assert!(CHOSEN.is_sorted_by(|stronger, weaker| stronger > weaker));
    }
}
