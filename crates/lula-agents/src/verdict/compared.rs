//! The tests before a change beside those with it, by name.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{ProjectTestResults, TestRunAttempt, VerificationEvidence};

/// Every test in the one list it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TestComparison {
    /// Failed before, pass now.
    pub fail_to_pass: Vec<String>,
    /// Passed before, pass now.
    pub pass_to_pass: Vec<String>,
    /// Failed before, and still do: no change is to blame for them.
    pub still_failing: Vec<String>,
    /// Passed before, fail now.
    pub broken: Vec<String>,
    /// Passed before, and are not run now.
    pub lost: Vec<String>,
    /// Not known before, or not run; fail now, also where only the change's own versions of existing
    /// tests show it.
    pub new_failing: Vec<String>,
    /// Not known before, pass now.
    pub new_passing: Vec<String>,
    /// Did not fail before, and fail now and then.
    pub unsteady: Vec<String>,
}

/// Whether a test stands in what another id names: a file that could not even be read, say.
fn is_part(id: &str, whole: &str) -> bool {
    let rest = id.strip_prefix(whole);
    let marks = ["::", " > ", ".", "["];
    rest.is_some_and(|rest| marks.iter().any(|mark| rest.starts_with(mark)))
}

impl TestComparison {
    /// Compares. Where tests did not run there is nothing to compare.
    pub fn of(evidence: &VerificationEvidence) -> Self {
        let before = evidence.before.results().cloned().unwrap_or_default();
        let after = evidence.after.results().cloned().unwrap_or_default();
        // What is given failed in an earlier look. A test that passed right before the change is then
        // one that comes and goes: its passing now shows nothing.
        let given = evidence
            .given
            .iter()
            .filter(|id| !before.passing.contains(*id));
        let given: BTreeSet<&String> = before.failing.iter().chain(given).collect();
        let mut compared = Self::default();
        for id in &before.passing {
            let list = if after.passing.contains(id) {
                &mut compared.pass_to_pass
            } else if after.failing.contains(id) {
                &mut compared.broken
            } else if after.flaky.contains(id) {
                &mut compared.unsteady
            } else {
                &mut compared.lost
            };
            list.push(id.clone());
        }
        for id in &given {
            let list = if passes(id, &after) {
                &mut compared.fail_to_pass
            } else {
                &mut compared.still_failing
            };
            list.push((*id).clone());
        }
        compared.add_new(&after, &before, &given);
        if let Some(TestRunAttempt::Ran(as_is)) = &evidence.as_is {
            compared.add_own(as_is, &after, &before, &given);
        }
        compared
    }

    /// Whether a test that failed passes now.
    pub fn is_mended(&self, id: &String) -> bool {
        self.fail_to_pass.contains(id)
    }

    /// Tests that nothing was known of before.
    fn add_new(
        &mut self,
        after: &ProjectTestResults,
        before: &ProjectTestResults,
        given: &BTreeSet<&String>,
    ) {
        // What stands in a file that failed as a whole failed with it.
        let excused = |id: &String| {
            before.passing.contains(id)
                || before.flaky.contains(id)
                || given.contains(id)
                || given.iter().any(|whole| is_part(id, whole))
        };
        let new = |ids: &BTreeSet<String>| -> Vec<String> {
            ids.iter().filter(|id| !excused(id)).cloned().collect()
        };
        self.new_failing.extend(new(&after.failing));
        self.unsteady.extend(new(&after.flaky));
        let unknown = after.passing.iter().filter(|id| !before.knows(id));
        self.new_passing
            .extend(unknown.filter(|id| !given.contains(id)).cloned());
    }

    /// The same of tests as the change has them, where it touches existing ones.
    fn add_own(
        &mut self,
        as_is: &ProjectTestResults,
        after: &ProjectTestResults,
        before: &ProjectTestResults,
        given: &BTreeSet<&String>,
    ) {
        let known = |id: &String| {
            given.contains(id)
                || before.flaky.contains(id)
                || after.failing.contains(id)
                || after.flaky.contains(id)
                || given.iter().any(|whole| is_part(id, whole))
        };
        let new = |ids: &BTreeSet<String>| -> Vec<String> {
            ids.iter().filter(|id| !known(id)).cloned().collect()
        };
        self.new_failing.extend(new(&as_is.failing));
        self.unsteady.extend(new(&as_is.flaky));
        let unknown = as_is.passing.iter().filter(|id| !before.knows(id));
        let unknown = unknown.filter(|id| !after.knows(id) && !given.contains(id));
        self.new_passing.extend(unknown.cloned());
    }
}

/// Whether what failed passes: the test itself, or, where a whole file failed, every test in it.
pub(super) fn passes(id: &str, after: &ProjectTestResults) -> bool {
    if after.knows(id) {
        return after.passing.contains(id);
    }
    let part = |other: &&String| is_part(other, id);
    after.passing.iter().any(|other| part(&other))
        && !after.failing.iter().any(|other| part(&other))
        && !after.flaky.iter().any(|other| part(&other))
}
