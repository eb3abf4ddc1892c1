//! Commands that are started anew for every run: test scripts of Node packages, Go, Make, Maven, Gradle,
//! and whatever a person gives. What runs inside them tells what it did where it can.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::broken::{self, Attempt, Manifest};
use super::reporter::{self, Begun, Line, Reported, Wishes, lines_of_ranges, unnumbered};
use super::{Goal, Suite, SuiteError, Trial, Verdict, apart};
use crate::detect::{Framework, TestsFound};
use crate::ground::{Command, Fork, Ground};
use crate::locate::LinesOfTest;
use crate::report::{Outcome, TestCase, TestReport};
use crate::results;

/// The name of the only test of a command that says nothing but its exit code.
pub const WHOLE: &str = "the test command";

/// A command that runs all tests.
pub(crate) struct Process {
    framework: Framework,
    argv: Vec<String>,
    folder: String,
    line: String,
    /// Whether the command is nothing but a runner, which can then be started by itself.
    plain: bool,
    /// Whether it already says how node's own runner reports.
    reports_itself: bool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    begun: Option<Begun>,
    /// What is left of a script after its checks of style, where those fail.
    instead: Option<Vec<String>>,
}

/// Programs that look at the form of code and run nothing of it.
const CHECKERS: &[&str] = &[
    "eslint",
    "standard",
    "xo",
    "prettier",
    "biome",
    "tslint",
    "semistandard",
    "oxlint",
    "dprint",
    "publint",
    "attw",
    "knip",
    "cspell",
    "commitlint",
    "flow",
];

impl Process {
    pub(crate) fn open(tests: &TestsFound, fork: &dyn Fork) -> Self {
        let script = script(fork, &tests.folder);
        let text = format!("{} {script}", tests.line());
        let chain = ["&&", ";", "||", "npm ", "pnpm ", "yarn ", "run-s", "run-p"];
        let scripted = matches!(
            tests.argv.first().map(String::as_str),
            Some("npm" | "pnpm" | "yarn")
        );
        Self {
            framework: tests.framework,
            argv: tests.argv.clone(),
            folder: tests.folder.clone(),
            line: tests.line(),
            plain: scripted && !chain.iter().any(|word| script.contains(word)),
            reports_itself: text.contains("--test-reporter"),
            seen: Mutex::default(),
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn start(
        &self,
        fork: &mut dyn Fork,
        argv: Vec<String>,
        wishes: &Wishes,
        deadline: Duration,
    ) -> Result<Reported, SuiteError> {
        let mut command = Command::new(argv, deadline).in_folder(&self.folder);
        // Vitest and Jest watch files for ever where they think that a person looks on.
        if matches!(self.framework, Framework::Vitest | Framework::Jest) {
            command = command.env("CI", "1");
        }
        let wishes = Wishes {
            node_test: !self.reports_itself,
            ..wishes.clone()
        };
        reporter::run(fork, &command, &wishes)
    }

    fn by_other_manager(&self) -> bool {
        matches!(
            self.argv.first().map(String::as_str),
            Some("pnpm" | "yarn" | "bun")
        ) && self.seen().instead.is_none()
    }

    /// What to start for everything.
    fn whole(&self) -> Vec<String> {
        self.seen()
            .instead
            .clone()
            .unwrap_or_else(|| self.argv.clone())
    }

    /// What to start for these tests, where the runner can be started by itself.
    fn part(&self, tests: &[String]) -> Option<(Vec<String>, Wishes)> {
        let seen = self.seen();
        let begun = seen
            .begun
            .as_ref()
            .filter(|begun| self.plain && !begun.args.is_empty())?;
        let mut argv = vec![begun.executable.clone()];
        // Named from where it is started: another fork may lie elsewhere.
        let here = format!("{}/", begun.cwd);
        let words = begun.args.iter();
        argv.extend(words.map(|word| word.strip_prefix(&here).unwrap_or(word).to_owned()));
        let mut wishes = Wishes::default();
        match begun.runner.as_str() {
            "mocha" => {
                let names = tests.iter().map(|id| unnumbered(id).to_owned());
                wishes.only = names.collect();
            }
            "jest" | "vitest" => {
                let mut files: Vec<String> = Vec::new();
                for id in tests {
                    let file = id.split(" > ").next().unwrap_or(id);
                    if file.starts_with('-') || !file.contains('.') {
                        return None;
                    }
                    if !files.iter().any(|known| known == file) {
                        files.push(file.to_owned());
                    }
                }
                argv.extend(files);
            }
            _ => return None,
        }
        Some((argv, wishes))
    }

    fn report(
        &self,
        fork: &mut dyn Fork,
        only: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let (argv, wishes) = match (only.is_empty(), self.part(only)) {
            (false, Some(part)) => part,
            _ => (self.whole(), Wishes::default()),
        };
        let before = reports(fork);
        let reported = self.start(fork, argv, &wishes, deadline)?;
        if let Some(begun) = reported.begun() {
            self.seen().begun.get_or_insert_with(|| begun.clone());
        }
        self.read(fork, &reported, &before)
    }

    fn attempt<'a>(&'a self, output: &'a str) -> Attempt<'a> {
        Attempt {
            command: &self.line,
            folder: &self.folder,
            interpreter: None,
            output,
        }
    }

    /// Whether what was printed says that something is not installed.
    fn broken(&self, fork: &dyn Fork, output: &str) -> Option<SuiteError> {
        let project = Manifest::of(fork, &self.folder);
        let attempt = self.attempt(output);
        let found = broken::toolchain(&attempt)
            .or_else(|| {
                let node = project.has("package.json");
                node.then(|| broken::node(&project, &attempt)).flatten()
            })
            .or_else(|| broken::python(&project, &attempt))?;
        Some(SuiteError::EnvironmentBroken(Box::new(found)))
    }

    fn read(
        &self,
        fork: &dyn Fork,
        reported: &Reported,
        before: &Reports,
    ) -> Result<TestReport, SuiteError> {
        let ran = &reported.ran;
        let printed = reported.printed();
        let passed = ran.exit == Some(0) && !ran.timed_out;
        if reported.begun().is_some() {
            if !reported.finished() {
                return Err(if ran.timed_out {
                    SuiteError::OutOfTime
                } else {
                    self.broken(fork, &printed).unwrap_or_else(|| {
                        SuiteError::NoResults(format!(
                            "the runner ended before it had told everything\n{printed}"
                        ))
                    })
                });
            }
            return self.believed(fork, reported.tests().tests, &printed);
        }
        let out = ran.out();
        let told = match self.framework {
            Framework::GoTest => results::go(&out),
            Framework::Jest | Framework::Vitest => results::jest(&out),
            Framework::Mocha => results::mocha(&out),
            _ => Vec::new(),
        };
        let told = [
            told,
            results::libtest(&out),
            results::tap(&out),
            junit(fork, before),
        ]
        .into_iter()
        .find(|tests| !tests.is_empty());
        let fine = |test: &TestCase| matches!(test.outcome, Outcome::Passed | Outcome::Skipped);
        if let Some(tests) = told.filter(|tests| passed == tests.iter().all(fine)) {
            return self.believed(fork, tests, &printed);
        }
        if !passed && !ran.timed_out {
            if let Some(error) = self.broken(fork, &printed) {
                return Err(error);
            }
            if matches!(ran.exit, Some(126 | 127)) {
                let what = printed.lines().last().unwrap_or("a program is not there");
                let found = self
                    .attempt(&printed)
                    .failed(what.to_owned(), Vec::new(), None);
                return Err(SuiteError::EnvironmentBroken(Box::new(found)));
            }
        }
        Ok(TestReport {
            tests: vec![TestCase {
                id: WHOLE.to_owned(),
                outcome: if passed {
                    Outcome::Passed
                } else {
                    Outcome::Failed
                },
                message: printed,
            }],
        })
    }

    fn believed(
        &self,
        fork: &dyn Fork,
        mut tests: Vec<TestCase>,
        printed: &str,
    ) -> Result<TestReport, SuiteError> {
        if tests.is_empty() {
            return Err(self
                .broken(fork, printed)
                .unwrap_or_else(|| SuiteError::NoResults(format!("no test ran\n{printed}"))));
        }
        if !tests.iter().any(|test| test.outcome == Outcome::Passed) {
            let messages: Vec<&str> = tests.iter().map(|test| test.message.as_str()).collect();
            if let Some(error) = self.broken(fork, &messages.join("\n")) {
                return Err(error);
            }
        }
        relative(fork, &mut tests);
        Ok(TestReport { tests })
    }

    /// A script that stopped at a check of style before its first test, without those checks.
    fn without_checks(&self, fork: &dyn Fork) -> Option<Vec<String>> {
        let script = script(fork, &self.folder);
        let parts: Vec<&str> = script.split("&&").map(str::trim).collect();
        let checks = |part: &&str| {
            let mut words = part.split_whitespace();
            words.any(|word| CHECKERS.contains(&word) || word.contains("lint"))
        };
        let kept: Vec<&str> = parts.iter().copied().filter(|part| !checks(part)).collect();
        (kept.len() < parts.len() && !kept.is_empty()).then(|| {
            let line = format!(
                "PATH=\"$PWD/node_modules/.bin:$PATH\"; {}",
                kept.join(" && ")
            );
            vec!["sh".to_owned(), "-c".to_owned(), line]
        })
    }
}

/// The test script of the package in a folder.
fn script(fork: &dyn Fork, folder: &str) -> String {
    let text = Manifest::of(fork, folder).text("package.json");
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let of = |name: &str| {
        manifest["scripts"][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    match of("pretest") {
        before if before.is_empty() => of("test"),
        before => format!("{before} && {}", of("test")),
    }
}

/// Names files from the project's root, wherever the fork lies.
fn relative(fork: &dyn Fork, tests: &mut [TestCase]) {
    if !tests.iter().any(|test| test.id.starts_with('/')) {
        return;
    }
    let files = fork.files().unwrap_or_default();
    for test in tests.iter_mut().filter(|test| test.id.starts_with('/')) {
        let (place, rest) = test.id.split_once(" > ").unwrap_or((&test.id, ""));
        let known = files
            .iter()
            .filter(|file| place.ends_with(&format!("/{file}")))
            .max_by_key(|file| file.len());
        if let Some(file) = known {
            test.id = if rest.is_empty() {
                file.clone()
            } else {
                format!("{file} > {rest}")
            };
        }
    }
}

/// Files that may hold results, with what they hold.
type Reports = BTreeMap<String, Vec<u8>>;

/// What the run wrote as `JUnit`'s XML; what stood there before says nothing of it.
fn junit(fork: &dyn Fork, before: &Reports) -> Vec<TestCase> {
    reports(fork)
        .into_iter()
        .filter(|(path, bytes)| before.get(path) != Some(bytes))
        .flat_map(|(_, bytes)| results::junit(&String::from_utf8_lossy(&bytes)))
        .collect()
}

/// XML files with test cases in them.
fn reports(fork: &dyn Fork) -> Reports {
    let files = fork.files().unwrap_or_default();
    files
        .into_iter()
        .filter(|path| path.rsplit('.').next() == Some("xml"))
        .filter_map(|path| {
            let bytes = fork.read(&path).ok()?;
            let holds = bytes.windows(9).any(|part| part == b"<testcase");
            holds.then_some((path, bytes))
        })
        .collect()
}

impl Suite for Process {
    fn run(&self, fork: &mut dyn Fork, deadline: Duration) -> Result<TestReport, SuiteError> {
        let until = Instant::now() + deadline;
        let report = match self.report(fork, &[], deadline) {
            // npm runs the scripts of every package, and comes with node.
            Err(SuiteError::Ground(_)) if self.by_other_manager() => {
                self.seen().instead = Some(vec!["npm".to_owned(), "test".to_owned()]);
                self.report(fork, &[], until.saturating_duration_since(Instant::now()))?
            }
            report => report?,
        };
        let silent = matches!(report.tests.as_slice(), [only] if only.id == WHOLE && only.outcome == Outcome::Failed);
        if silent
            && self.seen().instead.is_none()
            && let Some(instead) = self.without_checks(fork)
        {
            self.seen().instead = Some(instead);
            return self.report(fork, &[], until.saturating_duration_since(Instant::now()));
        }
        Ok(report)
    }

    fn run_again(
        &self,
        fork: &mut dyn Fork,
        tests: &[String],
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        self.report(fork, tests, deadline)
    }

    fn cover(
        &self,
        fork: &mut dyn Fork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        if self.seen().begun.as_ref()?.runner != "mocha" {
            return None;
        }
        let wishes = Wishes {
            cover: true,
            ..Wishes::default()
        };
        let failing: BTreeSet<&str> = report.failing().map(|test| unnumbered(&test.id)).collect();
        let reported = self.start(fork, self.whole(), &wishes, deadline).ok()?;
        let found: Vec<LinesOfTest> = reported
            .lines
            .iter()
            .filter_map(|line| {
                let Line::Lines { id, lines } = line else {
                    return None;
                };
                Some(LinesOfTest {
                    failed: failing.contains(id.as_str()),
                    lines: lines
                        .iter()
                        .map(|(path, text)| (path.clone(), lines_of_ranges(text)))
                        .collect(),
                })
            })
            .collect();
        let useful = found
            .iter()
            .any(|test| test.failed && !test.lines.is_empty());
        useful.then_some(found)
    }

    fn judge(
        &self,
        ground: &dyn Ground,
        _: &mut dyn Fork,
        goal: &Goal,
        batch: &[Trial],
        until: Instant,
        heard: &mut dyn FnMut(Verdict) -> bool,
    ) -> Result<(), SuiteError> {
        let narrow = self.part(&goal.failing).is_some();
        let patience = goal.patience.max(Duration::from_secs(5));
        let outcome = |fork: &mut dyn Fork, only: &[String], trial: &Trial| match self.report(
            fork,
            only,
            goal.at_most(patience),
        ) {
            Ok(report) => Ok(goal.verdict(trial.index, &report.tests)),
            Err(SuiteError::Ground(error)) => Err(error.into()),
            Err(_) => Ok(goal.verdict(trial.index, &[])),
        };
        apart(ground, batch, until, heard, &mut |fork, trial| {
            // Most candidates do not even help the tests that fail.
            if narrow {
                let verdict = outcome(fork, &goal.failing, trial)?;
                if verdict.passes || verdict.fixed.len() < goal.failing.len() {
                    return Ok(verdict);
                }
            }
            outcome(fork, &[], trial)
        })
    }

    fn batch(&self) -> (usize, usize) {
        (1, 4)
    }

    fn interpreter(&self) -> Option<String> {
        let seen = self.seen();
        let begun = seen.begun.as_ref()?;
        Some(if begun.python.is_empty() {
            format!("Node {} at {}", begun.version, begun.executable)
        } else {
            format!("Python {} at {}", begun.python, begun.executable)
        })
    }
}
