//! Examples in documentation, which `cargo test` runs beside the test binaries.

use std::collections::BTreeMap;
use std::time::Duration;

use super::RepairGoal;
use crate::detect::is_foreign;
use crate::ground::{ForkCommand, ProjectFork};
use crate::report::TestCase;
use crate::results;
use crate::suite::SuiteError;

/// What the ids of examples begin with.
const DOC: &str = "doc ";
/// Options with which cargo runs no examples.
const OTHERS: [&str; 8] = [
    "--lib",
    "--bin",
    "--bins",
    "--test",
    "--tests",
    "--example",
    "--examples",
    "--all-targets",
];

/// Runs them, where the project has some.
pub(super) fn run(
    fork: &mut dyn ProjectFork,
    folder: &str,
    options: &[String],
    deadline: Duration,
) -> Result<Vec<TestCase>, SuiteError> {
    if options
        .iter()
        .any(|option| OTHERS.contains(&option.as_str()))
        || !has_some(fork)?
    {
        return Ok(Vec::new());
    }
    let argv = ["cargo", "test", "--offline", "--doc"]
        .map(str::to_owned)
        .into_iter()
        .chain(options.iter().cloned());
    let command = ForkCommand::new(argv, deadline)
        .in_folder(folder)
        .env("CARGO_TERM_COLOR", "never");
    let ran = fork.run(&command)?;
    Ok(named(results::libtest(&ran.out())))
}

fn has_some(fork: &dyn ProjectFork) -> Result<bool, SuiteError> {
    let files = fork.files()?;
    let documented = |path: &&String| {
        fork.read(path).is_ok_and(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            text.lines().any(|line| {
                let line = line.trim_start();
                (line.starts_with("//") || line.starts_with('*')) && line.contains("```")
            })
        })
    };
    Ok(files
        .iter()
        .filter(|path| path.rsplit('.').next() == Some("rs") && !is_foreign(path))
        .any(|path| documented(&path)))
}

/// Names them by what they are about: the line that they stand on changes with every edit above it.
fn named(tests: Vec<TestCase>) -> Vec<TestCase> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    tests
        .into_iter()
        .map(|mut test| {
            let about = match test.id.split_once(" (line ") {
                Some((about, rest)) => {
                    format!(
                        "{about}{}",
                        rest.split_once(')').map_or("", |(_, more)| more)
                    )
                }
                None => test.id.clone(),
            };
            let count = seen.entry(about.clone()).or_default();
            *count += 1;
            test.id = if *count == 1 {
                format!("{DOC}{about}")
            } else {
                format!("{DOC}{about} #{count}")
            };
            test
        })
        .collect()
}

/// What candidates are judged by: examples are run only for one that passes everything else.
pub(super) fn left_out(goal: &RepairGoal) -> RepairGoal {
    let others = |ids: &[String]| -> Vec<String> {
        let plain = ids.iter().filter(|id| !id.starts_with(DOC));
        plain.cloned().collect()
    };
    RepairGoal {
        failing: others(&goal.failing),
        passing: others(&goal.passing),
        ..goal.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::TestOutcome;

    #[test]
    fn an_example_keeps_its_name_when_lines_are_added_above_it() {
        let case = |id: &str| TestCase {
            id: id.to_owned(),
            outcome: TestOutcome::Passed,
            message: String::new(),
        };
        let found = named(vec![
            case("src/lib.rs - sum (line 12)"),
            case("src/lib.rs - sum (line 20)"),
            case("src/lib.rs - (line 3) - compile"),
        ]);
        let ids: Vec<&str> = found.iter().map(|test| test.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "doc src/lib.rs - sum",
                "doc src/lib.rs - sum #2",
                "doc src/lib.rs - - compile"
            ]
        );
    }
}
