use super::*;

fn look(files: &[(&str, &str)]) -> ProjectDetection {
    let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
    detect(&names, &|path| {
        files
            .iter()
            .find(|(name, _)| *name == path)
            .map(|(_, text)| (*text).to_owned())
    })
}

fn first(files: &[(&str, &str)]) -> (TestFramework, String) {
    let found = look(files);
    (found.tests[0].framework, found.tests[0].reason.clone())
}

#[test]
fn pytest_is_told_from_unittest_by_what_the_tests_use() {
    let unittest = [
        ("a.py", ""),
        (
            "tests/test_a.py",
            "import unittest\nclass T(unittest.TestCase):\n    pass\n",
        ),
    ];
    assert_eq!(first(&unittest).0, TestFramework::Unittest);
    let pytest = [
        ("a.py", ""),
        (
            "tests/test_a.py",
            "import pytest\ndef test_x():\n    assert 1\n",
        ),
    ];
    assert_eq!(first(&pytest).0, TestFramework::Pytest);
    let configured = [
        ("a.py", ""),
        ("pytest.ini", "[pytest]"),
        (
            "tests/test_a.py",
            "import unittest\nclass T(unittest.TestCase): pass",
        ),
    ];
    let (framework, reason) = first(&configured);
    assert_eq!(framework, TestFramework::Pytest);
    assert!(reason.contains("pytest.ini"), "{reason}");
}

#[test]
fn script_frameworks_are_read_from_package_json() {
    for (manifest, framework) in [
        (r#"{"scripts":{"test":"jest"}}"#, TestFramework::Jest),
        (
            r#"{"scripts":{"test":"vitest run"}}"#,
            TestFramework::Vitest,
        ),
        (r#"{"scripts":{"test":"mocha"}}"#, TestFramework::Mocha),
        (
            r#"{"scripts":{"test":"node --test"}}"#,
            TestFramework::NodeTest,
        ),
        (r#"{"devDependencies":{"jest":"^29"}}"#, TestFramework::Jest),
    ] {
        assert_eq!(
            first(&[
                ("package.json", manifest),
                ("src/a.js", ""),
                ("test/a.test.js", "")
            ])
            .0,
            framework,
            "{manifest}"
        );
    }
}

#[test]
fn what_makes_node_read_typescript_is_kept() {
    for (script, options) in [
        ("node --import tsx --test", &["--import=tsx"][..]),
        ("tsx --test 'test/*.ts'", &["--import=tsx"]),
        (
            "eslint . && node -r ./setup.js --test --test-reporter=spec",
            &["--require=./setup.js"],
        ),
        (
            "node --experimental-strip-types --test",
            &["--experimental-strip-types"],
        ),
    ] {
        let manifest = format!(r#"{{"scripts":{{"test":"{script}"}}}}"#);
        let found = look(&[
            ("package.json", &manifest),
            ("src/a.ts", ""),
            ("test/a.test.ts", ""),
        ]);
        assert_eq!(
            found.tests[0].framework,
            TestFramework::NodeTest,
            "{script}"
        );
        assert_eq!(found.tests[0].options, options, "{script}");
        assert_eq!(found.tests[0].files, ["test/a.test.ts"]);
    }
}

#[test]
fn a_script_of_node_is_run_as_it_is_where_it_builds_first_or_names_what_is_not_there() {
    let found = |script: &str| {
        let manifest = format!(r#"{{"scripts":{{"test":"{script}"}}}}"#);
        let tests = look(&[
            ("package.json", &manifest),
            ("src/a.js", ""),
            ("test/a.test.js", ""),
            ("test/b.test.js", ""),
            ("test/more/c.test.js", ""),
            ("test/index.js", "require('./a.test.js');"),
            ("test/tape.js", "const test = require('tape');"),
        ])
        .tests;
        (tests[0].framework, tests[0].files.clone())
    };
    for script in [
        "npm run compile && node --enable-source-maps --test ./lib/test/*.test.js",
        "node --test ./lib/test/*.test.js",
        "tsc && node --test",
        // Another runner's page, another program, a library that is a runner.
        "node tests/test.js --mocha-headless-chrome",
        "ts-node test/a.test.js",
        "node test/tape.js",
        "node test --all && node examples",
    ] {
        assert_eq!(found(script).0, TestFramework::NodeScript, "{script}");
    }
    for (script, files) in [
        (
            "node --test test/*.test.js",
            &["test/a.test.js", "test/b.test.js"][..],
        ),
        ("node --test 'test/more'", &["test/more/c.test.js"]),
        ("c8 node --test test/a.test.js", &["test/a.test.js"]),
        ("node test", &["test/index.js"]),
        ("xo && node ./test/a.test.js", &["test/a.test.js"]),
    ] {
        let (framework, named) = found(script);
        assert_eq!(framework, TestFramework::NodeTest, "{script}");
        assert_eq!(named, files, "{script}");
    }
}

#[test]
fn other_ecosystems_are_known_by_their_manifests() {
    assert_eq!(
        first(&[("Cargo.toml", "[package]"), ("src/lib.rs", "")]).0,
        TestFramework::CargoTest
    );
    assert_eq!(
        first(&[("go.mod", "module x"), ("a_test.go", "")]).0,
        TestFramework::GoTest
    );
    assert_eq!(first(&[("pom.xml", "")]).0, TestFramework::Maven);
    assert_eq!(
        first(&[("build.gradle", ""), ("gradlew", "")]).0,
        TestFramework::Gradle
    );
    assert_eq!(
        first(&[("Makefile", "all:\n\tcc\ntest: all\n\t./run\n")]).0,
        TestFramework::Make
    );
}

#[test]
fn each_runner_is_started_as_its_project_starts_it() {
    let line = |files: &[(&str, &str)]| {
        let found = look(files).tests.swap_remove(0);
        (found.framework, found.line())
    };
    let expect = |files: &[(&str, &str)], framework: TestFramework, wanted: &str| {
        assert_eq!(line(files), (framework, wanted.to_owned()));
    };
    let manage = ("manage.py", "from django.core.management import x");
    expect(
        &[
            manage,
            ("shop/tests.py", "from django.test import TestCase"),
        ],
        TestFramework::Django,
        "python3 manage.py test",
    );
    expect(
        &[
            ("runtests.py", "import django"),
            ("tests/test_a.py", "import unittest"),
        ],
        TestFramework::Django,
        "python3 runtests.py",
    );
    expect(
        &[
            manage,
            ("pytest.ini", "[pytest]\nDJANGO_SETTINGS_MODULE = a"),
            ("shop/tests/test_a.py", ""),
        ],
        TestFramework::Pytest,
        "python3 -m pytest",
    );
    expect(
        &[("go.mod", ""), ("a.go", "")],
        TestFramework::GoTest,
        "go test ./...",
    );
    expect(
        &[("Gemfile", ""), ("spec/a_spec.rb", "")],
        TestFramework::Rspec,
        "bundle exec rspec",
    );
    expect(&[("spec/a_spec.rb", "")], TestFramework::Rspec, "rspec");
    expect(
        &[(
            "composer.json",
            r#"{"require-dev":{"phpunit/phpunit":"^9"}}"#,
        )],
        TestFramework::Phpunit,
        "vendor/bin/phpunit",
    );
    expect(
        &[(
            "composer.json",
            r#"{"scripts":{"test":["phpcs","phpunit"]}}"#,
        )],
        TestFramework::Phpunit,
        "composer test",
    );
    expect(
        &[("phpunit.xml.dist", "")],
        TestFramework::Phpunit,
        "phpunit",
    );
    expect(
        &[("CMakeLists.txt", "enable_testing ()"), ("a.c", "")],
        TestFramework::Ctest,
        "sh -c 'cmake -S . -B build && cmake --build build && ctest --test-dir build'",
    );
    expect(
        &[("deno.json", r#"{"tasks": {"test": "deno test -A"}}"#)],
        TestFramework::DenoTest,
        "deno task test",
    );
    expect(
        &[("deno.jsonc", "{}")],
        TestFramework::DenoTest,
        "deno test -A",
    );
    expect(
        &[
            ("package.json", r#"{"scripts":{"test":"bun test"}}"#),
            ("bun.lock", ""),
        ],
        TestFramework::BunTest,
        "bun run test",
    );
    expect(
        &[("package.json", "{}"), ("bun.lock", ""), ("a.test.ts", "")],
        TestFramework::BunTest,
        "bun test",
    );
}

#[test]
fn nextest_stands_beside_what_a_repair_is_quickest_with() {
    let found = look(&[("Cargo.toml", ""), (".config/nextest.toml", "")]);
    let lines: Vec<String> = found.tests.iter().map(DetectedTests::line).collect();
    assert_eq!(lines, ["cargo test", "cargo nextest run"]);
}

#[test]
fn what_others_wrote_is_not_the_project() {
    let found = look(&[("node_modules/x/test/a.test.js", ""), ("a.py", "")]);
    assert_eq!(found.languages.len(), 1);
    assert!(found.tests.is_empty());
}
