//! The tests nearest to a change, run before the others: where one of them fails for certain, the
//! others need not be run.

use std::collections::BTreeSet;

use super::{NearestTestsResult, PartlyBackForks, VerificationRequest, looked, messages};
use crate::detect::{DetectedTests, TestFramework};
use crate::ground::{ForkSource, ProjectFork};
use crate::search::{RepairError, Reruns, examine_part};

/// What the nearest tests showed, and what those of them said that fail.
pub(super) type NearestTestsOutcome = (NearestTestsResult, Vec<(String, String)>);

/// Runs the picked tests that are known; `None` where none is, or they run only with all others.
pub(super) fn look(
    ground: &dyn ForkSource,
    asked: &VerificationRequest<'_>,
) -> Result<Option<NearestTestsOutcome>, RepairError> {
    let Some(before) = asked.before.looked.results() else {
        return Ok(None);
    };
    let known = |id: &&String| before.passing.contains(*id) || before.failing.contains(*id);
    let picked: BTreeSet<String> = asked.first.iter().filter(known).cloned().collect();
    if picked.is_empty() {
        return Ok(None);
    }
    let run = |fork: &mut dyn ProjectFork| {
        let part = |found| part(found, &picked);
        match examine_part(fork, asked.tests, &part, Reruns::at_first(), asked.deadline) {
            Ok(None) => Ok(None),
            Ok(Some(examined)) => {
                let said = messages(&examined);
                looked(Ok(examined)).map(|looked| Some((looked, said)))
            }
            // What decides is the run of all tests.
            Err(error) => looked(Err(error)).map(|looked| Some((looked, Vec::new()))),
        }
    };
    let Some((with, said)) = run(ground.fork()?.as_mut())? else {
        return Ok(None);
    };
    let breaks = with.results().is_some_and(|results| {
        let mut broken = picked.intersection(&results.failing);
        broken.any(|id| before.passing.contains(id))
    });
    let alone = if breaks {
        run(PartlyBackForks::without(ground, asked.change)
            .fork()?
            .as_mut())?
        .map(|(looked, _)| looked)
    } else {
        None
    };
    let mut first = NearestTestsResult {
        picked,
        with,
        without: alone,
        enough: false,
    };
    let enough = first.shown(before).next().is_some();
    first.enough = enough;
    Ok(Some((first, said)))
}

/// The files of a set of tests that hold some of these; `None` where that is none or all of them, or
/// the framework does not go by files.
fn part(found: DetectedTests, ids: &BTreeSet<String>) -> Option<DetectedTests> {
    let by_files = matches!(
        found.framework,
        TestFramework::Pytest
            | TestFramework::Unittest
            | TestFramework::PlainPython
            | TestFramework::NodeTest
    );
    let homes: BTreeSet<&str> = ids.iter().filter_map(|id| home(id, &found.files)).collect();
    if !by_files || homes.is_empty() || homes.len() == found.files.len() {
        return None;
    }
    let files = homes.into_iter().map(str::to_owned).collect();
    Some(DetectedTests { files, ..found })
}

/// The file that a test stands in, by its id, as pytest, unittest and node name tests.
pub fn home<'a>(id: &str, files: &'a [String]) -> Option<&'a str> {
    let before = |mark: &str| id.split_once(mark).map(|(file, _)| file);
    let named = before("::").or_else(|| before(" > ")).unwrap_or(id);
    if let Some(file) = files.iter().find(|file| *file == named) {
        return Some(file);
    }
    crate::suite::home_of_module(id, files).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::TestResultFormat;

    fn files(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn found(framework: TestFramework, names: &[&str]) -> DetectedTests {
        DetectedTests {
            framework,
            argv: Vec::new(),
            files: files(names),
            options: Vec::new(),
            folder: String::new(),
            only: Vec::new(),
            results: TestResultFormat::ExitCode,
            reason: String::new(),
        }
    }

    fn ids(names: &[&str]) -> BTreeSet<String> {
        files(names).into_iter().collect()
    }

    #[test]
    fn a_test_is_found_in_its_file() {
        let all = files(&["tests/test_a.py", "tests/unit/test_b.py", "test/c.test.js"]);
        for (id, file) in [
            ("tests/test_a.py::Cart::test_total[1-2]", "tests/test_a.py"),
            ("tests.test_a.Cart.test_total", "tests/test_a.py"),
            ("unit.test_b.test_it", "tests/unit/test_b.py"),
            ("test/c.test.js > cart > counts", "test/c.test.js"),
            ("test/c.test.js", "test/c.test.js"),
        ] {
            assert_eq!(home(id, &all), Some(file), "{id}");
        }
        for id in ["lib tests::it_works", "the test command", "", "::"] {
            assert_eq!(home(id, &all), None, "{id}");
        }
    }

    #[test]
    fn only_what_goes_by_files_is_cut_down_and_only_to_less() {
        let two = ["tests/test_a.py", "tests/test_b.py"];
        let one = ids(&["tests/test_a.py::test_x", "-rf", "tests/test_z.py::test_y"]);
        let cut = part(found(TestFramework::Pytest, &two), &one).unwrap();
        assert_eq!(cut.files, ["tests/test_a.py"]);
        let both = ids(&["tests/test_a.py::test_x", "tests/test_b.py::test_y"]);
        assert_eq!(part(found(TestFramework::Pytest, &two), &both), None);
        assert_eq!(
            part(found(TestFramework::Pytest, &two), &ids(&["-rf"])),
            None
        );
        assert_eq!(part(found(TestFramework::CargoTest, &two), &one), None);
    }
}
