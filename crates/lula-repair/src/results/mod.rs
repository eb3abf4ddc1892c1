//! Reads what test frameworks print for machines.

mod go;
mod json;
mod junit;
mod libtest;
mod printed;
mod runners;
mod tap;

pub use go::go;
pub use json::{jest, mocha};
pub use junit::junit;
pub use libtest::libtest;
pub use printed::{ctest, deno};
pub(crate) use runners::of_runner;
pub use tap::tap;

use std::collections::BTreeMap;

use crate::report::{TestCase, TestOutcome};

/// Longest message that is kept of one test.
const MAX_MESSAGE: usize = 6000;

fn case(id: String, outcome: TestOutcome, message: &str) -> TestCase {
    TestCase {
        id,
        outcome,
        // What a test wanted and what it got stand at the end of what it said.
        message: crate::trial::excerpt(message, MAX_MESSAGE),
    }
}

/// Numbers tests of the same name, as `name #2`, so that each of them counts.
pub(crate) fn number(tests: &mut [TestCase]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for test in tests {
        let count = seen.entry(test.id.clone()).or_default();
        *count += 1;
        test.id = numbered(&test.id, *count);
    }
}

fn numbered(id: &str, count: usize) -> String {
    match count {
        0 | 1 => id.to_owned(),
        _ => format!("{id} #{count}"),
    }
}

/// The name that the runner itself has for a test.
pub(crate) fn unnumbered(id: &str) -> &str {
    match id.rsplit_once(" #") {
        Some((name, count)) if count.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_end() {
        let message = format!("{}left: 1\nright: 2", "a line of context\n".repeat(1000));
        let kept = case("x".to_owned(), TestOutcome::Failed, &message).message;
        assert!(kept.ends_with("left: 1\nright: 2"), "{kept}");
        assert!(kept.starts_with("a line of context\n") && kept.contains("left out"));
    }
}
