//! Types of values: how each is written, read and printed.

use std::fmt;
use std::time::Duration;

use lula_protocol::units::{exact_duration, exact_size, parse_duration, parse_size};
use toml_edit::Item;

/// The type of a key's value and what it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigValueKind {
    /// A size such as `512MiB`.
    Size {
        /// Smallest size that is taken, in bytes.
        min: u64,
    },
    /// A whole number, written in digits.
    Count {
        /// Smallest number that is taken.
        min: u64,
        /// Largest number that is taken.
        max: u64,
    },
    /// A duration such as `90s`, `10m` or `500ms`.
    Duration { min: Duration, max: Duration },
    /// One of a few words, ordered from loosest to strictest where that matters.
    Choice(&'static [&'static str]),
    /// A path; empty for the default place.
    Path,
    /// Words of a form that the code that uses them checks; here is said which.
    Text(&'static str),
    /// An `http` or `https` URL.
    Url,
    /// A list of `http` or `https` URLs.
    Urls,
    /// A list of texts without commas.
    Items,
    /// An amount of US dollars such as `0.50`.
    Dollars {
        /// Largest amount taken, in whole dollars.
        max: u64,
    },
}

/// A value of some key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigValue {
    /// For [`ConfigValueKind::Size`], in bytes.
    Size(u64),
    Count(u64),
    Duration(Duration),
    /// For [`ConfigValueKind::Choice`], [`ConfigValueKind::Path`], [`ConfigValueKind::Text`] and [`ConfigValueKind::Url`].
    Text(String),
    /// For [`ConfigValueKind::Urls`] and [`ConfigValueKind::Items`].
    List(Vec<String>),
    /// For [`ConfigValueKind::Dollars`], in millionths.
    Dollars(u64),
}

impl ConfigValueKind {
    /// What a value looks like, for messages: "one of auto, always, never".
    pub fn expected(&self) -> String {
        match self {
            Self::Size { min: 0 } => "a size such as 512MiB".to_owned(),
            Self::Size { min } => {
                format!("a size of at least {}, such as 512MiB", exact_size(*min))
            }
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Duration { min, max } => {
                format!(
                    "a duration from {} to {}, such as 90s",
                    exact_duration(*min),
                    exact_duration(*max)
                )
            }
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Path => "a path".to_owned(),
            Self::Text(form) => (*form).to_owned(),
            Self::Url => "a URL that starts with http:// or https://".to_owned(),
            Self::Urls => "a list of URLs that start with http:// or https://".to_owned(),
            Self::Items => "a list, separated by commas".to_owned(),
            Self::Dollars { max } => format!("dollars from 0 to {max}, such as 0.50"),
        }
    }

    /// Reads a value as it is written in a variable or a flag.
    pub fn parse(&self, text: &str) -> Option<ConfigValue> {
        let text = text.trim();
        match self {
            Self::Size { min } => parse_size(text)
                .filter(|bytes| bytes >= min)
                .map(ConfigValue::Size),
            Self::Count { min, max } => count(text)
                .filter(|number| number >= min && number <= max)
                .map(ConfigValue::Count),
            Self::Duration { min, max } => parse_duration(text)
                .filter(|duration| duration >= min && duration <= max)
                .map(ConfigValue::Duration),
            Self::Choice(words) => words
                .contains(&text)
                .then(|| ConfigValue::Text(text.to_owned())),
            Self::Path | Self::Text(_) => {
                (!text.contains('\0')).then(|| ConfigValue::Text(text.to_owned()))
            }
            Self::Url => is_url(text).then(|| ConfigValue::Text(text.to_owned())),
            Self::Urls => list(text.split(','), is_url),
            Self::Items => list(text.split(','), is_item),
            Self::Dollars { max } => parse_dollars(text)
                .filter(|micro| *micro <= max.saturating_mul(1_000_000))
                .map(ConfigValue::Dollars),
        }
    }

    /// Reads a value as it is written in a TOML file.
    pub fn parse_toml(&self, item: &Item) -> Option<ConfigValue> {
        match (self, item) {
            (Self::Size { min }, item) if item.is_integer() => item
                .as_integer()
                .and_then(|bytes| u64::try_from(bytes).ok())
                .filter(|bytes| bytes >= min)
                .map(ConfigValue::Size),
            (Self::Urls | Self::Items, item) => {
                let items: Option<Vec<_>> = item
                    .as_array()?
                    .iter()
                    .map(|entry| entry.as_str())
                    .collect();
                let good = if *self == Self::Urls { is_url } else { is_item };
                list(items?.into_iter(), good)
            }
            (Self::Count { .. }, item) if item.is_integer() => {
                self.parse(&item.as_integer()?.to_string())
            }
            (Self::Dollars { .. }, item) if item.is_integer() || item.is_float() => {
                self.parse(item.to_string().trim())
            }
            (kind, item) => kind.parse(item.as_str()?),
        }
    }
}

impl ConfigValue {
    /// The value as it is written into a TOML file.
    pub fn to_toml(&self) -> toml_edit::Value {
        match self {
            Self::List(items) => items.iter().collect(),
            Self::Size(_)
            | Self::Count(_)
            | Self::Duration(_)
            | Self::Text(_)
            | Self::Dollars(_) => self.to_string().into(),
        }
    }
}

/// As a person writes it: `512MiB`, `10m`, `a,b`.
impl fmt::Display for ConfigValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => f.write_str(&exact_size(*bytes)),
            Self::Count(number) => number.fmt(f),
            Self::Duration(value) => f.write_str(&exact_duration(*value)),
            Self::Text(text) => f.write_str(text),
            Self::List(items) => f.write_str(&items.join(",")),
            Self::Dollars(micro) => f.write_str(&dollars(*micro)),
        }
    }
}

fn list<'a>(items: impl Iterator<Item = &'a str>, good: fn(&str) -> bool) -> Option<ConfigValue> {
    let items: Vec<_> = items
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect();
    items
        .iter()
        .all(|item| good(item))
        .then(|| ConfigValue::List(items.iter().map(ToString::to_string).collect()))
}

fn is_item(text: &str) -> bool {
    !text.contains(|c: char| c == ',' || c.is_control())
}

/// Digits and nothing else.
fn count(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Digits, perhaps a point and up to six digits more; in millionths.
fn parse_dollars(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 {
        return None;
    }
    let micro = format!("{part:0<6}").parse::<u64>().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(micro)
}

fn dollars(micro: u64) -> String {
    let part = format!("{:06}", micro % 1_000_000);
    let part = part.trim_end_matches('0');
    format!("{}.{part:0<2}", micro / 1_000_000)
}

fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && !rest.starts_with('/') && rest.chars().all(|c| c.is_ascii_graphic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dollars_are_exact_to_the_millionth() {
        let kind = ConfigValueKind::Dollars { max: 100 };
        for (text, micro) in [
            ("0.50", 500_000),
            ("2", 2_000_000),
            ("0.000001", 1),
            ("100", 100_000_000),
        ] {
            assert_eq!(
                kind.parse(text),
                Some(ConfigValue::Dollars(micro)),
                "{text}"
            );
        }
        for text in [
            "",
            ".5",
            "1.",
            "-1",
            "1e3",
            "0.0000001",
            "100.01",
            "$5",
            "NaN",
        ] {
            assert_eq!(kind.parse(text), None, "{text}");
        }
        assert_eq!(ConfigValue::Dollars(500_000).to_string(), "0.50");
        assert_eq!(ConfigValue::Dollars(1).to_string(), "0.000001");
    }

    #[test]
    fn items_are_separated_by_commas() {
        assert_eq!(
            ConfigValueKind::Items.parse("a/b, c@d"),
            Some(ConfigValue::List(vec!["a/b".into(), "c@d".into()]))
        );
        assert_eq!(ConfigValueKind::Items.parse("a\u{1b}b"), None);
    }

    #[test]
    fn a_count_is_digits_within_its_bounds() {
        let kind = ConfigValueKind::Count { min: 1, max: 64 };
        assert_eq!(kind.parse("4"), Some(ConfigValue::Count(4)));
        for bad in [
            "",
            "0",
            "65",
            "-1",
            "+4",
            "4.0",
            "4k",
            "99999999999999999999",
        ] {
            assert_eq!(kind.parse(bad), None, "{bad}");
        }
    }

    const ANY_SIZE: ConfigValueKind = ConfigValueKind::Size { min: 0 };
    const ANY_DURATION: ConfigValueKind = ConfigValueKind::Duration {
        min: Duration::ZERO,
        max: Duration::from_secs(u64::MAX / 2_000),
    };

    #[test]
    fn sizes_and_durations_read_like_people_write_them() {
        assert_eq!(ANY_SIZE.parse("512MiB"), Some(ConfigValue::Size(512 << 20)));
        assert_eq!(
            ANY_DURATION.parse("90s"),
            Some(ConfigValue::Duration(Duration::from_secs(90)))
        );
        for bad in [
            "",
            "MiB",
            "1.5GiB",
            "-1s",
            "10 MiB",
            "1e3B",
            "99999999999999999999B",
        ] {
            assert_eq!(ANY_SIZE.parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn limits_of_a_kind_are_enforced() {
        let kind = ConfigValueKind::Duration {
            min: Duration::from_secs(1),
            max: Duration::from_mins(1),
        };
        assert!(kind.parse("1m").is_some());
        assert!(kind.parse("61s").is_none());
        assert!(kind.parse("0s").is_none());
    }

    #[test]
    fn a_url_has_a_host_and_no_space() {
        assert!(
            ConfigValueKind::Url
                .parse("http://127.0.0.1:11434")
                .is_some()
        );
        for bad in [
            "",
            "ftp://x",
            "http://",
            "https:///x",
            "http://a b",
            "javascript:alert(1)",
        ] {
            assert!(ConfigValueKind::Url.parse(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(bytes in 0_u64..1 << 50, ms in 0_u64..1 << 40) {
            let size = ConfigValue::Size(bytes);
            prop_assert_eq!(ANY_SIZE.parse(&size.to_string()), Some(size));
            let duration = ConfigValue::Duration(Duration::from_millis(ms));
            prop_assert_eq!(ANY_DURATION.parse(&duration.to_string()), Some(duration));
        }

        #[test]
        fn hostile_text_never_panics(text in ".{0,40}") {
            for kind in [ANY_SIZE, ANY_DURATION, ConfigValueKind::Url, ConfigValueKind::Urls, ConfigValueKind::Path] {
                let _ = kind.parse(&text);
            }
        }
    }
}
