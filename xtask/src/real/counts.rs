//! Counts from what test runners print at their end, read without any of the product's own code.

use super::recipe::Counts;

/// The counts in a runner's closing lines; nothing where there are none.
pub(super) fn read(output: &str) -> Option<Counts> {
    let plain = without_colour(output);
    cargo(&plain)
        .or_else(|| pytest(&plain))
        .or_else(|| unittest(&plain))
        .or_else(|| tap(&plain))
        .or_else(|| words(&plain))
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
    words.get(at.checked_sub(1)?)?.parse().ok()
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

fn pytest(text: &str) -> Option<Counts> {
    let line = text.lines().rev().find(|line| {
        line.contains(" in ")
            && ["passed", "failed", "error", "errors"]
                .iter()
                .any(|word| before(line, word).is_some())
    })?;
    let count = |word| before(line, word).unwrap_or(0);
    Some(Counts {
        // Expected to fail, and did.
        passed: count("passed") + count("xfailed"),
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

fn tap(text: &str) -> Option<Counts> {
    let count = |word: &str| {
        let line = text
            .lines()
            .rev()
            .find(|line| line.starts_with(&format!("# {word}")))?;
        line.split_whitespace().last()?.parse().ok()
    };
    Some(Counts {
        passed: count("pass")?,
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
            ("==== 214 passed, 16 xfailed in 2.58s ====", 230, 0),
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
            ("  1238 passing (3s)\n  2 failing\n", 1238, 2),
            (
                " Test Files  9 passed (9)\n      Tests  1 failed | 451 passed (452)",
                451,
                1,
            ),
        ] {
            assert_eq!(read(text), Some(Counts { passed, failed }), "{text}");
        }
        assert_eq!(read("nothing was run"), None);
    }
}
