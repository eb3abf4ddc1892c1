//! A model tried with three small questions, and preferred from then on.

use std::time::Duration;

use lula_config::write::{self, ConfigFileChange};
use lula_config::{ConfigLayer, keys};
use lula_models::name::{ModelEndpoint, ModelName};
use lula_models::probe::{ModelProbe, probe};
use lula_models::spend::UnlimitedSpend;
use lula_models::{CallPatience, ModelClient};
use serde_json::{Value, json};

use super::{endpoint, name};
use crate::error::HostError;
use crate::installation::Installation;
use crate::runs::block_on;
use crate::text::dollars;

/// A model that is to be tried.
pub struct ModelTrial {
    pub name: ModelName,
    given: String,
    endpoint: ModelEndpoint,
    timeout: Duration,
}

impl ModelTrial {
    /// Of the model of that name.
    pub fn new(
        given: &str,
        timeout: Duration,
        installation: &Installation,
    ) -> Result<Self, HostError> {
        let name = name(given)?;
        Ok(Self {
            endpoint: endpoint(&name, &installation.config)?,
            name,
            given: given.to_owned(),
            timeout,
        })
    }

    /// Asks it three small questions; the document says what it did. Tells whether it answers.
    pub fn ask(&self) -> Result<(Value, bool), HostError> {
        let client = ModelClient::live().map_err(|error| HostError::Internal(error.to_string()))?;
        let patience = CallPatience {
            streamed: true,
            idle: self.timeout,
            total: self.timeout,
        };
        let (endpoint, model) = (&self.endpoint, &self.name.model);
        let seen = block_on::<_, HostError>(async {
            Ok(probe(&client, endpoint, model, patience, &UnlimitedSpend).await)
        })?;
        let works = seen.words.is_ok();
        Ok((document(&self.given, &self.endpoint, &seen), works))
    }
}

fn document(model: &str, endpoint: &ModelEndpoint, seen: &ModelProbe) -> Value {
    json!({
        "model": model,
        "answers": seen.words.is_ok(),
        "error": seen.words.as_ref().err().map(ToString::to_string),
        "tool_calls": seen.tool_calls,
        "json_schema": seen.json_schema,
        "counts_tokens": seen.counts,
        "use_with": seen.capability.name(),
        "tokens": {"input": seen.usage.input, "output": seen.usage.output},
        "cost_usd": dollars(endpoint.price.of(&seen.usage)),
        "price_known": endpoint.price.as_of.is_some(),
    })
}

/// Puts a model first among those in use, with what it was seen to do. Tells which are in use now.
pub fn prefer(
    name: &str,
    seen: Option<&str>,
    installation: &Installation,
) -> Result<(Vec<String>, ConfigFileChange), HostError> {
    let config = &installation.config;
    let mut names = config.get(&keys::MODELS_USE);
    names.retain(|known| *known != name);
    names.insert(0, name.to_owned());
    let file = installation.locations.of(ConfigLayer::User);
    let file = file.ok_or(HostError::NoUserConfiguration)?;
    if let Some(seen) = seen {
        let mut entries = config.get(&keys::MODELS_CAPABILITIES);
        entries.retain(|entry| {
            entry
                .rsplit_once('=')
                .is_none_or(|(known, _)| known != name)
        });
        entries.push(format!("{name}={seen}"));
        let spec = keys::MODELS_CAPABILITIES.spec();
        write::set(file, ConfigLayer::User, spec, &entries.join(","))?;
    }
    let spec = keys::MODELS_USE.spec();
    let change = write::set(file, ConfigLayer::User, spec, &names.join(","))?;
    Ok((names, change))
}
