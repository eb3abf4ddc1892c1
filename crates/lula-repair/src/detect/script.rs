//! Node's runner, Jest, Vitest, Mocha and bun.

use serde_json::Value;

use super::{DetectedTests, DetectionProject, TestFramework, found};
use crate::syntax::{RepairLanguage, is_test_path};

const KNOWN: &[(&str, TestFramework)] = &[
    ("vitest", TestFramework::Vitest),
    ("jest", TestFramework::Jest),
    ("mocha", TestFramework::Mocha),
    ("bun test", TestFramework::BunTest),
    ("deno test", TestFramework::DenoTest),
    ("deno task", TestFramework::DenoTest),
];

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    let files: Vec<String> = project
        .files
        .iter()
        .filter(|path| is_script_test(path))
        .cloned()
        .collect();
    let manifest: Value =
        serde_json::from_str(&project.text("package.json")).unwrap_or(Value::Null);
    let written = manifest["scripts"]["test"].as_str().unwrap_or_default();
    // What `npm init` writes is no test.
    let written = if written.contains("no test specified") {
        ""
    } else {
        written
    };
    let script = followed(&manifest, written, 3);
    let options = node_options(&script);
    let count = files.len();
    if options.is_some() || script.contains("node test") {
        let reason = format!("package.json's test script runs node; {count} test files");
        out.push(by_node(options.unwrap_or_default(), files, reason));
        return;
    }
    if !script.is_empty() {
        let named = KNOWN.iter().find(|(name, _)| script.contains(name));
        let framework = named.map_or(TestFramework::NodeScript, |(_, framework)| *framework);
        let argv: &[&str] = match manager(project, &manifest) {
            // `bun test` is its own runner, whatever the script says.
            "bun" => &["bun", "run", "test"],
            "pnpm" => &["pnpm", "test"],
            "yarn" => &["yarn", "test"],
            _ => &["npm", "test"],
        };
        let reason = match named {
            Some((name, _)) => format!("package.json's test script runs {name}"),
            None => format!("package.json's test script is `{written}`"),
        };
        out.push(found(framework, argv, files, reason));
        return;
    }
    let depends = |name: &str| {
        ["devDependencies", "dependencies"]
            .iter()
            .any(|key| manifest[key].get(name).is_some())
    };
    if let Some((name, framework)) = KNOWN.iter().find(|(name, _)| depends(name)) {
        let argv = ["npx", "--no-install", name];
        let reason = format!("package.json depends on {name}");
        out.push(found(*framework, &argv, files, reason));
        return;
    }
    let by_bun = manager(project, &manifest) == "bun" || project.has("bunfig.toml");
    let uses_bun = |path: &String| project.text(path).contains("bun:test");
    if !files.is_empty() && by_bun || files.iter().take(50).any(uses_bun) {
        let reason = format!("the package is bun's; {count} test files");
        out.push(found(
            TestFramework::BunTest,
            &["bun", "test"],
            files,
            reason,
        ));
        return;
    }
    let is_deno = project.has("deno.json") || project.has("deno.jsonc");
    if is_deno {
        return;
    }
    let uses_node = |path: &String| project.text(path).contains("node:test");
    if files.iter().take(50).any(uses_node) {
        let reason = format!("tests import node:test; {count} test files");
        out.push(by_node(Vec::new(), files, reason));
    } else if files.iter().any(|path| path.ends_with("js")) {
        let reason = "test files in JavaScript and no framework named".to_owned();
        out.push(by_node(Vec::new(), files, reason));
    }
}

fn by_node(options: Vec<String>, files: Vec<String>, reason: String) -> DetectedTests {
    let argv: Vec<&str> = ["node"]
        .into_iter()
        .chain(options.iter().map(String::as_str))
        .chain(["--test"])
        .collect();
    let mut tests = found(TestFramework::NodeTest, &argv, files, reason);
    tests.options = options;
    tests
}

/// A script with those that it starts in their places.
pub(crate) fn followed(manifest: &Value, script: &str, depth: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in script.split_whitespace() {
        let runs = words
            .iter()
            .rev()
            .find(|before| !before.starts_with('-'))
            .is_some_and(|before| matches!(before.as_str(), "run" | "pnpm" | "yarn" | "run-s"));
        match manifest["scripts"][word].as_str() {
            Some(inner) if runs && depth > 0 => words.push(followed(manifest, inner, depth - 1)),
            _ => words.push(word.to_owned()),
        }
    }
    words.join(" ")
}

/// The package manager that a package names, or that wrote its lock file.
fn manager(project: &DetectionProject<'_>, manifest: &Value) -> &'static str {
    let named = manifest["packageManager"].as_str().unwrap_or_default();
    [
        ("pnpm", "pnpm-lock.yaml"),
        ("yarn", "yarn.lock"),
        ("bun", "bun.lock"),
        ("bun", "bun.lockb"),
    ]
    .into_iter()
    .find(|(name, lock)| named.starts_with(name) || named.is_empty() && project.has(lock))
    .map_or("npm", |(name, _)| name)
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
    RepairLanguage::of(path).is_some_and(RepairLanguage::is_script)
        && is_test_path(path)
        && (name.contains("test")
            || name.contains("spec")
            || path.contains("__tests__/")
            || path.starts_with("test/"))
        && !name.contains(".config.")
        && !path.contains("fixtures/")
}
