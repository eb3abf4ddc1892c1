//! Prices and limits of models, as data with dates.

use serde::Deserialize;

use crate::name::ModelName;
use crate::normal::TokenUsage;

const BUILT_IN: &str = include_str!("../../data/models.toml");
/// Dearest price that is believed, in dollars for a million tokens.
const DEAREST: f64 = 100_000.0;

/// Millionths of a dollar for a million tokens, which is also millionths of a millionth for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPrice {
    /// Price of tokens the model reads.
    pub input: u64,
    /// Price of tokens the model writes.
    pub output: u64,
    /// For tokens read from the prompt cache.
    pub cache_read: u64,
    /// For tokens written to the prompt cache.
    pub cache_write: u64,
    /// The day it was published, `YYYY-MM-DD`; `None` for a ceiling.
    pub as_of: Option<String>,
    /// Whether it was published, or is a bound.
    pub known: bool,
}

impl ModelPrice {
    /// What an unknown model counts as: at most this many dollars for a million tokens.
    pub fn ceiling(dollars: f64) -> Result<Self, PriceError> {
        let price = micro(dollars)?;
        Ok(Self {
            input: price,
            output: price,
            cache_read: price,
            cache_write: price,
            as_of: None,
            known: false,
        })
    }

    /// What a call costs, in millionths of a dollar, rounded up.
    pub fn of(&self, usage: &TokenUsage) -> u64 {
        let cached = usage
            .cache_read
            .saturating_add(usage.cache_write)
            .min(usage.input);
        let sum = cost(usage.input - cached, self.input)
            + cost(usage.cache_read.min(cached), self.cache_read)
            + cost(cached - usage.cache_read.min(cached), self.cache_write)
            + cost(usage.output, self.output);
        round_up(sum)
    }

    /// The most a call can cost that reads and writes at most this much.
    pub fn at_most(&self, input: u64, output: u64) -> u64 {
        let dearest = self.input.max(self.cache_read).max(self.cache_write);
        round_up(cost(input, dearest) + cost(output, self.output))
    }
}

fn cost(tokens: u64, price: u64) -> u128 {
    u128::from(tokens) * u128::from(price)
}

fn round_up(sum: u128) -> u64 {
    u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn micro(dollars: f64) -> Result<u64, PriceError> {
    if !(0.0..=DEAREST).contains(&dollars) {
        return Err(PriceError::Nonsense(dollars.to_string()));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked just above.
    Ok((dollars * 1_000_000.0).ceil() as u64)
}

/// Why a table of prices cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    /// Not the form of a price table.
    #[error("the price table cannot be read: {0}")]
    Unreadable(String),
    /// A price that cannot be.
    #[error("{0} is not a price: expected dollars for a million tokens, from 0 to 100000")]
    Nonsense(String),
    /// The day is not a date of the calendar.
    #[error("{0:?} is not a day: expected YYYY-MM-DD")]
    NotADay(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    price: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    model: String,
    input: f64,
    output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    context: Option<u64>,
    output_limit: Option<u32>,
    #[serde(default)]
    pictures: bool,
    as_of: String,
}

/// What a model holds and writes at most, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelLimits {
    /// Tokens of question and answer together.
    pub context: Option<u64>,
    /// Tokens of one answer.
    pub output: Option<u32>,
    /// Whether it is known to take pictures.
    pub pictures: bool,
}

/// Prices and limits by the beginning of a model's name, with a ceiling for all others.
#[derive(Debug, Clone)]
pub struct PriceTable {
    rows: Vec<(String, ModelPrice, ModelLimits)>,
    ceiling: ModelPrice,
}

impl PriceTable {
    /// The built-in prices, with the ceiling for every model that is not among them.
    pub fn built_in(ceiling: ModelPrice) -> Result<Self, PriceError> {
        Self {
            rows: Vec::new(),
            ceiling,
        }
        .with(BUILT_IN)
    }

    /// The same with the user's own table over it.
    pub fn with(mut self, toml: &str) -> Result<Self, PriceError> {
        let file: File =
            toml::from_str(toml).map_err(|error| PriceError::Unreadable(error.to_string()))?;
        for row in file.price {
            if !is_day(&row.as_of) {
                return Err(PriceError::NotADay(row.as_of));
            }
            let input = micro(row.input)?;
            let price = ModelPrice {
                input,
                output: micro(row.output)?,
                cache_read: row.cache_read.map_or(Ok(input), micro)?,
                cache_write: row.cache_write.map_or(Ok(input), micro)?,
                as_of: Some(row.as_of),
                known: true,
            };
            let limits = ModelLimits {
                context: row.context,
                output: row.output_limit,
                pictures: row.pictures,
            };
            self.rows.retain(|(pattern, ..)| *pattern != row.model);
            // Later rows are nearer to the user, so they come first among equals.
            self.rows.insert(0, (row.model, price, limits));
        }
        self.rows
            .sort_by_key(|(pattern, ..)| (pattern.ends_with('*'), usize::MAX - pattern.len()));
        Ok(self)
    }

    /// The price of `provider/model`: the most exact row, or the ceiling. Never nothing.
    pub fn of(&self, model: &str) -> &ModelPrice {
        self.row(model).map_or(&self.ceiling, |(_, price, _)| price)
    }

    /// The price of a model by its name and where it is served: what runs on this machine costs no money
    /// by the token, unless a row says otherwise.
    pub fn of_name(&self, name: &ModelName) -> ModelPrice {
        let price = self.of(&name.priced_as());
        if price.known || !name.is_local() {
            return price.clone();
        }
        ModelPrice {
            input: 0,
            output: 0,
            cache_read: 0,
            cache_write: 0,
            as_of: None,
            known: true,
        }
    }

    /// The limits of `provider/model`, as far as the most exact row has them.
    pub fn limits(&self, model: &str) -> ModelLimits {
        self.row(model)
            .map_or_else(ModelLimits::default, |(_, _, limits)| *limits)
    }

    fn row(&self, model: &str) -> Option<&(String, ModelPrice, ModelLimits)> {
        self.rows
            .iter()
            .find(|(pattern, ..)| match pattern.strip_suffix('*') {
                Some(start) => model.starts_with(start),
                None => model == pattern,
            })
    }
}

fn is_day(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table() -> PriceTable {
        PriceTable::built_in(ModelPrice::ceiling(100.0).unwrap()).unwrap()
    }

    #[test]
    fn an_unknown_model_counts_as_the_ceiling_never_as_free() {
        let price = table().of("somewhere/new-model").clone();
        assert_eq!((price.input, price.known), (100_000_000, false));
    }

    #[test]
    fn what_runs_here_is_free_and_a_providers_model_behind_a_port_here_is_not() {
        let price = |name: &str| table().of_name(&name.parse().unwrap());
        for local in [
            "openai-compatible@http://127.0.0.1:9/v1/m",
            "vllm@http://localhost:8000/v1/m",
            "vllm/m",
            "ollama/m",
        ] {
            let price = price(local);
            assert_eq!((price.known, price.output), (true, 0), "{local}");
        }
        for elsewhere in [
            "openai-compatible@https://gpu.example/v1/m",
            "vllm@http://10.0.0.1:8000/v1/m",
            "anthropic@http://127.0.0.1:9/v1/strong",
        ] {
            assert!(!price(elsewhere).known, "{elsewhere}");
        }
    }

    #[test]
    fn limits_stand_beside_prices() {
        let limits = table().limits("anthropic/claude-opus-5-5");
        assert_eq!(
            (limits.context, limits.output),
            (Some(1_000_000), Some(128_000))
        );
        assert!(limits.pictures);
        assert_eq!(table().limits("somewhere/new"), ModelLimits::default());
    }

    #[test]
    fn the_most_exact_row_wins_and_the_users_table_goes_over_ours() {
        let table = table();
        assert_eq!(
            table.of("anthropic/claude-opus-4-5-20251101").input,
            5_000_000
        );
        assert_eq!(table.of("anthropic/claude-opus-4-1").input, 15_000_000);
        let own = "[[price]]\nmodel = \"anthropic/claude-opus-4-5*\"\ninput = 4.0\noutput = 20.0\nas_of = \"2026-01-01\"\n";
        assert_eq!(
            table
                .with(own)
                .unwrap()
                .of("anthropic/claude-opus-4-5")
                .input,
            4_000_000
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for (row, error) in [
            (
                "input = -1.0\noutput = 1.0\nas_of = \"2026-01-01\"",
                "not a price",
            ),
            (
                "input = nan\noutput = 1.0\nas_of = \"2026-01-01\"",
                "not a price",
            ),
            (
                "input = 1.0\noutput = 1.0\nas_of = \"yesterday\"",
                "not a day",
            ),
            ("input = 1.0\nas_of = \"2026-01-01\"", "cannot be read"),
            (
                "input = 1.0\noutput = 1.0\nas_of = \"2026-01-01\"\nfree = true",
                "cannot be read",
            ),
        ] {
            let said = table()
                .with(&format!("[[price]]\nmodel = \"x\"\n{row}\n"))
                .unwrap_err();
            assert!(said.to_string().contains(error), "{said}");
        }
    }

    #[test]
    fn cached_tokens_cost_their_own_price() {
        let price = ModelPrice {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: 300_000,
            cache_write: 3_750_000,
            as_of: None,
            known: true,
        };
        let usage = TokenUsage {
            input: 1_000_000,
            output: 0,
            cache_read: 900_000,
            cache_write: 100_000,
            reasoning: 0,
        };
        assert_eq!(price.of(&usage), 270_000 + 375_000);
    }

    proptest! {
        #[test]
        fn no_usage_within_its_bounds_costs_more_than_the_bound(
            input in 0_u64..1 << 30, output in 0_u64..1 << 30,
            read: u64, write: u64, used in 0.0..1.0_f64,
            prices in proptest::array::uniform4(0_u64..1 << 40),
        ) {
            let [i, o, r, w] = prices;
            let price = ModelPrice { input: i, output: o, cache_read: r, cache_write: w, as_of: None, known: true };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let part = |n: u64| (n as f64 * used) as u64;
            let usage = TokenUsage { input: part(input), output: part(output), cache_read: read, cache_write: write, reasoning: 0 };
            prop_assert!(price.of(&usage) <= price.at_most(input, output));
        }
    }
}
