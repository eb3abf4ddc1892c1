//! Models as configured: names, keys by reference, prices.

pub mod listing;
pub mod trial;

use lula_config::{Config, keys};
use lula_models::discover::{self, DiscoveredProvider};
use lula_models::name::{ModelEndpoint, ModelName};
use lula_models::output::OutputCapability;
use lula_models::secret::ModelKeyReference;
use lula_models::spend::{ModelPrice, PriceTable};

pub use lula_models::normal::ThinkingEffort;

use crate::error::HostError;

/// Everything on this machine that may serve a model. Servers are asked at once.
pub fn providers(config: &Config) -> Vec<DiscoveredProvider> {
    let mut found =
        discover::keys(|variable| std::env::var_os(variable).is_some_and(|key| !key.is_empty()));
    let timeout = config.get(&keys::MODELS_PROBE_TIMEOUT);
    let ollama = config.get(&keys::MODELS_OLLAMA_URL);
    let urls = config.get(&keys::MODELS_LOCAL_URLS);
    found.extend(std::thread::scope(|scope| {
        let mut waiting = vec![scope.spawn(|| discover::ollama(&ollama, timeout))];
        for url in &urls {
            waiting.push(scope.spawn(move || discover::openai_compatible(url, timeout)));
        }
        waiting
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect::<Vec<_>>()
    }));
    found
}

/// The name a person types for a model that a provider lists.
pub fn full_name(provider: &DiscoveredProvider, model: &str, config: &Config) -> String {
    let usual = provider.name == "ollama"
        && config.get(&keys::MODELS_OLLAMA_URL) == keys::MODELS_OLLAMA_URL.spec().default;
    if usual {
        format!("ollama/{model}")
    } else {
        let base = provider.place.trim_end_matches('/');
        format!("{}@{base}/v1/{model}", provider.name)
    }
}

/// Reads the name of a model as an operator writes it.
pub fn name(given: &str) -> Result<ModelName, HostError> {
    given
        .parse::<ModelName>()
        .map_err(|error| HostError::ModelName(error.to_string()))
}

/// The server of a model with its key and price, from configuration.
pub fn endpoint(name: &ModelName, config: &Config) -> Result<ModelEndpoint, HostError> {
    let reference = configured_key(name, &config.get(&keys::MODELS_KEYS))?;
    let key = reference
        .map(|reference| reference.resolve())
        .transpose()
        .map_err(|error| HostError::ModelKey {
            provider: name.kind.name.to_string(),
            error,
        })?;
    let prices = prices(config)?;
    let mut endpoint = name.endpoint(key, prices.of_name(name));
    endpoint.context = prices.limits(&name.priced_as()).context;
    if let Some(capability) = seen_capability(name, &config.get(&keys::MODELS_CAPABILITIES))? {
        endpoint.capability = capability;
    }
    Ok(endpoint)
}

/// How much a model is to think, as configured: what is said of it, or else of all.
pub fn effort(name: &ModelName, config: &Config) -> Result<ThinkingEffort, HostError> {
    let entries = config.get(&keys::MODELS_EFFORT);
    let name = name.to_string();
    let own = entries.iter().filter_map(|entry| entry.rsplit_once('='));
    let own = own
        .filter(|(model, _)| *model == name)
        .map(|(_, word)| word);
    let all = entries.iter().filter(|entry| !entry.contains('='));
    let Some(word) = own.chain(all.map(String::as_str)).next() else {
        return Ok(ThinkingEffort::Off);
    };
    ThinkingEffort::from_name(word).ok_or_else(|| HostError::BadEffort(word.to_owned()))
}

/// What the model was seen to do, where that is written down.
fn seen_capability(
    name: &ModelName,
    entries: &[String],
) -> Result<Option<OutputCapability>, HostError> {
    let name = name.to_string();
    let Some((_, word)) = entries
        .iter()
        .filter_map(|entry| entry.rsplit_once('='))
        .find(|(model, _)| *model == name)
    else {
        return Ok(None);
    };
    OutputCapability::from_name(word)
        .map(Some)
        .ok_or_else(|| HostError::BadCapability {
            model: name,
            word: word.to_owned(),
        })
}

/// The reference configured for this server, else the provider's usual one.
fn configured_key(
    name: &ModelName,
    entries: &[String],
) -> Result<Option<ModelKeyReference>, HostError> {
    for entry in entries {
        let Some((place, reference)) = entry.split_once('=') else {
            // The entry is not repeated: it may be a key.
            return Err(bad_keys("an entry of models.keys has no `=`"));
        };
        let fits = if place.contains("://") {
            place.trim_end_matches('/').trim_end_matches("/v1") == name.base
        } else {
            place == name.kind.name && name.usual_key().is_some()
        };
        if fits {
            return reference
                .parse()
                .map(Some)
                .map_err(|error: lula_models::secret::ModelKeyError| bad_keys(&error.to_string()));
        }
    }
    Ok(name.usual_key())
}

fn bad_keys(message: &str) -> HostError {
    HostError::BadKeys(message.to_owned())
}

/// The prices in force.
pub fn prices(config: &Config) -> Result<PriceTable, HostError> {
    let bad = HostError::BadPrices;
    #[allow(clippy::cast_precision_loss)] // At most 10^11.
    let ceiling = config.get(&keys::MODELS_CEILING) as f64 / 1e6;
    let table = ModelPrice::ceiling(ceiling)
        .and_then(PriceTable::built_in)
        .map_err(|error| bad(error.to_string()))?;
    let own = config.get(&keys::MODELS_PRICES);
    if own.is_empty() {
        return Ok(table);
    }
    let text = std::fs::read_to_string(&own).map_err(|error| bad(format!("{own}: {error}")))?;
    table
        .with(&text)
        .map_err(|error| bad(format!("{own}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(model: &str, entries: &[&str]) -> Option<ModelKeyReference> {
        let entries: Vec<_> = entries.iter().map(ToString::to_string).collect();
        configured_key(&name(model).unwrap(), &entries).unwrap()
    }

    #[test]
    fn a_key_goes_to_the_server_it_is_for_and_to_no_other() {
        let entries = ["openai=file:/k", "https://gpu.example/v1=env:GPU_KEY"];
        assert_eq!(
            key("openai/gpt-5", &entries),
            Some(ModelKeyReference::File("/k".into()))
        );
        let own = "openai-compatible@https://gpu.example/v1/m";
        assert_eq!(
            key(own, &entries),
            Some(ModelKeyReference::Env("GPU_KEY".into()))
        );
        let stranger = "openai@https://evil.example/v1/m";
        assert_eq!(key(stranger, &entries), None);
        assert_eq!(
            key("anthropic/claude", &entries),
            Some(ModelKeyReference::Env("ANTHROPIC_API_KEY".into()))
        );
    }

    #[test]
    fn a_key_written_where_a_reference_belongs_is_not_repeated() {
        let entries = ["openai=sk-verysecret".to_owned()];
        let failure = configured_key(&name("openai/gpt-5").unwrap(), &entries).unwrap_err();
        assert!(!failure.to_string().contains("verysecret"));
    }
}
