//! Sandbox tiers: tried, not guessed.

use lula_config::keys;
use lula_protocol::Tier;
use serde::Serialize;

use super::{Check, State};
use crate::session::Session;

/// How a tier stands on this machine.
#[derive(Debug, Serialize)]
pub(crate) struct TierReport {
    pub(crate) name: Tier,
    pub(crate) available: bool,
    pub(crate) reason: String,
    pub(crate) remedy: Option<String>,
    pub(crate) layers: Vec<String>,
}

/// Every tier, strongest first.
pub(super) fn examine() -> Vec<TierReport> {
    Tier::ALL
        .into_iter()
        .rev()
        .map(|name| TierReport {
            name,
            available: false,
            reason: "not part of this build".to_owned(),
            remedy: None,
            layers: Vec::new(),
        })
        .collect()
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
            "see the reasons above",
        ),
    }
}
