//! The configuration in force, as data: each key, which layer won, and what the others said.

use std::path::Path;

use lula_config::resolve::{ConfigEntry, SettingVerdict};
use lula_config::{ConfigError, ConfigKeySpec, ConfigLayer, keys};
use serde::Serialize;

use crate::error::HostError;
use crate::installation::Installation;

/// A key with its value.
#[derive(Debug, Serialize)]
pub struct ConfigKeyView {
    key: &'static str,
    value: String,
    layer: &'static str,
    origin: String,
    default: &'static str,
    doc: &'static str,
    /// What every layer said, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Vec<ConfigLayerView>>,
}

/// What one layer said.
#[derive(Debug, Serialize)]
struct ConfigLayerView {
    layer: &'static str,
    value: String,
    origin: String,
    verdict: &'static str,
    reason: Option<String>,
}

impl ConfigKeyView {
    /// A key with the value in force.
    pub fn of(entry: &ConfigEntry) -> Self {
        let winner = entry.winner();
        Self {
            key: entry.spec.name,
            value: winner.value.to_string(),
            layer: winner.layer.name(),
            origin: winner.origin.to_string(),
            default: entry.spec.default,
            doc: entry.spec.doc,
            layers: None,
        }
    }

    /// The same with what every layer said.
    pub fn with_layers(entry: &ConfigEntry) -> Self {
        let layers = entry.history.iter().map(|considered| {
            let setting = &considered.setting;
            let (verdict, reason) = match &considered.verdict {
                SettingVerdict::Won => ("won", None),
                SettingVerdict::Overridden => ("overridden", None),
                SettingVerdict::Refused(reason) => ("refused", Some(reason.clone())),
            };
            ConfigLayerView {
                layer: setting.layer.name(),
                value: setting.value.to_string(),
                origin: setting.origin.to_string(),
                verdict,
                reason,
            }
        });
        Self {
            layers: Some(layers.collect()),
            ..Self::of(entry)
        }
    }
}

/// The key of that name.
pub fn key(name: &str) -> Result<&'static ConfigKeySpec, HostError> {
    keys::find(name).ok_or_else(|| ConfigError::unknown_key(name).into())
}

/// The key of that name with everything that was said about it.
pub fn entry<'a>(name: &str, installation: &'a Installation) -> Result<&'a ConfigEntry, HostError> {
    let found = installation.config.entry(key(name)?);
    found.ok_or_else(|| ConfigError::unknown_key(name).into())
}

/// The file of a layer.
pub fn file(layer: ConfigLayer, installation: &Installation) -> Result<&Path, HostError> {
    let found = installation.locations.of(layer);
    found.ok_or(match layer {
        ConfigLayer::Repository => HostError::NoRepositoryConfiguration,
        _ => HostError::NoUserConfiguration,
    })
}
