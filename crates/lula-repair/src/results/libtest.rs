//! The lines of Rust's libtest.

use std::collections::HashMap;

use super::case;
use crate::report::{TestCase, TestOutcome};

/// Every test that a test binary reports, with what it printed if it failed.
pub fn libtest(text: &str) -> Vec<TestCase> {
    let mut messages: HashMap<&str, String> = HashMap::new();
    let mut current: Option<&str> = None;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            current = Some(name);
        } else if line == "failures:" || line.starts_with("test result:") {
            current = None;
        } else if let Some(name) = current {
            let message = messages.entry(name).or_default();
            message.push_str(line);
            message.push('\n');
        } else if let Some((name, result)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.rsplit_once(" ... "))
        {
            let outcome = match result.split([' ', ',']).next() {
                Some("ok") => TestOutcome::Passed,
                Some("ignored") => TestOutcome::Skipped,
                Some("FAILED") => TestOutcome::Failed,
                _ => continue,
            };
            found.push((name.trim_end_matches(" - should panic"), outcome));
        }
    }
    found
        .into_iter()
        .map(|(name, outcome)| {
            case(
                name.to_owned(),
                outcome,
                messages.get(name).map_or("", String::as_str),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_carry_what_they_printed() {
        let text = "\nrunning 3 tests\ntest a::b ... ok\ntest c - should panic ... ok\ntest d ... FAILED\n\nfailures:\n\n---- d stdout ----\nthread 'd' panicked at src/lib.rs:3:5:\nassertion `left == right` failed\n  left: 1\n right: 2\n\n\nfailures:\n    d\n\ntest result: FAILED. 2 passed; 1 failed\n";
        let found = libtest(text);
        assert_eq!(
            found
                .iter()
                .map(|test| test.id.as_str())
                .collect::<Vec<_>>(),
            ["a::b", "c", "d"]
        );
        assert_eq!(found[2].outcome, TestOutcome::Failed);
        assert!(found[2].message.contains("src/lib.rs:3:5"));
    }
}
