//! Where a model could come from.

use lula_models::discover::Provider;

use super::{Check, State};

/// No model is no obstacle: failing tests are worked on without one.
pub(super) fn check(providers: &[Provider]) -> Check {
    let found: Vec<_> = providers
        .iter()
        .filter(|provider| provider.found)
        .map(|provider| provider.name)
        .collect();
    if found.is_empty() {
        Check::not(
            "model",
            State::Limited,
            "none found",
            "set a provider's key, or start Ollama or an OpenAI-compatible server",
        )
    } else {
        Check::good("model", found.join(", "))
    }
}
