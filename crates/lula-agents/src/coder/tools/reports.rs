//! What a coder is told of its own change, and of the tests on it.

use std::fmt::Write;

use lula_repair::trial;
use lula_runner_api::CommittedChangeView;

use crate::runner_port::{Reply, excerpt};
use crate::verdict::TestRunAttempt;
use crate::work::TestBaseline;

/// Most bytes of what one failing test said.
const MESSAGE: usize = 1500;
/// Most tests of each kind that are named.
const NAMED: usize = 40;

/// The change so far: its size, and as much of the diff as there is room for.
pub(super) fn change(change: &CommittedChangeView, shown: usize) -> Reply {
    if change.diff.is_empty() {
        return Reply::plain("nothing is changed so far".to_owned());
    }
    Reply::plain(diff(&change.diff, shown))
}

/// The size of a change, and as much of the diff as there is room for.
pub(crate) fn diff(diff: &str, shown: usize) -> String {
    let mut text = lula_edit::diff_stat(diff);
    text.push('\n');
    let room = shown.saturating_sub(text.len());
    text.push_str(&lula_edit::diff_excerpt(diff, room));
    text
}

/// What the tests say now, and what of it they did not say before the change. Of tests that fail only
/// those are shown whose names hold one of `names`, where some are given.
pub(crate) fn tests(
    now: &TestBaseline,
    before: Option<&TestBaseline>,
    names: &[String],
    shown: usize,
) -> Reply {
    let results = match &now.looked {
        TestRunAttempt::Ran(results) => results,
        TestRunAttempt::NoTests => return Reply::failed("the project has no tests"),
        TestRunAttempt::CannotRun(why) => {
            return Reply::failed(format!("the tests cannot be run: {why}"));
        }
        TestRunAttempt::EnvironmentBroken(broken) => {
            return Reply::failed(format!("the tests cannot be run here: {broken}"));
        }
        TestRunAttempt::OutOfTime(ms) => {
            return Reply::failed(format!("the tests did not end within {} s", ms / 1000));
        }
        TestRunAttempt::NotRun => return Reply::failed("the tests were not run"),
    };
    let mut text = format!(
        "{} pass, {} fail, {} flaky, {} skipped",
        results.passing.len(),
        results.failing.len() + now.unfixable.len(),
        results.flaky.len(),
        results.skipped.len()
    );
    if let Some(command) = &now.command {
        let _ = write!(text, " ({command})");
    }
    text.push('\n');
    let given = before.map(TestBaseline::given).unwrap_or_default();
    let wanted = |id: &str| names.is_empty() || names.iter().any(|name| id.contains(name.as_str()));
    let failing: Vec<&String> = results.failing.iter().chain(&now.unfixable).collect();
    let (known, new): (Vec<&String>, Vec<&String>) =
        failing.into_iter().partition(|id| given.contains(*id));
    let mended: Vec<&String> = given
        .iter()
        .filter(|id| results.passing.contains(*id))
        .collect();
    let heads = match before {
        Some(_) => [
            "fail, and did not before the change",
            "failed before the change too",
        ],
        None => ["fail (what they did before the change is not known)", ""],
    };
    listed(&mut text, "pass now, and failed before the change", &mended);
    for (head, ids) in heads.into_iter().zip([new, known]) {
        let ids: Vec<&String> = ids.into_iter().filter(|id| wanted(id)).collect();
        if ids.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{} {head}:", ids.len());
        let mut before = "";
        for (index, id) in ids.iter().enumerate() {
            let said = now.messages.iter().find(|(named, _)| named == *id);
            let said = said.map(|(_, said)| said.trim());
            let told = said.map(|said| trial::excerpt(&trial::beside(said, before), MESSAGE));
            before = said.unwrap_or(before);
            let has_room = text.len() + MESSAGE < shown;
            let _ = match told.filter(|said| has_room && !said.is_empty()) {
                Some(said) => writeln!(text, "<test name={id:?}>\n{said}\n</test>"),
                None => writeln!(text, "- {id}"),
            };
            if index + 1 >= NAMED && index + 1 < ids.len() {
                let _ = writeln!(text, "[… {} more left out …]", ids.len() - index - 1);
                break;
            }
        }
    }
    Reply::plain(excerpt(&text, shown, 0))
}

fn listed(text: &mut String, head: &str, ids: &[&String]) {
    if ids.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{} {head}:", ids.len());
    for id in ids.iter().take(NAMED) {
        let _ = writeln!(text, "- {id}");
    }
    if ids.len() > NAMED {
        let _ = writeln!(text, "[… {} more left out …]", ids.len() - NAMED);
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::ProjectTestResults;

    use super::*;

    fn baseline(passing: &[&str], failing: &[&str]) -> TestBaseline {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        TestBaseline {
            looked: TestRunAttempt::Ran(ProjectTestResults {
                passing: set(passing),
                failing: set(failing),
                ..ProjectTestResults::default()
            }),
            command: Some("pytest -q".to_owned()),
            messages: failing
                .iter()
                .map(|id| ((*id).to_owned(), format!("{id} said no")))
                .collect(),
            ..TestBaseline::default()
        }
    }

    #[test]
    fn tests_are_told_by_what_the_change_did_to_them() {
        let before = baseline(&["a", "b"], &["c", "d"]);
        let now = baseline(&["a", "c"], &["b", "d"]);
        let reply = tests(&now, Some(&before), &[], 10_000);
        assert!(!reply.failed);
        let expected = "2 pass, 2 fail, 0 flaky, 0 skipped (pytest -q)\n\n\
            1 pass now, and failed before the change:\n- c\n\n\
            1 fail, and did not before the change:\n<test name=\"b\">\nb said no\n</test>\n\n\
            1 failed before the change too:\n<test name=\"d\">\nd said no\n</test>\n";
        assert_eq!(reply.text, expected);
    }

    #[test]
    fn only_tests_of_these_names_are_shown() {
        let now = baseline(&[], &["test_one", "test_two"]);
        let reply = tests(&now, Some(&baseline(&[], &[])), &["two".to_owned()], 10_000);
        assert!(reply.text.contains("test_two") && !reply.text.contains("test_one"));
        assert!(reply.text.starts_with("0 pass, 2 fail"), "{}", reply.text);
    }

    #[test]
    fn tests_that_cannot_be_run_are_a_failed_call() {
        let now = TestBaseline {
            looked: TestRunAttempt::CannotRun("no python".to_owned()),
            ..TestBaseline::default()
        };
        let reply = tests(&now, None, &[], 1000);
        assert!(
            reply.failed && reply.text.ends_with("no python"),
            "{reply:?}"
        );
    }

    #[test]
    fn a_change_begins_with_its_size() {
        let view = CommittedChangeView {
            tree: lula_protocol::Digest::of_bytes(b""),
            files: vec!["a".to_owned()],
            diff: "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n".to_owned(),
        };
        let reply = change(&view, 1000);
        assert!(
            reply
                .text
                .starts_with("a (+1 -1)\n1 file changed, +1 -1\n\ndiff --git")
        );
    }
}
