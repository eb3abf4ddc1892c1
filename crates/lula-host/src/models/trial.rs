//! A model tried with three small questions, and preferred from then on.

use std::time::Duration;

use lula_config::write::{self, ConfigFileChange};
use lula_config::{ConfigLayer, keys};
use lula_models::name::{ModelEndpoint, ModelName};
use lula_models::probe::{ModelProbe, probe};
use lula_models::spend::UnlimitedSpend;
use lula_models::{CallPatience, ModelClient};
use serde_json::{Value, json};

use super::listing::{self, ListedPrice};
use super::{endpoint, name, prices};
use crate::error::HostError;
use crate::installation::Installation;
use crate::runs::block_on;
use crate::text::dollars;

/// A model that is to be tried.
pub struct ModelTrial {
    pub name: ModelName,
    given: String,
    endpoint: ModelEndpoint,
    known: ListedPrice,
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
            known: ListedPrice::of(&name, &prices(&installation.config)?, listing::today()),
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
        Ok((
            document(&self.given, &self.endpoint, &seen, &self.known),
            works,
        ))
    }
}

fn document(
    model: &str,
    endpoint: &ModelEndpoint,
    seen: &ModelProbe,
    known: &ListedPrice,
) -> Value {
    json!({
        "model": model,
        "answers": seen.words.is_ok(),
        "error": seen.words.as_ref().err().map(ToString::to_string),
        "tool_calls": seen.tool_calls,
        "json_schema": seen.json_schema,
        "counts_tokens": seen.counts,
        "use_with": seen.capability.name(),
        "tokens": {"input": seen.usage.input, "output": seen.usage.output},
        "cost_usd": known.known.then(|| dollars(endpoint.price.of(&seen.usage))),
        "price_known": known.known,
        "known": known,
        "known_as": known.words(),
    })
}

/// What a trial says, for people: what was tried, and what came of it.
pub fn rows(document: &Value) -> Vec<[String; 2]> {
    let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
    let yes = |key: &str| if document[key] == true { "yes" } else { "no" }.to_owned();
    let row = |name: &str, said: String| [name.to_owned(), said];
    if document["answers"] != true {
        return vec![
            row("answers", text("error")),
            row("listed", text("known_as")),
        ];
    }
    let cost = document["cost_usd"].as_f64();
    let cost = cost.map_or_else(|| "price unknown".to_owned(), |cost| format!("${cost:.6}"));
    let tokens = &document["tokens"];
    let took = format!(
        "{} tokens in, {} out, {cost}",
        tokens["input"], tokens["output"]
    );
    vec![
        row("answers", "yes".to_owned()),
        row("calls tools", yes("tool_calls")),
        row("held to a JSON schema", yes("json_schema")),
        row("counts tokens", yes("counts_tokens")),
        row("used here with", text("use_with")),
        row("the trial took", took),
        row("listed", text("known_as")),
    ]
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
