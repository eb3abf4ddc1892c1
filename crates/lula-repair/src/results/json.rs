//! JSON of Jest, Vitest and Mocha.

use serde_json::Value;

use super::case;
use crate::report::{TestCase, TestOutcome};

/// The JSON object in a text that may have noise around it.
fn object(text: &str) -> Option<Value> {
    let start = text.find('{')?;
    let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    stream.next()?.ok()
}

/// Jest's `--json` and Vitest's JSON reporter, which has the same shape. The name of the test file
/// comes first in every id.
pub fn jest(text: &str) -> Vec<TestCase> {
    let Some(report) = object(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for file in report["testResults"].as_array().into_iter().flatten() {
        let name = file["name"].as_str().unwrap_or_default();
        let tests = file["assertionResults"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        if tests.is_empty() && file["status"] == "failed" {
            found.push(case(
                name.to_owned(),
                TestOutcome::Broken,
                file["message"].as_str().unwrap_or_default(),
            ));
        }
        for test in tests {
            let outcome = match test["status"].as_str() {
                Some("passed") => TestOutcome::Passed,
                Some("failed") => TestOutcome::Failed,
                _ => TestOutcome::Skipped,
            };
            let message: Vec<&str> = test["failureMessages"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let id = format!("{name} > {}", test["fullName"].as_str().unwrap_or_default());
            found.push(case(id, outcome, &message.join("\n")));
        }
    }
    found
}

/// Reads what Mocha's JSON reporter writes.
pub fn mocha(text: &str) -> Vec<TestCase> {
    let Some(report) = object(text) else {
        return Vec::new();
    };
    let list = |key: &str, outcome: TestOutcome| -> Vec<TestCase> {
        report[key]
            .as_array()
            .into_iter()
            .flatten()
            .map(|test| {
                let message = format!(
                    "{}\n{}",
                    test["err"]["message"].as_str().unwrap_or_default(),
                    test["err"]["stack"].as_str().unwrap_or_default()
                );
                case(
                    test["fullTitle"].as_str().unwrap_or_default().to_owned(),
                    outcome,
                    message.trim(),
                )
            })
            .collect()
    };
    let mut found = list("passes", TestOutcome::Passed);
    found.extend(list("failures", TestOutcome::Failed));
    found.extend(list("pending", TestOutcome::Skipped));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tests: &[TestCase]) -> Vec<(&str, TestOutcome)> {
        tests
            .iter()
            .map(|test| (test.id.as_str(), test.outcome))
            .collect()
    }

    #[test]
    fn jest_names_the_file_of_every_test() {
        let found = jest(include_str!("../../tests/recorded/jest.json"));
        let mut seen = told(&found);
        seen.sort_by_key(|(id, _)| *id);
        assert_eq!(
            seen,
            [
                ("/project/test/broken.test.js", TestOutcome::Broken),
                ("/project/test/sum.test.js > sum adds", TestOutcome::Failed),
                (
                    "/project/test/sum.test.js > sum doubles",
                    TestOutcome::Passed
                ),
                (
                    "/project/test/sum.test.js > sum later",
                    TestOutcome::Skipped
                ),
            ]
        );
        let adds = found.iter().find(|test| test.id.ends_with("adds"));
        assert!(adds.is_some_and(|test| test.message.contains("sum.test.js:4")));
    }

    #[test]
    fn vitest_has_the_same_shape() {
        let found = jest(include_str!("../../tests/recorded/vitest.json"));
        assert_eq!(
            told(&found),
            [
                ("/project/tv/sum.spec.mjs > sum adds", TestOutcome::Failed),
                (
                    "/project/tv/sum.spec.mjs > sum doubles",
                    TestOutcome::Passed
                ),
                ("/project/tv/sum.spec.mjs > sum later", TestOutcome::Skipped),
            ]
        );
        assert!(found[0].message.contains("expected -1 to be 5"));
    }

    #[test]
    fn mocha_keeps_what_was_thrown() {
        let found = mocha(include_str!("../../tests/recorded/mocha.json"));
        assert_eq!(
            told(&found),
            [
                ("sum doubles", TestOutcome::Passed),
                ("sum adds", TestOutcome::Failed),
                ("sum later", TestOutcome::Skipped),
            ]
        );
        assert!(found[1].message.contains("sum.test.js:4"));
    }

    #[test]
    fn noise_around_a_report_is_passed_over() {
        let found = jest("> test\n{\"testResults\":[]} more");
        assert!(found.is_empty());
        assert!(jest("nothing here").is_empty());
    }
}
