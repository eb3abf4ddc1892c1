//! What was checked and how it ended, and the one line that a machine reads.

use std::fmt;

/// The results so far. Only what really ran is counted.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: u64,
    skipped: u64,
    failures: Vec<Failure>,
    /// Failed tests whose names are in the output above, beyond those listed in `failures`.
    unnamed: u64,
    not_checked: Vec<Failure>,
}

/// Something that did not hold, or could not be checked, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl Failure {
    pub(crate) fn new(name: &str, reason: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            reason: reason.into(),
        }
    }
}

/// What a test runner counted.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) failed_names: Vec<String>,
}

impl Report {
    pub(crate) fn passed(&mut self, name: &str) {
        println!("    {name}: passed");
        self.passed += 1;
    }

    pub(crate) fn failed(&mut self, failure: Failure) {
        println!("    {}: FAILED: {}", failure.name, failure.reason);
        self.failures.push(failure);
    }

    /// Something that this machine cannot check. It is named at the end and counted nowhere.
    pub(crate) fn not_checked(&mut self, name: &str, reason: &str) {
        println!("    {name}: not checked here: {reason}");
        self.not_checked.push(Failure::new(name, reason));
    }

    /// A test counted as skipped did run, as a part of another one.
    pub(crate) fn part_of_another(&mut self) {
        self.skipped = self.skipped.saturating_sub(1);
    }

    /// Takes over a test runner's counts.
    pub(crate) fn tally(&mut self, runner: &str, tally: &Tally) {
        self.passed += tally.passed;
        self.skipped += tally.skipped;
        for name in &tally.failed_names {
            let reason = format!("failed in {runner}; its output is above");
            self.failures.push(Failure {
                name: name.clone(),
                reason,
            });
        }
        let named = u64::try_from(tally.failed_names.len()).unwrap_or(u64::MAX);
        self.unnamed += tally.failed.saturating_sub(named);
    }

    pub(crate) fn has_failures(&self) -> bool {
        self.count_failed() > 0
    }

    fn count_failed(&self) -> u64 {
        self.unnamed + u64::try_from(self.failures.len()).unwrap_or(u64::MAX)
    }
}

/// The failures and the gaps, each with its reason, then the last line.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, list) in [
            ("Not checked here", &self.not_checked),
            ("Failed", &self.failures),
        ] {
            if !list.is_empty() {
                writeln!(f, "{title}:")?;
                for Failure { name, reason } in list {
                    writeln!(f, "  {name}: {reason}")?;
                }
            }
        }
        if self.unnamed > 0 {
            writeln!(
                f,
                "  and {} more tests, named in the output above",
                self.unnamed
            )?;
        }
        write!(f, "{} passed, {} failed", self.passed, self.count_failed())?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

/// Reads nextest's closing summary; `None` when there is none, as after a failed build.
///
/// Whatever nextest counts that neither passed nor was skipped (failed, timed out, could not be
/// started) counts as failed, so that a kind of failure unknown here is not lost.
pub(crate) fn read_nextest(output: &str) -> Option<Tally> {
    let output = without_colours(output);
    let (_, summary) = output.rsplit_once("Summary [")?;
    let line = summary.lines().next()?;
    let (head, counts) = line.split_once(" run: ")?;
    let mut tally = Tally::default();
    for part in without_brackets(counts).split(',') {
        let (number, kind) = part.trim().split_once(' ')?;
        let number: u64 = number.parse().ok()?;
        match kind.trim() {
            "passed" => tally.passed += number,
            "skipped" => tally.skipped += number,
            _ => tally.failed += number,
        }
    }
    // "3/10 tests run" is what it says when it was stopped half-way.
    let run = head.split(']').nth(1)?.trim().split(' ').next()?;
    if let Some((done, all)) = run.split_once('/') {
        tally.failed += all.parse::<u64>().ok()?.saturating_sub(done.parse().ok()?);
    }
    // Each failure is shown when it happens and again below the summary.
    tally.failed_names = summary.lines().skip(1).filter_map(failed_test).collect();
    tally.failed_names.sort();
    tally.failed_names.dedup();
    Some(tally)
}

/// `FAIL [   0.004s] (2/9) lula-store::it queue::two_workers` without its timing.
fn failed_test(line: &str) -> Option<String> {
    let (status, rest) = line.trim().split_once('[')?;
    let status = status.trim();
    let failed = [
        "FAIL",
        "TIMEOUT",
        "ABORT",
        "SIG",
        "LEAK-FAIL",
        "XFAIL",
        "EXECFAIL",
    ];
    if !failed.iter().any(|word| status.contains(word)) {
        return None;
    }
    let name = rest.split_once(']')?.1.trim();
    let name = match name.strip_prefix('(').and_then(|tail| tail.split_once(')')) {
        Some((position, tail)) if position.contains('/') => tail.trim(),
        _ => name,
    };
    Some(name.to_owned())
}

/// Adds up libtest's result lines, one for each crate with documentation tests.
pub(crate) fn read_doctests(output: &str) -> Option<Tally> {
    let output = without_colours(output);
    let mut tally = None;
    let mut failed_names = Vec::new();
    for line in output.lines() {
        let test = line.trim().strip_prefix("test ");
        failed_names.extend(
            test.and_then(|line| line.strip_suffix(" ... FAILED"))
                .map(str::to_owned),
        );
        if let Some((_, counts)) = line
            .trim()
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        {
            let tally = tally.get_or_insert_with(Tally::default);
            for part in counts.split(';') {
                let Some((number, kind)) = part.trim().split_once(' ') else {
                    continue;
                };
                let Ok(number) = number.parse::<u64>() else {
                    continue;
                };
                match kind {
                    "passed" => tally.passed += number,
                    "failed" => tally.failed += number,
                    "ignored" => tally.skipped += number,
                    _ => {}
                }
            }
        }
    }
    tally.map(|tally| Tally {
        failed_names,
        ..tally
    })
}

fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after
            .split_once(|end: char| end.is_ascii_alphabetic())
            .map_or("", |(_, tail)| tail);
    }
    plain.push_str(rest);
    plain
}

fn without_brackets(text: &str) -> String {
    let mut depth = 0_u32;
    text.chars()
        .filter(|letter| match letter {
            '(' => {
                depth += 1;
                false
            }
            ')' => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_green_run_is_read() {
        let output =
            "     Summary [   0.412s] 45 tests run: 45 passed (2 slow, 1 leaky), 3 skipped\n";
        let tally = read_nextest(output).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.skipped), (45, 0, 3));
    }

    #[test]
    fn failed_and_hung_tests_are_counted_and_named() {
        let output = "        FAIL [   0.004s] (1/4) lula-store::it queue::two_workers\n\
            ────────────\n     Summary [   3.0s] 4 tests run: 1 passed, 1 failed, 2 timed out, 0 skipped\n\
            \u{1b}[31;1m        FAIL\u{1b}[0m [   0.004s] (1/4) lula-store::it queue::two_workers\n\
            \u{20}    TIMEOUT [  60.0s] (3/4) lula sandbox::never_ends\n\
            \u{20}    TIMEOUT [  60.0s] (4/4) lula sandbox::never_ends_too\n\
            error: test run failed\n";
        let tally = read_nextest(output).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.skipped), (1, 3, 0));
        assert_eq!(
            tally.failed_names,
            [
                "lula sandbox::never_ends",
                "lula sandbox::never_ends_too",
                "lula-store::it queue::two_workers"
            ]
        );
    }

    #[test]
    fn tests_that_a_stopped_run_never_reached_count_as_failed() {
        let tally = read_nextest("Summary [ 1.0s] 3/10 tests run: 3 passed, 0 skipped\n").unwrap();
        assert_eq!((tally.passed, tally.failed), (3, 7));
    }

    #[test]
    fn a_build_that_failed_has_no_summary() {
        assert_eq!(read_nextest("error: could not compile `lula`\n"), None);
        assert_eq!(read_doctests("error: could not compile `lula`\n"), None);
    }

    #[test]
    fn documentation_tests_of_all_crates_are_added_up() {
        let output = "test src/lib.rs - f (line 3) ... ok\n\
            test src/lib.rs - g (line 9) ... FAILED\n\
            test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
            test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n";
        let tally = read_doctests(output).unwrap();
        assert_eq!((tally.passed, tally.failed, tally.skipped), (4, 2, 1));
        assert_eq!(tally.failed_names, ["src/lib.rs - g (line 9)"]);
    }

    #[test]
    fn the_last_line_counts_everything_and_names_what_failed() {
        let mut report = Report::default();
        report.passed("fmt");
        report.failed(Failure::new("Redis", "no package"));
        report.not_checked("wasm", "no target");
        report.tally(
            "nextest",
            &Tally {
                passed: 7,
                failed: 2,
                skipped: 0,
                failed_names: vec!["a b".into()],
            },
        );
        let text = report.to_string();
        assert!(text.ends_with("\n8 passed, 3 failed"), "{text}");
        assert!(
            text.contains("Redis: no package") && text.contains("wasm: no target"),
            "{text}"
        );
        assert!(report.has_failures());
    }
}
