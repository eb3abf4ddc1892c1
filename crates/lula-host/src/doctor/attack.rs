//! Attacking a tier with every built-in probe.

use std::collections::BTreeMap;
use std::fmt::Write;

use lula_protocol::IsolationTier;
use lula_sandbox::probes::{AttackOutcome, AttackReport, AttackResult, TierAttack};
use lula_sandbox::{SandboxEngine, tiers};

use super::network;
use crate::error::HostError;

/// How one family of probes did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeFamily {
    pub name: String,
    /// How many probes were held off.
    pub held: usize,
    /// How many there are.
    pub all: usize,
}

/// An attack that is about to begin.
pub struct PlannedAttack {
    engine: SandboxEngine,
    /// The tier that is attacked.
    pub tier: IsolationTier,
}

impl PlannedAttack {
    /// On that tier, or on the strongest that works here.
    pub fn new(tier: Option<IsolationTier>) -> Result<Self, HostError> {
        let engine = SandboxEngine::start()?;
        let tier = match tier {
            Some(tier) => tier,
            None => strongest(&engine).ok_or(HostError::NothingToAttack)?,
        };
        Ok(Self { engine, tier })
    }

    /// Runs every probe against the tier.
    pub fn run(&self) -> Result<AttackReport, HostError> {
        let program = std::env::current_exe().map_err(HostError::OwnProgram)?;
        let mut report = TierAttack::new(&self.engine, program, self.tier).run()?;
        if self.tier == IsolationTier::Namespace {
            // The other tiers refuse a network by name.
            report
                .probes
                .extend(network::attack(SandboxEngine::start()?)?);
        }
        Ok(report)
    }
}

fn strongest(engine: &SandboxEngine) -> Option<IsolationTier> {
    let working = |(tier, verdict): (IsolationTier, Result<(), _>)| verdict.is_ok().then_some(tier);
    let found = tiers::survey(engine).into_iter().filter_map(working).max();
    found.filter(|tier| *tier > IsolationTier::Process)
}

/// What came of an attack, in a few words.
pub fn summary(report: &AttackReport) -> String {
    let total = report.probes.len();
    let held = report.count(AttackOutcome::Held);
    let bad = report.count(AttackOutcome::Broken) + report.count(AttackOutcome::Error);
    if bad > 0 {
        return format!("{bad} of {total} probes not held");
    }
    if held == 0 {
        return "no probe could be tried: nothing is known of the sandbox".to_owned();
    }
    let mut said = format!("{held} probes, all held");
    for (outcome, why) in [
        (
            AttackOutcome::Unlimited,
            "about limits that are not in force here",
        ),
        (AttackOutcome::Untried, "cannot be tried here"),
    ] {
        let count = report.count(outcome);
        if count > 0 {
            let _ = write!(said, "; {count} {why}");
        }
    }
    said
}

/// How many probes were held off, by family.
pub fn families(report: &AttackReport) -> Vec<ProbeFamily> {
    let mut families = BTreeMap::<_, (usize, usize)>::new();
    let attacked = |probe: &&AttackResult| {
        !matches!(
            probe.outcome,
            AttackOutcome::Unlimited | AttackOutcome::Untried
        )
    };
    for probe in report.probes.iter().filter(attacked) {
        let (held, all) = families.entry(probe.family).or_default();
        *held += usize::from(probe.outcome == AttackOutcome::Held);
        *all += 1;
    }
    families
        .into_iter()
        .map(|(family, (held, all))| {
            let name = serde_json::to_value(family).unwrap_or_default();
            ProbeFamily {
                name: name.as_str().unwrap_or_default().to_owned(),
                held,
                all,
            }
        })
        .collect()
}
