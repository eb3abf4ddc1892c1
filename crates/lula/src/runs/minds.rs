//! The models a run may ask, from their names and from configuration.

use std::sync::Arc;

use lula_agents::task::Rates;
use lula_agents::{Mind, Minds, Nobody, Providers};
use lula_config::keys;
use lula_models::Client;
use lula_models::name::Endpoint;
use lula_models::output::Capability;
use lula_models::wire::Wire;
use lula_protocol::{Code, Exit};
use lula_store::SecretGuard;

use crate::failure::Failure;
use crate::models;
use crate::session::Session;

/// Most tokens of one answer: of a model that calls tools, and of a smaller one.
const ANSWER: u32 = 8192;
const SMALL_ANSWER: u32 = 4096;
/// What Ollama is asked to keep. Left alone it keeps a few thousand tokens and silently forgets the
/// beginning of whatever is longer.
const OLLAMA_CONTEXT: u64 = 16_384;

/// The models named, or those in use.
pub(crate) fn named(names: &[String], session: &Session) -> Result<Vec<Mind>, Failure> {
    let usual = session.config.get(&keys::MODELS_USE);
    let names = if names.is_empty() { &usual } else { names };
    names
        .iter()
        .map(|given| {
            let name = models::name(given)?;
            let endpoint = models::endpoint(&name, &session.config)?;
            let tools = endpoint.capability == Capability::ToolCalls;
            let context = match endpoint.wire {
                Wire::Ollama => endpoint.context.or(Some(OLLAMA_CONTEXT)),
                _ => endpoint.context,
            };
            Ok(Mind {
                name: name.to_string(),
                model: name.model.clone(),
                capability: endpoint.capability,
                rates: Rates::from(&endpoint.price),
                context,
                max_tokens: if tools { ANSWER } else { SMALL_ANSWER },
            })
        })
        .collect()
}

/// The door to models a run knows, and a guard that keeps their keys out of every store.
pub(crate) fn door(
    minds: &[Mind],
    session: &Session,
) -> Result<(Arc<dyn Minds>, SecretGuard), Failure> {
    let mut guard = SecretGuard::default();
    if minds.is_empty() {
        return Ok((Arc::new(Nobody), guard));
    }
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for mind in minds {
        let endpoint = models::endpoint(&models::name(&mind.name)?, &session.config)?;
        if let Some(key) = &endpoint.key {
            guard = key.lend(|key| guard.watch_for(&mind.name, key));
        }
        // What the run was told when it began holds.
        endpoints.push(Endpoint {
            capability: mind.capability,
            context: mind.context,
            price: mind.rates.into(),
            ..endpoint
        });
    }
    let client = Client::live()
        .map_err(|error| Failure::new(Code::ModelUnusable, Exit::Environment, error.to_string()))?;
    Ok((Arc::new(Providers::new(client, endpoints)), guard))
}
