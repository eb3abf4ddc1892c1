//! Python's tests, run by a harness of ours that forks one child per candidate.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::{Goal, Suite, SuiteError, Trial, Verdict, nonce};
use crate::detect::{Framework, TestsFound};
use crate::ground::{Command, Fork, Ground};
use crate::locate::{Kinds, LinesOfTest};
use crate::report::{Outcome, TestCase, TestReport};

const HARNESS: &str = concat!(include_str!("tests.py"), include_str!("candidates.py"));
/// Where an interpreter is looked for: the project's own first.
const INTERPRETERS: &[&str] = &[
    ".venv/bin/python",
    "venv/bin/python",
    "python3",
    "python",
    "/usr/bin/python3",
];

/// File, function and case of tests that need nothing but a call, by name.
type Plan = BTreeMap<String, (String, String, Option<usize>)>;

/// A suite of pytest, unittest or bare functions.
pub(crate) struct Python {
    interpreter: String,
    framework: &'static str,
    files: Vec<String>,
    options: Vec<String>,
    test_limit: Duration,
    preload: Mutex<Vec<String>>,
    /// Files of the project that its tests import.
    warm: Mutex<Vec<String>>,
    /// File of each test, known after the first run.
    homes: Mutex<BTreeMap<String, String>>,
    /// The longest that a test that passes took.
    slowest: Mutex<Duration>,
    /// What variables were seen to hold.
    kinds: Mutex<Kinds>,
    /// Tests that need nothing but a call.
    plan: Mutex<Plan>,
    /// Whether such calls show what pytest shows, when that was found out.
    bare: Mutex<Option<bool>>,
    /// Whether pytest can be made ready once for many candidates, when that was found out.
    ready: Mutex<Option<bool>>,
}

/// How much longer than any passing test one may run before it counts as a loop.
const LOOP: u32 = 20;
/// Least time to burn before a test counts as a loop: enough to import what it tests.
const LEAST_LOOP: Duration = Duration::from_millis(75);

#[derive(Deserialize)]
struct Report {
    tests: Vec<Test>,
    #[serde(default)]
    preload: Vec<String>,
    /// Types by variable, by the first line of its function, by file.
    #[serde(default)]
    kinds: BTreeMap<String, BTreeMap<usize, BTreeMap<String, Vec<String>>>>,
    #[serde(default)]
    plan: Plan,
}

#[derive(Deserialize)]
struct Test {
    id: String,
    outcome: Outcome,
    #[serde(default)]
    message: String,
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    lines: BTreeMap<String, Vec<usize>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Judged {
        candidate: usize,
        tests: Option<Vec<Test>>,
    },
    Ready {
        ready: bool,
    },
    Bare {
        bare: bool,
    },
}

impl Python {
    /// Finds an interpreter that has the framework.
    pub(crate) fn open(
        tests: &TestsFound,
        fork: &mut dyn Fork,
        test_limit: Duration,
    ) -> Result<Self, SuiteError> {
        let (framework, probe) = match tests.framework {
            Framework::Pytest => ("pytest", "import sys, pytest; print(sys.executable)"),
            Framework::Unittest => ("unittest", "import sys, unittest; print(sys.executable)"),
            _ => ("plain", "import sys, unittest; print(sys.executable)"),
        };
        let mut tried = Vec::new();
        for interpreter in INTERPRETERS {
            let command = Command::new([*interpreter, "-c", probe], Duration::from_secs(20));
            match fork.run(&command) {
                Ok(ran) if ran.exit == Some(0) => {
                    return Ok(Self {
                        interpreter: ran.out().trim().to_owned(),
                        framework,
                        files: tests.files.clone(),
                        options: tests.options.clone(),
                        test_limit,
                        preload: Mutex::default(),
                        warm: Mutex::default(),
                        homes: Mutex::default(),
                        slowest: Mutex::default(),
                        kinds: Mutex::default(),
                        plan: Mutex::default(),
                        bare: Mutex::default(),
                        ready: Mutex::default(),
                    });
                }
                Ok(ran) => tried.push(format!(
                    "{interpreter}: {}",
                    ran.err().lines().last().unwrap_or("failed")
                )),
                Err(error) => tried.push(format!("{interpreter}: {}", error.reason)),
            }
        }
        Err(SuiteError::Absent {
            framework: framework.to_owned(),
            reason: tried.join("; "),
        })
    }

    fn command(&self, request: &serde_json::Value, deadline: Duration) -> Command {
        let mut command = Command::new([self.interpreter.as_str(), "-c", HARNESS], deadline)
            .stdin(request.to_string().into_bytes());
        for (name, value) in [
            ("PYTHONHASHSEED", "0"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONIOENCODING", "utf-8"),
            ("TZ", "UTC"),
            ("LC_ALL", "C.UTF-8"),
        ] {
            command = command.env(name, value);
        }
        command
    }

    fn report(
        &self,
        fork: &mut dyn Fork,
        mode: &str,
        limit: Duration,
        deadline: Duration,
    ) -> Result<Report, SuiteError> {
        let marker = format!("lula-test-report {} ", nonce());
        let request = json!({
            "mode": mode,
            "marker": marker,
            "framework": self.framework,
            "files": self.files,
            "options": self.options,
            "test_seconds": limit.as_secs_f64(),
            "seconds": deadline.as_secs_f64(),
            "groups": [{"tests": null, "stop": "never"}],
        });
        let ran = fork.run(&self.command(&request, deadline))?;
        let out = ran.out();
        let line = out
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix(&marker));
        let Some(line) = line else {
            return Err(if ran.timed_out {
                SuiteError::OutOfTime
            } else {
                SuiteError::NoResults(last_line(&ran.err()))
            });
        };
        serde_json::from_str(line).map_err(|error| SuiteError::NoResults(error.to_string()))
    }

    /// The files that hold these tests, or every file where that is not known.
    fn homes(&self, tests: &[String]) -> Vec<String> {
        let homes = lock(&self.homes);
        let mut found: Vec<String> = Vec::new();
        for test in tests {
            match homes.get(test) {
                Some(home) if !found.contains(home) => found.push(home.clone()),
                Some(_) => {}
                None => return self.files.clone(),
            }
        }
        found
    }
}

fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn last_line(text: &str) -> String {
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("nothing was printed")
        .to_owned()
}

/// The file whose module a unittest id starts with.
pub(crate) fn home<'a>(id: &str, files: &'a [String]) -> Option<&'a String> {
    files
        .iter()
        .filter(|file| {
            let module = file.trim_end_matches(".py").replace('/', ".");
            // The import root may lie below the project's root.
            (0..=module.matches('.').count()).any(|skip| {
                let tail: Vec<&str> = module.split('.').skip(skip).collect();
                id.starts_with(&format!("{}.", tail.join(".")))
            })
        })
        .max_by_key(|file| file.len())
}

impl Suite for Python {
    fn run(&self, fork: &mut dyn Fork, deadline: Duration) -> Result<TestReport, SuiteError> {
        let report = self.report(fork, "run", self.test_limit, deadline)?;
        if !report.plan.is_empty() {
            lock(&self.plan).clone_from(&report.plan);
        }
        let mut homes = lock(&self.homes);
        let slowest = report
            .tests
            .iter()
            .filter(|test| test.outcome == Outcome::Passed)
            .map(|test| Duration::from_millis(test.ms))
            .max();
        *lock(&self.slowest) = slowest.unwrap_or_default();
        for test in &report.tests {
            let file = if self.framework == "pytest" {
                test.id.split("::").next().map(str::to_owned)
            } else {
                home(&test.id, &self.files).cloned()
            };
            if let Some(file) = file {
                homes.insert(test.id.clone(), file);
            }
        }
        Ok(TestReport {
            tests: report
                .tests
                .into_iter()
                .map(|test| TestCase {
                    id: test.id,
                    outcome: test.outcome,
                    message: test.message,
                })
                .collect(),
        })
    }

    fn cover(
        &self,
        fork: &mut dyn Fork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        // What a test that hangs runs shows early on.
        let hangs = report.failing().any(TestCase::hung);
        let limit = if hangs {
            self.test_limit.min(Duration::from_secs(1))
        } else {
            self.test_limit
        };
        let report = self.report(fork, "cover", limit, deadline).ok()?;
        *lock(&self.preload) = report.preload;
        *lock(&self.kinds) = Kinds::new(report.kinds);
        let mut warm: Vec<String> = report
            .tests
            .iter()
            .flat_map(|test| test.lines.keys().cloned())
            .chain(self.files.iter().cloned())
            .collect();
        warm.sort();
        warm.dedup();
        *lock(&self.warm) = warm;
        Some(
            report
                .tests
                .into_iter()
                .filter(|test| test.outcome != Outcome::Skipped)
                .map(|test| LinesOfTest {
                    failed: test.outcome != Outcome::Passed,
                    lines: test.lines,
                })
                .collect(),
        )
    }

    fn judge(
        &self,
        _: &dyn Ground,
        fork: &mut dyn Fork,
        goal: &Goal,
        batch: &[Trial],
        until: Instant,
        heard: &mut dyn FnMut(Verdict) -> bool,
    ) -> Result<(), SuiteError> {
        let seconds = until.saturating_duration_since(Instant::now());
        let burn = (*lock(&self.slowest) * LOOP).clamp(LEAST_LOOP, goal.patience.max(LEAST_LOOP));
        let marker = format!("lula-verdict {} ", nonce());
        let candidates: Vec<_> = batch
            .iter()
            .map(|trial| {
                let files: BTreeMap<&str, &str> = trial
                    .files
                    .iter()
                    .map(|change| (change.path.as_str(), change.new.as_str()))
                    .collect();
                json!({"id": trial.index, "files": files})
            })
            .collect();
        let preload = lock(&self.preload).clone();
        let request = json!({
            "mode": "serve",
            "marker": marker,
            "framework": self.framework,
            "files": self.files,
            "options": self.options,
            "preload": preload,
            "warm": *lock(&self.warm),
            "test_seconds": goal.patience.as_secs_f64(),
            "burn_seconds": burn.as_secs_f64(),
            "candidate_seconds": goal.patience.as_secs_f64(),
            "seconds": seconds.as_secs_f64(),
            "groups": [
                {"tests": goal.failing, "stop": "after", "files": self.homes(&goal.failing)},
                {"tests": goal.passing, "stop": "first", "files": self.homes(&goal.passing)},
            ],
            "ready": *lock(&self.ready),
            "bare": *lock(&self.bare),
            "plan": *lock(&self.plan),
            "candidates": candidates,
        });
        let ran = fork.run(&self.command(
            &request,
            goal.at_most(seconds + goal.patience + Duration::from_secs(2)),
        ))?;
        for line in ran
            .out()
            .lines()
            .filter_map(|line| line.strip_prefix(&marker))
        {
            match serde_json::from_str(line) {
                Ok(Answer::Judged { candidate, tests }) => {
                    let tests = tests.unwrap_or_default();
                    heard(goal.judge(
                        candidate,
                        tests.iter().map(|test| (test.id.as_str(), test.outcome)),
                    ));
                }
                Ok(Answer::Ready { ready }) => *lock(&self.ready) = Some(ready),
                Ok(Answer::Bare { bare }) => *lock(&self.bare) = Some(bare),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn batch(&self) -> (usize, usize) {
        (48, 600)
    }

    fn spell(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn kinds(&self) -> Kinds {
        lock(&self.kinds).clone()
    }

    fn innermost_last(&self) -> bool {
        true
    }
}
