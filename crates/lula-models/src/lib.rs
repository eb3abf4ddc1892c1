//! The only crate that speaks to a model.
//!
//! A question in [`normal`] form is shaped to what the model can do ([`output`]), written as
//! bytes and read back by pure functions ([`wire`]), carried by a transport that may be live,
//! recorded or scripted ([`transport`], [`script`]), tried again by rule ([`resilience`]), paid
//! for before it is asked ([`spend`]), and put to a model chosen by a pure function ([`route`]).
//!
//! It must never print, log, record or return the value of a key; act on half an answer; reach an
//! address that the user did not configure; or let spend exceed its cap. It never opens a
//! workspace or starts a tool. It depends on `lula-protocol` for digests and budgets and on
//! `lula-edit` for the formats of edits.
//!
//! # For the commands
//!
//! - `lula models list`: [`discover`] finds keys in the environment and servers on loopback;
//!   [`name::KINDS`] lists the kinds of provider; [`spend::PriceTable`] has prices with dates.
//! - `lula models test NAME`: parse a [`name::ModelName`], resolve its [`secret::ModelKeyReference`], make an
//!   [`name::ModelEndpoint`] and run [`probe::probe`]; it says what works and which
//!   [`output::OutputCapability`] to use it with.
//! - `lula models use NAME`: the name parses and the probe answers; configuration keeps the name
//!   and the reference to the key, never the key.
//! - `lula models stats`: fold [`route::WorkRecord`]s of the event log into [`route::ModelStats`].
//! - `lula run --budget 0.50`: open an account of a [`spend::SharedSpendLedger`] and give it to
//!   [`ModelClient::ask_well`] as its [`spend::SpendAccount`]; live spend is [`spend::SpendLedger::settled`].
#![forbid(unsafe_code)]

mod ask;
mod attempt;
mod client;
mod clock;
pub mod discover;
mod error;
#[cfg(feature = "mock")]
pub mod mock;
pub mod name;
pub mod normal;
pub mod output;
pub mod probe;
mod refused;
pub mod resilience;
pub mod route;
pub mod script;
pub mod secret;
pub mod spend;
pub mod tokens;
pub mod transport;
pub mod wire;

pub use ask::{AskedModel, REPAIRS};
pub use client::{CallPatience, CallTry, ClientPolicies, ModelClient, ModelExchange};
pub use clock::{
    MonotonicClock, RandomSource, SeededRandomSource, SystemMonotonicClock, SystemRandomSource,
};
pub use error::{BROKE_OFF, CONTEXT_OVERFLOW, ModelError};
