//! The models a run may ask, from their names and from configuration.

use std::sync::Arc;

use lula_agents::task::ModelRates;
use lula_agents::{ModelChoice, ModelPort, NoModels, ProviderModels};
use lula_config::keys;
use lula_models::ModelClient;
use lula_models::name::ModelEndpoint;
use lula_models::output::OutputCapability;
use lula_models::wire::WireProtocol;
use lula_store::SecretGuard;

use crate::diagnosis;
use crate::error::HostError;
use crate::installation::Installation;
use crate::models;

/// Most tokens of one answer: of a model that calls tools, and of a smaller one.
const ANSWER: u32 = 8192;
const SMALL_ANSWER: u32 = 4096;
/// What Ollama is asked to keep. Left alone it keeps a few thousand tokens and silently forgets the
/// beginning of whatever is longer.
const OLLAMA_CONTEXT: u64 = 16_384;

/// The models named, or those in use.
pub fn named(names: &[String], installation: &Installation) -> Result<Vec<ModelChoice>, HostError> {
    let usual = installation.config.get(&keys::MODELS_USE);
    let names = if names.is_empty() { &usual } else { names };
    names
        .iter()
        .map(|given| {
            let name = models::name(given)?;
            let endpoint = models::endpoint(&name, &installation.config)?;
            let tools = endpoint.capability == OutputCapability::ToolCalls;
            let context = match endpoint.wire {
                WireProtocol::Ollama => endpoint.context.or(Some(OLLAMA_CONTEXT)),
                _ => endpoint.context,
            };
            Ok(ModelChoice {
                name: name.to_string(),
                model: name.model.clone(),
                capability: endpoint.capability,
                rates: ModelRates::from(&endpoint.price),
                context,
                max_tokens: if tools { ANSWER } else { SMALL_ANSWER },
            })
        })
        .collect()
}

/// The door to models a run knows, and a guard that keeps their keys out of every store.
pub fn door(
    models: &[ModelChoice],
    installation: &Installation,
) -> Result<(Arc<dyn ModelPort>, SecretGuard), HostError> {
    let mut guard = SecretGuard::default();
    if models.is_empty() {
        return Ok((Arc::new(NoModels), guard));
    }
    let mut endpoints: Vec<ModelEndpoint> = Vec::new();
    for model in models {
        let endpoint = models::endpoint(&models::name(&model.name)?, &installation.config)?;
        if let Some(key) = &endpoint.key {
            guard = key.lend(|key| {
                diagnosis::conceal(key);
                guard.watch_for(&model.name, key)
            });
        }
        // What the run was told when it began holds.
        endpoints.push(ModelEndpoint {
            capability: model.capability,
            context: model.context,
            price: model.rates.into(),
            ..endpoint
        });
    }
    let client =
        ModelClient::live().map_err(|error| HostError::ModelUnusable(error.to_string()))?;
    Ok((Arc::new(ProviderModels::new(client, endpoints)), guard))
}
