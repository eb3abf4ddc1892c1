//! A test command that a person gave.

use super::{DetectedTests, ProjectDetection, TestFramework};

/// Understands a command line: a framework that we know keeps its options and files, anything else
/// is run as it is and judged by its exit code.
pub fn from_command(line: &str, detection: &ProjectDetection) -> DetectedTests {
    let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let words: Vec<&str> = argv
        .iter()
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .collect();
    let shell = line.contains(['|', ';', '&', '>', '<', '$', '`', '"', '\'', '*']);
    let framework = match words.as_slice() {
        _ if shell => TestFramework::Command,
        ["pytest" | "py.test", ..] => TestFramework::Pytest,
        [python, "-m", "pytest", ..] if python.starts_with("python") => TestFramework::Pytest,
        [python, "-m", "unittest", ..] if python.starts_with("python") => TestFramework::Unittest,
        [python, "manage.py", "test", ..] | [python, "runtests.py", ..]
            if python.starts_with("python") =>
        {
            TestFramework::Django
        }
        ["manage.py", "test", ..] | ["runtests.py", ..] => TestFramework::Django,
        ["cargo", "test", ..] => TestFramework::CargoTest,
        ["cargo", "nextest", "run" | "r", ..] => TestFramework::Nextest,
        ["go", "test", ..] => TestFramework::GoTest,
        ["ctest", ..] => TestFramework::Ctest,
        ["rspec", ..] | ["bundle", "exec", "rspec", ..] => TestFramework::Rspec,
        ["phpunit" | "pest", ..] | ["php", "phpunit" | "pest", ..] => TestFramework::Phpunit,
        ["bun", "test", ..] | ["npx" | "bunx", "bun", "test", ..] => TestFramework::BunTest,
        ["deno", "test" | "task", ..] => TestFramework::DenoTest,
        ["mvn" | "mvnw", ..] => TestFramework::Maven,
        ["gradle" | "gradlew", ..] => TestFramework::Gradle,
        ["node" | "tsx", ..] if words.contains(&"--test") => TestFramework::NodeTest,
        ["npx", "jest", ..] | ["jest", ..] => TestFramework::Jest,
        ["npx", "vitest", ..] | ["vitest", ..] => TestFramework::Vitest,
        ["npx", "mocha", ..] | ["mocha", ..] => TestFramework::Mocha,
        ["npm" | "pnpm" | "yarn", "test", ..] | ["npm", "t", ..] => detection
            .tests
            .iter()
            .map(|tests| tests.framework)
            .find(|framework| {
                matches!(
                    framework,
                    TestFramework::Jest
                        | TestFramework::Vitest
                        | TestFramework::Mocha
                        | TestFramework::NodeTest
                        | TestFramework::NodeScript
                )
            })
            .unwrap_or(TestFramework::Command),
        _ => TestFramework::Command,
    };
    let known = detection
        .tests
        .iter()
        .find(|tests| tests.framework == framework);
    let rest = words
        .iter()
        .position(|word| {
            matches!(
                *word,
                "pytest" | "py.test" | "unittest" | "--test" | "test" | "jest" | "vitest" | "mocha"
            )
        })
        .map_or(argv.len(), |at| at + 1);
    let given: Vec<String> = argv[rest.min(argv.len())..].to_vec();
    let is_file = |word: &String| {
        !word.starts_with('-') && (word.contains('.') || word.contains('/')) && !word.contains("::")
    };
    let mut files: Vec<String> = known.map(|tests| tests.files.clone()).unwrap_or_default();
    let named: Vec<String> = given
        .iter()
        .filter(|word| is_file(word))
        .map(|word| {
            word.trim_start_matches("./")
                .trim_end_matches('/')
                .to_owned()
        })
        .collect();
    if !named.is_empty() {
        let below: Vec<String> = files
            .iter()
            .filter(|file| {
                named
                    .iter()
                    .any(|name| *file == name || file.starts_with(&format!("{name}/")))
            })
            .cloned()
            .collect();
        files = if below.is_empty() { named } else { below };
    }
    // Node's own options stand before the word that starts its runner, or in the test script.
    let own = super::script::node_options(line).or_else(|| Some(known?.options.clone()));
    let options = own
        .filter(|_| framework == TestFramework::NodeTest)
        .unwrap_or(given)
        .into_iter()
        .filter(|word| {
            !is_file(word)
                && !matches!(word.as_str(), "-q" | "-v" | "-x" | "--verbose" | "discover")
        })
        .collect();
    DetectedTests {
        framework,
        argv: if framework == TestFramework::Command {
            vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()]
        } else {
            argv
        },
        files,
        options,
        // Where the person who gave it stands.
        folder: detection.folder.clone(),
        only: Vec::new(),
        results: framework.results(),
        reason: "the command that was given".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_framework_keeps_its_files_and_a_strange_command_runs_as_it_is() {
        let none = ProjectDetection {
            languages: Vec::new(),
            tests: Vec::new(),
            folder: String::new(),
            projects: Vec::new(),
        };
        let pytest = from_command("python3 -m pytest -q tests/test_a.py", &none);
        assert_eq!(
            (pytest.framework, pytest.files),
            (TestFramework::Pytest, vec!["tests/test_a.py".to_owned()])
        );
        let typed = from_command("node --import tsx --test test/a.test.ts", &none);
        assert_eq!(typed.framework, TestFramework::NodeTest);
        assert_eq!(typed.options, ["--import=tsx"]);
        assert_eq!(typed.files, ["test/a.test.ts"]);
        for (line, framework) in [
            ("python manage.py test shop", TestFramework::Django),
            ("cargo nextest run -p a", TestFramework::Nextest),
            ("go test -race ./...", TestFramework::GoTest),
            ("ctest --test-dir out", TestFramework::Ctest),
            ("bundle exec rspec spec/a_spec.rb", TestFramework::Rspec),
            (
                "vendor/bin/phpunit --testsuite unit",
                TestFramework::Phpunit,
            ),
            ("bun test", TestFramework::BunTest),
            ("deno task test", TestFramework::DenoTest),
            ("./mvnw verify", TestFramework::Maven),
            ("./gradlew check", TestFramework::Gradle),
        ] {
            let found = from_command(line, &none);
            assert_eq!(
                (found.framework, found.line()),
                (framework, line.to_owned())
            );
        }
        let strange = from_command("./run-tests.sh --all && echo ok", &none);
        assert_eq!(strange.framework, TestFramework::Command);
        assert_eq!(strange.argv[2], "./run-tests.sh --all && echo ok");
    }
}
