//! The new tests of one change, run with the code of another: what the writers of two changes for the
//! same task think of each other's.

use std::time::Duration;

use super::{ChangedFile, TestBaseline, in_time, messages, results, unable};
use crate::detect::TestSelection;
use crate::ground::ForkSource;
use crate::search::{RepairError, Reruns};
use crate::syntax::is_test_path;

/// What the tests say in a fork with the new test files of another change over it. Nothing else of
/// that change is taken: existing tests stay as they are.
pub fn others_tests(
    ground: &dyn ForkSource,
    other: &[ChangedFile],
    tests: &TestSelection,
    deadline: Duration,
) -> Result<TestBaseline, RepairError> {
    let mut fork = ground.fork()?;
    for file in other {
        if let (true, None, Some(bytes)) = (is_test_path(&file.path), &file.before, &file.after) {
            fork.write(&file.path, bytes)?;
        }
    }
    let examined = match in_time(fork.as_mut(), tests, Reruns::at_first(), deadline) {
        Ok(examined) => examined,
        Err(error) => {
            return Ok(TestBaseline {
                looked: unable(error)?,
                ..TestBaseline::default()
            });
        }
    };
    Ok(TestBaseline {
        command: Some(examined.tests.argv.join(" ")),
        messages: messages(&examined),
        looked: super::TestRunAttempt::Ran(results(&examined)),
        ..TestBaseline::default()
    })
}
