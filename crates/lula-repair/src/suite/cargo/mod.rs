//! Rust's tests, through cargo; candidates share builds.

mod build;
mod doctests;
mod schemata;
mod tree;
mod variants;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::broken::{self, SuiteCommandAttempt};
use super::{CandidateTrial, CandidateVerdict, RepairGoal, SuiteError, TestSuite};
use crate::detect::{DetectedTests, is_foreign};
use crate::ground::{ForkCommand, ForkSource, ProjectFork};
use crate::locate::LinesOfTest;
use crate::report::{TestCase, TestOutcome, TestReport};
use crate::results;
use crate::syntax::{ParsedSource, RepairLanguage, is_test_path};
use crate::trial::tail;
use build::{CargoBuildLints, CargoBuildResult, TestBinary, build};
use schemata::{HIT, VARIANT, mark, weave};
use tree::{originals, put_back, tree, with_changes, write_all};
use variants::run_variants;

/// Most tests whose lines are looked at one by one.
const MAX_COVERED: usize = 80;
/// How often a build is tried again without the candidates that do not compile.
const ROUNDS: usize = 8;

/// A package or workspace.
pub(crate) struct CargoSuite {
    options: Vec<String>,
    folder: String,
    line: String,
    test_limit: Duration,
    /// Every test binary, and how long the slowest took, known after the first run.
    known: Mutex<(Vec<TestBinary>, Duration)>,
}

/// One build for many candidates: those that compiled, and those that do not fit in one.
struct SharedBuild {
    binaries: Vec<TestBinary>,
    alive: BTreeSet<usize>,
    misfits: Vec<usize>,
}

impl CargoSuite {
    pub(crate) fn open(tests: &DetectedTests, test_limit: Duration) -> Self {
        let options = tests
            .options
            .iter()
            .take_while(|option| *option != "--")
            .cloned()
            .collect();
        Self {
            options,
            folder: tests.folder.clone(),
            line: tests.line(),
            test_limit,
            known: Mutex::default(),
        }
    }

    fn built(
        &self,
        fork: &mut dyn ProjectFork,
        lints: CargoBuildLints,
        deadline: Duration,
    ) -> Result<Vec<TestBinary>, SuiteError> {
        match self.build(fork, &[], lints, deadline)? {
            CargoBuildResult::Done(binaries) => Ok(binaries),
            CargoBuildResult::Broken {
                summary, printed, ..
            } => {
                let attempt = SuiteCommandAttempt {
                    command: &self.line,
                    folder: &self.folder,
                    interpreter: None,
                    output: &printed,
                };
                Err(broken::toolchain(&attempt).map_or_else(
                    || {
                        SuiteError::NoResults(format!(
                            "the project does not build: {summary}\n{}",
                            tail(printed.trim(), 3000)
                        ))
                    },
                    |found| SuiteError::EnvironmentBroken(Box::new(found)),
                ))
            }
        }
    }

    fn build(
        &self,
        fork: &mut dyn ProjectFork,
        targets: &[String],
        lints: CargoBuildLints,
        deadline: Duration,
    ) -> Result<CargoBuildResult, SuiteError> {
        build(
            fork,
            &self.folder,
            &self.options,
            (targets, lints),
            deadline,
        )
    }

    fn known(&self) -> std::sync::MutexGuard<'_, (Vec<TestBinary>, Duration)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The targets that hold what fails; none where every target does.
    fn targets(&self, goal: &RepairGoal) -> Vec<String> {
        let known = self.known();
        let (needed, others): (Vec<_>, Vec<_>) = known
            .0
            .iter()
            .partition(|binary| goal.failing.iter().any(|id| binary.name_of(id).is_some()));
        if others.is_empty() {
            return Vec::new();
        }
        needed.into_iter().flat_map(TestBinary::selector).collect()
    }

    /// Runs tests of one binary; all of them where none is named.
    fn run_binary(
        fork: &mut dyn ProjectFork,
        binary: &TestBinary,
        names: &[&str],
        variant: Option<usize>,
        deadline: Duration,
    ) -> Result<(Vec<TestCase>, bool, String), SuiteError> {
        let mut argv = binary.argv();
        if !names.is_empty() {
            argv.push("--exact".to_owned());
            argv.extend(names.iter().map(|&name| name.to_owned()));
        }
        let mut command = ForkCommand::new(argv, deadline).env("RUST_BACKTRACE", "0");
        if let Some(variant) = variant {
            command = command.env(VARIANT, &(variant + 1).to_string());
        }
        let ran = fork.run(&command)?;
        let mut tests = results::libtest(&ran.out());
        for test in &mut tests {
            test.id = binary.id(&test.id);
        }
        Ok((tests, ran.timed_out || ran.exit.is_none(), ran.err()))
    }

    fn names(fork: &mut dyn ProjectFork, binary: &TestBinary) -> Result<Vec<String>, SuiteError> {
        let mut argv = binary.argv();
        argv.extend(["--list", "--format", "terse"].map(str::to_owned));
        let ran = fork.run(&ForkCommand::new(argv, Duration::from_secs(10)))?;
        Ok(ran
            .out()
            .lines()
            .filter_map(|line| line.strip_suffix(": test"))
            .map(str::to_owned)
            .collect())
    }

    /// Runs everything; where one test takes the others down with it, one by one.
    fn run_all(
        &self,
        fork: &mut dyn ProjectFork,
        binaries: &[TestBinary],
        until: Instant,
    ) -> Result<TestReport, SuiteError> {
        let before = tree(fork)?;
        let mut tests = Vec::new();
        for binary in binaries {
            let left = until.saturating_duration_since(Instant::now());
            let began = Instant::now();
            let (found, died, _) =
                Self::run_binary(fork, binary, &[], None, left.min(self.test_limit * 2))?;
            if !died {
                tests.extend(found);
                let took = began.elapsed();
                let mut known = self.known();
                known.1 = known.1.max(took);
                continue;
            }
            for name in Self::names(fork, binary)? {
                let left = until
                    .saturating_duration_since(Instant::now())
                    .min(self.test_limit);
                let (found, died, err) = Self::run_binary(fork, binary, &[&name], None, left)?;
                if died || found.is_empty() {
                    tests.push(TestCase {
                        id: binary.id(&name),
                        outcome: TestOutcome::Broken,
                        message: format!("timed out or died\n{err}"),
                    });
                } else {
                    tests.extend(found);
                }
            }
        }
        put_back(fork, &before)?;
        Ok(TestReport { tests })
    }

    /// One build for many candidates; gives back those that compiled and those that do not fit.
    fn weave_and_build(
        &self,
        fork: &mut dyn ProjectFork,
        batch: &[CandidateTrial],
        targets: &[String],
        until: Instant,
    ) -> Result<SharedBuild, SuiteError> {
        let mut alive: BTreeSet<usize> = batch.iter().map(|trial| trial.index).collect();
        let mut misfits = Vec::new();
        for _ in 0..ROUNDS {
            let trials: Vec<&CandidateTrial> = batch
                .iter()
                .filter(|trial| alive.contains(&trial.index))
                .collect();
            let (woven, unfit) = weave(&trials);
            for index in unfit {
                alive.remove(&index);
                misfits.push(index);
            }
            if alive.is_empty() {
                break;
            }
            write_all(
                fork,
                woven
                    .iter()
                    .map(|(path, file)| (path.clone(), file.text.clone()))
                    .collect(),
                0,
            )?;
            let left = until.saturating_duration_since(Instant::now());
            match self.build(fork, targets, CargoBuildLints::Capped, left)? {
                CargoBuildResult::Done(binaries) => {
                    return Ok(SharedBuild {
                        binaries,
                        alive,
                        misfits,
                    });
                }
                CargoBuildResult::Broken { places, .. } => {
                    let bad: BTreeSet<usize> = places
                        .iter()
                        .filter_map(|(path, byte)| {
                            woven
                                .get(path)
                                .or_else(|| woven.get(&format!("{}/{path}", self.folder)))?
                                .arms
                                .iter()
                                .find(|(start, end, _)| (*start..*end).contains(byte))
                        })
                        .map(|(_, _, index)| *index)
                        .collect();
                    if bad.is_empty() {
                        break;
                    }
                    alive.retain(|index| !bad.contains(index));
                }
            }
        }
        Ok(SharedBuild {
            binaries: Vec::new(),
            alive: BTreeSet::new(),
            misfits,
        })
    }

    /// Judges by every test what passed those that failed.
    fn judge_variant(
        fork: &mut dyn ProjectFork,
        goal: &RepairGoal,
        binaries: &[TestBinary],
        index: usize,
        tree: &BTreeMap<String, Vec<u8>>,
    ) -> Result<CandidateVerdict, SuiteError> {
        let patience = goal.at_most(goal.patience.min(Duration::from_secs(4)) * 2);
        let mut tests = Vec::new();
        for binary in binaries {
            tests.extend(Self::run_binary(fork, binary, &[], Some(index), patience)?.0);
        }
        put_back(fork, tree)?;
        Ok(goal.verdict(index, &tests))
    }

    /// Judges the candidates of one build; false once enough was heard.
    fn judge_shared(
        &self,
        fork: &mut dyn ProjectFork,
        goal: &RepairGoal,
        shared: &SharedBuild,
        until: Instant,
        heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    ) -> Result<bool, SuiteError> {
        let tree = tree(fork)?;
        let burn = self.known().1 * 10;
        let mut waiting: Vec<usize> = shared.alive.iter().copied().collect();
        let mut hopeful = Vec::new();
        let mut go_on = true;
        while go_on && !waiting.is_empty() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            let seen = run_variants(fork, goal, &shared.binaries, &waiting, burn, left)?;
            put_back(fork, &tree)?;
            if seen.is_empty() {
                break;
            }
            waiting.retain(|index| !seen.contains_key(index));
            for (index, tests) in seen {
                let verdict = goal.verdict(index, &tests);
                if verdict.fixed.len() == goal.failing.len() {
                    hopeful.push(index);
                } else {
                    go_on = heard(verdict);
                }
            }
        }
        if hopeful.is_empty() {
            return Ok(go_on);
        }
        // The build held the failing tests alone; these need the others too.
        let left = until
            .saturating_duration_since(Instant::now())
            .max(goal.patience * 2);
        let binaries = match self.build(fork, &[], CargoBuildLints::Capped, goal.at_most(left))? {
            CargoBuildResult::Done(binaries) => binaries,
            CargoBuildResult::Broken { .. } => return Ok(go_on),
        };
        for index in hopeful {
            go_on = heard(Self::judge_variant(fork, goal, &binaries, index, &tree)?);
        }
        Ok(go_on)
    }
}

impl TestSuite for CargoSuite {
    fn run(
        &self,
        fork: &mut dyn ProjectFork,
        deadline: Duration,
    ) -> Result<TestReport, SuiteError> {
        let until = Instant::now() + deadline;
        let binaries = self.built(fork, CargoBuildLints::AsTheyAre, deadline)?;
        self.known().0.clone_from(&binaries);
        let mut report = self.run_all(fork, &binaries, until)?;
        let left = until.saturating_duration_since(Instant::now());
        let examples = doctests::run(fork, &self.folder, &self.options, left)?;
        report.tests.extend(examples);
        if report.tests.is_empty() {
            return Err(SuiteError::NoResults("the project has no tests".to_owned()));
        }
        Ok(report)
    }

    fn cover(
        &self,
        fork: &mut dyn ProjectFork,
        report: &TestReport,
        deadline: Duration,
    ) -> Option<Vec<LinesOfTest>> {
        let until = Instant::now() + deadline;
        let files = fork.files().ok()?;
        let mut marks = Vec::new();
        let mut texts = BTreeMap::new();
        for path in files.iter().filter(|path| {
            RepairLanguage::of(path) == Some(RepairLanguage::Rust)
                && !is_foreign(path)
                && !is_test_path(path)
                && !path.ends_with("build.rs")
        }) {
            if let Some(source) = fork
                .read(path)
                .ok()
                .and_then(|bytes| ParsedSource::parse(path, &bytes).ok())
            {
                texts.insert(path.clone(), mark(&source, &mut marks));
            }
        }
        let before = tree(fork).ok()?;
        write_all(fork, texts, marks.len()).ok()?;
        let mut covered = Vec::new();
        if let Ok(binaries) = self.built(fork, CargoBuildLints::Capped, deadline) {
            let failing: HashMap<&str, bool> = report
                .tests
                .iter()
                .map(|test| (test.id.as_str(), test.outcome != TestOutcome::Passed))
                .collect();
            let mut wanted: Vec<(&TestBinary, &str, bool)> = binaries
                .iter()
                .flat_map(|binary| {
                    failing.iter().filter_map(move |(id, failed)| {
                        Some((binary, binary.name_of(id)?, *failed))
                    })
                })
                .collect();
            wanted.sort_by_key(|(binary, name, failed)| (!failed, binary.target.clone(), *name));
            for (binary, name, failed) in wanted.into_iter().take(MAX_COVERED) {
                if Instant::now() >= until {
                    break;
                }
                let Ok((_, _, err)) = Self::run_binary(
                    fork,
                    binary,
                    &[name],
                    None,
                    self.test_limit.min(Duration::from_secs(4)),
                ) else {
                    continue;
                };
                let mut lines: BTreeMap<String, Vec<usize>> = BTreeMap::new();
                for line in err.lines().filter_map(|line| line.strip_prefix(HIT)) {
                    if let Some((path, line)) = line
                        .parse::<usize>()
                        .ok()
                        .and_then(|mark| marks.get(mark.checked_sub(1)?))
                    {
                        lines.entry(path.clone()).or_default().push(*line);
                    }
                }
                covered.push(LinesOfTest { failed, lines });
            }
        }
        put_back(fork, &before).ok()?;
        covered
            .iter()
            .any(|test| test.failed && !test.lines.is_empty())
            .then_some(covered)
    }

    fn judge(
        &self,
        _: &dyn ForkSource,
        fork: &mut dyn ProjectFork,
        goal: &RepairGoal,
        batch: &[CandidateTrial],
        until: Instant,
        heard: &mut dyn FnMut(CandidateVerdict) -> bool,
    ) -> Result<(), SuiteError> {
        let goal = &doctests::left_out(goal);
        let before = originals(
            fork,
            batch
                .iter()
                .flat_map(|trial| &trial.files)
                .map(|change| change.path.clone()),
        )?;
        let shared = self.weave_and_build(fork, batch, &self.targets(goal), until)?;
        for trial in batch {
            if !shared.alive.contains(&trial.index) && !shared.misfits.contains(&trial.index) {
                // It does not compile.
                heard(CandidateVerdict {
                    index: trial.index,
                    ..CandidateVerdict::default()
                });
            }
        }
        let mut go_on = self.judge_shared(fork, goal, &shared, until, heard)?;
        let misfits = shared.misfits;
        for (path, bytes) in before {
            fork.write(&path, &bytes)?;
        }
        for trial in batch.iter().filter(|trial| misfits.contains(&trial.index)) {
            if !go_on || Instant::now() >= until {
                break;
            }
            with_changes(fork, trial, |fork| {
                let outcomes = match self.run(fork, until.saturating_duration_since(Instant::now()))
                {
                    Ok(report) => report.tests,
                    Err(SuiteError::Ground(error)) => return Err(error.into()),
                    Err(_) => Vec::new(),
                };
                go_on = heard(goal.judge(
                    trial.index,
                    outcomes.iter().map(|test| (test.id.as_str(), test.outcome)),
                ));
                Ok(())
            })?;
        }
        Ok(())
    }

    fn batch(&self) -> (usize, usize) {
        (64, 200)
    }

    fn spell(&self) -> Duration {
        Duration::from_secs(25)
    }

    fn keeps_builds(&self) -> bool {
        true
    }
}
