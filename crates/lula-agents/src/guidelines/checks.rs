//! Guidelines that code can rate: what a diff shows, and what tests said.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::task::TaskIntent;
use crate::verdict::{TestRunAttempt, no_longer_pass};
use crate::work::CodingState;
use lula_repair::is_test_path;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuidelineCheck {
    /// Few lines are changed.
    SmallDiff,
    /// Few files are touched.
    FewFiles,
    /// Existing tests lose no line.
    TestsUntouched,
    /// No test is switched off.
    NoDisabledTests,
    /// Nothing is left that was only for looking.
    NoDebugOutput,
    /// No half of a merge is left.
    NoConflictMarkers,
    /// No error is caught and dropped.
    NoSwallowedErrors,
    /// New behaviour brings a test.
    AddsTests,
    /// The files are those that the task and its tests speak of.
    NamedFiles,
    /// Every test that passed still passes.
    NothingLost,
    /// Every test that failed passes.
    Mended,
    /// What passes now fails without the change.
    NeedsChange,
    /// No test passes only now and then.
    Steady,
    /// It took few attempts.
    FewAttempts,
}

impl GuidelineCheck {
    /// Whether a diff alone decides it.
    pub(super) const fn is_about_diff(self) -> bool {
        matches!(
            self,
            Self::SmallDiff
                | Self::FewFiles
                | Self::TestsUntouched
                | Self::NoDisabledTests
                | Self::NoDebugOutput
                | Self::NoConflictMarkers
                | Self::NoSwallowedErrors
        )
    }
}

/// The changed lines of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ChangedLines {
    path: String,
    added: Vec<String>,
    removed: Vec<String>,
}

/// A unified diff, by file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffHunksByFile(Vec<ChangedLines>);

impl DiffHunksByFile {
    /// Reads a diff. Lines count only inside hunks, whose headers say how many there are: a changed
    /// line that looks like a header is a line.
    pub fn read(diff: &str) -> Self {
        let mut files: Vec<ChangedLines> = Vec::new();
        let (mut old, mut new) = (0_u64, 0_u64);
        for line in diff.lines() {
            if old == 0 && new == 0 {
                if let Some(path) = line.strip_prefix("+++ ") {
                    let path = path.split('\t').next().unwrap_or(path);
                    let path = path.strip_prefix("b/").unwrap_or(path);
                    if let Some(last) = files.last_mut().filter(|_| path != "/dev/null") {
                        path.clone_into(&mut last.path);
                    }
                } else if let Some(path) = line.strip_prefix("--- ") {
                    let path = path.split('\t').next().unwrap_or(path);
                    files.push(ChangedLines {
                        path: path.strip_prefix("a/").unwrap_or(path).to_owned(),
                        ..ChangedLines::default()
                    });
                } else if let Some((was, is)) = counts(line) {
                    (old, new) = (was, is);
                }
                continue;
            }
            let Some(file) = files.last_mut() else {
                continue;
            };
            match line.as_bytes().first() {
                Some(b'+') => {
                    file.added.push(line[1..].to_owned());
                    new = new.saturating_sub(1);
                }
                Some(b'-') => {
                    file.removed.push(line[1..].to_owned());
                    old = old.saturating_sub(1);
                }
                Some(b'\\') => {}
                _ => {
                    old = old.saturating_sub(1);
                    new = new.saturating_sub(1);
                }
            }
        }
        Self(files)
    }

    /// How many lines it changes.
    pub fn lines(&self) -> usize {
        let files = self.0.iter();
        files
            .map(|file| file.added.len() + file.removed.len())
            .sum()
    }

    fn code(&self) -> impl Iterator<Item = &ChangedLines> {
        self.0.iter().filter(|file| !is_test_path(&file.path))
    }

    fn tests(&self) -> impl Iterator<Item = &ChangedLines> {
        self.0.iter().filter(|file| is_test_path(&file.path))
    }
}

/// How many lines of both sides a hunk has.
fn counts(line: &str) -> Option<(u64, u64)> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let count = |word: &str, sign: char| -> Option<u64> {
        let range = word.strip_prefix(sign)?;
        match range.split_once(',') {
            Some((_, count)) => count.parse().ok(),
            None => Some(1),
        }
    };
    Some((count(words.next()?, '-')?, count(words.next()?, '+')?))
}

type CheckRating = (Option<i8>, String);

fn rated(score: i8, why: impl Into<String>) -> CheckRating {
    (Some(score), why.into())
}

fn unknown(why: &str) -> CheckRating {
    (None, why.to_owned())
}

/// Whether a test loses nothing by a line that is gone: no code, or an import that now names more.
fn is_kept(line: &str, added: &[String]) -> bool {
    const IMPORTS: [&str; 6] = ["import ", "from ", "use ", "const ", "require", "#include"];
    let line = line.trim();
    let words = |line: &str| -> BTreeSet<String> {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.map(str::to_owned).collect()
    };
    let imports = || IMPORTS.iter().any(|start| line.starts_with(start));
    let names_more = || {
        let own = words(line);
        added.iter().any(|new| words(new).is_superset(&own))
    };
    line.is_empty() || is_comment(line) || (imports() && names_more())
}

/// Rates a diff alone.
pub(super) fn rate_diff(check: GuidelineCheck, limit: Option<u32>, diff: &str) -> CheckRating {
    let hunks = DiffHunksByFile::read(diff);
    match check {
        GuidelineCheck::SmallDiff => counted(hunks.lines(), limit.unwrap_or(120), "lines"),
        GuidelineCheck::FewFiles => counted(hunks.0.len(), limit.unwrap_or(4), "files"),
        GuidelineCheck::TestsUntouched => {
            let cut: Vec<&str> = hunks
                .tests()
                .filter(|file| file.removed.iter().any(|line| !is_kept(line, &file.added)))
                .map(|file| file.path.as_str())
                .collect();
            if cut.is_empty() {
                rated(1, "no line of an existing test is gone")
            } else {
                rated(-2, format!("lines are gone from {}", cut.join(", ")))
            }
        }
        GuidelineCheck::NoDisabledTests => {
            const OFF: [&str; 13] = [
                "pytest.mark.skip",
                "pytest.mark.xfail",
                "pytest.skip(",
                "unittest.skip",
                "self.skipTest(",
                "it.skip(",
                "test.skip(",
                "describe.skip(",
                "xit(",
                "#[ignore",
                "t.Skip(",
                "@Disabled",
                "@Ignore",
            ];
            let found = hunks.0.iter().flat_map(|file| &file.added).find(|line| {
                let line = line.trim_start();
                OFF.iter().any(|off| line.contains(off)) && !is_comment(line)
            });
            said(
                found,
                1,
                "no test is switched off",
                "a test is switched off",
            )
        }
        GuidelineCheck::NoDebugOutput => debug_output(&hunks),
        GuidelineCheck::NoConflictMarkers => {
            let marker = |line: &&String| {
                ["<<<<<<< ", ">>>>>>> ", "||||||| "]
                    .iter()
                    .any(|mark| line.starts_with(mark))
            };
            let halves = |file: &&ChangedLines| file.added.iter().filter(marker).count() > 1;
            let found = hunks.0.iter().find(halves);
            let found = found.map(|file| &file.path);
            said(
                found,
                1,
                "no half of a merge is left",
                "it holds both sides of a merge",
            )
        }
        GuidelineCheck::NoSwallowedErrors => {
            let dropped = |file: &&ChangedLines| {
                let pairs = file.added.windows(2);
                let mut after = pairs.map(|pair| (pair[0].trim(), pair[1].trim()));
                after.any(|(first, second)| {
                    first.starts_with("except") && first.ends_with(':') && second == "pass"
                }) || file.added.iter().any(|line| {
                    let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
                    line.contains("catch") && (line.ends_with("{}") || line.ends_with("{};"))
                })
            };
            let found = hunks.code().find(dropped).map(|file| &file.path);
            said(
                found,
                1,
                "no error is dropped",
                "an error is caught and dropped",
            )
        }
        _ => unknown("a diff alone does not tell"),
    }
}

fn said(found: Option<&String>, good: i8, well: &str, badly: &str) -> CheckRating {
    match found {
        None => rated(good, well),
        Some(text) => {
            let text: String = text.trim().chars().take(80).collect();
            rated(-2, format!("{badly}: {text}"))
        }
    }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") || (line.starts_with('#') && !line.starts_with("#["))
}

fn debug_output(hunks: &DiffHunksByFile) -> CheckRating {
    const STOPS: [&str; 5] = [
        "breakpoint()",
        "import pdb",
        "debugger;",
        "dbg!(",
        "binding.pry",
    ];
    const SHOWS: [&str; 4] = ["print(", "console.log(", "System.out.print", "fmt.Print"];
    let has = |words: &[&str], lines: &[String]| {
        lines
            .iter()
            .any(|line| words.iter().any(|word| line.trim_start().starts_with(word)))
    };
    for file in hunks.code() {
        if has(&STOPS, &file.added) {
            return rated(-2, format!("{} stops for a debugger", file.path));
        }
        // Where output was there before, more of it is how the program talks.
        if has(&SHOWS, &file.added) && !has(&SHOWS, &file.removed) {
            return rated(-1, format!("{} prints what it did not print", file.path));
        }
    }
    rated(1, "nothing is left that was only for looking")
}

/// From 2 for a quarter of what is too much down to −2 for more than four times that.
fn counted(number: usize, limit: u32, what: &str) -> CheckRating {
    let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
    let score = if number <= limit / 4 {
        2
    } else if number <= limit {
        1
    } else if number <= limit.saturating_mul(2) {
        0
    } else if number <= limit.saturating_mul(4) {
        -1
    } else {
        -2
    };
    rated(score, format!("{number} {what}, {limit} are many"))
}

/// Rates one thing. Pure.
pub(super) fn rate(check: GuidelineCheck, limit: Option<u32>, work: &CodingState) -> CheckRating {
    let Some(proposal) = &work.proposal else {
        return unknown("nothing was changed");
    };
    if check.is_about_diff() {
        return rate_diff(check, limit, &proposal.diff);
    }
    match check {
        GuidelineCheck::AddsTests if work.intent() == TaskIntent::Repair => {
            unknown("the tests that fail are the tests")
        }
        GuidelineCheck::AddsTests => {
            let hunks = DiffHunksByFile::read(&proposal.diff);
            let added: usize = hunks.tests().map(|file| file.added.len()).sum();
            if added > 0 {
                rated(2, format!("{added} lines of tests are new"))
            } else {
                rated(0, "no test is new")
            }
        }
        GuidelineCheck::NamedFiles => named_files(work, &proposal.files),
        GuidelineCheck::FewAttempts => match work.loops {
            0 => rated(1, "the first attempt"),
            1 => rated(0, "the second attempt"),
            more => rated(-1, format!("{more} attempts failed before")),
        },
        _ => tests(check, work),
    }
}

fn named_files(work: &CodingState, files: &[String]) -> CheckRating {
    let Some(brief) = work.brief.as_ref().filter(|brief| !brief.likely.is_empty()) else {
        return unknown("nothing tells which files matter");
    };
    let code: Vec<&String> = files.iter().filter(|path| !is_test_path(path)).collect();
    // Where what the task names stands is where it points.
    let holds = |path: &str| {
        let hits = brief.hits.iter();
        let mut found = hits.filter_map(|hit| hit.strip_prefix(path));
        found.any(|rest| rest.starts_with(':'))
    };
    let known = code
        .iter()
        .filter(|path| brief.likely.contains(path) || holds(path));
    match (known.count(), code.len()) {
        (_, 0) => unknown("only tests are changed"),
        (known, all) if known == all => rated(2, "every file is one that the task speaks of"),
        // Words that happen to be part of a path point nowhere.
        (0, _)
            if !brief
                .likely
                .iter()
                .any(|path| work.task.text.contains(path)) =>
        {
            unknown("the task names no file")
        }
        (0, _) => rated(-1, "no file is one that the task speaks of"),
        (known, all) => rated(
            0,
            format!("{known} of {all} files are ones the task speaks of"),
        ),
    }
}

/// Rates by what the tests said of the change.
fn tests(check: GuidelineCheck, work: &CodingState) -> CheckRating {
    let Some(evidence) = &work.evidence else {
        return unknown("no test was run");
    };
    let (Some(before), Some(after)) = (evidence.before.results(), evidence.after.results()) else {
        return unknown("no test was run");
    };
    match check {
        GuidelineCheck::NothingLost => {
            let kept = |id: &&String| after.passing.contains(*id) || after.flaky.contains(*id);
            let lost = before.passing.iter().filter(|id| !kept(id)).count();
            match (lost, before.passing.len()) {
                (_, 0) => unknown("no test passed before"),
                (0, all) => rated(2, format!("all {all} tests that passed still pass")),
                (lost, _) => rated(-2, no_longer_pass(lost)),
            }
        }
        GuidelineCheck::Mended => {
            let mended = before.failing.intersection(&after.passing).count();
            match (mended, before.failing.len()) {
                (_, 0) => unknown("no test failed before"),
                (mended, all) if mended == all => rated(2, format!("all {all} pass now")),
                (0, _) => rated(-2, "none of the failing tests passes"),
                (mended, all) => rated(0, format!("{mended} of {all} pass now")),
            }
        }
        GuidelineCheck::NeedsChange => {
            let gained: Vec<&String> = after.passing.difference(&before.passing).collect();
            match &evidence.without {
                _ if gained.is_empty() => unknown("no test passes that did not before"),
                None
                | Some(
                    TestRunAttempt::NoTests | TestRunAttempt::NotRun | TestRunAttempt::OutOfTime(_),
                ) => unknown("it was not tried without the change"),
                Some(TestRunAttempt::CannotRun(_) | TestRunAttempt::EnvironmentBroken(_)) => {
                    rated(2, "without the change nothing runs")
                }
                Some(TestRunAttempt::Ran(results)) => {
                    let anyway = gained.iter().filter(|id| results.passing.contains(**id));
                    match anyway.count() {
                        0 => rated(2, "what passes now fails without the change"),
                        some => rated(-2, format!("{some} pass without the change too")),
                    }
                }
            }
        }
        GuidelineCheck::Steady => match before.flaky.len().max(after.flaky.len()) {
            0 => rated(1, "every test says the same each time"),
            some => rated(-1, format!("{some} tests pass only now and then")),
        },
        _ => unknown("tests do not tell"),
    }
}
