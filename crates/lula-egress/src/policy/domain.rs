//! Names of hosts, and patterns of them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::InvalidEgress;

/// Most bytes of a name, without the dot at its end.
const LONGEST_NAME: usize = 253;
/// Most bytes of a label.
const LONGEST_LABEL: usize = 63;
/// Second-level labels below which a country's registry sells names: `*.co.uk` is as wide as `*.com`.
const SHARED_SECOND_LEVEL: &[&str] = &[
    "ac", "co", "com", "ed", "edu", "gob", "gov", "gv", "ltd", "me", "mil", "ne", "net", "nom",
    "or", "org", "plc", "sch",
];

/// The name of a host in its one spelling: lower case, no dot at the end, at least two labels, not an
/// address. International names are written in their ASCII form (`xn--…`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainName(String);

impl DomainName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DomainName {
    type Err = InvalidEgress;
    fn from_str(given: &str) -> Result<Self, InvalidEgress> {
        let invalid = |why: &str| InvalidEgress::new("domain", given, why);
        let name = given.strip_suffix('.').unwrap_or(given);
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(invalid("a name has 1 to 253 characters"));
        }
        let name = name.to_ascii_lowercase();
        if name.parse::<IpAddr>().is_ok() || name.starts_with('[') {
            return Err(invalid("an address is no name: rules allow names only"));
        }
        let labels: Vec<&str> = name.split('.').collect();
        if labels.len() < 2 {
            return Err(invalid("a name has at least two labels, as in pypi.org"));
        }
        for label in &labels {
            let fine = !label.is_empty()
                && label.len() <= LONGEST_LABEL
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
            if !fine {
                return Err(invalid(
                    "each label has 1 to 63 of a-z, 0-9, - and _, and no - at either end; write an \
                     international name in its ASCII form, xn--…",
                ));
            }
        }
        // `1.2.3`, `0x7f.1`: texts that some resolvers read as an address.
        if labels
            .last()
            .is_some_and(|last| last.starts_with(|first: char| first.is_ascii_digit()))
        {
            return Err(invalid(
                "the last label begins with a digit: it would be read as an address",
            ));
        }
        Ok(Self(name))
    }
}

/// The names that a rule speaks of: one, or those with exactly one label more (`*.example.org`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DomainPattern {
    Exact(DomainName),
    /// Names with one label before this one. The name itself is not among them.
    Below(DomainName),
}

impl DomainPattern {
    pub fn matches(&self, name: &DomainName) -> bool {
        match self {
            Self::Exact(exact) => exact == name,
            Self::Below(parent) => name
                .as_str()
                .split_once('.')
                .is_some_and(|(_, rest)| rest == parent.as_str()),
        }
    }
}

impl FromStr for DomainPattern {
    type Err = InvalidEgress;
    fn from_str(given: &str) -> Result<Self, InvalidEgress> {
        let invalid = |why: &str| InvalidEgress::new("domain", given, why);
        let Some(parent) = given.strip_prefix("*.") else {
            if given.contains('*') {
                return Err(invalid(
                    "a * stands only for the first label, as in *.example.org: name what is to be reached",
                ));
            }
            return given.parse().map(Self::Exact);
        };
        let parent: DomainName = parent.parse().map_err(|_| {
            invalid("below *. stands a name of at least two labels, as in *.example.org")
        })?;
        if let Some((second, top)) = parent.as_str().split_once('.')
            && top.len() == 2
            && SHARED_SECOND_LEVEL.contains(&second)
        {
            return Err(invalid(
                "names below it belong to anyone who buys one: name the host",
            ));
        }
        Ok(Self::Below(parent))
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => name.fmt(f),
            Self::Below(parent) => write!(f, "*.{parent}"),
        }
    }
}

macro_rules! spelled {
    ($($name:ty),*) => { $(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    )* };
}
pub(super) use spelled;

spelled!(DomainName, DomainPattern);

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> DomainPattern {
        text.parse().unwrap()
    }

    fn name(text: &str) -> DomainName {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_has_one_spelling() {
        assert_eq!(name("PyPI.org."), name("pypi.org"));
        assert_eq!(
            name("files.PythonHosted.org").to_string(),
            "files.pythonhosted.org"
        );
    }

    #[test]
    fn a_star_stands_for_one_label() {
        let star = pattern("*.example.org");
        assert!(star.matches(&name("a.example.org")));
        for other in [
            "example.org",
            "a.b.example.org",
            "aexample.org",
            "example.org.evil.com",
        ] {
            assert!(!star.matches(&name(other)), "{other}");
        }
    }

    #[test]
    fn what_would_allow_everything_is_refused() {
        for wide in [
            "*",
            "*.",
            "*.com",
            "*.org",
            "*.co.uk",
            "*.com.au",
            "**.example.org",
            "a.*.org",
            "*a.example.org",
            "*.*.example.org",
            "",
        ] {
            assert!(wide.parse::<DomainPattern>().is_err(), "{wide}");
        }
    }

    #[test]
    fn an_address_is_no_name() {
        for address in [
            "127.0.0.1",
            "1.2",
            "::1",
            "[::1]",
            "0x7f.1",
            "a.0",
            "2130706433",
            "fd00:ec2::254",
        ] {
            assert!(address.parse::<DomainName>().is_err(), "{address}");
        }
    }

    #[test]
    fn other_letters_are_refused_with_the_way_to_write_them() {
        let said = "пример.org".parse::<DomainName>().unwrap_err().to_string();
        assert!(said.contains("xn--"), "{said}");
        for bad in [
            "a b.org",
            "a..org",
            "-a.org",
            "a-.org",
            "a/b.org",
            "a.org:443",
            "a.org\0",
        ] {
            assert!(bad.parse::<DomainName>().is_err(), "{bad}");
        }
    }
}
