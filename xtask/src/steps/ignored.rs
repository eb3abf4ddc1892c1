//! Tests that did not run: an ignored test proves nothing and looks as if it did.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{
    report::{Failure, Report},
    repository::Repository,
};

/// Tests that may be ignored, each with the reason.
const MAY_BE_IGNORED: &[(&str, &str)] = &[];

/// Names the ignored tests, each of which fails the run unless it is listed.
pub(super) fn judge(repository: &Repository, skipped: u64, report: &mut Report) -> Result<()> {
    let output = repository
        .cargo("nextest list --locked --workspace --message-format json")
        .output()
        .context("tests were skipped, and nextest cannot be asked which")?;
    let list: TestList = serde_json::from_slice(&output.stdout)
        .context("tests were skipped, and nextest does not say which")?;
    let ignored = list.ignored();
    let unexplained = skipped.saturating_sub(u64::try_from(ignored.len())?);
    for test in ignored {
        match MAY_BE_IGNORED.iter().find(|(name, _)| *name == test) {
            Some((name, reason)) => report.not_checked(name, reason),
            None => report.failed(Failure::new(
                &test,
                "ignored: make it run, or list it in MAY_BE_IGNORED with the reason",
            )),
        }
    }
    if unexplained > 0 {
        let reason = format!("{unexplained} tests were skipped, though they are not ignored");
        report.failed(Failure::new("skipped tests", reason));
    }
    Ok(())
}

/// The part of `cargo nextest list` that names ignored tests.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct TestList {
    rust_suites: BTreeMap<String, Suite>,
}

#[derive(Deserialize)]
struct Suite {
    #[serde(default)]
    testcases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    ignored: bool,
}

impl TestList {
    fn ignored(&self) -> Vec<String> {
        let of = |(suite, tests): (&String, &Suite)| {
            let ignored = tests.testcases.iter().filter(|(_, case)| case.ignored);
            ignored
                .map(|(name, _)| format!("{suite} {name}"))
                .collect::<Vec<_>>()
        };
        self.rust_suites.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_tests_are_found_by_name() {
        let listed = r#"{"rust-suites": {"lula-store::it": {"testcases": {
            "queue::fast": {"ignored": false}, "queue::slow": {"ignored": true}}}}}"#;
        let listed: TestList = serde_json::from_str(listed).unwrap();
        assert_eq!(listed.ignored(), ["lula-store::it queue::slow"]);
    }
}
