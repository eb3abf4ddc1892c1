//! Python's tests: pytest by the project's own command, unittest and bare functions by a runner of
//! ours, candidates by a harness that forks one child for each.

mod candidates;
mod harness;
mod interpreter;
mod packages;
mod pytest;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::reporter::ReporterStart;
use super::{CandidateTrial, CandidateVerdict, RepairGoal, SuiteError, SuiteFileChange, TestSuite};
use crate::detect::{DetectedTests, TestFramework};
use crate::environment::CodeOrigin;
use crate::ground::{ForkSource, ProjectFork};
use crate::locate::{LinesOfTest, TypesByVariable};
use crate::report::TestReport;
use interpreter::PythonInterpreter;

/// File, function and case of tests that need nothing but a call, by name.
type Plan = BTreeMap<String, (String, String, Option<usize>)>;

/// A suite of pytest, unittest or bare functions.
pub(crate) struct PythonSuite {
    /// What starts the interpreter.
    interpreter: String,
    /// It, with its version and place.
    about: String,
    framework: &'static str,
    /// The command as a developer of the project would type it.
    argv: Vec<String>,
    folder: String,
    files: Vec<String>,
    /// The files to run, where not all are meant.
    only: Vec<String>,
    test_limit: Duration,
    seen: Mutex<PythonRunHistory>,
}

/// What runs have shown so far.
#[derive(Default)]
struct PythonRunHistory {
    preload: Vec<String>,
    /// Files of the project that its tests import.
    warm: Vec<String>,
    /// File of each test.
    homes: BTreeMap<String, String>,
    /// The longest that a test that passes took, and what each took.
    slowest: Duration,
    took: HashMap<String, Duration>,
    /// What variables were seen to hold.
    kinds: TypesByVariable,
    /// Tests that need nothing but a call.
    plan: Plan,
    /// Whether such calls show what pytest shows, when that was found out.
    bare: Option<bool>,
    /// Whether pytest can be made ready once for many candidates, when that was found out.
    ready: Option<bool>,
    /// Whether the harness shows what the project's command shows, when that was found out.
    same: Option<bool>,
    /// Whether candidates need a process of their own from the start.
    cold: bool,
    /// What pytest said of itself.
    begun: Option<ReporterStart>,
    origins: Vec<CodeOrigin>,
    /// The lines of each test.
    lines: HashMap<String, BTreeMap<String, Vec<usize>>>,
}

impl PythonSuite {
    /// Finds the interpreter and sees whether it has the framework.
    pub(crate) fn open(
        tests: &DetectedTests,
        fork: &mut dyn ProjectFork,
        test_limit: Duration,
    ) -> Result<Self, SuiteError> {
        let framework = match tests.framework {
            TestFramework::Pytest => "pytest",
            TestFramework::Unittest => "unittest",
            _ => "plain",
        };
        let module = if framework == "pytest" {
            "pytest"
        } else {
            "unittest"
        };
        let line = tests.line();
        let first = tests.argv.first().map_or("python3", String::as_str);
        let starts_python = first
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("python"));
        let name = if starts_python { first } else { "python3" };
        let found = PythonInterpreter::find(fork, &tests.folder, name, module, &line);
        let interpreter = match found {
            // A program called pytest brings its own interpreter.
            Err(_) if !starts_python => PythonInterpreter {
                name: name.to_owned(),
                program: first.to_owned(),
                about: first.to_owned(),
            },
            found => found?,
        };
        let mut argv = tests.argv.clone();
        if let Some(first) = argv.first_mut().filter(|_| starts_python) {
            *first = interpreter.program;
        }
        Ok(Self {
            interpreter: interpreter.name,
            about: interpreter.about,
            framework,
            argv,
            folder: tests.folder.clone(),
            files: if tests.only.is_empty() {
                tests.files.clone()
            } else {
                tests.only.clone()
            },
            only: tests.only.clone(),
            test_limit,
            seen: Mutex::default(),
        })
    }

    fn is_pytest(&self) -> bool {
        self.framework == "pytest"
    }
}

fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
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

impl TestSuite for PythonSuite {
    fn run(
        &self,
        fork: &mut dyn ProjectFork,
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        if self.is_pytest() {
            self.run_pytest(fork, &self.only, deadline)
        } else {
            self.run_harness(fork, deadline)
        }
    }

    fn run_again(
        &self,
        fork: &mut dyn ProjectFork,
        tests: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let nameable = tests.iter().all(|id| id != pytest::COLLECTION);
        if self.is_pytest() && nameable && tests.len() < 400 {
            self.run_pytest(fork, tests, deadline)
        } else {
            self.run(fork, deadline)
        }
    }

    fn cover(
        &self,
        fork: &mut dyn ProjectFork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        let found = if self.is_pytest() {
            self.cover_pytest(fork, report, deadline)
        } else {
            self.cover_harness(fork, report, deadline)
        }?;
        let mut warm: Vec<String> = found
            .iter()
            .flat_map(|test| test.lines.keys().cloned())
            .collect();
        warm.sort();
        warm.dedup();
        lock(&self.seen).warm = warm;
        Some(found)
    }

    fn judge(
        &self,
        ground: &dyn ForkSource,
        fork: &mut dyn ProjectFork,
        goal: &RepairGoal,
        batch: &[CandidateTrial],
        until: Instant,
        heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    ) -> Result<(), SuiteError> {
        if !lock(&self.seen).cold {
            self.judge_warm(fork, goal, batch, until, heard)?;
            if !lock(&self.seen).cold {
                return Ok(());
            }
        }
        self.judge_cold(ground, goal, batch, until, heard)
    }

    fn batch(&self) -> (usize, usize) {
        if lock(&self.seen).cold {
            (2, 8)
        } else {
            (48, 600)
        }
    }

    fn spell(&self) -> Duration {
        Duration::from_secs(2)
    }

    fn kinds(&self) -> TypesByVariable {
        lock(&self.seen).kinds.clone()
    }

    fn innermost_last(&self) -> bool {
        true
    }

    fn runs(&self, test: &str, files: &[SuiteFileChange]) -> Option<bool> {
        let seen = lock(&self.seen);
        let lines = seen.lines.get(test)?;
        Some(files.iter().any(|change| {
            let touched = candidates::changed_lines(change);
            lines
                .get(&change.path)
                .is_some_and(|lines| lines.iter().any(|line| touched.contains(line)))
        }))
    }

    fn interpreter(&self) -> Option<String> {
        let seen = lock(&self.seen);
        let told = seen.begun.as_ref().filter(|begun| !begun.python.is_empty());
        Some(told.map_or_else(
            || self.about.clone(),
            |begun| format!("Python {} at {}", begun.python, begun.executable),
        ))
    }

    fn origins(&self) -> Vec<CodeOrigin> {
        lock(&self.seen).origins.clone()
    }

    fn argv(&self) -> Option<Vec<String>> {
        Some(self.argv.clone())
    }
}
