//! The models in use and those on this machine, as data.

use lula_config::keys;
use lula_models::discover::DiscoveredProvider;
use serde::Serialize;

use super::{full_name, name, prices, providers};
use crate::error::HostError;
use crate::installation::Installation;
use crate::text::dollars;

/// What `lula models list` shows.
#[derive(Debug, Serialize)]
pub struct ModelListing {
    /// The models that runs ask, first choice first.
    pub in_use: Vec<ModelInUse>,
    /// What may serve models here.
    pub providers: Vec<ListedProvider>,
}

/// A model that runs ask.
#[derive(Debug, Serialize)]
pub struct ModelInUse {
    /// Its name as configured.
    pub model: String,
    /// What it costs; nothing where that is no name of a model.
    pub price: Option<ListedPrice>,
}

/// What a model costs at most.
#[derive(Debug, Serialize)]
pub struct ListedPrice {
    /// Dollars for a million tokens read.
    pub input_usd_per_million: f64,
    /// Dollars for a million tokens written.
    pub output_usd_per_million: f64,
    /// The day of the price list; nothing where the price is unknown.
    pub as_of: Option<String>,
}

/// Something that may serve models.
#[derive(Debug, Serialize)]
pub struct ListedProvider {
    pub provider: String,
    pub place: String,
    /// Whether it is there.
    pub found: bool,
    /// What was seen of it.
    pub detail: String,
    /// The names of its models, as `lula models use` takes them.
    pub models: Vec<String>,
}

impl ModelListing {
    /// Looks at the configuration, and asks the servers of this machine.
    pub fn look(installation: &Installation) -> Result<Self, HostError> {
        let config = &installation.config;
        let prices = prices(config)?;
        let price = |model: &str| {
            let price = prices.of(&name(model).ok()?.priced_as()).clone();
            Some(ListedPrice {
                input_usd_per_million: dollars(price.input),
                output_usd_per_million: dollars(price.output),
                as_of: price.as_of,
            })
        };
        let in_use = config.get(&keys::MODELS_USE).into_iter();
        let in_use = in_use.map(|model| ModelInUse {
            price: price(&model),
            model,
        });
        let listed = |provider: &DiscoveredProvider| ListedProvider {
            provider: provider.name.to_owned(),
            place: provider.place.clone(),
            found: provider.found,
            detail: provider.detail.clone(),
            models: provider
                .models
                .iter()
                .map(|model| full_name(provider, model, config))
                .collect(),
        };
        Ok(Self {
            in_use: in_use.collect(),
            providers: providers(config).iter().map(listed).collect(),
        })
    }
}
