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
    if script.contains("node --test")
        || script.contains("node test")
        || !known && files.iter().take(50).any(uses_node)
    {
        let reason = if script.contains("node") {
            "package.json's test script runs node"
        } else {
            "tests import node:test"
        };
        let count = files.len();
        out.push(found(
            Framework::NodeTest,
            &["node", "--test"],
            files,
            format!("{reason}; {count} test files"),
        ));
    } else if !known && files.iter().any(|path| path.ends_with("js")) {
        out.push(found(
            Framework::NodeTest,
            &["node", "--test"],
            files,
            "test files in JavaScript and no framework named",
        ));
    }
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
