//! Where a model could come from.

use lula_config::keys;
use lula_models::discover::{self, Provider};

use super::{Check, State};
use crate::session::Session;

/// Keys in the environment, and servers on the configured addresses, all asked at once.
pub(super) fn find(session: &Session) -> Vec<Provider> {
    let config = &session.config;
    let timeout = config.get(&keys::MODELS_PROBE_TIMEOUT);
    let mut providers =
        discover::keys(|variable| std::env::var_os(variable).is_some_and(|key| !key.is_empty()));
    let ollama = config.get(&keys::MODELS_OLLAMA_URL);
    let local = config.get(&keys::MODELS_LOCAL_URLS);
    std::thread::scope(|scope| {
        let mut waiting = vec![scope.spawn(|| discover::ollama(&ollama, timeout))];
        for url in &local {
            waiting.push(scope.spawn(move || discover::openai_compatible(url, timeout)));
        }
        providers.extend(waiting.into_iter().filter_map(|thread| thread.join().ok()));
    });
    providers
}

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
