//! Durations and sizes as people write and read them, with one set of units.
//!
//! A setting is written exactly (`90s`, `512MiB`) and reads back as the same amount; a measurement is
//! told roughly (`1.5 GiB`, `2 min 5 s`).

use std::time::Duration;

/// Sizes, the largest unit first, in bytes.
const SIZES: [(&str, u64); 5] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// Durations, the largest unit first, in milliseconds.
const DURATIONS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Days are read and never written: what was signed or hashed as `24h` keeps its text.
const WRITTEN_DURATIONS: &[(&str, u64)] = DURATIONS.split_at(1).1;

/// A number of bytes: digits and a unit, such as `512MiB`.
pub fn parse_size(text: &str) -> Option<u64> {
    parse(text, &SIZES)
}

/// A duration: digits and a unit, such as `90s`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    parse_millis(text).map(Duration::from_millis)
}

/// A duration in milliseconds: digits and a unit, such as `90s`.
pub fn parse_millis(text: &str) -> Option<u64> {
    parse(text, &DURATIONS)
}

/// A number of bytes as [`parse_size`] reads it: exact, and the shortest.
pub fn exact_size(bytes: u64) -> String {
    exact(bytes, &SIZES)
}

/// A duration as [`parse_duration`] reads it: exact to the millisecond, and the shortest.
pub fn exact_duration(duration: Duration) -> String {
    exact_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds as [`parse_millis`] reads them: exact, and the shortest.
pub fn exact_millis(millis: u64) -> String {
    exact(millis, WRITTEN_DURATIONS)
}

/// A measured number of bytes, to a tenth of its unit: `1.5 GiB`.
pub fn rough_size(bytes: u64) -> String {
    SIZES
        .iter()
        .find(|(_, factor)| *factor > 1 && bytes >= *factor)
        .map_or_else(
            || format!("{bytes} B"),
            |(unit, factor)| match u128::from(bytes % factor) * 10 / u128::from(*factor) {
                0 => format!("{} {unit}", bytes / factor),
                tenths => format!("{}.{tenths} {unit}", bytes / factor),
            },
        )
}

/// A measured duration: `12 ms`, `3.4 s`, `2 min 5 s`.
pub fn rough_duration(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// A limit in milliseconds, in whole seconds where it has any. Verdicts are recorded with this text,
/// so it never changes.
pub fn whole_seconds(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        _ => format!("{} s", millis / 1000),
    }
}

/// How long ago or how far off something is, in the largest unit that fits: `3 h`.
pub fn distance(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Digits only: no sign, no blank, no underscore. Empty text is no number.
pub fn parse_digits(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    parse_digits(number)?.checked_mul(*factor)
}

fn exact(amount: u64, units: &[(&str, u64)]) -> String {
    // Nothing is zero of the smallest unit.
    let fits = |factor: u64| amount.is_multiple_of(factor) && (amount != 0 || factor == 1);
    let (unit, factor) = units
        .iter()
        .find(|(_, factor)| fits(*factor))
        .copied()
        .unwrap_or(("", 1));
    format!("{}{unit}", amount / factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_read_as_people_write_them() {
        assert_eq!(parse_size("512MiB"), Some(512 << 20));
        assert_eq!(exact_size(1 << 30), "1GiB");
        assert_eq!(exact_size(0), "0B");
        for (text, millis) in [("90s", 90_000), ("2m", 120_000), ("1d", 86_400_000)] {
            assert_eq!(parse_millis(text), Some(millis));
        }
        assert_eq!(exact_millis(86_400_000), "24h");
        assert_eq!(exact_millis(0), "0ms");
        for wrong in [
            "",
            "90",
            "s",
            "-1s",
            "1.5GiB",
            " 1B",
            "1 s",
            "99999999999TiB",
        ] {
            assert!(parse_size(wrong).is_none(), "{wrong:?}");
            assert!(parse_millis(wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn measurements_read_as_people_say_them() {
        assert_eq!(rough_size(1_610_612_736), "1.5 GiB");
        assert_eq!(rough_size(12), "12 B");
        assert_eq!(rough_size(512 << 20), "512 MiB");
        assert_eq!(rough_size(u64::MAX), "16777215.9 TiB");
        let rough = |millis| rough_duration(Duration::from_millis(millis));
        assert_eq!(rough(12), "12 ms");
        assert_eq!(rough(3_400), "3.4 s");
        assert_eq!(rough(125_000), "2 min 5 s");
        assert_eq!(whole_seconds(999), "999 ms");
        assert_eq!(whole_seconds(125_400), "125 s");
        let far = |seconds| distance(Duration::from_secs(seconds));
        assert_eq!([far(59), far(60), far(7_200)], ["59 s", "1 min", "2 h"]);
        assert_eq!(far(200_000), "2 d");
    }

    proptest! {
        #[test]
        fn every_amount_reads_back_as_it_was_written(amount in any::<u64>()) {
            prop_assert_eq!(parse_size(&exact_size(amount)), Some(amount));
            prop_assert_eq!(parse_millis(&exact_millis(amount)), Some(amount));
        }

        #[test]
        fn hostile_text_never_panics(text in ".{0,40}") {
            let _ = (parse_size(&text), parse_duration(&text), parse_digits(&text));
        }
    }
}
