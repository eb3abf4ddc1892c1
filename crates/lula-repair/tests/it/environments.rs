//! What tests are run in: told from what they say, before anything is searched.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use lula_repair::{
    BrokenEnvironment, ForkCommand, ForkSource, RepairError, RepairOutcome, TestExamination,
    TestOutcome, TestSelection, examine,
};
use tempfile::TempDir;

use crate::unsandboxed::UnsandboxedGround;
use crate::{CART, mend, project};

const TEST: &str = "import pytest\nfrom cart import total\n\n\ndef test_limit():\n    assert total([1, 5, 9], 5) == 6\n\n\ndef test_nothing():\n    assert total([], 5) == 0\n";

fn look(folder: &TempDir, within: &str) -> Result<TestExamination, RepairError> {
    let ground = UnsandboxedGround::new(folder.path());
    let wanted = TestSelection {
        command: None,
        folder: within.to_owned(),
    };
    examine(ground.fork()?.as_mut(), &wanted, Duration::from_mins(1))
}

fn broken(folder: &TempDir) -> BrokenEnvironment {
    match look(folder, "") {
        Err(RepairError::EnvironmentBroken(broken)) => *broken,
        other => panic!("{other:?}"),
    }
}

fn program(folder: &TempDir, path: &str, text: &str) {
    let path = folder.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_interpreter_of_the_virtual_environment_is_used_and_named() {
    let folder = project(&[("cart.py", CART), ("test_cart.py", TEST)]);
    program(
        &folder,
        ".venv/bin/python3",
        "#!/bin/sh\nPATH=\"${PATH#*:}\" IN_VENV=1 exec python3 \"$@\"\n",
    );
    std::fs::write(
        folder.path().join("test_venv.py"),
        "import os\nimport pytest\n\n\ndef test_venv():\n    assert os.environ['IN_VENV'] == '1'\n",
    )
    .unwrap();
    let seen = look(&folder, "").unwrap();
    assert_eq!(seen.tests.line(), "python3 -m pytest");
    assert!(seen.interpreter.unwrap().starts_with("Python 3."));
    assert_eq!(seen.failing, ["test_cart.py::test_limit"]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

#[test]
fn a_framework_that_is_not_installed_is_named_with_its_remedy() {
    let folder = project(&[
        ("cart.py", CART),
        ("test_cart.py", TEST),
        (
            "pyproject.toml",
            "[project]\nname = \"cart\"\n\n[project.optional-dependencies]\ntest = [\"pytest\"]\n",
        ),
    ]);
    // An interpreter that finds nothing but what it came with.
    program(
        &folder,
        ".venv/bin/python3",
        "#!/bin/sh\nPATH=\"${PATH#*:}\" exec python3 -S \"$@\"\n",
    );
    let broken = broken(&folder);
    assert_eq!(broken.missing, ["pytest"]);
    assert_eq!(broken.command, "python3 -m pytest");
    assert_eq!(
        broken.remedy.as_deref(),
        Some("python3 -m pip install -e '.[test]'")
    );
    assert!(broken.interpreter.unwrap().starts_with("Python 3."));
}

#[test]
fn a_missing_dependency_is_no_failing_test() {
    let folder = project(&[
        ("cart.py", CART),
        (
            "tests/test_a.py",
            "import pytest\nimport no_such_library_here\n\n\ndef test_x():\n    pass\n",
        ),
        ("requirements-dev.txt", "no_such_library_here\n"),
    ]);
    let broken = broken(&folder);
    assert_eq!(broken.missing, ["no_such_library_here"]);
    assert_eq!(
        broken.remedy.as_deref(),
        Some("python3 -m pip install -r requirements-dev.txt")
    );
}

#[test]
fn an_option_of_a_plugin_that_is_not_there_names_the_plugin() {
    let folder = project(&[
        ("cart.py", CART),
        ("test_cart.py", TEST),
        ("pytest.ini", "[pytest]\naddopts = --flake8\n"),
    ]);
    assert_eq!(broken(&folder).missing, ["pytest-flake8"]);
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure_and_the_others_count() {
    let folder = project(&[
        ("cart.py", CART),
        ("test_cart.py", TEST),
        ("wrong.py", "def f(:\n"),
        (
            "test_wrong.py",
            "import pytest\nimport wrong\n\n\ndef test_x():\n    pass\n",
        ),
    ]);
    let seen = look(&folder, "").unwrap();
    assert_eq!(seen.failing, ["test_wrong.py", "test_cart.py::test_limit"]);
    assert_eq!(seen.passing, ["test_cart.py::test_nothing"]);
}

#[test]
fn code_that_comes_from_elsewhere_is_not_believed() {
    let folder = project(&[
        ("src/cart/__init__.py", CART),
        ("tests/test_cart.py", TEST),
        (
            "conftest.py",
            "import sys\nsys.path.insert(0, 'site-packages')\n",
        ),
        ("site-packages/cart/__init__.py", CART),
    ]);
    let broken = broken(&folder);
    assert!(broken.what.contains("site-packages/cart"), "{broken:?}");
}

#[test]
fn the_projects_configuration_decides_which_tests_there_are() {
    let folder = project(&[
        ("cart.py", CART),
        ("unit/test_cart.py", TEST),
        (
            "other/test_other.py",
            "def test_other():\n    assert False\n",
        ),
        ("pytest.ini", "[pytest]\ntestpaths = unit\npythonpath = .\n"),
    ]);
    let seen = look(&folder, "").unwrap();
    assert_eq!(seen.failing, ["unit/test_cart.py::test_limit"]);
}

#[test]
fn a_slow_test_passes() {
    let folder = project(&[(
        "test_slow.py",
        "import signal\nimport time\nimport pytest\n\n\ndef test_slow():\n    signal.signal(signal.SIGALRM, lambda *_: None)\n    signal.alarm(60)\n    time.sleep(3)\n    signal.alarm(0)\n\n\ndef test_quick():\n    pass\n",
    )]);
    let ground = UnsandboxedGround::new(folder.path());
    let mut fork = ground.fork().unwrap();
    // A limit of two seconds for each test.
    let seen = examine(
        fork.as_mut(),
        &TestSelection::default(),
        Duration::from_secs(20),
    )
    .unwrap();
    let all = seen.report.tests.iter();
    assert!(
        all.clone().all(|test| test.outcome == TestOutcome::Passed),
        "{:?}",
        seen.report
    );
    assert_eq!(all.count(), 2);
}

#[test]
fn a_project_in_a_folder_is_tested_and_mended_there() {
    let folder = project(&[
        ("README.md", ""),
        ("web/package.json", r#"{"scripts":{"test":"node test.js"}}"#),
        ("shop/pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("shop/cart.py", CART),
        ("shop/tests/test_cart.py", TEST),
        ("shop/tests/__init__.py", ""),
    ]);
    let seen = look(&folder, "shop/tests").unwrap();
    assert_eq!(seen.tests.folder, "shop");
    assert_eq!(seen.failing, ["tests/test_cart.py::test_limit"]);
    let task = lula_repair::RepairTask {
        tests: TestSelection {
            command: None,
            folder: "shop".to_owned(),
        },
        ..lula_repair::RepairTask::default()
    };
    let ground = UnsandboxedGround::new(folder.path());
    let report = lula_repair::repair(&ground, &task, &|_| ()).unwrap();
    assert_eq!(report.patches[0].files[0].path, "shop/cart.py");
}

#[test]
fn a_test_that_fails_for_reasons_of_its_own_does_not_stand_in_the_way() {
    let test = format!("{TEST}\n\ndef test_network():\n    raise OSError('no network')\n");
    let folder = project(&[
        ("cart.py", CART),
        ("test_cart.py", &test),
        ("conftest.py", ""),
    ]);
    let task = lula_repair::RepairTask {
        budget: Duration::from_secs(25),
        ..lula_repair::RepairTask::default()
    };
    let ground = UnsandboxedGround::new(folder.path());
    let report = lula_repair::repair(&ground, &task, &|_| ()).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
    assert_eq!(report.given, ["test_cart.py::test_network"]);
}

#[test]
fn a_script_that_fails_at_its_style_still_shows_its_tests() {
    let folder = project(&[
        (
            "package.json",
            r#"{"scripts":{"test":"eslint . && node run.js"}}"#,
        ),
        ("run.js", "console.log('1..1\\nok 1 - fine');\n"),
        ("a.js", ""),
    ]);
    program(&folder, "node_modules/.bin/eslint", "#!/bin/sh\nexit 1\n");
    let seen = look(&folder, "").unwrap();
    assert_eq!(seen.passing, ["fine"]);
}

#[test]
fn packages_that_are_not_installed_are_named() {
    let folder = project(&[
        ("package.json", r#"{"scripts":{"test":"mocha"}}"#),
        ("package-lock.json", "{}"),
        ("test/a.js", ""),
    ]);
    let broken = broken(&folder);
    assert_eq!(broken.missing, ["mocha"]);
    assert_eq!(broken.remedy.as_deref(), Some("npm ci"));
    assert_eq!(broken.command, "npm test");
}

#[test]
fn forks_run_commands_in_their_folder() {
    let folder = project(&[("a/b.txt", "")]);
    let mut fork = UnsandboxedGround::new(folder.path()).fork().unwrap();
    let ran = fork
        .run(&ForkCommand::new(["ls"], Duration::from_secs(5)).in_folder("a"))
        .unwrap();
    assert_eq!(ran.out(), "b.txt\n");
}

#[test]
fn what_files_of_nodes_own_runner_lack_is_named_with_its_remedy() {
    let folder = project(&[
        (
            "package.json",
            r#"{"scripts":{"test":"node --test"},"devDependencies":{"sinon":"^19"}}"#,
        ),
        ("cart.js", "exports.total = () => 1;\n"),
        (
            "test/cart.test.js",
            "const test = require('node:test');\nconst sinon = require('sinon');\ntest('x', () => {});\n",
        ),
    ]);
    let broken = broken(&folder);
    assert_eq!(broken.missing, ["sinon"]);
    assert_eq!(broken.remedy.as_deref(), Some("npm install"));
    assert!(broken.output.contains("Cannot find module 'sinon'"));
    assert!(broken.interpreter.unwrap().starts_with("Node v"));
}

#[test]
fn what_node_cannot_load_before_any_test_file_is_named_with_its_remedy() {
    let folder = project(&[
        (
            "package.json",
            r#"{"scripts":{"test":"node --import=tsx/esm --test test/*.mjs && tsc"},"devDependencies":{"tsx":"^4"}}"#,
        ),
        ("test/a.mjs", "import 'node:test';\n"),
        ("test/b.mjs", "import 'node:test';\n"),
    ]);
    let broken = broken(&folder);
    assert_eq!(broken.missing, ["tsx"]);
    assert_eq!(broken.remedy.as_deref(), Some("npm install"));
}
