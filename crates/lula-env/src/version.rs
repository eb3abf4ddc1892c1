//! Versions, and what a project says about the ones it works with: Python's specifiers and npm's ranges.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Numbers with dots between them. What follows them (`rc1`, `-beta`) is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionNumber(Vec<u32>);

impl FromStr for VersionNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.trim().trim_start_matches(['v', '=']).trim_start();
        let mut parts = Vec::new();
        for part in text.split('.') {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            let Ok(number) = digits.parse() else { break };
            parts.push(number);
            if digits.len() < part.len() {
                break;
            }
        }
        if parts.is_empty() {
            Err(())
        } else {
            Ok(Self(parts))
        }
    }
}

impl fmt::Display for VersionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

impl VersionNumber {
    fn part(&self, index: usize) -> u32 {
        self.0.get(index).copied().unwrap_or(0)
    }

    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let parts = self.0.len().max(other.0.len());
        let own = (0..parts).map(|index| self.part(index));
        own.cmp((0..parts).map(|index| other.part(index)))
    }

    /// Whether it begins with all parts of the other.
    pub fn is_of(&self, other: &Self) -> bool {
        other
            .0
            .iter()
            .enumerate()
            .all(|(index, part)| self.part(index) == *part)
    }

    /// The next version with fewer parts: `1.2.3` up to two parts is `1.3`.
    fn above(&self, parts: usize) -> Self {
        let mut above: Vec<u32> = (0..parts).map(|index| self.part(index)).collect();
        if let Some(last) = above.last_mut() {
            *last += 1;
        }
        Self(above)
    }

    /// Its first two parts, as interpreters are called.
    #[must_use]
    pub fn minor(&self) -> Self {
        Self(self.0.iter().take(2).copied().collect())
    }

    pub fn major(&self) -> u32 {
        self.part(0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum VersionBound {
    AtLeast(VersionNumber),
    Above(VersionNumber),
    Below(VersionNumber),
    AtMost(VersionNumber),
    Of(VersionNumber),
    NotOf(VersionNumber),
}

impl VersionBound {
    fn holds(&self, version: &VersionNumber) -> bool {
        match self {
            Self::AtLeast(bound) => version.compare(bound).is_ge(),
            Self::Above(bound) => version.compare(bound).is_gt(),
            Self::Below(bound) => version.compare(bound).is_lt(),
            Self::AtMost(bound) => version.compare(bound).is_le() || version.is_of(bound),
            Self::Of(bound) => version.is_of(bound),
            Self::NotOf(bound) => !version.is_of(bound),
        }
    }
}

/// Which versions a project works with: any of several sets of bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRange(Vec<Vec<VersionBound>>);

impl VersionRange {
    /// Python's: `>=3.8,<4`, `~=3.10`, `==3.11.*`, and Poetry's `^3.9`. What is not understood
    /// bounds nothing.
    pub fn of_python(text: &str) -> Self {
        let bounds = text.split(',').filter_map(|one| python_bound(one.trim()));
        Self(vec![bounds.flatten().collect()])
    }

    /// npm's: `>=18 <21 || ^22.1.0`, `18.x`, `~20.1`. What is not understood bounds nothing.
    pub fn of_npm(text: &str) -> Self {
        Self(text.split("||").map(npm_bounds).collect())
    }

    pub fn holds(&self, version: &VersionNumber) -> bool {
        self.0
            .iter()
            .any(|bounds| bounds.iter().all(|bound| bound.holds(version)))
    }
}

fn python_bound(text: &str) -> Option<Vec<VersionBound>> {
    let number = |text: &str| text.trim().trim_end_matches(".*").parse().ok();
    let found = if let Some(rest) = text.strip_prefix("~=") {
        let least: VersionNumber = number(rest)?;
        let parts = least.0.len().saturating_sub(1).max(1);
        let below = VersionBound::Below(least.above(parts));
        return Some(vec![VersionBound::AtLeast(least), below]);
    } else if let Some(rest) = text.strip_prefix(">=") {
        VersionBound::AtLeast(number(rest)?)
    } else if let Some(rest) = text.strip_prefix("<=") {
        VersionBound::AtMost(number(rest)?)
    } else if let Some(rest) = text.strip_prefix("!=") {
        VersionBound::NotOf(number(rest)?)
    } else if let Some(rest) = text.strip_prefix("==") {
        VersionBound::Of(number(rest.trim_start_matches('='))?)
    } else if let Some(rest) = text.strip_prefix('>') {
        VersionBound::Above(number(rest)?)
    } else if let Some(rest) = text.strip_prefix('<') {
        VersionBound::Below(number(rest)?)
    } else if let Some(rest) = text.strip_prefix('^') {
        let least: VersionNumber = number(rest)?;
        let below = VersionBound::Below(least.above(1));
        return Some(vec![VersionBound::AtLeast(least), below]);
    } else if let Some(rest) = text.strip_prefix('~') {
        let least: VersionNumber = number(rest)?;
        let below = VersionBound::Below(least.above(2));
        return Some(vec![VersionBound::AtLeast(least), below]);
    } else {
        VersionBound::Of(number(text)?)
    };
    Some(vec![found])
}

fn npm_bounds(text: &str) -> Vec<VersionBound> {
    // An operator may stand apart from its number.
    let mut joined = text.trim().to_owned();
    for operator in [">=", "<=", ">", "<", "^", "~", "="] {
        while joined.contains(&format!("{operator} ")) {
            joined = joined.replace(&format!("{operator} "), operator);
        }
    }
    let words: Vec<&str> = joined.split_whitespace().collect();
    if let [from, "-", to] = words.as_slice() {
        let (from, to) = (from.parse(), to.parse());
        return [
            from.ok().map(VersionBound::AtLeast),
            to.ok().map(VersionBound::AtMost),
        ]
        .into_iter()
        .flatten()
        .collect();
    }
    words.into_iter().flat_map(npm_bound).collect()
}

fn npm_bound(word: &str) -> Vec<VersionBound> {
    let number = |text: &str| -> Option<VersionNumber> { text.parse().ok() };
    let bounds = if let Some(rest) = word.strip_prefix(">=") {
        number(rest).map(|least| vec![VersionBound::AtLeast(least)])
    } else if let Some(rest) = word.strip_prefix("<=") {
        number(rest).map(|most| vec![VersionBound::AtMost(most)])
    } else if let Some(rest) = word.strip_prefix('>') {
        number(rest).map(|bound| vec![VersionBound::Above(bound)])
    } else if let Some(rest) = word.strip_prefix('<') {
        number(rest).map(|bound| vec![VersionBound::Below(bound)])
    } else if let Some(rest) = word.strip_prefix('^') {
        number(rest).map(|least| {
            let parts = if least.major() > 0 { 1 } else { 2 };
            let below = VersionBound::Below(least.above(parts));
            vec![VersionBound::AtLeast(least), below]
        })
    } else if let Some(rest) = word.strip_prefix('~') {
        number(rest).map(|least| {
            let parts = least.0.len().min(2);
            let below = VersionBound::Below(least.above(parts));
            vec![VersionBound::AtLeast(least), below]
        })
    } else {
        number(word).map(|of| vec![VersionBound::Of(of)])
    };
    bounds.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> VersionNumber {
        text.parse().unwrap()
    }

    #[test]
    fn specifiers_of_python_hold_what_pip_takes() {
        for (range, fits, others) in [
            (">=3.8", &["3.8", "3.12.1"][..], &["3.7.16", "2.7"][..]),
            (">=3.8,<3.12", &["3.11.7"], &["3.12", "3.12.1"]),
            ("~=3.9", &["3.9", "3.13"], &["3.8", "4.0"]),
            ("~=3.9.2", &["3.9.18"], &["3.10"]),
            ("==3.10.*", &["3.10.13"], &["3.11"]),
            (">=3.6, !=3.9.*", &["3.8"], &["3.9.18"]),
            ("^3.9", &["3.13"], &["3.8", "4"]),
            ("3.11", &["3.11.7"], &["3.12"]),
            ("", &["3.6"], &[]),
        ] {
            let range_of = VersionRange::of_python(range);
            for fit in fits {
                assert!(range_of.holds(&version(fit)), "{range} {fit}");
            }
            for other in others {
                assert!(!range_of.holds(&version(other)), "{range} {other}");
            }
        }
    }

    #[test]
    fn ranges_of_npm_hold_what_npm_takes() {
        for (range, fits, others) in [
            (">=18", &["18.0.0", "20.20.2"][..], &["16.1.0"][..]),
            (
                "^18.12 || >= 20",
                &["18.13.0", "20.0.0"],
                &["18.1.0", "19.0.0"],
            ),
            ("18.x", &["18.4.1"], &["20.0.0"]),
            ("~20.1.2", &["20.1.9"], &["20.2.0"]),
            ("14 - 18", &["14.0.0", "18.9.0"], &["20.0.0"]),
            ("^0.10.0", &["0.10.4"], &["0.11.0"]),
            ("lts/*", &["20.0.0"], &[]),
        ] {
            let range_of = VersionRange::of_npm(range);
            for fit in fits {
                assert!(range_of.holds(&version(fit)), "{range} {fit}");
            }
            for other in others {
                assert!(!range_of.holds(&version(other)), "{range} {other}");
            }
        }
    }
}
