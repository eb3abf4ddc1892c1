//! Which tests are nearest to a change: from changed lines to what is defined there, to what uses
//! it, to the tests among those. They are run before the others, so that a change that fails is known
//! to fail soon. Nothing here decides anything else: a change passes by all tests or not at all.
//!
//! At most half of the test files are picked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lula_index::{IndexLanguage, cache_name, tags};
use lula_protocol::WorkspaceId;
use lula_repair::trial::home;
use serde::{Deserialize, Serialize};

use crate::runner_port::{self, EffectIdentity, RunnerPort, RunnerPortError};
use crate::survey::ProjectSources;
use crate::verdict::{GoalTests, ProjectTestResults};

/// How many steps from user to user are followed.
const STEPS: usize = 3;
/// Most tests that are picked; the runner takes no more.
const MOST: usize = 2_000;
/// Most names of what changed that are kept in the log.
const NAMES: usize = 40;

/// What a change touches in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TouchedFile {
    pub path: String,
    /// The lines as they are now, from first to last.
    pub lines: Vec<(u32, u32)>,
    /// The lines that are gone.
    pub gone: String,
}

/// What tests are picked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSelectionChange {
    /// The repository, by which what is known of it is found again.
    pub repository: String,
    pub touched: Vec<TouchedFile>,
    /// Tests that have to pass and did not: they are nearest, whatever they use.
    pub required: Vec<String>,
    /// Tests that passed before the change.
    pub passing: Vec<String>,
}

/// The tests nearest to a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectedTests {
    /// What was changed, by name.
    pub changed: Vec<String>,
    /// The tests, the nearest files first; none where it makes no sense to run some before all.
    pub tests: Vec<String>,
    /// How many tests there are in all.
    pub of: usize,
}

/// What to pick tests for, where that can spare anything: the change is known, and the tests that ran
/// stand in several files.
pub(crate) fn change(
    repository: &str,
    diff: &str,
    goal: &GoalTests,
    before: &ProjectTestResults,
) -> Option<TestSelectionChange> {
    let touched = touched(diff);
    let ids = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    let required = ids(goal);
    let passing = ids(&before.passing);
    let all = required.iter().chain(&passing);
    let places: BTreeSet<&str> = all.filter_map(|id| place(id)).collect();
    (!touched.is_empty() && places.len() > 1).then(|| TestSelectionChange {
        repository: repository.to_owned(),
        touched,
        required,
        passing,
    })
}

/// What a test's id says of its file, where the framework goes by files.
fn place(id: &str) -> Option<&str> {
    let file = id.split_once("::").or_else(|| id.split_once(" > "));
    if let Some((file, _)) = file {
        return file.contains('.').then_some(file);
    }
    let (module, _) = id.rsplit_once('.')?.0.rsplit_once('.')?;
    (!id.contains(' ')).then_some(module)
}

/// Picks through the runner.
pub(crate) async fn pick(
    runner: &dyn RunnerPort,
    effect: &EffectIdentity,
    workspace: &WorkspaceId,
    change: TestSelectionChange,
    cache: Option<&Path>,
) -> Result<SelectedTests, RunnerPortError> {
    let listing = runner_port::files(runner, effect, workspace).await?;
    let project = ProjectSources::read(runner, effect, workspace, &listing.files).await?;
    let kept = cache.map(|directory| directory.join(cache_name(Path::new(&change.repository))));
    let picked = tokio::task::spawn_blocking(move || nearest(&project, &change, kept.as_deref()));
    picked.await.map_err(|error| {
        RunnerPortError::Failed(format!("the tests could not be told apart: {error}"))
    })
}

/// The tests nearest to a change.
fn nearest(
    project: &ProjectSources,
    change: &TestSelectionChange,
    kept: Option<&Path>,
) -> SelectedTests {
    let index = project.index(kept);
    let mut changed = BTreeSet::new();
    for one in &change.touched {
        changed.extend(index.names_at(&one.path, &one.lines));
        // What is gone is still used by code that was not changed with it.
        let gone = IndexLanguage::of(&one.path).and_then(|it| tags(it, one.gone.as_bytes()).ok());
        let gone = gone.into_iter().flat_map(|tags| tags.symbols);
        changed.extend(gone.map(|symbol| symbol.name));
    }
    let text = |path: &str| project.texts.get(path).map(String::as_str);
    let users = index.users(&changed, STEPS, &text);
    let order: Vec<&str> = users.iter().map(|user| user.path.as_str()).collect();
    SelectedTests {
        tests: choose(change, &project.paths(), &order),
        changed: changed.into_iter().take(NAMES).collect(),
        of: change.required.len() + change.passing.len(),
    }
}

/// The tests of the files that come first, as long as they are at most half of all test files: more
/// would take about as long as all of them.
fn choose(change: &TestSelectionChange, files: &[String], order: &[&str]) -> Vec<String> {
    let mut homes: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for id in change.required.iter().chain(&change.passing) {
        if let Some(file) = home(id, files) {
            homes.entry(file).or_default().push(id);
        }
    }
    let required: BTreeSet<&str> = change
        .required
        .iter()
        .filter_map(|id| home(id, files))
        .collect();
    let most = homes.len() / 2;
    if required.len() > most {
        return Vec::new();
    }
    let near = order
        .iter()
        .copied()
        .filter(|file| !required.contains(file));
    let near = near.filter(|file| homes.contains_key(file));
    let chosen = required.iter().copied().chain(near).take(most);
    let tests = chosen.filter_map(|file| homes.get(file)).flatten();
    tests.take(MOST).map(|id| (*id).clone()).collect()
}

/// What a unified diff touches. It is untrusted text: what is not understood touches nothing.
fn touched(diff: &str) -> Vec<TouchedFile> {
    let mut found: Vec<TouchedFile> = Vec::new();
    let (mut old, mut new, mut at) = (0_u32, 0_u32, 0_u32);
    for line in diff.lines() {
        if old == 0 && new == 0 {
            if let Some(path) = line.strip_prefix("+++ ") {
                let path = path.strip_prefix("b/").unwrap_or(path);
                found.push(TouchedFile {
                    path: path.trim_end_matches('\t').to_owned(),
                    ..TouchedFile::default()
                });
            } else if let Some((counts, start)) = hunk(line) {
                ((old, new), at) = (counts, start);
            }
            continue;
        }
        let Some(file) = found.last_mut() else { break };
        match line.as_bytes().first() {
            Some(b'+') => {
                mark(&mut file.lines, at);
                at = at.saturating_add(1);
                new = new.saturating_sub(1);
            }
            Some(b'-') => {
                // What stands there now, or around it, is another for it.
                mark(&mut file.lines, at);
                file.gone.push_str(&line[1..]);
                file.gone.push('\n');
                old = old.saturating_sub(1);
            }
            Some(b'\\') => {}
            _ => {
                at = at.saturating_add(1);
                old = old.saturating_sub(1);
                new = new.saturating_sub(1);
            }
        }
    }
    found.retain(|file| !file.lines.is_empty());
    found
}

fn mark(lines: &mut Vec<(u32, u32)>, at: u32) {
    match lines.last_mut() {
        Some((_, to)) if at <= to.saturating_add(1) => *to = at.max(*to),
        _ => lines.push((at, at)),
    }
}

/// How many old and new lines follow a header, and the number of the first new one.
fn hunk(line: &str) -> Option<((u32, u32), u32)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let read = |range: &str| -> Option<(u32, u32)> {
        match range.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((range.parse().ok()?, 1)),
        }
    };
    let ((_, old), (start, new)) = (read(old)?, read(new)?);
    Some(((old, new), start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    const DIFF: &str = "\
--- a/items.py
+++ b/items.py
@@ -1,4 +1,4 @@
 def last(items):
--- a trap
+++ another
 
 x = 1
@@ -9 +9,2 @@ def double(x):
-    return x
+    y = x
+    return y
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-z = 1
";

    #[test]
    fn a_diff_touches_lines_and_its_content_is_no_header() {
        let found = touched(DIFF);
        assert_eq!(
            found[0],
            TouchedFile {
                path: "items.py".to_owned(),
                lines: vec![(2, 2), (9, 10)],
                gone: "-- a trap\n    return x\n".to_owned(),
            }
        );
        assert_eq!(found[1].path, "/dev/null");
        assert_eq!(found.len(), 2);
    }

    fn change_of(required: &[&str], passing: &[&str]) -> TestSelectionChange {
        TestSelectionChange {
            repository: String::new(),
            touched: Vec::new(),
            required: ids(required),
            passing: ids(passing),
        }
    }

    #[test]
    fn required_tests_come_first_then_the_nearest_and_never_more_than_half() {
        let files = ids(&[
            "t/test_a.py",
            "t/test_b.py",
            "t/test_c.py",
            "t/test_d.py",
            "code.py",
        ]);
        let all = [
            "t/test_b.py::x",
            "t/test_b.py::y",
            "t/test_c.py::x",
            "t/test_d.py::x",
        ];
        let change = change_of(&["t/test_a.py::x"], &all);
        let picked = choose(&change, &files, &["code.py", "t/test_d.py", "t/test_b.py"]);
        assert_eq!(picked, ["t/test_a.py::x", "t/test_d.py::x"]);
        assert_eq!(choose(&change, &files, &[]), ["t/test_a.py::x"]);
        let many = change_of(&["t/test_a.py::x", "t/test_b.py::x"], &["t/test_c.py::x"]);
        assert!(choose(&many, &files, &["t/test_c.py"]).is_empty());
        let unknown = change_of(&[], &["lib tests::a", "the test command"]);
        assert!(choose(&unknown, &files, &["t/test_a.py"]).is_empty());
    }

    #[test]
    fn a_task_that_is_no_repair_requires_no_test_that_failed() {
        let results = |passing: &[&str], failing: &[&str]| ProjectTestResults {
            passing: ids(passing).into_iter().collect(),
            failing: ids(failing).into_iter().collect(),
            ..ProjectTestResults::default()
        };
        let before = results(&["a.py::a", "b.py::b"], &["c.py::c"]);
        let (none, goal) = (GoalTests::new(), before.failing.clone());
        let for_it = |goal| change(".", DIFF, goal, &before).unwrap();
        assert_eq!(for_it(&goal).required, ["c.py::c"]);
        assert!(for_it(&none).required.is_empty());
        assert_eq!(change(".", "", &goal, &before), None);
        // Nothing is spared where all tests run together.
        for together in [
            results(
                &["tests.test_a.Case.test_x", "tests.test_a.Case.test_y"],
                &[],
            ),
            results(&["lib tests::a", "tests/it b::c"], &[]),
            results(&["the test command"], &[]),
        ] {
            assert_eq!(change(".", DIFF, &none, &together), None);
        }
        let apart = results(
            &["tests.test_a.Case.test_x", "tests.test_b.Case.test_x"],
            &[],
        );
        assert!(change(".", DIFF, &none, &apart).is_some());
    }

    proptest! {
        /// Whatever stands in a diff, it is read to its end, and only known tests are picked.
        #[test]
        fn any_text_is_a_diff_of_something(
            lines in proptest::collection::vec("[-+@ \\\\]{0,3}[a-z0-9,/ @+-]{0,12}", 0..40),
        ) {
            let diff = lines.join("\n");
            for file in touched(&diff) {
                prop_assert!(file.lines.iter().all(|(from, to)| from <= to));
            }
        }
    }
}
