//! What kind of evidence a task asks for. It is settled before a run begins: by the person's flag, or
//! by a task that says nothing but that failing tests are to pass. Everything else is a change,
//! whatever words a bug report happens to hold.

use serde::{Deserialize, Serialize};

/// What kind of evidence a task asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskIntent {
    /// Tests that fail are to pass.
    Repair,
    /// Something is to be otherwise than it was.
    Change,
}

impl TaskIntent {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Repair => "repair",
            Self::Change => "change",
        }
    }
}

/// The tests that a task names whose whole text says that failing tests are to pass; `None` for any
/// other text. No name means all that fail.
pub fn literal(text: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = words(text).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut rest = lower.iter().map(String::as_str).peekable();
    let mut taken = 0;
    let mut skip = |rest: &mut std::iter::Peekable<_>, known: &[&str]| {
        let mut any = false;
        while rest.next_if(|word: &&str| known.contains(word)).is_some() {
            taken += 1;
            any = true;
        }
        (any, taken)
    };
    skip(&mut rest, &["please"]);
    let made = match skip(&mut rest, &["fix", "repair", "mend"]) {
        (true, _) => false,
        (false, _) if skip(&mut rest, &["make", "get"]).0 => true,
        _ => return None,
    };
    let articles = [
        "all", "of", "the", "these", "those", "this", "my", "our", "every",
    ];
    skip(&mut rest, &articles);
    skip(&mut rest, &["failing", "failed", "broken", "red", "unit"]);
    let (found, at) = skip(&mut rest, &["test", "tests", "suite"]);
    if !found {
        return None;
    }
    let mut end = words.len();
    if made {
        let again = lower.last().is_some_and(|word| word == "again");
        end -= usize::from(again);
        let goal = lower.get(end.checked_sub(1)?)?;
        if !["pass", "passing", "green"].contains(&goal.as_str()) {
            return None;
        }
        end -= 1;
        end -= usize::from(
            lower
                .get(end.wrapping_sub(1))
                .is_some_and(|word| word == "to"),
        );
    }
    let named = words.get(at..end)?;
    let joins = |word: &&&str| !["and", "in", "from"].contains(&word.to_lowercase().as_str());
    let named: Vec<&str> = named.iter().filter(joins).copied().collect();
    named
        .iter()
        .all(|word| is_test_name(word))
        .then(|| named.into_iter().map(str::to_owned).collect())
}

/// Every word of a text that could only be the name of a test.
pub fn test_names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in words(text).filter(|word| is_test_name(word)) {
        if !names.iter().any(|known| known == word) {
            names.push(word.to_owned());
        }
    }
    names
}

/// Whether a test is meant by a name: it is that test, or in that file, class or module.
pub fn is_meant(id: &str, name: &str) -> bool {
    let below = |rest: &str| {
        let marks = ["::", ".", "/", " > ", "[", "#"];
        marks.iter().any(|mark| rest.starts_with(mark))
    };
    let above = |rest: &str| {
        let marks = ["::", ".", "/", " > ", "#", " "];
        marks.iter().any(|mark| rest.ends_with(mark))
    };
    id.match_indices(name).any(|(at, _)| {
        let (before, after) = (&id[..at], &id[at + name.len()..]);
        (before.is_empty() || above(before)) && (after.is_empty() || below(after))
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let mark = |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '"' | '\'' | '`');
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    words
        .map(move |word| word.trim_matches(mark))
        .filter(|word| !word.is_empty() && *word != "-")
}

fn is_test_name(word: &str) -> bool {
    if word.contains("::") {
        return true;
    }
    let speaks = word.to_lowercase().contains("test");
    let joined = word.contains(['_', '.', '/', '[']);
    let camel = word
        .strip_prefix("test")
        .or_else(|| word.strip_prefix("Test"))
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    let class = word.len() > 5 && (word.ends_with("Test") || word.ends_with("Tests"));
    speaks && (joined || camel || class)
}

fn has_word(text: &str, list: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric())
        .any(|word| list.contains(&word.to_lowercase().as_str()))
}

/// Whether a run that was begun before intents were written down took its task for failing tests.
/// Kept so that such logs replay; nothing new is decided by it.
pub(crate) fn old_log_means_tests(text: &str) -> bool {
    let tests = ["test", "tests", "suite", "ci", "pytest", "build"];
    let fail = [
        "fail", "fails", "failing", "failed", "failure", "failures", "broken", "red", "pass",
        "passing", "green",
    ];
    has_word(text, &tests) && has_word(text, &fail)
}

/// How such a run was judged, given how many tests fail.
pub(crate) fn of_old_log(text: &str, failing: usize) -> TaskIntent {
    let mending = [
        "fix", "fixes", "repair", "mend", "debug", "correct", "solve", "resolve", "bug",
    ];
    if failing > 0 && (old_log_means_tests(text) || has_word(text, &mending)) {
        TaskIntent::Repair
    } else {
        TaskIntent::Change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_task_that_says_nothing_else_is_a_repair() {
        for text in [
            "fix the failing tests",
            "Fix the tests.",
            "please fix all failing tests!",
            "make the tests pass",
            "Make the test suite green",
            "make the broken tests pass again",
            "get the failing tests to pass",
        ] {
            assert_eq!(literal(text), Some(Vec::new()), "{text}");
        }
        for text in [
            "",
            "tests",
            "fix",
            "make the tests",
            "make the tests faster",
            "fix the typo in the README",
            "fix the off-by-one in cart.py",
            "fix the rounding in cart.py and tests",
            "Fix the failing test of last. Add a test for a list of one.",
            "add tests for the parser",
            "fix the failing tests by making last() return the last item",
            "running pytest with -x shows that --cov is broken: the report is empty",
            "`pytest tests/test_cli.py` passes, but the build is broken on Windows",
        ] {
            assert_eq!(literal(text), None, "{text}");
        }
    }

    #[test]
    fn a_repair_may_name_its_tests() {
        let names = |text: &str| literal(text).unwrap_or_default().join(" ");
        assert_eq!(names("fix the failing test test_last"), "test_last");
        assert_eq!(
            names("fix the failing tests tests/test_a.py::test_one and test_two."),
            "tests/test_a.py::test_one test_two"
        );
        assert_eq!(
            names("make the tests in tests/test_a.py pass"),
            "tests/test_a.py"
        );
        assert_eq!(literal("fix the failing test of the parser"), None);
    }

    #[test]
    fn a_name_means_a_test_a_class_or_a_file() {
        let id = "tests/test_a.py::Cart::test_total[1-2]";
        for name in ["test_total", "Cart", "tests/test_a.py", "test_a.py", id] {
            assert!(is_meant(id, name), "{name}");
        }
        assert!(is_meant("tests.test_a.Cart.test_total", "Cart.test_total"));
        for name in ["test_tot", "total", "test_b.py", "tests/test"] {
            assert!(!is_meant(id, name), "{name}");
        }
    }

    #[test]
    fn words_of_old_logs_still_mean_what_they_meant() {
        assert_eq!(
            of_old_log("fix the off-by-one in cart.py", 1),
            TaskIntent::Repair
        );
        assert_eq!(
            of_old_log("fix the typo in the README", 0),
            TaskIntent::Change
        );
        assert_eq!(of_old_log("add a --verbose flag", 3), TaskIntent::Change);
    }
}
