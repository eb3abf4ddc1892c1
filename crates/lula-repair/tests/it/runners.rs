//! Tests of every kind that runs here, told apart test by test.

use std::time::Duration;

use lula_repair::outcome::RepairReport;
use lula_repair::{
    ForkSource, RepairError, RepairOutcome, RepairTask, TestFramework, TestOutcome, TestSelection,
    examine, repair, run_tests,
};
use tempfile::TempDir;

use crate::unsandboxed::UnsandboxedGround;
use crate::{CART, CART_TEST, mend, project};

fn mend_with(folder: &TempDir, tests: &str) -> RepairReport {
    let task = RepairTask {
        tests: TestSelection::by(tests),
        ..RepairTask::default()
    };
    repair(&UnsandboxedGround::new(folder.path()), &task, &|_| ()).unwrap()
}

#[test]
fn a_makefile_names_the_tests_and_its_exit_code_judges() {
    let folder = project(&[
        ("cart.py", CART),
        ("Makefile", "test:\n\tpython3 check.py\n"),
        (
            "check.py",
            "from cart import total\nassert total([1, 5, 9], 5) == 6\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.framework, TestFramework::Make);
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

/// Writes `JUnit`'s XML as many runners do, for two tests of the cart.
const WRITES_XML: &str = r#"
import sys
from cart import total

cases = {"limit": total([1, 5, 9], 5) == 6, "nothing": total([], 5) == 0}
with open("report.xml", "w") as file:
    file.write("<testsuite>")
    for name, fine in cases.items():
        body = "" if fine else '<failure message="wrong"/>'
        file.write('<testcase classname="cart" name="%s">%s</testcase>' % (name, body))
    file.write("</testsuite>")
sys.exit(0 if all(cases.values()) else 1)
"#;

#[test]
fn a_command_that_writes_junit_xml_is_read_test_by_test() {
    let stale = "<testsuite><testcase classname=\"old\" name=\"gone\"/></testsuite>";
    let folder = project(&[
        ("cart.py", CART),
        ("run.py", WRITES_XML),
        ("docs/old.xml", stale),
    ]);
    let report = mend_with(&folder, "python3 run.py; exit $?");
    assert_eq!(report.failing, ["cart.limit"]);
    assert_eq!((report.before.passed, report.before.failed), (1, 1));
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

#[test]
fn a_command_that_prints_tap_is_read_test_by_test() {
    let folder = project(&[
        ("cart.py", CART),
        (
            "run.py",
            "import sys\nfrom cart import total\nfine = total([1, 5, 9], 5) == 6\nprint('1..2')\nprint('ok 1 - nothing')\nprint('ok 2 - limit' if fine else 'not ok 2 - limit')\nsys.exit(0 if fine else 1)\n",
        ),
    ]);
    let report = mend_with(&folder, "python3 run.py 2>&1");
    assert_eq!(report.failing, ["limit"]);
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

#[test]
fn output_that_claims_success_counts_for_nothing_where_the_exit_code_says_otherwise() {
    let folder = project(&[(
        "run.py",
        "import sys\nprint('1..1')\nprint('ok 1 - fine')\nsys.exit(3)\n",
    )]);
    let report = run_tests(
        &UnsandboxedGround::new(folder.path()),
        &TestSelection::by("python3 run.py; exit $?"),
        Duration::from_mins(1),
    )
    .unwrap();
    assert_eq!(report.tests.len(), 1);
    assert_eq!(report.tests[0].outcome, TestOutcome::Failed);
}

#[test]
fn bare_functions_are_tests_too() {
    let folder = project(&[
        ("cart.py", CART),
        (
            "test_cart.py",
            "from cart import total\n\n\ndef test_limit():\n    assert total([1, 5, 9], 5) == 6\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert!(matches!(
        report.framework,
        TestFramework::Pytest | TestFramework::PlainPython
    ));
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

#[test]
fn a_test_that_fails_only_once_is_flaky_and_proves_nothing() {
    let memory = tempfile::tempdir().unwrap();
    let place = memory.path().join("seen");
    let test = format!(
        "import os\nimport unittest\n\n\nclass T(unittest.TestCase):\n    def test_now_and_then(self):\n        seen = os.path.exists({place:?})\n        open({place:?}, 'w').close()\n        self.assertTrue(seen)\n"
    );
    let folder = project(&[("cart.py", CART), ("tests/test_flaky.py", &test)]);
    match mend(&folder) {
        Err(RepairError::OnlyFlaky(tests)) => {
            assert!(tests[0].ends_with("test_now_and_then"), "{tests:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_test_that_hangs_is_told_from_those_that_fail_and_pass() {
    let hanging = CART_TEST.replace(
        "    def test_nothing(self):",
        "    def test_hangs(self):\n        while True:\n            pass\n\n    def test_nothing(self):",
    );
    let folder = project(&[("cart.py", CART), ("tests/test_cart.py", &hanging)]);
    let ground = UnsandboxedGround::new(folder.path());
    let report = run_tests(&ground, &TestSelection::default(), Duration::from_mins(1)).unwrap();
    let told = |end: &str| {
        let test = report.tests.iter().find(|test| test.id.ends_with(end));
        test.map(|test| (test.outcome, test.hung())).unwrap()
    };
    assert_eq!(told("test_nothing"), (TestOutcome::Passed, false));
    assert_eq!(
        told("test_the_limit_itself_counts"),
        (TestOutcome::Failed, false)
    );
    assert_eq!(told("test_hangs"), (TestOutcome::Broken, true));
}

/// What makes node read the TypeScript below: a loader that takes the types away and, as loaders do,
/// moves the code to other places.
const LOADER: &str = "import { register } from 'node:module';\nconst hooks = `export async function load(url, context, next) {\n  if (!url.endsWith('.ts')) return next(url, context);\n  const { source } = await next(url, { ...context, format: 'module' });\n  const text = String(source).replace(/interface \\\\w+ \\\\{[^}]*\\\\}/, '').replace(/: (number|Item)(\\\\[\\\\])?/g, '');\n  return { format: 'module', shortCircuit: true, source: text.replace(/\\\\n\\\\s*/g, '\\\\n') };\n}`;\nregister('data:text/javascript,' + encodeURIComponent(hooks));\n";

#[test]
fn typescript_is_mended_where_node_is_made_to_read_it() {
    let source = "interface Item { price: number; count: number }\n\nexport function total(items: Item[], limit: number): number {\n  let sum: number = 0;\n  for (const item of items) {\n    if (item.price < limit) sum += item.price * item.count;\n  }\n  return sum;\n}\n";
    let test = "import { test } from 'node:test';\nimport assert from 'node:assert/strict';\nimport { total } from '../src/cart.ts';\n\ntest('the limit itself counts', () => {\n  assert.equal(total([{ price: 5, count: 2 }, { price: 9, count: 1 }], 5), 10);\n});\n\ntest('nothing', () => {\n  assert.equal(total([], 5), 0);\n});\n";
    let folder = project(&[
        (
            "package.json",
            r#"{"type":"module","scripts":{"test":"node --import ./loader.mjs --test"}}"#,
        ),
        ("loader.mjs", LOADER),
        ("src/cart.ts", source),
        ("test/cart.test.ts", test),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.framework, TestFramework::NodeTest);
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
    assert_eq!(report.patches[0].files[0].path, "src/cart.ts");
    assert!(report.patches[0].diff.contains("item.price <= limit"));
}

/// Stands for the runner that a project has installed: runs the checks of the files it is given, or
/// of all, tells its reporters as Jest does, and notes what it was asked for.
const JEST: &str = r"
const fs = require('fs');
const path = require('path');
const words = process.argv.slice(2);
const asked = words.filter((word) => !word.startsWith('--'));
const reporters = words.filter((word) => word.startsWith('--reporters=/')).map((word) => new (require(word.slice(12)))());
fs.appendFileSync('NOTES', asked.join(' ') + '\n');
const files = asked.length ? asked : fs.readdirSync('test').map((name) => 'test/' + name);
for (const reporter of reporters) reporter.onRunStart();
for (const file of files) {
  const checks = require(path.resolve(file));
  const testResults = Object.entries(checks).map(([title, check]) => {
    let status = 'passed';
    const failureMessages = [];
    try { check(); } catch (error) { status = 'failed'; failureMessages.push(error.stack); }
    return { ancestorTitles: [], title, status, failureMessages };
  });
  for (const reporter of reporters) reporter.onTestResult({ path: path.resolve(file) }, { testResults });
}
for (const reporter of reporters) reporter.onRunComplete(null, { success: true });
";

#[test]
fn an_installed_runner_is_started_itself_and_asked_for_the_failing_files_first() {
    use std::os::unix::fs::PermissionsExt;

    let memory = tempfile::tempdir().unwrap();
    let notes = memory.path().join("notes");
    let folder = project(&[
        ("package.json", r#"{"scripts": {"test": "jest"}}"#),
        (
            "node_modules/.bin/jest",
            "#!/bin/sh\nexec node \"$(dirname \"$0\")/../jest/bin/jest.js\" \"$@\"\n",
        ),
        (
            "node_modules/jest/bin/jest.js",
            &JEST.replace("NOTES", notes.to_str().unwrap()),
        ),
        (
            "src/add.js",
            "exports.add = (a, b) => a - b;\nexports.twice = (a) => a * 2;\n",
        ),
        (
            "test/add.test.js",
            "const { add } = require('../src/add');\nexports.sum = () => require('assert').equal(add(2, 3), 5);\n",
        ),
        (
            "test/twice.test.js",
            "const { twice } = require('../src/add');\nexports.twice = () => require('assert').equal(twice(2), 4);\n",
        ),
    ]);
    let program = folder.path().join("node_modules/.bin/jest");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();

    let report = mend(&folder).unwrap();

    assert_eq!(report.framework, TestFramework::Jest);
    assert_eq!(report.failing, ["test/add.test.js > sum"]);
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
    let notes = std::fs::read_to_string(notes).unwrap();
    let narrow = notes.lines().filter(|asked| *asked == "test/add.test.js");
    let whole = notes.lines().filter(|asked| asked.is_empty());
    assert!(narrow.count() > 0, "{notes}");
    assert!(whole.count() > 0, "{notes}");
}

/// A runner that is built as tape is: results of assertions as events of its tests.
const TAPE_RESULTS: &str = r"const { EventEmitter } = require('node:events');
function Results() { this.tests = []; }
Results.prototype._watch = function () {};
Results.prototype.push = function (test) { this.tests.push(test); this._watch(test); };
Results.prototype.run = function () {
  for (const test of this.tests) { test.emit('prerun'); test.body(test); test.emit('end'); }
  process.exitCode = this.failed ? 1 : 0;
};
Results.Test = class extends EventEmitter {
  constructor(results, name, body) { super(); Object.assign(this, { results, name, body }); }
  equal(actual, expected, name) {
    const ok = actual === expected;
    this.results.failed ||= !ok;
    this.emit('result', { ok, name, operator: 'equal', actual, expected });
  }
};
module.exports = Results;
";

const TAPE_BIN: &str = r"#!/usr/bin/env node
const Results = require('../lib/results.js');
const path = require('node:path');
global.results = new Results();
global.test = (name, body) => global.results.push(new Results.Test(global.results, name, body));
for (const file of process.argv.slice(2)) require(path.resolve(file));
global.results.run();
";

#[test]
fn a_runner_in_a_chain_tells_its_tests_whatever_the_rest_of_the_chain_does() {
    let folder = project(&[
        (
            "package.json",
            r#"{"scripts":{"pretest":"node ok.js","test":"node ok.js && node node_modules/tape/bin/tape test/cart.js && node gone.js"}}"#,
        ),
        ("ok.js", ""),
        (
            "cart.js",
            "exports.total = (items, limit) => items.filter((x) => x < limit).reduce((a, b) => a + b, 0);\n",
        ),
        ("node_modules/tape/lib/results.js", TAPE_RESULTS),
        ("node_modules/tape/bin/tape", TAPE_BIN),
        (
            "test/cart.js",
            "const { total } = require('../cart.js');\ntest('total', (t) => {\n  t.equal(total([], 5), 0, 'nothing');\n  t.equal(total([1, 5, 9], 5), 6, 'limit');\n  t.equal(total([9], 5), 0, 'nothing');\n});\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.failing, ["total > limit"]);
    assert_eq!((report.before.passed, report.before.failed), (2, 1));
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

/// Starts itself once more to measure coverage, as node-tap 14 to 17 do.
const TAP_RUN: &str = r"#!/usr/bin/env node
if (!process.env.NYC_CONFIG && !process.argv.includes('--no-coverage')) {
  const { spawnSync } = require('node:child_process');
  const env = { ...process.env, NYC_CONFIG: '{}' };
  process.exit(spawnSync(process.execPath, process.argv.slice(1), { env, stdio: 'inherit' }).status);
}
const { total } = require('../../../cart.js');
let failed = 0;
const is = (name, found, wanted) => {
  failed += found !== wanted;
  console.log(`${found === wanted ? 'ok' : 'not ok'} - ${name}`);
};
is('nothing', total([], 5), 0);
is('limit', total([1, 5, 9], 5), 6);
console.log('1..2');
process.exitCode = failed ? 1 : 0;
";

#[test]
fn node_tap_is_heard_where_it_measures_coverage() {
    let folder = project(&[
        (
            "package.json",
            r#"{"scripts":{"test":"node node_modules/tap/bin/run.js"}}"#,
        ),
        (
            "cart.js",
            "exports.total = (items, limit) => items.filter((x) => x < limit).reduce((a, b) => a + b, 0);\n",
        ),
        ("node_modules/tap/package.json", r#"{"version":"16.3.10"}"#),
        ("node_modules/tap/bin/run.js", TAP_RUN),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.failing, ["limit"]);
    assert_eq!((report.before.passed, report.before.failed), (1, 1));
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

#[test]
fn tests_of_one_name_in_a_file_count_one_by_one() {
    let folder = project(&[(
        "cart.test.js",
        "const test = require('node:test');\nfor (const n of [1, 2, 3]) test('a number', () => { if (n === 2) throw new Error('two'); });\n",
    )]);
    let report = run_tests(
        &UnsandboxedGround::new(folder.path()),
        &TestSelection::default(),
        Duration::from_mins(1),
    )
    .unwrap();
    let failing: Vec<&str> = report.failing().map(|test| test.id.as_str()).collect();
    assert_eq!(report.tests.len(), 3);
    assert_eq!(failing, ["cart.test.js > a number #2"]);
}

#[test]
fn the_runner_of_a_script_that_builds_is_started_alone_where_it_runs_the_edited_code() {
    let folder = project(&[
        (
            "package.json",
            r#"{"scripts":{"build":"node -e 0","pretest":"npm run build","test":"node node_modules/tape/bin/tape test/cart.js"}}"#,
        ),
        (
            "cart.js",
            "exports.total = (items, limit) => items.filter((x) => x < limit).reduce((a, b) => a + b, 0);\n",
        ),
        ("node_modules/tape/lib/results.js", TAPE_RESULTS),
        ("node_modules/tape/bin/tape", TAPE_BIN),
        (
            "test/cart.js",
            "const { total } = require('../cart.js');\ntest('total', (t) => t.equal(total([1, 5, 9], 5), 6, 'limit'));\n",
        ),
    ]);
    let report = mend(&folder).unwrap();
    assert_eq!(report.outcome, RepairOutcome::Fixed, "{report:?}");
}

#[test]
fn a_package_that_is_linked_from_elsewhere_is_not_believed() {
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(
        elsewhere.path().join("package.json"),
        r#"{"name":"cart","main":"cart.js"}"#,
    )
    .unwrap();
    let linked_to = |target: &str| {
        let script = format!(
            r#"{{"name":"shop","scripts":{{"test":"ln -sfn {target} node_modules/cart && node node_modules/tape/bin/tape test/cart.js"}}}}"#
        );
        let folder = project(&[
            ("package.json", &script),
            ("packages/cart/package.json", r#"{"name":"cart"}"#),
            ("node_modules/tape/lib/results.js", TAPE_RESULTS),
            ("node_modules/tape/bin/tape", TAPE_BIN),
            (
                "test/cart.js",
                "test('fine', (t) => t.equal(1, 1, 'one'));\n",
            ),
        ]);
        run_tests(
            &UnsandboxedGround::new(folder.path()),
            &TestSelection::default(),
            Duration::from_mins(1),
        )
    };
    linked_to("../packages/cart").expect("a link into the repository is its own code");
    let Err(RepairError::EnvironmentBroken(broken)) =
        linked_to(&elsewhere.path().to_string_lossy())
    else {
        panic!("a link out of the repository was believed");
    };
    assert!(broken.what.contains("cart") && broken.what.contains("not the code of this project"));
}

#[test]
fn a_package_that_loads_a_copy_of_itself_is_not_believed() {
    let tested = |names: &str| {
        let test = format!(
            "const {{ total }} = require({names:?});\ntest('total', (t) => t.equal(total(), 1, 'one'));\n"
        );
        let folder = project(&[
            (
                "package.json",
                r#"{"name":"cart","main":"lib/cart.js","scripts":{"test":"node node_modules/tape/bin/tape test/cart.js"}}"#,
            ),
            ("lib/cart.js", "exports.total = () => 1;\n"),
            // As npm leaves one that another package needs.
            (
                "node_modules/cart/package.json",
                r#"{"name":"cart","main":"cart.js"}"#,
            ),
            ("node_modules/cart/cart.js", "exports.total = () => 1;\n"),
            ("node_modules/tape/lib/results.js", TAPE_RESULTS),
            ("node_modules/tape/bin/tape", TAPE_BIN),
            ("test/cart.js", &test),
        ]);
        let ground = UnsandboxedGround::new(folder.path());
        let mut fork = ground.fork().unwrap();
        examine(
            &mut *fork,
            &TestSelection::default(),
            Duration::from_mins(1),
        )
    };
    let looked = tested("../");
    let looked = looked.expect("its own code is loaded");
    assert_eq!(looked.origins.len(), 1, "{:?}", looked.origins);
    assert_eq!(looked.origins[0].name, "cart");
    let path = &looked.origins[0].path;
    assert!(path.ends_with("/lib/cart.js") && !path.contains("node_modules"));

    let Err(RepairError::EnvironmentBroken(broken)) = tested("cart") else {
        panic!("a copy of the package was believed");
    };
    assert!(
        broken.what.contains("node_modules/cart/cart.js"),
        "{broken:?}"
    );
}

#[test]
fn a_copy_that_a_tool_is_made_of_is_no_concern_of_the_tests() {
    let bin = TAPE_BIN.replacen('\n', "\nrequire('cart');\n", 1);
    let tested = |names: &str| {
        let test = format!(
            "const {{ total }} = require('{names}');\ntest('total', (t) => t.equal(total(), 1, 'one'));\n"
        );
        let folder = project(&[
            (
                "package.json",
                r#"{"name":"shop","scripts":{"test":"node node_modules/tape/bin/tape test/cart.js"}}"#,
            ),
            (
                "packages/cart/package.json",
                r#"{"name":"cart","main":"cart.js"}"#,
            ),
            ("packages/cart/cart.js", "exports.total = () => 1;\n"),
            (
                "node_modules/cart/package.json",
                r#"{"name":"cart","main":"cart.js"}"#,
            ),
            ("node_modules/cart/cart.js", "exports.total = () => 1;\n"),
            ("node_modules/tape/lib/results.js", TAPE_RESULTS),
            ("node_modules/tape/bin/tape", &bin),
            ("test/cart.js", &test),
        ]);
        let ground = UnsandboxedGround::new(folder.path());
        let mut fork = ground.fork().unwrap();
        examine(
            &mut *fork,
            &TestSelection::default(),
            Duration::from_mins(1),
        )
    };
    let looked = tested("../packages/cart").expect("the tests load the project's own code");
    assert_eq!(looked.origins.len(), 1, "{:?}", looked.origins);
    assert!(looked.origins[0].path.ends_with("/packages/cart/cart.js"));
    // A published copy beside it, as another package of the project may need, is nothing odd.
    tested("../packages/cart');require('cart").expect("its own code is tested too");
    let Err(RepairError::EnvironmentBroken(broken)) = tested("cart") else {
        panic!("a published copy of a package of the project was believed");
    };
    assert!(broken.what.contains("node_modules/cart/cart.js"));
}

#[test]
fn code_in_a_language_that_no_patch_is_written_in_is_named_before_any_test_runs() {
    let elsewhere = tempfile::tempdir().unwrap();
    let mark = elsewhere.path().join("ran");
    let folder = project(&[("sum.c", "int sum(int a, int b) { return a - b; }\n")]);
    let task = RepairTask {
        tests: TestSelection::by(format!("sh -c 'touch {}; exit 1'", mark.display())),
        ..RepairTask::default()
    };
    let found = repair(&UnsandboxedGround::new(folder.path()), &task, &|_| ());
    assert!(matches!(found, Err(RepairError::NoSources)), "{found:?}");
    assert!(!mark.exists());
}
