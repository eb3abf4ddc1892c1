//! Counts from what test runners print at their end, read without any of the product's own code.

use super::recipe::Counts;

/// The counts in a runner's closing lines; nothing where there are none.
pub(super) fn read(output: &str) -> Option<Counts> {
    let plain = without_colour(output);
    [
        cargo, go, ctest, maven, jest, uvu, jasmine, pytest, unittest, tap, words,
    ]
    .into_iter()
    .find_map(|read| read(&plain))
}

fn without_colour(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' {
            rest.by_ref().find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out
}

/// The number before a word, as in `3 passed`.
fn before(line: &str, word: &str) -> Option<usize> {
    let words: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '=' | '|' | '(' | ')'))
        .filter(|part| !part.is_empty())
        .collect();
    let at = words.iter().position(|found| *found == word)?;
    let (number, noun) = (at.checked_sub(1)?, at.checked_sub(2));
    // `3 passed`, and `3 tests passed`.
    let number = match (words[number], noun) {
        ("test" | "tests", Some(earlier)) => earlier,
        _ => number,
    };
    words.get(number)?.parse().ok()
}

/// The number after a name, as in `Total: 3`.
fn after(line: &str, name: &str) -> Option<usize> {
    let rest = line.split(name).nth(1)?.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

fn cargo(text: &str) -> Option<Counts> {
    let mut lines = text
        .lines()
        .filter(|line| line.trim_start().starts_with("test result:"))
        .peekable();
    lines.peek()?;
    Some(lines.fold(Counts::default(), |sum, line| Counts {
        passed: sum.passed + before(line, "passed").unwrap_or(0),
        failed: sum.failed + before(line, "failed").unwrap_or(0),
    }))
}

/// The lines of `go test -v`, one for each test and each part of it.
fn go(text: &str) -> Option<Counts> {
    let count = |how: &str| {
        let lines = text.lines().map(str::trim_start);
        lines.filter(|line| line.starts_with(how)).count()
    };
    let sum = Counts {
        passed: count("--- PASS: "),
        failed: count("--- FAIL: "),
    };
    (sum != Counts::default()).then_some(sum)
}

/// `100% tests passed, 0 tests failed out of 19`.
fn ctest(text: &str) -> Option<Counts> {
    let (before, after) = text.lines().find_map(|line| {
        line.contains("% tests passed, ")
            .then(|| line.split_once(" tests failed out of "))?
    })?;
    let failed = before.rsplit(' ').next()?.parse().ok()?;
    let all: usize = after.trim().parse().ok()?;
    Some(Counts {
        passed: all.checked_sub(failed)?,
        failed,
    })
}

/// `Tests run: 19, Failures: 1, Errors: 0, Skipped: 2`, the last line of them, without a time.
fn maven(text: &str) -> Option<Counts> {
    let line = text
        .lines()
        .rev()
        .find(|line| line.contains("Tests run: ") && !line.contains("Time elapsed"))?;
    let count = |name: &str| after(line, name).unwrap_or(0);
    let failed = count("Failures: ") + count("Errors: ");
    Some(Counts {
        passed: count("Tests run: ").checked_sub(failed + count("Skipped: "))?,
        failed,
    })
}

/// `Tests:       3 failed, 2 skipped, 40 passed, 45 total`.
fn jest(text: &str) -> Option<Counts> {
    let of_tests = |line: &&str| line.starts_with("Tests:") && before(line, "total").is_some();
    let line = text.lines().rev().find(of_tests)?;
    Some(Counts {
        passed: before(line, "passed").unwrap_or(0),
        failed: before(line, "failed").unwrap_or(0),
    })
}

/// `  Total:     30`, then `  Passed:    28` and `  Skipped:   1`, each in its line.
fn uvu(text: &str) -> Option<Counts> {
    let count = |name: &str| {
        let line = text
            .lines()
            .rev()
            .find(|line| line.trim_start().starts_with(name))?;
        after(line, name)
    };
    let (all, passed, skipped) = (count("Total:")?, count("Passed:")?, count("Skipped:")?);
    Some(Counts {
        passed,
        failed: all.checked_sub(passed + skipped)?,
    })
}

/// `47 specs, 2 failures, 1 pending spec`.
fn jasmine(text: &str) -> Option<Counts> {
    let one = |line: &str, words: &[&str]| words.iter().find_map(|word| before(line, word));
    let (all, line) = text
        .lines()
        .rev()
        .find_map(|line| Some((one(line, &["specs", "spec"])?, line)))?;
    let failed = one(line, &["failures", "failure"])?;
    Some(Counts {
        passed: all.checked_sub(failed + before(line, "pending").unwrap_or(0))?,
        failed,
    })
}

fn pytest(text: &str) -> Option<Counts> {
    let line = text.lines().rev().find(|line| {
        line.contains(" in ")
            && ["passed", "failed", "error", "errors"]
                .iter()
                .any(|word| before(line, word).is_some())
    })?;
    let count = |word| before(line, word).unwrap_or(0);
    Some(Counts {
        // One that is expected to fail shows nothing, whether it does or not.
        passed: count("passed"),
        failed: count("failed") + count("error") + count("errors"),
    })
}

/// `Ran 817 tests in 2s`, then `OK (skipped=1)` or `FAILED (failures=3, errors=1)`.
fn unittest(text: &str) -> Option<Counts> {
    let line = text.lines().rev().find(|line| line.starts_with("Ran "))?;
    let all: usize = line.split(' ').nth(1)?.parse().ok()?;
    let last = text
        .lines()
        .rev()
        .find(|line| line.starts_with("OK") || line.starts_with("FAILED"))?;
    let count = |name: &str| -> usize {
        let after = last.split(&format!("{name}=")).nth(1);
        let digits = after.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        digits
            .flatten()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    };
    let failed = count("failures") + count("errors");
    Some(Counts {
        passed: all - failed - count("skipped"),
        failed,
    })
}

/// `# pass 7`, and `ℹ pass 7` where node prints for people.
fn tap(text: &str) -> Option<Counts> {
    let count = |word: &str| -> Option<usize> {
        let line = text.lines().rev().find(|line| {
            let said = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "));
            said.is_some_and(|said| said.starts_with(word))
        })?;
        line.split_whitespace().last()?.parse().ok()
    };
    // Those who do not count what is skipped have it among what passes.
    let skipped = || {
        let lines = text.lines().filter(|line| line.starts_with("ok "));
        lines.filter(|line| line.contains(" # SKIP")).count()
    };
    let among = if count("skip").is_some() {
        0
    } else {
        skipped()
    };
    Some(Counts {
        passed: count("pass")?.saturating_sub(among),
        failed: count("fail").unwrap_or(0),
    })
}

/// `12 passing`, `Tests  3 failed | 40 passed`, `7 tests passed`.
fn words(text: &str) -> Option<Counts> {
    let last = |words: &[&str]| {
        text.lines()
            .rev()
            .filter(|line| !line.contains("Test Files") && !line.contains("Test Suites"))
            .find_map(|line| words.iter().find_map(|word| before(line, word)))
    };
    Some(Counts {
        passed: last(&["passing", "passed"])?,
        failed: last(&["failing", "failed"]).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_runners_are_understood() {
        for (text, passed, failed) in [
            ("292 passed, 5 failed, 2 skipped in 0.41s", 292, 5),
            ("==== 214 passed, 16 xfailed in 2.58s ====", 214, 0),
            (
                "test result: ok. 3 passed; 0 failed; 1 ignored\ntest result: FAILED. 1 passed; 2 failed",
                4,
                2,
            ),
            (
                "Ran 10 tests in 2s\n\nFAILED (failures=1, errors=1, skipped=1)",
                7,
                2,
            ),
            ("# tests 8\n# pass  7\n# fail  1\n", 7, 1),
            ("ok 1 a\nok 2 b # SKIP\n# tests 2\n# pass  2\n", 1, 0),
            (
                "ok 1 a\nok 2 b # SKIP\n# tests 2\n# pass 1\n# skip 1\n",
                1,
                0,
            ),
            ("  1238 passing (3s)\n  2 failing\n", 1238, 2),
            (
                " Test Files  9 passed (9)\n      Tests  1 failed | 451 passed (452)",
                451,
                1,
            ),
            (
                "=== RUN   TestA\n--- FAIL: TestA (0.00s)\n    --- PASS: TestA/x (0.00s)\n\
                 --- SKIP: TestB (0.00s)\n--- PASS: TestC (0.00s)\nFAIL\n",
                2,
                1,
            ),
            ("100% tests passed, 0 tests failed out of 19\n", 19, 0),
            ("84% tests passed, 3 tests failed out of 19\n", 16, 3),
            (
                "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s\n\
                 [ERROR] Tests run: 19, Failures: 1, Errors: 2, Skipped: 3\n",
                13,
                3,
            ),
            (
                "Test Suites: 1 failed, 2 passed, 3 total\n\
                 Tests:       3 failed, 40 passed, 43 total\nSnapshots:   1 passed, 1 total\n",
                40,
                3,
            ),
            (
                "  Total:     30\n  Passed:    28\n  Skipped:   1\n  Duration:  8.54ms\n",
                28,
                1,
            ),
            ("  12 tests passed\n", 12, 0),
            ("  2 tests failed\n  1 test passed\n", 1, 2),
            ("47 specs, 2 failures, 1 pending spec\n", 44, 2),
            ("ℹ tests 8\nℹ pass 7\nℹ fail 1\n", 7, 1),
        ] {
            assert_eq!(read(text), Some(Counts { passed, failed }), "{text}");
        }
        assert_eq!(read("nothing was run"), None);
    }
}
