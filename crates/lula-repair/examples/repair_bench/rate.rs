//! How many candidates a minute are validated where the tests take a tenth of a second.

use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::door::Door;

/// How long is measured.
const WINDOW: Duration = Duration::from_secs(20);

/// How fast candidates are judged in one project.
#[derive(Debug, Serialize)]
pub(crate) struct Rate {
    /// What the project's tests take when they are run once by hand.
    suite_ms: u128,
    candidates: usize,
    seconds: f64,
    per_minute: f64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} candidate validations a minute, each in a workspace of its own ({} in {:.1} s; the tests alone take {} ms)",
            self.per_minute, self.candidates, self.seconds, self.suite_ms
        )
    }
}

/// A project that no edit mends: its test wants a different answer every time. One run of it burns
/// most of a tenth of a second, which with the interpreter's start makes about that.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let steps = (0..40).map(|index| {
        format!(
            "def step{index}(a, b, c):\n    if a < b + {index} and c > 1:\n        return a * 2 - b\n    return c + a\n"
        )
    });
    let code = steps.collect::<Vec<_>>().join("\n\n");
    let calls: Vec<String> = (0..40)
        .map(|index| format!("step{index}(3, 4, 5)"))
        .collect();
    let files = [
        ("steps.py", code),
        (
            "test_steps.py",
            format!(
                "import time\nimport unittest\n\nfrom steps import *\n\n\nclass Steps(unittest.TestCase):\n    def test_steps(self):\n        until = time.process_time() + 0.06\n        total = {}\n        while time.process_time() < until:\n            pass\n        self.assertEqual(total, object())\n",
                calls.join(" + ")
            ),
        ),
    ];
    for (path, text) in files {
        std::fs::write(folder.path().join(path), text).expect("a file");
    }
    folder
}

#[allow(clippy::cast_precision_loss)]
pub(crate) fn measure(door: &Door) -> Rate {
    let folder = project();
    let started = Instant::now();
    let ran = std::process::Command::new("python3")
        .args(["-m", "unittest", "-q"])
        .current_dir(folder.path())
        .output();
    assert!(ran.is_ok_and(|ran| !ran.status.success()), "the tests fail");
    let suite_ms = started.elapsed().as_millis();
    let answer = door.repair(folder.path(), WINDOW, &["--all"]);
    let report = answer.report.expect("a search");
    let seconds = Duration::from_millis(report.effort.search_ms).as_secs_f64();
    Rate {
        suite_ms,
        candidates: report.effort.tried,
        seconds,
        per_minute: report.effort.tried as f64 * 60.0 / seconds.max(0.001),
    }
}
