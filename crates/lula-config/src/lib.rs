//! Configuration: one table of keys, and the layers their values come from.
//!
//! The table in [`keys`] is the only place a key is defined. TOML files, `LULA_*` variables,
//! command-line flags, `lula config` and the reference page are all derived from it.
//!
//! Layers, weakest first: built-in, system, user, repository, environment, flags. The repository
//! layer is content of the repository's authors: it can make policy stricter, never looser, and it can
//! never say where data goes. [`resolve`] decides that purely; [`files`] does the reading.
//!
//! This crate must never hold a secret: keys of providers are found by name in the environment and
//! are no configuration values.
#![forbid(unsafe_code)]

pub mod error;
pub mod files;
pub mod keys;
pub mod kind;
pub mod layer;
pub mod reference;
pub mod resolve;
mod suggest;
mod toml_layer;
pub mod variables;
pub mod write;

pub use error::ConfigError;
pub use files::ConfigFileLocations;
pub use keys::{ConfigKey, ConfigKeySpec};
pub use kind::{ConfigValue, ConfigValueKind};
pub use layer::{ConfigLayer, ConfigOrigin, ConfigSetting};
pub use resolve::Config;
