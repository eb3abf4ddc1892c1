//! The models in use and those on this machine, as data.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use lula_config::keys;
use lula_models::discover::DiscoveredProvider;
use lula_models::name::ModelName;
use lula_models::spend::PriceTable;
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
    /// What is known of it; nothing where that is no name of a model.
    pub price: Option<ListedPrice>,
}

/// What is known of a model: what it costs at most, and what it holds.
#[derive(Debug, Clone, Serialize)]
pub struct ListedPrice {
    /// Whether its price is known; else the amounts are what a budget in money counts it as.
    pub known: bool,
    /// Dollars for a million tokens read.
    pub input_usd_per_million: f64,
    /// Dollars for a million tokens written.
    pub output_usd_per_million: f64,
    /// The day of the price list; nothing where there is none.
    pub as_of: Option<String>,
    /// Whether that is so long ago that it should be looked up again.
    pub stale: bool,
    /// Tokens of question and answer together, where known.
    pub context: Option<u64>,
    /// Tokens of one answer at most, where known.
    pub output_limit: Option<u32>,
    /// Whether it is known to take pictures.
    pub pictures: bool,
}

impl ListedPrice {
    /// What the tables say of a model, seen on a day.
    pub fn of(name: &ModelName, prices: &PriceTable, today: i64) -> Self {
        let price = prices.of_name(name);
        let limits = prices.limits(&name.priced_as());
        let age = price.as_of.as_deref().and_then(day).map(|day| today - day);
        Self {
            known: price.known,
            input_usd_per_million: dollars(price.input),
            output_usd_per_million: dollars(price.output),
            as_of: price.as_of,
            stale: age.is_some_and(|age| age > STALE) && price.output > 0,
            context: limits.context,
            output_limit: limits.output,
            pictures: limits.pictures,
        }
    }

    /// For people, in one line.
    pub fn words(&self) -> String {
        let (read, wrote) = (self.input_usd_per_million, self.output_usd_per_million);
        let mut words = match &self.as_of {
            _ if !self.known => format!(
                "price unknown (a budget in money counts ${wrote:.2} for a million tokens; models.prices \
                 names your own table)"
            ),
            _ if wrote == 0.0 && read == 0.0 => "free".to_owned(),
            Some(day) => format!(
                "at most ${read:.2} read, ${wrote:.2} written for a million tokens, as of {day}"
            ),
            None => format!("${read:.2} read, ${wrote:.2} written for a million tokens"),
        };
        if self.stale {
            words.push_str(", over six months ago: look it up");
        }
        if let Some(context) = self.context {
            let _ = write!(words, "; holds {} tokens", thousands(context));
        }
        if let Some(limit) = self.output_limit {
            let _ = write!(words, ", answers up to {}", thousands(u64::from(limit)));
        }
        if self.pictures {
            words.push_str("; takes pictures");
        }
        words
    }
}

/// Days after which a price should be looked up again.
const STALE: i64 = 183;

/// The number of today, in days since 1970.
pub fn today() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs() / 86_400).unwrap_or(0)
    })
}

/// The number of a day written `YYYY-MM-DD`, in days since 1970, by the calendar's own rules.
fn day(text: &str) -> Option<i64> {
    let mut parts = text.split('-').map(str::parse::<i64>);
    let (year, month, day) = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    // Years begin in March, so that a leap day is their last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
            - 719_468,
    )
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
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
        let today = today();
        let price = |model: &str| Some(ListedPrice::of(&name(model).ok()?, &prices, today));
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

#[cfg(test)]
mod tests {
    use super::*;
    use lula_models::spend::ModelPrice;

    fn listed(name: &str, on: &str) -> ListedPrice {
        let table = PriceTable::built_in(ModelPrice::ceiling(100.0).unwrap()).unwrap();
        ListedPrice::of(&name.parse().unwrap(), &table, day(on).unwrap())
    }

    #[test]
    fn a_day_has_its_number() {
        for (text, number) in [
            ("1970-01-01", 0),
            ("2000-03-01", 11_017),
            ("2026-11-19", 20_776),
        ] {
            assert_eq!(day(text), Some(number), "{text}");
        }
    }

    #[test]
    fn an_old_price_says_so_and_an_unknown_one_is_no_amount_of_its_own() {
        let fresh = listed("anthropic/claude-opus-5-5", "2026-11-19");
        assert_eq!(
            fresh.words(),
            "at most $4.00 read, $20.00 written for a million tokens, as of 2026-09-22; holds 1,000,000 \
             tokens, answers up to 128,000; takes pictures"
        );
        let old = listed("anthropic/claude-opus-5-5", "2027-11-19");
        assert!(
            old.words().contains("over six months ago: look it up"),
            "{}",
            old.words()
        );
        let unknown = listed("openai/gpt-99", "2026-11-19");
        assert!(
            unknown.words().starts_with("price unknown ("),
            "{}",
            unknown.words()
        );
        assert_eq!(listed("ollama/qwen", "2026-11-19").words(), "free");
    }
}
