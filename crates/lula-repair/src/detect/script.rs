//! Node's runner, Jest, Vitest, Mocha and bun.

use globset::GlobBuilder;
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
    let count = files.len();
    if let Some((options, files)) = node_alone(project, &script, &files) {
        let count = files.len();
        let reason = format!("package.json's test script runs node; {count} test files");
        out.push(by_node(options, files, reason));
        return;
    }
    if !script.is_empty() {
        let named = KNOWN.iter().find(|(name, _)| starts(&script, name));
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

/// Whether a script starts this program, by its name or its path.
fn starts(script: &str, program: &str) -> bool {
    if program.contains(' ') {
        return script.contains(program);
    }
    script
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '"' | '\''))
        .filter_map(|word| word.rsplit('/').next())
        .any(|name| name.split('.').next() == Some(program))
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

/// What a test script hands to node, and the test files that it names, where the script starts node's own
/// runner, or a single file by node, and nothing else but checks of style. A script that builds first, or
/// names what is not there yet, is started as it is.
fn node_alone(
    project: &DetectionProject<'_>,
    script: &str,
    files: &[String],
) -> Option<(Vec<String>, Vec<String>)> {
    let mut commands = script
        .split(['&', ';', '|'])
        .map(str::trim)
        .filter(|command| !command.is_empty() && !is_check(command));
    let command = NodeCommand::of(commands.next()?)?;
    if commands.next().is_some() {
        return None;
    }
    if command.runs_tests {
        let named = command.named(project, files)?;
        return Some((command.options, named));
    }
    let [file] = command.operands.as_slice() else {
        return None;
    };
    let file = file.trim_start_matches("./");
    let places = [
        file.to_owned(),
        format!("{file}.js"),
        format!("{}/index.js", file.trim_end_matches('/')),
    ];
    let file = places.into_iter().find(|place| project.has(place))?;
    // Runners that are libraries tell more of their tests by themselves.
    let text = project.text(&file);
    let own = ["'tape", "\"tape", "'tap'", "\"tap\"", "'uvu'", "\"uvu\""];
    let plain = is_script_test(&file) && !own.iter().any(|name| text.contains(name));
    plain.then(|| (command.options, vec![file]))
}

/// `node`, or what makes it read TypeScript, with its words.
struct NodeCommand {
    /// Handed to node itself, beside `--test`.
    options: Vec<String>,
    runs_tests: bool,
    /// Files, folders and patterns.
    operands: Vec<String>,
}

impl NodeCommand {
    fn of(command: &str) -> Option<Self> {
        let mut words = command
            .split_whitespace()
            .map(|word| word.trim_matches(['\'', '"']))
            .skip_while(|word| word.contains('=') && !word.starts_with('-'))
            .skip_while(|word| matches!(*word, "cross-env" | "c8" | "nyc" | "npx"))
            .skip_while(|word| word.contains('=') && !word.starts_with('-'));
        let mut found = Self {
            options: match words.next()? {
                "node" => Vec::new(),
                "tsx" => vec!["--import=tsx".to_owned()],
                _ => return None,
            },
            runs_tests: false,
            operands: Vec::new(),
        };
        while let Some(word) = words.next() {
            if let Some((_, long)) = VALUED.iter().find(|(known, _)| *known == word) {
                found.options.push(format!("{long}={}", words.next()?));
            } else if word == "--test" {
                found.runs_tests = true;
            } else if word.starts_with("--test-reporter") {
                // One that is named apart from its option is no file.
                let _ = (!word.contains('=')).then(|| words.next());
            } else if word.starts_with('-') {
                let watches = word.starts_with("--watch");
                found.options.extend((!watches).then(|| word.to_owned()));
            } else {
                found.operands.push(word.to_owned());
            }
        }
        Some(found)
    }

    /// The test files that it names; nothing where a name fits no file that is there.
    fn named(&self, project: &DetectionProject<'_>, files: &[String]) -> Option<Vec<String>> {
        if self.operands.is_empty() {
            return Some(files.to_vec());
        }
        let mut named: Vec<String> = Vec::new();
        for operand in &self.operands {
            let operand = operand.trim_start_matches("./");
            let below = format!("{}/", operand.trim_end_matches('/'));
            let mut pattern = GlobBuilder::new(operand);
            let pattern = pattern.literal_separator(true).build().ok()?;
            let pattern = pattern.compile_matcher();
            let fits = |path: &&String| {
                let script = RepairLanguage::of(path).is_some_and(RepairLanguage::is_script);
                let below = path.starts_with(&below) && files.contains(*path);
                script && (*path == operand || pattern.is_match(path) || below)
            };
            let before = named.len();
            for path in project.files.iter().filter(fits) {
                if !named.contains(path) {
                    named.push(path.clone());
                }
            }
            if named.len() == before {
                return None;
            }
        }
        Some(named)
    }
}

/// What a command line gives to node's runner beside the tests; none where it does not start that runner.
pub(super) fn node_options(line: &str) -> Option<Vec<String>> {
    let mut commands = line.split("&&").filter_map(NodeCommand::of);
    let found = commands.find(|command| command.runs_tests)?;
    Some(found.options)
}

/// Whether a command looks at the form of code, or at what is published of it, and runs no test.
pub(crate) fn is_check(command: &str) -> bool {
    let mut words = command.split_whitespace();
    words.any(|word| CHECKERS.contains(&word) || word.contains("lint"))
}

/// Programs that look at the form of code, or at what is published of it, and run nothing of it.
const CHECKERS: &[&str] = &[
    "attw",
    "biome",
    "commitlint",
    "cspell",
    "dprint",
    "eslint",
    "evalmd",
    "flow",
    "knip",
    "oxlint",
    "prettier",
    "publint",
    "semistandard",
    "size-limit",
    "standard",
    "tsd",
    "tslint",
    "xo",
];

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
