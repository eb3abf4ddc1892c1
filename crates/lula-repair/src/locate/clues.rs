//! What failing tests say of the mistake: values wanted and seen, errors raised or missing.

use std::collections::HashMap;

use crate::patches::PatchFamily;

/// What the messages of failing tests give away.
#[derive(Debug, Default, Clone)]
pub(crate) struct Clues {
    boosts: HashMap<PatchFamily, f64>,
    rewrites: Vec<(String, String)>,
    not_raised: Vec<String>,
    missing_error: bool,
    values: Vec<String>,
    kinds: super::TypesByVariable,
}

impl Clues {
    /// Reads the messages of the tests that fail.
    pub(crate) fn read<'a>(messages: impl Iterator<Item = &'a str>) -> Self {
        let mut clues = Self::default();
        for message in messages {
            clues.errors(message);
            for (a, b) in pairs(message) {
                clues.compare(&a, &b);
            }
        }
        clues
    }

    /// Adds what variables held while the tests ran.
    pub(crate) fn see(&mut self, kinds: super::TypesByVariable) {
        self.kinds = kinds;
    }

    /// What variables held while the tests ran.
    pub(crate) fn kinds(&self) -> &super::TypesByVariable {
        &self.kinds
    }

    /// How much likelier the messages make a family.
    pub(crate) fn boost(&self, family: PatchFamily) -> f64 {
        self.boosts.get(&family).copied().unwrap_or(1.0)
    }

    /// Pieces of text to exchange so that what was seen becomes what was wanted.
    pub(crate) fn rewrites(&self) -> &[(String, String)] {
        &self.rewrites
    }

    /// Errors that a test waited for in vain.
    pub(crate) fn not_raised(&self) -> impl Iterator<Item = &str> {
        self.not_raised.iter().map(String::as_str)
    }

    /// Whether a test waited for some error in vain.
    pub(crate) fn waits_for_error(&self) -> bool {
        self.missing_error
    }

    /// Values that tests compare with; a patch that names one may be made to measure.
    pub(crate) fn values(&self) -> &[String] {
        &self.values
    }

    fn raise(&mut self, families: &[PatchFamily], factor: f64) {
        for family in families {
            let old = self.boosts.entry(*family).or_insert(1.0);
            *old = old.max(factor);
        }
    }

    fn errors(&mut self, message: &str) {
        use PatchFamily::{
            Arguments, Bounds, Branch, Call, Comparison, Conversion, Default, Guard,
            MissingCondition, MissingStatement, Negation, OffByOne, Operator, SurplusStatement,
            Variable,
        };
        let has = |needles: &[&str]| needles.iter().any(|needle| message.contains(needle));
        if has(&["IndexError", "out of range", "out of bounds", "RangeError"]) {
            self.raise(
                &[Bounds, OffByOne, Guard, Comparison, MissingCondition],
                1.5,
            );
        }
        if has(&["ZeroDivisionError", "divide by zero", "NaN", "Infinity"]) {
            self.raise(&[Guard], 2.5);
            self.raise(&[MissingCondition, Default], 1.5);
        }
        if has(&["KeyError"]) {
            self.raise(&[Default], 2.0);
            self.raise(&[MissingCondition, Guard], 1.5);
        }
        if has(&[
            "NoneType",
            "Cannot read properties of",
            "undefined",
            "None != ",
            "!= None",
            "None ==",
        ]) {
            self.raise(&[Guard, MissingStatement, Default, MissingCondition], 1.6);
        }
        if has(&[
            "NameError",
            "AttributeError",
            "ReferenceError",
            "is not a function",
            "UnboundLocalError",
        ]) {
            self.raise(&[Variable, Call, MissingStatement], 2.0);
        }
        if has(&["TypeError"]) {
            self.raise(&[Conversion, Arguments, Default], 1.6);
        }
        if has(&[
            "RecursionError",
            "OutOfTime",
            "did not end",
            "Maximum call stack",
            "timed out",
            "stack overflow",
        ]) {
            self.raise(
                &[
                    Comparison,
                    OffByOne,
                    Operator,
                    MissingStatement,
                    Guard,
                    Bounds,
                ],
                1.5,
            );
        }
        if has(&["overflow"]) {
            self.raise(&[Guard, Conversion, Comparison], 2.0);
        }
        if has(&[
            "False is not true",
            "True is not false",
            "assert False",
            "assert True",
            "assert not",
            "true !== false",
            "false !== true",
            "left: true",
            "left: false",
        ]) {
            self.raise(
                &[
                    Comparison,
                    Negation,
                    MissingCondition,
                    Branch,
                    PatchFamily::Logic,
                ],
                1.3,
            );
        }
        for line in message.lines() {
            let line = line.trim().trim_start_matches("E ").trim();
            if let Some(rest) = line.strip_suffix(" not raised").or_else(|| {
                line.split(" not raised by")
                    .next()
                    .filter(|rest| *rest != line)
            }) {
                self.wait_for(rest.rsplit([' ', ':']).next().unwrap_or(rest));
            } else if let Some((_, rest)) = line.split_once("DID NOT RAISE") {
                let name = rest
                    .trim()
                    .trim_start_matches("<class '")
                    .trim_end_matches("'>");
                self.wait_for(name.rsplit('.').next().unwrap_or(name));
            } else if let Some((_, rest)) = line.split_once("Missing expected exception") {
                self.missing_error = true;
                if let Some(name) = rest
                    .trim_start()
                    .strip_prefix('(')
                    .and_then(|rest| rest.split(')').next())
                {
                    self.wait_for(name);
                }
            }
        }
        if self.missing_error {
            self.raise(&[Guard, MissingCondition, Comparison], 2.0);
            self.raise(&[SurplusStatement], 0.5);
        }
    }

    fn wait_for(&mut self, name: &str) {
        self.missing_error = true;
        if !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !self.not_raised.iter().any(|known| known == name)
        {
            self.not_raised.push(name.to_owned());
        }
    }

    fn compare(&mut self, a: &str, b: &str) {
        for value in [a, b] {
            let bare = value.trim_matches(['\'', '"']).to_owned();
            if bare.len() > 1 && !self.values.contains(&bare) {
                self.values.push(bare);
            }
        }
        if let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>()) {
            if ((x - y).abs() - 1.0).abs() < 1e-9 {
                self.raise(
                    &[
                        PatchFamily::OffByOne,
                        PatchFamily::Bounds,
                        PatchFamily::Comparison,
                    ],
                    1.4,
                );
            }
            if (x + y).abs() < 1e-9 {
                self.raise(&[PatchFamily::Operands, PatchFamily::Operator], 1.5);
            }
            if (x.trunc() - y.trunc()).abs() < 1.5 && (x.fract() - y.fract()).abs() > f64::EPSILON {
                self.raise(&[PatchFamily::Conversion, PatchFamily::Operator], 1.4);
            }
            return;
        }
        if matches!(
            (a, b),
            ("True" | "true", "False" | "false") | ("False" | "false", "True" | "true")
        ) {
            self.raise(
                &[
                    PatchFamily::Comparison,
                    PatchFamily::Negation,
                    PatchFamily::MissingCondition,
                    PatchFamily::Logic,
                ],
                1.3,
            );
            return;
        }
        if same_letters(a, b) && a != b {
            self.raise(
                &[
                    PatchFamily::Operands,
                    PatchFamily::Arguments,
                    PatchFamily::Conversion,
                    PatchFamily::MovedStatement,
                ],
                1.5,
            );
        }
        if a.eq_ignore_ascii_case(b) {
            self.raise(&[PatchFamily::Conversion, PatchFamily::Call], 1.6);
        }
        let quoted = |text: &str| text.starts_with(['\'', '"', '[', '{']);
        if quoted(a) && quoted(b) && a.len() < 2000 && b.len() < 2000 {
            self.rewrite(a, b);
            self.rewrite(b, a);
        }
    }

    /// Finds what differs between two texts and, with a little of what surrounds it, what to write instead.
    fn rewrite(&mut self, seen: &str, wanted: &str) {
        let seen: Vec<char> = seen.chars().collect();
        let wanted: Vec<char> = wanted.chars().collect();
        let ahead = seen.iter().zip(&wanted).take_while(|(x, y)| x == y).count();
        let room = seen.len().min(wanted.len()) - ahead;
        let behind = seen
            .iter()
            .rev()
            .zip(wanted.iter().rev())
            .take(room)
            .take_while(|(x, y)| x == y)
            .count();
        let (seen_mid, wanted_mid) = (
            &seen[ahead..seen.len() - behind],
            &wanted[ahead..wanted.len() - behind],
        );
        if seen_mid.len() > 24 || wanted_mid.len() > 24 {
            return;
        }
        for left in 0..=2.min(ahead) {
            for right in 0..=2.min(behind) {
                let piece = |mid: &[char]| -> String {
                    seen[ahead - left..ahead]
                        .iter()
                        .chain(mid)
                        .chain(&seen[seen.len() - behind..seen.len() - behind + right])
                        .collect()
                };
                let (from, to) = (piece(seen_mid), piece(wanted_mid));
                if !from.is_empty() && self.rewrites.len() < 60 {
                    self.rewrites.push((from, to));
                }
            }
        }
    }
}

fn same_letters(a: &str, b: &str) -> bool {
    let sorted = |text: &str| {
        let mut chars: Vec<char> = text.chars().collect();
        chars.sort_unstable();
        chars
    };
    a.len() == b.len() && sorted(a) == sorted(b)
}

/// Values that an assertion compared, in either order.
fn pairs(message: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left: Option<String> = None;
    for line in message.lines() {
        let line = line.trim().trim_start_matches("E ").trim();
        if let Some(value) = line
            .strip_prefix("left: ")
            .or_else(|| line.strip_prefix("expected: "))
        {
            left = Some(value.trim_matches('\'').to_owned());
        } else if let Some(value) = line
            .strip_prefix("right: ")
            .or_else(|| line.strip_prefix("actual: "))
        {
            if let Some(left) = left.take() {
                found.push((left, value.trim_matches('\'').to_owned()));
            }
        } else if let Some((_, rest)) = line.split_once("assert ")
            && let Some((a, b)) = rest.split_once(" == ")
        {
            found.push((a.trim().to_owned(), b.trim().to_owned()));
        } else if let Some((a, b)) = line.split_once(" !== ") {
            found.push((a.trim().to_owned(), b.trim().to_owned()));
        } else if let Some((_, rest)) = line.split_once("AssertionError: ")
            && let Some((a, b)) = rest.split_once(" != ")
        {
            let b = b.split(" : ").next().unwrap_or(b);
            found.push((a.trim().to_owned(), b.trim().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_one_apart_point_at_an_off_by_one() {
        let clues = Clues::read(["AssertionError: 3 != 4"].into_iter());
        assert!(clues.boost(PatchFamily::OffByOne) > 1.0);
        let clues = Clues::read(["  left: 10\n right: 11"].into_iter());
        assert!(clues.boost(PatchFamily::OffByOne) > 1.0);
    }

    #[test]
    fn the_difference_of_two_texts_says_what_to_write_instead() {
        let clues = Clues::read(["AssertionError: 'a,b' != 'a, b'"].into_iter());
        assert!(
            clues
                .rewrites()
                .contains(&(",".to_owned(), ", ".to_owned()))
        );
    }

    #[test]
    fn an_error_that_did_not_come_is_named() {
        let clues = Clues::read(
            [
                "AssertionError: ValueError not raised",
                "Missing expected exception (RangeError).",
            ]
            .into_iter(),
        );
        assert_eq!(
            clues.not_raised().collect::<Vec<_>>(),
            ["ValueError", "RangeError"]
        );
    }
}
