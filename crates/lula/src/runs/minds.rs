//! The models a run may ask, from their names and where their keys are.

use lula_agents::task::Rates;
use lula_agents::{Mind, Minds, Nobody, Providers};
use lula_config::keys;
use lula_models::Client;
use lula_models::name::{Endpoint, ModelName};
use lula_models::secret::{KeyRef, Secret};
use lula_models::spend::{Price, PriceTable};
use lula_protocol::{Code, Exit};
use lula_store::SecretGuard;
use std::sync::Arc;

use crate::failure::Failure;
use crate::session::Session;

/// What a model costs at most that no price is known of, in dollars for a million tokens.
const CEILING: f64 = 100.0;
/// Most tokens of one answer.
const ANSWER: u32 = 8192;

fn unusable(message: impl std::fmt::Display) -> Failure {
    Failure::new(Code::ModelUnusable, Exit::Usage, message.to_string())
        .remedy("`lula doctor` shows which providers are found")
}

/// The models named, or the one that is configured.
pub(crate) fn named(names: &[String], session: &Session) -> Result<Vec<Mind>, Failure> {
    let mut names = names.to_vec();
    if names.is_empty() {
        let usual = session.config.get(&keys::MODELS_DEFAULT);
        names.extend((!usual.is_empty()).then_some(usual));
    }
    let ceiling = Price::ceiling(CEILING).map_err(unusable)?;
    let prices = PriceTable::built_in(ceiling).map_err(unusable)?;
    let own_key = session.config.get(&keys::MODELS_KEY);
    let mut minds = Vec::new();
    for given in names {
        let name: ModelName = given.parse().map_err(unusable)?;
        let price = prices.of(&name.priced_as());
        let endpoint = name.endpoint(None, price.clone());
        let key = match name.usual_key() {
            Some(reference) => Some(spelled(&reference)),
            None => (!own_key.is_empty()).then(|| own_key.clone()),
        };
        minds.push(Mind {
            name: name.to_string(),
            model: name.model.clone(),
            key,
            capability: endpoint.capability,
            rates: Rates::from(price),
            context: endpoint.context,
            max_tokens: ANSWER,
        });
    }
    Ok(minds)
}

fn spelled(reference: &KeyRef) -> String {
    match reference {
        KeyRef::Env(name) => format!("env:{name}"),
        KeyRef::File(path) => format!("file:{}", path.display()),
        KeyRef::Command(words) => format!("command:{}", words.join(" ")),
        KeyRef::Keyring(service) => format!("keyring:{service}"),
    }
}

/// The door to models a run knows, and a guard that keeps their keys out of every store.
pub(crate) fn door(minds: &[Mind]) -> Result<(Arc<dyn Minds>, SecretGuard), Failure> {
    let mut guard = SecretGuard::default();
    if minds.is_empty() {
        return Ok((Arc::new(Nobody), guard));
    }
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for mind in minds {
        let name: ModelName = mind.name.parse().map_err(unusable)?;
        let key: Option<Secret> = match &mind.key {
            None => None,
            Some(reference) => {
                let reference: KeyRef = reference.parse().map_err(unusable)?;
                Some(reference.resolve().map_err(unusable)?)
            }
        };
        if let Some(key) = &key {
            guard = key.lend(|key| guard.watch_for(&mind.name, key));
        }
        endpoints.push(Endpoint {
            capability: mind.capability,
            context: mind.context,
            ..name.endpoint(key, mind.rates.into())
        });
    }
    let client = Client::live().map_err(unusable)?;
    Ok((Arc::new(Providers::new(client, endpoints)), guard))
}
