//! What `CTest` and Deno print for a person, where they are started by something that cannot be told to
//! have them write a report.

use super::case;
use crate::report::{TestCase, TestOutcome};

/// `CTest`'s lines: `1/5 Test #1: adds .......***Failed    0.00 sec`.
pub fn ctest(text: &str) -> Vec<TestCase> {
    let mut found = Vec::new();
    for line in text.lines() {
        let Some((count, rest)) = line.trim_start().split_once(" Test ") else {
            continue;
        };
        let counted = count
            .split_once('/')
            .is_some_and(|(at, of)| [at, of].iter().all(|n| n.trim().parse::<u32>().is_ok()));
        let Some((_, rest)) = rest.split_once(": ").filter(|_| counted) else {
            continue;
        };
        let Some((name, end)) = rest.split_once(" .") else {
            continue;
        };
        let end = end.trim_start_matches('.').trim();
        let outcome = match end.strip_prefix("***") {
            None if end.starts_with("Passed") => TestOutcome::Passed,
            None => continue,
            Some(end) if end.starts_with("Skipped") || end.contains("(Disabled)") => {
                TestOutcome::Skipped
            }
            Some(end) if end.starts_with("Not Run") => TestOutcome::Broken,
            Some(_) => TestOutcome::Failed,
        };
        let message = if outcome == TestOutcome::Failed {
            end
        } else {
            ""
        };
        found.push(case(name.to_owned(), outcome, message));
    }
    found
}

/// Deno's lines: `running 3 tests from ./a_test.ts`, then `name ... ok (1ms)`, with steps indented below.
pub fn deno(text: &str) -> Vec<TestCase> {
    let text = plain(text);
    let mut found = Vec::new();
    let mut file: Option<&str> = None;
    // Names of the steps that are open, by how far they are indented.
    let mut open: Vec<(usize, &str)> = Vec::new();
    for line in text.lines() {
        if let Some((_, place)) = line
            .strip_prefix("running ")
            .and_then(|rest| rest.split_once(" from "))
        {
            file = Some(place.trim_start_matches("./"));
            open.clear();
            continue;
        }
        let (Some(file), Some((start, end))) = (file, line.rsplit_once(" ...")) else {
            continue;
        };
        let name = start.trim_start();
        let depth = start.len() - name.len();
        open.retain(|(at, _)| *at < depth);
        let outcome = match end.trim_start().split(' ').next() {
            Some("ok") => TestOutcome::Passed,
            Some("ignored") => TestOutcome::Skipped,
            Some("FAILED") => TestOutcome::Failed,
            Some("") => {
                open.push((depth, name));
                continue;
            }
            _ => continue,
        };
        let above = open.iter().map(|(_, name)| *name);
        let path: Vec<&str> = std::iter::once(file).chain(above).chain([name]).collect();
        found.push(case(path.join(" > "), outcome, ""));
    }
    found
}

/// A text without colours.
fn plain(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let codes = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        out.push_str(codes.strip_prefix('m').unwrap_or(codes));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tests: &[TestCase]) -> Vec<(&str, TestOutcome)> {
        let each = tests.iter().map(|test| (test.id.as_str(), test.outcome));
        each.collect()
    }

    #[test]
    fn ctest_is_read_line_by_line() {
        assert_eq!(
            told(&ctest(include_str!("../../tests/recorded/ctest.txt"))),
            [
                ("adds", TestOutcome::Failed),
                ("nothing", TestOutcome::Passed),
                ("later", TestOutcome::Skipped),
                ("gone", TestOutcome::Broken),
                ("off", TestOutcome::Skipped),
            ]
        );
    }

    #[test]
    fn deno_is_read_with_the_steps_of_its_tests() {
        assert_eq!(
            told(&deno(include_str!("../../tests/recorded/deno.txt"))),
            [
                ("sum_test.ts > adds", TestOutcome::Failed),
                ("sum_test.ts > nothing > inner", TestOutcome::Passed),
                ("sum_test.ts > nothing", TestOutcome::Passed),
                ("sum_test.ts > later", TestOutcome::Skipped),
            ]
        );
        assert_eq!(plain("\u{1b}[0m\u{1b}[32mok\u{1b}[0m"), "ok");
        assert!(deno("loading ... ok").is_empty());
    }
}
