//! Facts of a run in few words. Whatever a model or a repository said is bounded and made visible
//! here, so that nothing of it acts on a terminal.

use std::fmt::Write;

use lula_agents::runner_port::AgentWorkspace;
use lula_agents::test_selection::SelectedTests;
use lula_agents::verdict::{
    NearestTestsResult, ProjectTestResults, TestRunAttempt, VerificationEvidence,
};
use lula_agents::work::CoderProposal;
use lula_gate::rules::paths_of_patch;
use lula_protocol::units::{rough_size, whole_seconds};
use lula_protocol::{BudgetAmounts, BudgetDimension};
use lula_runner_api::{DeliveredView, IgnoredFilesView};
use serde_json::Value;

use crate::text::{plain, usd};

/// How many tests pass and fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TestTally {
    pub passing: usize,
    pub failing: usize,
    /// How many fail only now and then.
    pub flaky: usize,
}

impl From<&ProjectTestResults> for TestTally {
    fn from(results: &ProjectTestResults) -> Self {
        Self {
            passing: results.passing.len(),
            failing: results.failing.len(),
            flaky: results.flaky.len(),
        }
    }
}

impl std::fmt::Display for TestTally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pass, {} fail", self.passing, self.failing)?;
        if self.flaky > 0 {
            write!(f, ", {} flaky", self.flaky)?;
        }
        Ok(())
    }
}

pub(crate) fn base(place: &AgentWorkspace) -> String {
    let commit: String = place.origin.commit.chars().take(10).collect();
    let mut text = format!("base {commit}");
    if place.origin.uncommitted > 0 {
        let _ = write!(text, "; {} files not committed", place.origin.uncommitted);
    }
    if let Some(ignored) = &place.origin.ignored {
        text.push_str(&below(ignored));
    }
    text
}

/// What git ignores, and what of it is left out.
fn below(ignored: &IgnoredFilesView) -> String {
    let mut text = String::new();
    if !ignored.paths.is_empty() {
        let few = ignored.paths.iter().take(3).map(String::as_str);
        let few: Vec<&str> = few.collect();
        let more = if ignored.paths.len() > few.len() {
            ", …"
        } else {
            ""
        };
        let over = if ignored.more { "over " } else { "" };
        let size = rough_size(ignored.bytes);
        let _ = write!(
            text,
            "; {over}{size} ignored by git, read-only ({}{more})",
            few.join(", ")
        );
    }
    if !ignored.hidden.is_empty() {
        let _ = write!(text, "; left out as secrets: {}", ignored.hidden.join(", "));
    }
    plain(&text, 400)
}

pub(crate) fn looked_text(looked: &TestRunAttempt) -> String {
    match looked {
        TestRunAttempt::Ran(results) => {
            format!("{} tests: {}", results.len(), TestTally::from(results))
        }
        TestRunAttempt::NoTests => "no tests".to_owned(),
        TestRunAttempt::EnvironmentBroken(broken) => broken.to_string(),
        TestRunAttempt::CannotRun(why) => format!("the tests cannot be run: {why}"),
        TestRunAttempt::OutOfTime(ms) => {
            format!("the tests did not end within {}", whole_seconds(*ms))
        }
        TestRunAttempt::NotRun => "the tests were not run".to_owned(),
    }
}

pub(crate) fn weighed(evidence: &VerificationEvidence) -> String {
    let tally = |looked: &TestRunAttempt| {
        looked
            .results()
            .map(|results| TestTally::from(results).to_string())
    };
    let mut parts = Vec::new();
    parts.extend(evidence.first.as_ref().map(first_look));
    if let Some(after) = tally(&evidence.after) {
        parts.push(format!("with it {after}"));
    }
    if let Some(without) = evidence.without.as_ref().and_then(tally) {
        parts.push(format!("without it {without}"));
    }
    for accepted in &evidence.accepted {
        let word = if accepted.after { "succeeds" } else { "fails" };
        parts.push(format!("{} {word}", accepted.command));
    }
    parts.join("; ")
}

/// Which tests are nearest to what was changed.
pub(crate) fn picked(picked: &SelectedTests) -> String {
    let changed = picked.changed.join(", ");
    match picked.tests.len() {
        0 => format!("no test is much nearer to {changed} than the others"),
        some => format!("{some} of {} tests are nearest to {changed}", picked.of),
    }
}

/// What the tests nearest to a change showed, before the others.
pub fn first_look(first: &NearestTestsResult) -> String {
    let nearest = match first.picked.len() {
        1 => "the nearest test".to_owned(),
        more => format!("the {more} nearest tests"),
    };
    let rest = if first.enough {
        "the others were not run"
    } else {
        "then all were run"
    };
    format!("{nearest} first: {}; {rest}", looked_text(&first.with))
}

pub(crate) fn proposal_text(proposal: &CoderProposal) -> String {
    let files = proposal.files.join(", ");
    format!("{}: {files}", size(&proposal.diff, proposal.files.len()))
}

/// How many lines a change adds, and how many it removes.
pub(crate) fn counted(diff: &str) -> (usize, usize) {
    let lines = |mark: char, header: &str| {
        let changed = diff
            .lines()
            .filter(|line| line.starts_with(mark) && !line.starts_with(header));
        changed.count()
    };
    (lines('+', "+++ "), lines('-', "--- "))
}

/// `2 files, +3 -1`
pub fn size(diff: &str, files: usize) -> String {
    let plural = if files == 1 { "file" } else { "files" };
    let (plus, minus) = counted(diff);
    format!("{files} {plural}, +{plus} -{minus}")
}

pub(crate) fn place(delivered: &DeliveredView) -> &str {
    let branch = delivered.branch.as_deref();
    branch
        .or(delivered.directory.as_deref())
        .unwrap_or_default()
}

/// The argument that says most.
pub(crate) fn about(arguments: &Value) -> String {
    if let Some(patch) = arguments.get("patch").and_then(Value::as_str) {
        return plain(&paths_of_patch(patch).join(", "), 100);
    }
    if let (Some(from), Some(to)) = (text(arguments, "from"), text(arguments, "to")) {
        return plain(&format!("{from} → {to}"), 100);
    }
    let named = ["path", "command", "pattern", "glob", "summary", "id"]
        .into_iter()
        .find_map(|name| arguments.get(name).and_then(Value::as_str));
    plain(named.unwrap_or_default(), 100)
}

fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
}

/// Calls of models and what they cost: `4 calls $0.0120`, or that their price is not known.
pub fn spend(spent: &BudgetAmounts) -> Option<String> {
    let of = |dimension| spent.get(dimension).unwrap_or_default();
    let calls = of(BudgetDimension::ModelCalls);
    let counted = match calls {
        0 => return None,
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    };
    Some(match of(BudgetDimension::UnpricedCalls) {
        0 => format!("{counted} {}", usd(of(BudgetDimension::MicroUsd))),
        unknown if unknown >= calls => format!("{counted}, price unknown"),
        unknown => format!("{counted}, the price of {unknown} of them unknown"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_without_their_headers() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n+more\n";
        assert_eq!(size(diff, 1), "1 file, +2 -1");
    }

    #[test]
    fn a_price_that_is_not_known_is_no_amount() {
        let spent = |calls, unpriced| {
            BudgetAmounts::none()
                .with(BudgetDimension::ModelCalls, calls)
                .with(BudgetDimension::UnpricedCalls, unpriced)
                .with(BudgetDimension::MicroUsd, 13_090_000)
        };
        assert_eq!(spend(&spent(14, 0)).unwrap(), "14 calls $13.0900");
        assert_eq!(spend(&spent(14, 14)).unwrap(), "14 calls, price unknown");
        assert_eq!(
            spend(&spent(2, 1)).unwrap(),
            "2 calls, the price of 1 of them unknown"
        );
        assert_eq!(spend(&BudgetAmounts::none()), None);
    }
}
