//! Where a model could come from.

use lula_models::discover::DiscoveredProvider;

use super::{DoctorCheck, DoctorCheckState};

/// No model is no obstacle: failing tests are worked on without one.
pub(super) fn check(providers: &[DiscoveredProvider]) -> DoctorCheck {
    let found: Vec<_> = providers
        .iter()
        .filter(|provider| provider.found)
        .map(|provider| provider.name)
        .collect();
    if found.is_empty() {
        DoctorCheck::not(
            "model",
            DoctorCheckState::Limited,
            "none found",
            "set a provider's key, or start Ollama or an OpenAI-compatible server",
        )
    } else {
        DoctorCheck::good("model", found.join(", "))
    }
}
