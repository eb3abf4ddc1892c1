//! Runners of other languages: the real ones, on projects of a few lines, told test by test.

use std::time::Duration;

use lula_repair::{
    BrokenEnvironment, ForkSource, RepairError, TestExamination, TestFramework, TestOutcome,
    TestSelection, examine,
};

use crate::project;
use crate::unsandboxed::UnsandboxedGround;

fn look(files: &[(&str, &str)], command: Option<&str>) -> Result<TestExamination, RepairError> {
    let folder = project(files);
    let ground = UnsandboxedGround::new(folder.path());
    let wanted = TestSelection {
        command: command.map(str::to_owned),
        folder: String::new(),
    };
    examine(ground.fork()?.as_mut(), &wanted, Duration::from_mins(2))
}

fn lacks(files: &[(&str, &str)], command: Option<&str>) -> BrokenEnvironment {
    match look(files, command) {
        Err(RepairError::EnvironmentBroken(broken)) => *broken,
        other => panic!("{other:?}"),
    }
}

fn skipped(seen: &TestExamination) -> Vec<&str> {
    let all = seen.report.tests.iter();
    all.filter(|test| test.outcome == TestOutcome::Skipped)
        .map(|test| test.id.as_str())
        .collect()
}

const GO: &[(&str, &str)] = &[
    ("go.mod", "module example.com/shop\n\ngo 1.19\n"),
    (
        "shop.go",
        "package shop\n\nfunc Add(a, b int) int { return a - b }\n",
    ),
    (
        "shop_test.go",
        "package shop\n\nimport \"testing\"\n\nfunc TestAdds(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\tt.Errorf(\"got %d\", Add(2, 3))\n\t}\n}\n\nfunc TestNothing(t *testing.T) {}\n\nfunc TestLater(t *testing.T) { t.Skip() }\n",
    ),
    ("Makefile", "test:\n\tgo vet ./... && go test ./...\n"),
];

#[test]
fn go_is_told_test_by_test_by_itself_and_inside_of_make() {
    for command in [
        None,
        Some("make test"),
        Some("true && go test -count=1 ./..."),
    ] {
        let seen = look(GO, command).unwrap();
        assert_eq!(seen.failing, ["example.com/shop TestAdds"], "{command:?}");
        assert_eq!(seen.passing, ["example.com/shop TestNothing"]);
        assert_eq!(skipped(&seen), ["example.com/shop TestLater"]);
    }
}

#[test]
fn a_module_that_is_not_on_this_machine_is_named() {
    let broken = lacks(
        &[
            (
                "go.mod",
                "module example.com/m\n\ngo 1.19\n\nrequire example.com/none/here v0.9.1\n",
            ),
            (
                "m_test.go",
                "package m\n\nimport (\n\t\"testing\"\n\n\t\"example.com/none/here\"\n)\n\nfunc TestX(t *testing.T) { here.X() }\n",
            ),
        ],
        None,
    );
    assert_eq!(broken.missing, ["example.com/none/here"]);
    assert_eq!(broken.remedy.as_deref(), Some("go mod download"));
}

const CMAKE: &[(&str, &str)] = &[
    (
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.10)\nproject(shop NONE)\nenable_testing()\nadd_test(NAME adds COMMAND sh -c \"echo got -1; exit 1\")\nadd_test(NAME nothing COMMAND true)\nadd_test(NAME later COMMAND sh -c \"exit 77\")\nset_tests_properties(later PROPERTIES SKIP_RETURN_CODE 77)\n",
    ),
    ("shop.c", ""),
];

#[test]
fn ctest_is_told_test_by_test_after_a_build_and_from_its_lines() {
    // The second starts CTest by a path of its own.
    let by_target = "cmake -S . -B b && cmake --build b --target test";
    for command in [None, Some(by_target)] {
        let seen = look(CMAKE, command).unwrap();
        assert_eq!(seen.failing, ["adds"], "{command:?}");
        assert_eq!(seen.passing, ["nothing"]);
        assert_eq!(skipped(&seen), ["later"]);
    }
}

#[test]
fn a_build_folder_that_is_not_there_is_no_failing_test() {
    for command in ["ctest --test-dir build", "ctest"] {
        let broken = lacks(CMAKE, Some(command));
        assert!(broken.what.contains("build folder"), "{broken:?}");
        assert!(broken.remedy.unwrap().starts_with("cmake -S . -B build"));
    }
}

const SPEC: &str = "RSpec.describe 'sum' do\n  it('adds') { expect(2 - 3).to eq 5 }\n  it('nothing') { expect(0).to eq 0 }\n  xit('later') { }\n  it { expect(1).to eq 1 }\nend\n";

#[test]
fn rspec_is_told_test_by_test_beside_the_formatter_of_the_project() {
    let files = [
        ("spec/sum_spec.rb", SPEC),
        (".rspec", "--format documentation\n"),
    ];
    for command in [None, Some("echo first && SPEC=1 rspec --order defined")] {
        let seen = look(&files, command).unwrap();
        assert_eq!(seen.failing, ["spec/sum_spec.rb > sum adds"], "{command:?}");
        assert_eq!(
            seen.passing,
            ["spec/sum_spec.rb > sum nothing", "spec/sum_spec.rb[1:4]"]
        );
        assert_eq!(skipped(&seen), ["spec/sum_spec.rb > sum later"]);
    }
}

#[test]
fn a_gem_that_is_not_there_is_named() {
    let broken = lacks(
        &[(
            "spec/a_spec.rb",
            "require 'no_such_gem_here'\nRSpec.describe('x') { it('y') { } }\n",
        )],
        None,
    );
    assert_eq!(broken.missing, ["no_such_gem_here"]);
    assert_eq!(
        broken.remedy.as_deref(),
        Some("gem install no_such_gem_here")
    );
}

const PHP: &str = "<?php\nuse PHPUnit\\Framework\\TestCase;\nfinal class SumTest extends TestCase {\n  public function testAdds(): void { $this->assertSame(5, 2 - 3); }\n  public function testNothing(): void { $this->assertSame(0, 0); }\n  public function testLater(): void { $this->markTestSkipped('later'); }\n}\n";
const PHPUNIT: &str = "<phpunit><testsuites><testsuite name=\"a\"><directory>tests</directory></testsuite></testsuites></phpunit>";

#[test]
fn phpunit_is_told_test_by_test() {
    let files = [("phpunit.xml", PHPUNIT), ("tests/SumTest.php", PHP)];
    for command in [None, Some("echo first && phpunit --testdox")] {
        let seen = look(&files, command).unwrap();
        assert_eq!(seen.failing, ["SumTest::testAdds"], "{command:?}");
        assert_eq!(seen.passing, ["SumTest::testNothing"]);
        assert_eq!(skipped(&seen), ["SumTest::testLater"]);
    }
}

#[test]
fn what_composer_would_install_is_asked_for() {
    let config = PHPUNIT.replace("<phpunit>", "<phpunit bootstrap=\"vendor/autoload.php\">");
    let files = [("phpunit.xml", config.as_str()), ("tests/SumTest.php", PHP)];
    let broken = lacks(&files, None);
    assert_eq!(broken.remedy.as_deref(), Some("composer install"));
    let manifest = r#"{"require-dev":{"phpunit/phpunit":"^9"}}"#;
    let broken = lacks(&[("composer.json", manifest), ("a.php", "")], None);
    assert_eq!(broken.missing, ["phpunit"]);
    assert_eq!(broken.remedy.as_deref(), Some("composer install"));
}

#[test]
fn nextest_is_told_test_by_test_and_to_the_end() {
    let files = [
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        (
            "src/lib.rs",
            "#[test]\nfn adds() {\n    assert_eq!(2 - 3, 5);\n}\n\n#[test]\nfn nothing() {}\n",
        ),
        ("tests/outer.rs", "#[test]\nfn outside() {}\n"),
    ];
    let seen = look(&files, Some("cargo nextest run --test-threads 1")).unwrap();
    assert_eq!(seen.tests.framework, TestFramework::Nextest);
    assert_eq!(seen.failing, ["shop adds"]);
    assert_eq!(seen.passing, ["shop nothing", "shop::outer outside"]);
}

/// Stands for what a project's own script makes of unittest's runner, as Django's does.
const RUNTESTS: &str = "import sys\nimport unittest\n\n\n# As in django.test.runner.\nclass Sums(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(2 - 3, 5)\n\n    def test_parts(self):\n        for n in range(3):\n            with self.subTest(n=n):\n                self.assertEqual(n, 0)\n\n    def test_fine(self):\n        unittest.TextTestRunner(stream=sys.stderr).run(unittest.TestSuite())\n\n    @unittest.skip('later')\n    def test_later(self):\n        pass\n\n\nsuite = unittest.defaultTestLoader.loadTestsFromTestCase(Sums)\nresult = unittest.TextTestRunner(resultclass=unittest.TextTestResult).run(suite)\nsys.exit(bool(result.failures))\n";

#[test]
fn a_script_of_unittests_runner_is_told_test_by_test() {
    let seen = look(&[("runtests.py", RUNTESTS), ("a.py", "")], None).unwrap();
    assert_eq!(seen.tests.framework, TestFramework::Django);
    assert_eq!(
        seen.failing,
        ["__main__.Sums.test_adds", "__main__.Sums.test_parts"]
    );
    assert_eq!(seen.passing, ["__main__.Sums.test_fine"]);
    assert_eq!(skipped(&seen), ["__main__.Sums.test_later"]);
    assert!(seen.interpreter.unwrap().starts_with("Python 3."));
}

#[test]
fn a_project_without_django_is_told_so() {
    let manage = "import no_such_django_here  # django\n";
    let broken = lacks(
        &[
            ("manage.py", manage),
            ("requirements.txt", "no_such_django_here\n"),
        ],
        None,
    );
    assert_eq!(broken.missing, ["no_such_django_here"]);
    assert_eq!(
        broken.remedy.as_deref(),
        Some("python3 -m pip install -r requirements.txt")
    );
}
