//! The Test Anything Protocol, with the nested tests of Node's runner.

use super::case;
use crate::report::{TestCase, TestOutcome};

/// Every test that has no tests inside it; its id is the path of names to it, joined by ` > `.
pub fn tap(text: &str) -> Vec<TestCase> {
    let mut found = Vec::new();
    // Names of the open parents, known from their `# Subtest:` lines.
    let mut open: Vec<(usize, String, usize)> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let body = line.trim_start();
        let depth = line.len() - body.len();
        if let Some(name) = body.strip_prefix("# Subtest: ") {
            open.retain(|(at, _, _)| *at < depth);
            open.push((depth, name.to_owned(), found.len()));
            continue;
        }
        let Some((passed, rest)) = result(body) else {
            continue;
        };
        let (name, directive) = split_directive(rest);
        let mut message = String::new();
        if lines.peek().is_some_and(|next| next.trim() == "---") {
            lines.next();
            for line in lines.by_ref() {
                if line.trim() == "..." {
                    break;
                }
                message.push_str(line);
                message.push('\n');
            }
        }
        let own = open
            .iter()
            .rposition(|(at, open, _)| *at == depth && open.trim() == name.trim());
        let leaf = own.is_none_or(|own| open[own].2 == found.len());
        open.truncate(own.unwrap_or(open.len()));
        open.retain(|(at, _, _)| *at < depth);
        if leaf && !(message.contains("type: 'suite'") && passed) {
            let parents: Vec<&str> = open.iter().map(|(_, name, _)| name.as_str()).collect();
            let id = parents
                .iter()
                .copied()
                .chain([name])
                .map(unescaped)
                .collect::<Vec<_>>()
                .join(" > ");
            let outcome = match directive {
                // A test that is to do may fail: what it does counts nowhere.
                Some("skip" | "todo") => TestOutcome::Skipped,
                _ if passed => TestOutcome::Passed,
                _ => TestOutcome::Failed,
            };
            found.push(case(id, outcome, &message));
        }
    }
    found
}

fn result(body: &str) -> Option<(bool, &str)> {
    let (passed, rest) = match body.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, body.strip_prefix("ok")?),
    };
    let rest = rest.strip_prefix(' ')?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.trim_start().trim_start_matches("- ");
    Some((passed, without_time(rest)))
}

/// A name without the time that node-tap writes behind it, which is another one in each run.
fn without_time(rest: &str) -> &str {
    let Some((name, time)) = rest.rsplit_once(" # time=") else {
        return rest;
    };
    let time = time.trim_end_matches(" {");
    let number = time.strip_suffix("ms").unwrap_or(time);
    if number.parse::<f64>().is_ok() {
        name
    } else {
        rest
    }
}

/// A name as the test has it: writers put a backslash before what would begin a directive.
fn unescaped(name: &str) -> String {
    let mut text = String::new();
    let mut escaped = false;
    for letter in name.chars() {
        let begins = letter == '\\' && !escaped;
        if escaped && !matches!(letter, '#' | '\\') {
            text.push('\\');
        }
        if !begins {
            text.push(letter);
        }
        escaped = begins;
    }
    if escaped {
        text.push('\\');
    }
    text
}

fn split_directive(rest: &str) -> (&str, Option<&'static str>) {
    // A test without a name starts with its directive.
    let split = rest
        .strip_prefix("# ")
        .map(|word| ("", word))
        .or_else(|| rest.rsplit_once(" # "));
    match split {
        Some((name, word)) if word.to_ascii_lowercase().starts_with("skip") => (name, Some("skip")),
        Some((name, word)) if word.to_ascii_lowercase().starts_with("todo") => (name, Some("todo")),
        _ => (rest, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_as_the_test_has_it() {
        let text = "ok 1 - reads \\#1 and C:\\\\dir \\d\nnot ok 2 - later # TODO\n";
        let told: Vec<_> = tap(text).into_iter().map(|t| (t.id, t.outcome)).collect();
        let expected = [
            ("reads #1 and C:\\dir \\d", TestOutcome::Passed),
            ("later", TestOutcome::Skipped),
        ];
        assert_eq!(told, expected.map(|(id, outcome)| (id.to_owned(), outcome)));
    }

    #[test]
    fn the_time_that_node_tap_writes_behind_a_name_is_no_part_of_it() {
        let text = "# Subtest: test/a.js\n    # Subtest: adds\n        ok 1 - is three\n        1..1\n    ok 1 - adds # time=4.2ms\n    1..1\nok 1 - test/a.js # time=311.02ms\n\nnot ok 2 - counts # time=soon\n1..2\n";
        let told: Vec<_> = tap(text).into_iter().map(|test| test.id).collect();
        assert_eq!(told, ["test/a.js > adds > is three", "counts # time=soon"]);
    }

    #[test]
    fn what_perl_writes_is_read() {
        let found: Vec<_> = tap(include_str!("../../tests/recorded/perl.tap"))
            .into_iter()
            .map(|test| (test.id, test.outcome))
            .collect();
        assert_eq!(found[0], ("adds".to_owned(), TestOutcome::Passed));
        assert_eq!(found[1], ("takes".to_owned(), TestOutcome::Failed));
        assert_eq!(found[2].1, TestOutcome::Skipped);
    }

    #[test]
    fn nested_tests_are_named_by_their_path() {
        let text = "TAP version 13\n# Subtest: cart\n    # Subtest: adds\n    ok 1 - adds\n      ---\n      duration_ms: 1\n      ...\n    # Subtest: takes\n    not ok 2 - takes\n      ---\n      error: 'no'\n      ...\n    1..2\nnot ok 1 - cart\n  ---\n  type: 'suite'\n  ...\n# Subtest: alone\nok 2 - alone # SKIP\n1..2\n";
        let found: Vec<_> = tap(text)
            .into_iter()
            .map(|test| (test.id, test.outcome))
            .collect();
        assert_eq!(
            found,
            [
                ("cart > adds".to_owned(), TestOutcome::Passed),
                ("cart > takes".to_owned(), TestOutcome::Failed),
                ("alone".to_owned(), TestOutcome::Skipped)
            ]
        );
    }
}
