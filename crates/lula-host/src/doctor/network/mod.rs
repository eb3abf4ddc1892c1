//! Attacks on a network by name: ways around the names that were granted, each with the same act done the
//! granted way as its control.

mod acts;
mod inward;
mod probes;
mod stage;

use lula_sandbox::SandboxEngine;
use lula_sandbox::probes::{AttackFamily, AttackOutcome, AttackResult};

use crate::error::HostError;
use acts::NetworkAct;
use probes::{After, NetworkProbe};
use stage::NetworkStage;

pub use acts::NETWORK_ATTACKER;

/// Makes every attack on a sandbox of that engine, which has no network but this one.
pub(super) fn attack(engine: SandboxEngine) -> Result<Vec<AttackResult>, HostError> {
    let stage = NetworkStage::set(engine)?;
    let all = probes::all(stage.ports);
    let mut results = inward::attack(&stage)?;
    for probe in &all {
        match probe.after {
            After::Nothing => {}
            After::Revoking(rule) => {
                stage.revoke(&rule.replace("PORT", &stage.ports.tls.to_string()))?;
            }
            After::Killing => stage.kill(),
        }
        results.push(judge(probe, &stage)?);
    }
    Ok(results)
}

fn judge(probe: &NetworkProbe, stage: &NetworkStage) -> Result<AttackResult, HostError> {
    // Behind a dead engine the granted way is closed too; that it was open, the probes before have shown.
    let controlled = match &probe.control {
        Some(control) => {
            let (said, heard) = stage.attempt(control)?;
            // A name that was asked for before is known, and not asked for outside again.
            let heard = heard || matches!(control, NetworkAct::Question { .. });
            let reached = said.starts_with("answered ") && heard;
            (!reached).then(|| format!("control: expected an answer, saw {said:?}"))
        }
        None => None,
    };
    let (said, heard) = stage.attempt(&probe.act)?;
    let answered = said.starts_with("answered ");
    let (outcome, observed) = match controlled {
        Some(error) => (AttackOutcome::Error, error),
        None if heard => (
            AttackOutcome::Broken,
            format!("it was heard outside: {said}"),
        ),
        None if answered => (AttackOutcome::Broken, said),
        None if said.is_empty() => (AttackOutcome::Error, "the attempt said nothing".to_owned()),
        None => (AttackOutcome::Held, said),
    };
    Ok(AttackResult {
        name: format!("egress_{}", probe.name),
        family: AttackFamily::Network,
        outcome,
        expected: "nothing heard outside".to_owned(),
        observed,
    })
}
