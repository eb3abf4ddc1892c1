//! Tests that did not run: an ignored test proves nothing and looks as if it did.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{
    report::{Failure, Report},
    repository::Repository,
};

/// Tests that are ignored because another test runs them in a process of its own, beside that test.
const PARTS: &[(&str, &str)] = &[
    (
        "lula-sandbox::it overlay::ordinary",
        "lula-sandbox::it overlay::an_ordinary_user_has_layers_too",
    ),
    (
        "lula::e2e workspaces::ordinary",
        "lula::e2e workspaces::an_ordinary_user_has_all_of_it",
    ),
    (
        "lula-sandbox::it containers::complete",
        "lula-sandbox::it containers::root_in_a_container_with_a_masked_proc_gets_a_complete_sandbox",
    ),
    (
        "lula-sandbox::it containers::shared_proc",
        "lula-sandbox::it containers::a_user_in_a_container_with_a_masked_proc_gets_namespaces_and_is_told_what_proc_shows",
    ),
    (
        "lula-sandbox::it containers::shared_numbers",
        "lula-sandbox::it containers::with_a_shared_proc_the_right_processes_are_ended",
    ),
    (
        "lula-sandbox::it containers::without_id_maps",
        "lula-sandbox::it containers::a_workspace_on_a_filesystem_without_id_maps_works_and_the_receipt_says_how",
    ),
    (
        "lula-sandbox::it door::unprivileged_by_name",
        "lula-sandbox::it door::an_ordinary_user_has_both_networks",
    ),
    (
        "lula-sandbox::it door::unprivileged_on_host",
        "lula-sandbox::it door::an_ordinary_user_has_both_networks",
    ),
    (
        "lula-sandbox::it leaks::new_helper",
        "lula-sandbox::it leaks::a_new_helper_takes_over_from_a_dead_one",
    ),
    (
        "lula-graph::it kill::victim",
        "lula-graph::it kill::killed_processes_lose_and_double_nothing_on_sqlite",
    ),
    (
        "lula-sandbox::it leaks::a_runner",
        "lula-sandbox::it leaks::when_the_runner_is_killed_its_sandboxes_die",
    ),
    (
        "lula-sandbox::it leaks::two_hundred",
        "lula-sandbox::it leaks::two_hundred_sandboxes_leave_nothing_behind",
    ),
    (
        "lula-sandbox::it probes::as_ordinary_user",
        "lula-sandbox::it probes::both_tiers_hold_for_an_ordinary_user",
    ),
    (
        "lula-sandbox::it unprivileged::complete",
        "lula-sandbox::it unprivileged::an_ordinary_user_gets_a_complete_sandbox",
    ),
    (
        "lula-sandbox::it unprivileged::no_user_namespaces",
        "lula-sandbox::it unprivileged::without_user_namespaces_the_next_tier_is_used_or_the_refusal_names_the_knob",
    ),
];

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
        let run_by = PARTS.iter().find(|(part, _)| *part == test);
        if run_by.is_some_and(|(_, whole)| list.runs(whole)) {
            report.part_of_another();
        } else {
            report.failed(Failure::new(
                &test,
                "ignored: make it run, or name the test that runs it in PARTS",
            ));
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
    /// Whether a test of that name is there and not ignored.
    fn runs(&self, test: &str) -> bool {
        let Some((suite, name)) = test.split_once(' ') else {
            return false;
        };
        let case = self
            .rust_suites
            .get(suite)
            .and_then(|suite| suite.testcases.get(name));
        case.is_some_and(|case| !case.ignored)
    }

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
        assert!(listed.runs("lula-store::it queue::fast"));
        assert!(!listed.runs("lula-store::it queue::slow"));
        assert!(!listed.runs("lula-store::it queue::gone"));
    }
}
