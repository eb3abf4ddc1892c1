//! Node's runner, Jest, Vitest and Mocha.

use serde_json::Value;

use super::{Framework, Project, TestsFound, found};
use crate::syntax::{Language, is_test_path};

const KNOWN: &[(&str, Framework)] = &[
    ("vitest", Framework::Vitest),
    ("jest", Framework::Jest),
    ("mocha", Framework::Mocha),
];

pub(super) fn look(project: &Project<'_>, out: &mut Vec<TestsFound>) {
    let files: Vec<String> = project
        .files
        .iter()
        .filter(|path| is_script_test(path))
        .cloned()
        .collect();
    let manifest: Value =
        serde_json::from_str(&project.text("package.json")).unwrap_or(Value::Null);
    let script = manifest["scripts"]["test"].as_str().unwrap_or_default();
    let mut known = false;
    for (name, framework) in KNOWN {
        let depends = ["devDependencies", "dependencies"]
            .iter()
            .any(|key| manifest[key].get(name).is_some());
        let reason = if script.contains(name) {
            format!("package.json's test script runs {name}")
        } else if depends && script.is_empty() {
            format!("package.json depends on {name}")
        } else {
            continue;
        };
        known = true;
        out.push(found(
            *framework,
            &["npx", "--no-install", name],
            files.clone(),
            reason,
        ));
    }
    let uses_node = |path: &String| project.text(path).contains("node:test");
    let options = node_options(script);
    if options.is_some()
        || script.contains("node test")
        || !known && files.iter().take(50).any(uses_node)
    {
        let reason = if options.is_some() || script.contains("node") {
            "package.json's test script runs node"
        } else {
            "tests import node:test"
        };
        let options = options.unwrap_or_default();
        let argv: Vec<&str> = ["node"]
            .into_iter()
            .chain(options.iter().map(String::as_str))
            .chain(["--test"])
            .collect();
        let count = files.len();
        let reason = format!("{reason}; {count} test files");
        let mut tests = found(Framework::NodeTest, &argv, files, reason);
        tests.options = options;
        out.push(tests);
    } else if !known && files.iter().any(|path| path.ends_with("js")) {
        out.push(found(
            Framework::NodeTest,
            &["node", "--test"],
            files,
            "test files in JavaScript and no framework named",
        ));
    }
}

/// Options of node that take a value of their own.
const VALUED: &[(&str, &str)] = &[
    ("--import", "--import"),
    ("--require", "--require"),
    ("-r", "--require"),
    ("--loader", "--loader"),
    ("--experimental-loader", "--experimental-loader"),
    ("--conditions", "--conditions"),
    ("-C", "--conditions"),
    ("--env-file", "--env-file"),
];

/// What a test script hands to node's runner beside the tests, as where it makes node read
/// TypeScript; none where it does not start that runner.
pub(super) fn node_options(script: &str) -> Option<Vec<String>> {
    let command = script
        .split("&&")
        .find(|command| command.split_whitespace().any(|word| word == "--test"))?;
    let mut words = command
        .split_whitespace()
        .skip_while(|word| !matches!(*word, "node" | "tsx"));
    let mut options = match words.next()? {
        "tsx" => vec!["--import=tsx".to_owned()],
        _ => Vec::new(),
    };
    while let Some(word) = words.next() {
        if let Some((_, long)) = VALUED.iter().find(|(known, _)| *known == word) {
            options.push(format!("{long}={}", words.next()?));
        } else if word.starts_with("--")
            && word != "--test"
            && !word.starts_with("--test-reporter")
            && !word.starts_with("--watch")
        {
            options.push(word.to_owned());
        }
    }
    Some(options)
}

fn is_script_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    Language::of(path).is_some_and(Language::is_script)
        && is_test_path(path)
        && (name.contains("test")
            || name.contains("spec")
            || path.contains("__tests__/")
            || path.starts_with("test/"))
        && !name.contains(".config.")
        && !path.contains("fixtures/")
}
