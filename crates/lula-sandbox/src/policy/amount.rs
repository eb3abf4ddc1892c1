//! Amounts as people write them: `512MiB`, `90s`, `0.5` of a CPU, `75%` of the machine.
//!
//! Each type has one canonical spelling, the one it prints, and reads every spelling it prints.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lula_protocol::units::{self, parse_digits};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is no amount. The message says what would be one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not {expected}")]
pub struct InvalidPolicyAmount {
    given: String,
    expected: &'static str,
}

impl InvalidPolicyAmount {
    pub(crate) fn new(given: &str, expected: &'static str) -> Self {
        let given = given.chars().take(40).collect();
        Self { given, expected }
    }
}

/// A number of bytes, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

const BYTES_EXPECTED: &str = "a size: write a whole number above zero and a unit, such as 512MiB \
                              (units: B, KiB, MiB, GiB, TiB)";

impl ByteSize {
    /// That many bytes; `None` for zero.
    pub const fn new(bytes: u64) -> Option<Self> {
        if bytes == 0 { None } else { Some(Self(bytes)) }
    }

    /// That many mebibytes, for the built-in profiles.
    pub(crate) const fn mib(count: u32) -> Self {
        assert!(count > 0);
        Self((count as u64) << 20)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = InvalidPolicyAmount;
    fn from_str(given: &str) -> Result<Self, InvalidPolicyAmount> {
        units::parse_size(given)
            .and_then(Self::new)
            .ok_or_else(|| InvalidPolicyAmount::new(given, BYTES_EXPECTED))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::exact_size(self.0))
    }
}

/// A span of wall-clock time in whole milliseconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

const WALL_EXPECTED: &str =
    "a duration: write a whole number above zero and a unit, such as 90s (units: ms, s, m, h, d)";

impl WallTime {
    /// That many milliseconds; `None` for zero.
    pub const fn from_millis(millis: u64) -> Option<Self> {
        if millis == 0 {
            None
        } else {
            Some(Self(millis))
        }
    }

    /// That many seconds, for the built-in profiles.
    pub(crate) const fn seconds(count: u32) -> Self {
        assert!(count > 0);
        Self(count as u64 * 1_000)
    }

    /// The number of milliseconds.
    pub const fn millis(self) -> u64 {
        self.0
    }

    /// The same span as a standard duration.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl FromStr for WallTime {
    type Err = InvalidPolicyAmount;
    fn from_str(given: &str) -> Result<Self, InvalidPolicyAmount> {
        units::parse_millis(given)
            .and_then(Self::from_millis)
            .ok_or_else(|| InvalidPolicyAmount::new(given, WALL_EXPECTED))
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::exact_millis(self.0))
    }
}

/// A share of the machine in whole per cent, 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u8);

impl Percent {
    /// That many per cent; `None` outside 1 to 100.
    pub const fn new(percent: u8) -> Option<Self> {
        if percent == 0 || percent > 100 {
            None
        } else {
            Some(Self(percent))
        }
    }

    /// For the built-in profiles.
    pub(crate) const fn of_machine(percent: u8) -> Self {
        assert!(percent > 0 && percent <= 100);
        Self(percent)
    }

    /// That share of a whole, never below one.
    pub fn of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.0) / 100;
        u64::try_from(part).unwrap_or(u64::MAX).max(1)
    }

    fn parse(given: &str) -> Option<Self> {
        Self::new(parse_digits(given.strip_suffix('%')?)?.try_into().ok()?)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// Memory for the whole tree of a command: a fixed size or a share of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryLimit {
    Fixed(ByteSize),
    /// A share of the machine's memory.
    Share(Percent),
}

impl FromStr for MemoryLimit {
    type Err = InvalidPolicyAmount;
    fn from_str(given: &str) -> Result<Self, InvalidPolicyAmount> {
        const EXPECTED: &str = "an amount of memory: write a size such as 512MiB, or a share of \
                                the machine from 1% to 100%";
        Percent::parse(given)
            .map(Self::Share)
            .or_else(|| given.parse().ok().map(Self::Fixed))
            .ok_or_else(|| InvalidPolicyAmount::new(given, EXPECTED))
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(f),
            Self::Share(percent) => percent.fmt(f),
        }
    }
}

/// CPU time per wall-clock time: thousandths of one core, or a share of all cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CpuLimit {
    /// Thousandths of one core, at least ten (the kernel grants no less).
    Millicores(u32),
    /// That share of all cores of the machine.
    Share(Percent),
}

/// Below this the kernel refuses a quota.
pub const LEAST_MILLICORES: u32 = 10;
const MOST_MILLICORES: u32 = 4_096_000;

impl FromStr for CpuLimit {
    type Err = InvalidPolicyAmount;
    fn from_str(given: &str) -> Result<Self, InvalidPolicyAmount> {
        const EXPECTED: &str = "an amount of CPU: write cores with at most three decimals such as \
                                0.5 (at least 0.01), or a share of the machine from 1% to 100%";
        Percent::parse(given)
            .map(Self::Share)
            .or_else(|| millicores(given).map(Self::Millicores))
            .ok_or_else(|| InvalidPolicyAmount::new(given, EXPECTED))
    }
}

fn millicores(given: &str) -> Option<u32> {
    let (whole, fraction) = given.split_once('.').unwrap_or((given, "0"));
    if fraction.len() > 3 {
        return None;
    }
    let scale = 10_u64.pow(3 - u32::try_from(fraction.len()).ok()?);
    let millis = parse_digits(whole)?
        .checked_mul(1_000)?
        .checked_add(parse_digits(fraction)?.checked_mul(scale)?)?;
    let millis = u32::try_from(millis).ok()?;
    (LEAST_MILLICORES..=MOST_MILLICORES)
        .contains(&millis)
        .then_some(millis)
}

impl fmt::Display for CpuLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(percent) => percent.fmt(f),
            Self::Millicores(millis) if millis % 1_000 == 0 => write!(f, "{}", millis / 1_000),
            Self::Millicores(millis) => {
                let text = format!("{}.{:03}", millis / 1_000, millis % 1_000);
                f.write_str(text.trim_end_matches('0'))
            }
        }
    }
}

macro_rules! serde_as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(crate) use serde_as_text;
serde_as_text!(ByteSize, WallTime, MemoryLimit, CpuLimit);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        assert_eq!("512MiB".parse(), Ok(ByteSize::mib(512)));
        assert_eq!("1GiB".parse(), Ok(ByteSize::mib(1024)));
        assert_eq!(ByteSize::mib(1024).to_string(), "1GiB");
        for wrong in [
            "",
            "0B",
            "512",
            "512MB",
            "-1B",
            "1.5GiB",
            " 1B",
            "99999999999TiB",
        ] {
            assert!(wrong.parse::<ByteSize>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn durations_read_as_people_write_them() {
        assert_eq!("90s".parse(), Ok(WallTime::seconds(90)));
        assert_eq!("2m".parse(), Ok(WallTime::seconds(120)));
        assert_eq!(WallTime::seconds(90).to_string(), "90s");
        for wrong in ["", "90", "0s", "1w", "1 s"] {
            assert!(wrong.parse::<WallTime>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn cpu_is_cores_or_a_share() {
        assert_eq!("0.5".parse(), Ok(CpuLimit::Millicores(500)));
        assert_eq!("2".parse(), Ok(CpuLimit::Millicores(2000)));
        assert_eq!("75%".parse(), Ok(CpuLimit::Share(Percent::of_machine(75))));
        for wrong in [
            "", ".", ".5", "0", "0.001", "0.5000", "0%", "101%", "-1", "1e3",
        ] {
            assert!(wrong.parse::<CpuLimit>().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn every_amount_prints_as_it_reads(n in 1_u64.., millis in 10_u32..4_096_000, p in 1_u8..=100) {
            let size = ByteSize::new(n).unwrap();
            prop_assert_eq!(size.to_string().parse(), Ok(size));
            let wall = WallTime::from_millis(n).unwrap();
            prop_assert_eq!(wall.to_string().parse(), Ok(wall));
            for cpu in [CpuLimit::Millicores(millis), CpuLimit::Share(Percent::of_machine(p))] {
                prop_assert_eq!(cpu.to_string().parse(), Ok(cpu));
            }
            for memory in [MemoryLimit::Fixed(size), MemoryLimit::Share(Percent::of_machine(p))] {
                prop_assert_eq!(memory.to_string().parse(), Ok(memory));
            }
        }

        #[test]
        fn hostile_text_never_panics(text in ".{0,40}") {
            let _ = (text.parse::<ByteSize>(), text.parse::<WallTime>());
            let _ = (text.parse::<CpuLimit>(), text.parse::<MemoryLimit>());
        }
    }
}
