//! `JUnit`'s XML as single runners write it, each test by the name that its runner has for it.

use super::junit::{Element, elements};
use super::{case, go, junit};
use crate::report::{TestCase, TestOutcome};

/// What the runner that is started by this program wrote.
pub(crate) fn of_runner(program: &str, text: &str) -> Vec<TestCase> {
    let named: fn(&Element) -> TestCase = match program {
        "go" => return go(text),
        "cargo" => nextest,
        "ctest" => ctest,
        "deno" => deno,
        "bun" => bun,
        "phpunit" => phpunit,
        _ => return junit(text),
    };
    elements(text).iter().map(named).collect()
}

/// A binary's id, and the test in it, as nextest prints them.
fn nextest(test: &Element) -> TestCase {
    let id = format!("{} {}", test.class, test.name);
    // A test that ends its process says why on its output.
    let outcome = match test.outcome {
        TestOutcome::Broken => TestOutcome::Failed,
        outcome => outcome,
    };
    case(id, outcome, &test.message)
}

/// `CTest` has no classes; a test whose program is not there was not skipped by anything.
fn ctest(test: &Element) -> TestCase {
    let outcome = match (test.outcome, test.status.as_str()) {
        (_, "disabled") => TestOutcome::Skipped,
        (TestOutcome::Skipped, _) if test.message.starts_with("Unable to find executable") => {
            TestOutcome::Broken
        }
        (outcome, _) => outcome,
    };
    let fails = matches!(outcome, TestOutcome::Failed | TestOutcome::Broken);
    let message = format!("{}\n{}", test.message, test.printed);
    case(
        test.name.clone(),
        outcome,
        if fails { message.trim() } else { "" },
    )
}

/// A file, and the test or the step in it.
fn deno(test: &Element) -> TestCase {
    let file = test.class.trim_start_matches("./");
    case(
        format!("{file} > {}", test.name),
        test.outcome,
        &test.message,
    )
}

/// A file, the blocks that describe, and the test.
fn bun(test: &Element) -> TestCase {
    let parts = [&test.file, &test.class, &test.name];
    let parts: Vec<&str> = parts
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    case(parts.join(" > "), test.outcome, &test.message)
}

/// `Class::test`, as `PHPUnit` prints it. What it calls an error is an exception that a test let pass.
fn phpunit(test: &Element) -> TestCase {
    let class = test.class.replace('.', "\\");
    let id = if class.is_empty() {
        test.name.clone()
    } else {
        format!("{class}::{}", test.name)
    };
    let outcome = match test.outcome {
        TestOutcome::Broken => TestOutcome::Failed,
        outcome => outcome,
    };
    case(id, outcome, &test.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(program: &str, text: &str) -> Vec<(String, TestOutcome)> {
        let each = of_runner(program, text).into_iter();
        each.map(|test| (test.id, test.outcome)).collect()
    }

    fn expected(tests: &[(&str, TestOutcome)]) -> Vec<(String, TestOutcome)> {
        let each = tests.iter();
        each.map(|(id, outcome)| ((*id).to_owned(), *outcome))
            .collect()
    }

    use TestOutcome::{Broken, Failed, Passed, Skipped};

    #[test]
    fn nextest_names_the_binary_of_each_test() {
        let text = include_str!("../../tests/recorded/nextest.xml");
        assert_eq!(
            told("cargo", text),
            expected(&[
                ("shop tests::nothing", Passed),
                ("shop tests::adds", Failed),
                ("shop::outer outside", Passed),
            ])
        );
        let adds = &of_runner("cargo", text)[1];
        assert!(adds.message.contains("src/lib.rs:3:21"), "{adds:?}");
        assert!(!adds.message.contains("running 1 test"), "{adds:?}");
    }

    #[test]
    fn ctest_tells_what_is_not_built_from_what_is_skipped() {
        let text = include_str!("../../tests/recorded/ctest.xml");
        assert_eq!(
            told("ctest", text),
            expected(&[
                ("adds", Failed),
                ("nothing", Passed),
                ("later", Skipped),
                ("gone", Broken),
                ("off", Skipped),
            ])
        );
        assert_eq!(of_runner("ctest", text)[0].message, "got -1 <x>");
    }

    #[test]
    fn deno_names_steps_below_their_test() {
        assert_eq!(
            told("deno", include_str!("../../tests/recorded/deno.xml")),
            expected(&[
                ("sum_test.ts > adds", Failed),
                ("sum_test.ts > nothing", Passed),
                ("sum_test.ts > later", Skipped),
                ("sum_test.ts > nothing > inner", Passed),
            ])
        );
    }

    #[test]
    fn bun_names_the_file_of_each_test() {
        assert_eq!(
            told("bun", include_str!("../../tests/recorded/bun.xml")),
            expected(&[
                ("sum.test.ts > sum > adds", Failed),
                ("sum.test.ts > sum > nothing", Passed),
                ("sum.test.ts > sum > later", Skipped),
                ("sum.test.ts > top & <level>", Passed),
            ])
        );
    }

    #[test]
    fn phpunit_names_the_data_of_each_test() {
        assert_eq!(
            told("phpunit", include_str!("../../tests/recorded/phpunit.xml")),
            expected(&[
                ("SumTest::testAdds", Failed),
                ("SumTest::testNothing", Passed),
                ("SumTest::testLater", Skipped),
                ("SumTest::testPairs with data set #0", Passed),
                ("SumTest::testPairs with data set \"named\"", Passed),
            ])
        );
    }

    #[test]
    fn gradle_and_maven_name_class_and_method() {
        assert_eq!(
            told("found", include_str!("../../tests/recorded/gradle.xml")),
            expected(&[
                ("SumTest.adds", Failed),
                ("SumTest.later", Skipped),
                ("SumTest.nothing", Passed),
            ])
        );
    }
}
