//! The events of `go test -json`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::case;
use crate::report::{TestCase, TestOutcome};

/// One event a line. A package that fails without a test that does could not be built, or ended
/// outside of its tests: it stands for itself.
pub fn go(lines: &str) -> Vec<TestCase> {
    let mut output: BTreeMap<String, String> = BTreeMap::new();
    let mut ended: BTreeMap<String, TestOutcome> = BTreeMap::new();
    let mut broken: Vec<String> = Vec::new();
    for line in lines.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            // Go before 1.24 says so in plain text: `FAIL<tab>package [build failed]`.
            broken.extend(unbuilt(line));
            continue;
        };
        let package = event["Package"].as_str().unwrap_or_default();
        let said = event["Output"].as_str().unwrap_or_default();
        if event["Action"] == "build-output" {
            let path = event["ImportPath"].as_str().unwrap_or_default();
            let package = path.split(' ').next().unwrap_or(path);
            output.entry(package.to_owned()).or_default().push_str(said);
            continue;
        }
        let Some(name) = event["Test"].as_str() else {
            match event["Action"].as_str() {
                Some("output") => output.entry(package.to_owned()).or_default().push_str(said),
                Some("fail") => broken.push(package.to_owned()),
                _ => {}
            }
            continue;
        };
        let id = format!("{package} {name}");
        match event["Action"].as_str() {
            Some("run") => drop(ended.insert(id, TestOutcome::Broken)),
            Some("output") => output.entry(id).or_default().push_str(said),
            Some("pass") => drop(ended.insert(id, TestOutcome::Passed)),
            Some("fail") => drop(ended.insert(id, TestOutcome::Failed)),
            Some("skip") => drop(ended.insert(id, TestOutcome::Skipped)),
            _ => {}
        }
    }
    broken.sort();
    broken.dedup();
    for package in broken {
        let start = format!("{package} ");
        let fails = |(id, outcome): (&String, &TestOutcome)| {
            id.starts_with(&start) && matches!(outcome, TestOutcome::Failed | TestOutcome::Broken)
        };
        if !ended.iter().any(fails) {
            ended.insert(package, TestOutcome::Broken);
        }
    }
    ended
        .into_iter()
        .map(|(id, outcome)| {
            let fails = matches!(outcome, TestOutcome::Failed | TestOutcome::Broken);
            let message = output.get(&id).filter(|_| fails);
            case(id.clone(), outcome, message.map_or("", String::as_str))
        })
        .collect()
}

/// The package of a line that says that it could not be built.
fn unbuilt(line: &str) -> Option<String> {
    let (package, why) = line.strip_prefix("FAIL\t")?.split_once(" [")?;
    why.ends_with("failed]").then(|| package.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tests: &[TestCase]) -> Vec<(&str, TestOutcome)> {
        let each = tests.iter().map(|test| (test.id.as_str(), test.outcome));
        each.collect()
    }

    #[test]
    fn each_test_is_told_with_its_package() {
        let found = go(include_str!("../../tests/recorded/go.jsonl"));
        assert_eq!(
            told(&found),
            [
                ("example.com/sum TestAdds", TestOutcome::Failed),
                ("example.com/sum TestDoubles", TestOutcome::Passed),
                ("example.com/sum TestDoubles/zero", TestOutcome::Passed),
                ("example.com/sum TestLater", TestOutcome::Skipped),
            ]
        );
        assert!(found[0].message.contains("sum_test.go:7"));
    }

    #[test]
    fn a_package_that_cannot_be_built_stands_for_itself() {
        let found = go(include_str!("../../tests/recorded/go-broken.jsonl"));
        assert_eq!(
            told(&found),
            [
                ("example.com/shop TestFine", TestOutcome::Passed),
                ("example.com/shop/bad", TestOutcome::Broken),
                ("example.com/shop/sub TestSub", TestOutcome::Failed),
            ]
        );
        assert!(found[2].message.contains("panic: no"));
    }

    #[test]
    fn later_versions_say_what_the_compiler_said() {
        let text = r#"{"ImportPath":"example.com/shop/bad [example.com/shop/bad.test]","Action":"build-output","Output":"bad/b_test.go:3:30: undefined: x\n"}
{"ImportPath":"example.com/shop/bad [example.com/shop/bad.test]","Action":"build-fail"}
{"Action":"start","Package":"example.com/shop/bad"}
{"Action":"output","Package":"example.com/shop/bad","Output":"FAIL\texample.com/shop/bad [build failed]\n"}
{"Action":"fail","Package":"example.com/shop/bad","Elapsed":0,"FailedBuild":"example.com/shop/bad [example.com/shop/bad.test]"}"#;
        let found = go(text);
        assert_eq!(
            told(&found),
            [("example.com/shop/bad", TestOutcome::Broken)]
        );
        assert!(found[0].message.contains("undefined: x"));
    }
}
