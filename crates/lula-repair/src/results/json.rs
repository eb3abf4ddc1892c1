//! JSON of Jest, Vitest, Mocha and `go test`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::case;
use crate::report::{Outcome, TestCase};

/// The JSON object in a text that may have noise around it.
fn object(text: &str) -> Option<Value> {
    let start = text.find('{')?;
    let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    stream.next()?.ok()
}

/// Jest's `--json` and Vitest's JSON reporter, which has the same shape.
pub fn jest(text: &str) -> Vec<TestCase> {
    let Some(report) = object(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for file in report["testResults"].as_array().into_iter().flatten() {
        let tests = file["assertionResults"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        if tests.is_empty() && file["status"] == "failed" {
            let name = file["name"].as_str().unwrap_or_default();
            found.push(case(
                name.to_owned(),
                Outcome::Broken,
                file["message"].as_str().unwrap_or_default(),
            ));
        }
        for test in tests {
            let outcome = match test["status"].as_str() {
                Some("passed") => Outcome::Passed,
                Some("failed") => Outcome::Failed,
                _ => Outcome::Skipped,
            };
            let message: Vec<&str> = test["failureMessages"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let name = test["fullName"].as_str().unwrap_or_default();
            found.push(case(name.to_owned(), outcome, &message.join("\n")));
        }
    }
    found
}

/// Mocha's JSON reporter.
pub fn mocha(text: &str) -> Vec<TestCase> {
    let Some(report) = object(text) else {
        return Vec::new();
    };
    let list = |key: &str, outcome: Outcome| -> Vec<TestCase> {
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
    let mut found = list("passes", Outcome::Passed);
    found.extend(list("failures", Outcome::Failed));
    found.extend(list("pending", Outcome::Skipped));
    found
}

/// `go test -json`: one event a line.
pub fn go(text: &str) -> Vec<TestCase> {
    let mut output: BTreeMap<String, String> = BTreeMap::new();
    let mut ended: BTreeMap<String, Outcome> = BTreeMap::new();
    for event in text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let Some(test) = event["Test"].as_str() else {
            continue;
        };
        let id = format!("{} {test}", event["Package"].as_str().unwrap_or_default());
        match event["Action"].as_str() {
            Some("output") => output
                .entry(id)
                .or_default()
                .push_str(event["Output"].as_str().unwrap_or_default()),
            Some("pass") => drop(ended.insert(id, Outcome::Passed)),
            Some("fail") => drop(ended.insert(id, Outcome::Failed)),
            Some("skip") => drop(ended.insert(id, Outcome::Skipped)),
            _ => {}
        }
    }
    ended
        .into_iter()
        .map(|(id, outcome)| {
            let message = if outcome == Outcome::Failed {
                output.get(&id).map_or("", String::as_str)
            } else {
                ""
            };
            case(id.clone(), outcome, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jest_and_mocha_and_go_are_read() {
        let text = r#"noise {"testResults":[{"name":"a","status":"failed","assertionResults":[{"fullName":"cart adds","status":"passed"},{"fullName":"cart takes","status":"failed","failureMessages":["no"]}]}]} more"#;
        let found = jest(text);
        assert_eq!(
            (found.len(), found[1].outcome, found[1].message.as_str()),
            (2, Outcome::Failed, "no")
        );
        let found = mocha(
            r#"{"passes":[{"fullTitle":"a b"}],"failures":[{"fullTitle":"a c","err":{"message":"m"}}]}"#,
        );
        assert_eq!(
            (found[0].outcome, found[1].message.as_str()),
            (Outcome::Passed, "m")
        );
        let found = go(
            "{\"Action\":\"output\",\"Package\":\"p\",\"Test\":\"T\",\"Output\":\"x\"}\n{\"Action\":\"fail\",\"Package\":\"p\",\"Test\":\"T\"}\n",
        );
        assert_eq!(
            (found[0].id.as_str(), found[0].message.as_str()),
            ("p T", "x")
        );
    }
}
