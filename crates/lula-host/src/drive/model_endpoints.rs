//! The models a run may ask, from their names and from configuration.

use std::sync::Arc;

use lula_agents::task::{ModelRates, ModelSettings};
use lula_agents::{ModelChoice, ModelPort, NoModels, ProviderModels};
use lula_config::keys;
use lula_models::ModelClient;
use lula_models::name::ModelEndpoint;
use lula_models::normal::ThinkingEffort;
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
/// A model that may write more than this reasons before it answers, which counts as part of the answer.
const REASONS: u32 = 100_000;
/// What Ollama is asked to keep. Left alone it keeps a few thousand tokens and silently forgets the
/// beginning of whatever is longer.
const OLLAMA_CONTEXT: u64 = 16_384;

/// The models named, or those in use, thinking as much as is configured.
pub fn named(names: &[String], installation: &Installation) -> Result<Vec<ModelChoice>, HostError> {
    thinking(names, None, installation)
}

/// The same, thinking as much as a person says.
pub fn thinking(
    names: &[String],
    effort: Option<ThinkingEffort>,
    installation: &Installation,
) -> Result<Vec<ModelChoice>, HostError> {
    let usual = installation.config.get(&keys::MODELS_USE);
    let names = if names.is_empty() { &usual } else { names };
    names
        .iter()
        .map(|given| {
            let name = models::name(given)?;
            let endpoint = models::endpoint(&name, &installation.config)?;
            let configured = models::effort(&name, &installation.config)?;
            let effort = effort.unwrap_or(configured);
            let limits = models::prices(&installation.config)?.limits(&name.priced_as());
            let settings = ModelSettings {
                effort,
                unpriced: !endpoint.price.known,
                pictures: limits.pictures,
            };
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
                max_tokens: answer(endpoint.capability, effort, limits.output),
                settings,
            })
        })
        .collect()
}

/// Most tokens of one answer: what a model thinks is part of it.
fn answer(capability: OutputCapability, effort: ThinkingEffort, limit: Option<u32>) -> u32 {
    let tools = capability == OutputCapability::ToolCalls;
    let usual = if tools { ANSWER } else { SMALL_ANSWER };
    let reasons = limit.is_some_and(|limit| limit > REASONS);
    let wanted = match effort {
        ThinkingEffort::High => usual * 4,
        ThinkingEffort::Medium => usual * 2,
        ThinkingEffort::Off if reasons => usual * 2,
        ThinkingEffort::Off | ThinkingEffort::Low => usual,
    };
    wanted.min(limit.unwrap_or(wanted))
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
            price: model.price(),
            ..endpoint
        });
    }
    let client =
        ModelClient::live().map_err(|error| HostError::ModelUnusable(error.to_string()))?;
    Ok((Arc::new(ProviderModels::new(client, endpoints)), guard))
}
