//! Answers as models write them, whole: words, fences and blocks.

use std::collections::BTreeMap;

use lula_edit::{
    AppliedEdit, EditError, EditFormat, EditFormatError, MatchRung, anchor, apply_all, parse,
    syntax,
};

fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect()
}

fn outcome(format: EditFormat, answer: &str, list: &[(&str, &str)]) -> lula_edit::EditBatchResult {
    let files = files(list);
    apply_all(&parse(format, answer).unwrap(), |path| {
        files.get(path).cloned()
    })
}

const ADD: (&str, &str) = (
    "calc.py",
    "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n",
);

#[test]
fn blocks_are_found_in_fences_and_talk() {
    let block = "<<<<<<< SEARCH\ndef add(a, b):\n    return a - b\n=======\ndef add(a, b):\n    return a + b\n>>>>>>> REPLACE";
    for answer in [
        format!("calc.py\n{block}\n"),
        format!("Here is the fix:\n\n`calc.py`\n```python\n{block}\n```\nDone."),
        format!("```\ncalc.py\n{block}\n```"),
        format!("### File: calc.py\n\n{block}"),
        format!("**./calc.py**:\n{block}"),
    ] {
        let batch = outcome(EditFormat::SearchReplace, &answer, &[ADD]);
        assert_eq!(
            batch.results,
            [Ok(AppliedEdit::Changed(MatchRung::Exact))],
            "{answer}"
        );
        assert!(batch.files["calc.py"].starts_with("def add(a, b):\n    return a + b\n"));
    }
}

#[test]
fn lines_in_two_places_are_an_error_that_names_both() {
    let answer =
        "calc.py\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE";
    let batch = outcome(EditFormat::SearchReplace, answer, &[ADD]);
    assert!(batch.files.is_empty());
    let error = batch.results[0].clone().unwrap_err();
    assert_eq!(
        error,
        EditError::Several {
            path: "calc.py".into(),
            lines: vec![2, 6]
        }
    );
    assert!(error.to_string().contains("at lines 2, 6"), "{error}");
}

#[test]
fn a_search_that_holds_the_new_code_is_told_so() {
    let answer = "calc.py\n<<<<<<< SEARCH\ndef add(a, b):\n    return a + b\n=======\ndef add(a, b):\n    return a - b\n>>>>>>> REPLACE";
    let batch = outcome(EditFormat::SearchReplace, answer, &[ADD]);
    let error = batch.results[0].clone().unwrap_err().to_string();
    assert!(error.contains("SEARCH holds old lines"), "{error}");
}

#[test]
fn a_search_that_is_nowhere_quotes_the_nearest_lines() {
    let answer =
        "calc.py\n<<<<<<< SEARCH\ndef add(x, y):\n    return a - b\n=======\npass\n>>>>>>> REPLACE";
    let error = outcome(EditFormat::SearchReplace, answer, &[ADD]).results[0]
        .clone()
        .unwrap_err();
    assert!(error.to_string().contains("2:     return a - b"), "{error}");
}

#[test]
fn what_fits_is_kept_and_only_what_failed_is_asked_for_again() {
    let answer = "calc.py\n<<<<<<< SEARCH\ndef add(a, b):\n    return a - b\n=======\ndef add(a, b):\n    return a + b\n>>>>>>> REPLACE\n\
        <<<<<<< SEARCH\ndef mul(a, b):\n=======\ndef mul(b, a):\n>>>>>>> REPLACE";
    let batch = outcome(EditFormat::SearchReplace, answer, &[ADD]);
    assert!(!batch.is_whole());
    assert_eq!(
        batch.failures().map(|(index, _)| index).collect::<Vec<_>>(),
        [1]
    );
    assert!(batch.files["calc.py"].contains("a + b"));
}

#[test]
fn an_edit_that_breaks_the_syntax_is_told_before_it_becomes_an_effect() {
    let answer = "calc.py\n<<<<<<< SEARCH\ndef sub(a, b):\n=======\ndef sub(a, b:\n>>>>>>> REPLACE";
    let batch = outcome(EditFormat::SearchReplace, answer, &[ADD]);
    assert!(batch.is_whole());
    let broken = batch.broken(|_| Some(ADD.1.to_owned()));
    assert!(
        matches!(&broken[..], [(path, syntax::SyntaxVerdict::Broken { line: 5, .. })] if path == "calc.py"),
        "{broken:?}"
    );
}

#[test]
fn two_blocks_that_change_the_same_line_are_an_error() {
    let block = "<<<<<<< SEARCH\ndef add(a, b):\n    return a - b\n=======\ndef add(a, b):\n    return a + b\n>>>>>>> REPLACE\n";
    let batch = outcome(
        EditFormat::SearchReplace,
        &format!("calc.py\n{block}{block}"),
        &[ADD],
    );
    assert!(
        matches!(batch.results[1], Err(EditError::Overlap { line: 1, .. })),
        "{batch:?}"
    );
}

#[test]
fn an_empty_search_makes_a_file_and_never_overwrites_one() {
    let answer = "new.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n";
    assert_eq!(
        outcome(EditFormat::SearchReplace, answer, &[]).files["new.py"],
        "x = 1\n"
    );
    let batch = outcome(EditFormat::SearchReplace, answer, &[("new.py", "y = 2\n")]);
    assert_eq!(batch.results, [Err(EditError::Exists("new.py".into()))]);
}

#[test]
fn comments_the_model_misremembers_stay_as_they_are() {
    let file = (
        "a.py",
        "# Sums the numbers of the list and gives them back.\ntotal = sum(numbers)\nprint(total)\nresult = total\n",
    );
    let answer = "a.py\n<<<<<<< SEARCH\n# Sums the numbers of a list and gives them back.\ntotal = sum(numbers)\nprint(total)\n=======\n# Sums the numbers of a list and gives them back.\ntotal = sum(numbers)\nlog(total)\n>>>>>>> REPLACE";
    let batch = outcome(EditFormat::SearchReplace, answer, &[file]);
    assert_eq!(batch.results, [Ok(AppliedEdit::Changed(MatchRung::Alike))]);
    assert_eq!(batch.files["a.py"], file.1.replace("print", "log"));
}

#[test]
fn a_near_twin_is_not_taken_for_lines_that_are_gone() {
    let file = (
        "t.py",
        "def test_two():\n    cart = Cart(\"ada\")\n    cart.add(\"tea\", 2)\n    assert cart.total() == 24\n",
    );
    for search in [
        "def test_one():\n    cart = Cart(\"ada\")\n    cart.add(\"tea\", 2)\n    assert cart.total() == 24\n",
        "def test_two():\n    cart = Cart(\"ada\")\n    cart.add(\"tea\", 1)\n    assert cart.total() == 24\n",
        "def test_two():\n    cart = Cart(\"bob\")\n    cart.add(\"tea\", 2)\n    assert cart.total() == 24\n",
        "def test_two():\n    cart = Cart(\"ada\")\n    cart.add(\"tea\", 2)\n    assert cart.total() != 24\n",
    ] {
        let answer = format!("t.py\n<<<<<<< SEARCH\n{search}=======\npass\n>>>>>>> REPLACE");
        let batch = outcome(EditFormat::SearchReplace, &answer, &[file]);
        assert!(batch.results[0].is_err(), "{search}");
    }
}

#[test]
fn numbered_lines_are_replaced_where_their_hashes_hold() {
    let shown = anchor::show(ADD.1);
    let at = |line: usize| {
        shown
            .lines()
            .nth(line - 1)
            .unwrap()
            .split('|')
            .next()
            .unwrap()
            .to_owned()
    };
    let answer = format!(
        "calc.py\n<<<<<<< LINES {}-{}\n    return a + b\n>>>>>>> END\n",
        at(2),
        at(2)
    );
    assert!(outcome(EditFormat::LineRange, &answer, &[ADD]).files["calc.py"].contains("a + b"));
    let wrong = format!("calc.py\n<<<<<<< LINES 2:0000-{}\nx\n>>>>>>> END\n", at(2));
    let error = outcome(EditFormat::LineRange, &wrong, &[ADD]).results[0]
        .clone()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&format!("It is now {}|    return a - b", at(2))),
        "{error}"
    );
    let backwards = format!(
        "calc.py\n<<<<<<< LINES {}-{}\nx\n>>>>>>> END\n",
        at(2),
        at(1)
    );
    assert!(outcome(EditFormat::LineRange, &backwards, &[ADD]).results[0].is_err());
}

#[test]
fn a_file_repeated_with_its_numbers_changes_the_lines_that_differ() {
    let shown = anchor::show(ADD.1).replacen("a - b", "a + b", 1);
    let batch = outcome(EditFormat::LineRange, &format!("calc.py\n{shown}"), &[ADD]);
    assert!(batch.is_whole(), "{batch:?}");
    assert_eq!(batch.files["calc.py"], ADD.1.replacen("a - b", "a + b", 1));
    assert_eq!(
        batch
            .results
            .iter()
            .filter(|one| **one == Ok(AppliedEdit::Nothing))
            .count(),
        5
    );
    assert_eq!(
        parse(EditFormat::LineRange, &shown),
        Err(EditFormatError::NoPath(1))
    );
}

#[test]
fn the_form_of_the_instructions_is_never_a_change() {
    for format in [
        EditFormat::SearchReplace,
        EditFormat::LineRange,
        EditFormat::Whole,
        EditFormat::Function,
    ] {
        let parsed = parse(format, format.instructions());
        assert!(
            matches!(parsed, Err(EditFormatError::Form(_))),
            "{format:?} {parsed:?}"
        );
    }
}

#[test]
fn a_weak_model_writes_the_file_as_it_was_shown() {
    // As Qwen2.5-Coder 1.5B answered, asked for SEARCH and REPLACE blocks.
    let answer = "<file path=\"calc.py\">\ndef add(a, b):\n    return a + b\n</file>\n\
                  <file path=\"tests/test_calc.py\">\nassert add(1, 2) == 3\n</file>\n\nThe task:\n";
    let tests = ("tests/test_calc.py", "assert add(1, 2) == 3\n");
    for format in [EditFormat::Whole, EditFormat::SearchReplace] {
        let batch = outcome(format, answer, &[ADD, tests]);
        assert!(batch.is_whole(), "{batch:?}");
        assert_eq!(batch.files["calc.py"], "def add(a, b):\n    return a + b\n");
        assert_eq!(batch.results[1], Ok(AppliedEdit::Nothing));
    }
    let fenced = "<file path='calc.py'>\n```python\nx = 1\n```\n</file>";
    let batch = outcome(EditFormat::Whole, fenced, &[ADD]);
    assert_eq!(batch.files["calc.py"], "x = 1\n");
    // A text that holds the end mark itself is not cut there.
    let marked = "<file path=\"a.md\">\none\n</file>\ntwo\n</file>\n";
    let batch = outcome(EditFormat::Whole, marked, &[("a.md", "one\n")]);
    assert_eq!(batch.files["a.md"], "one\n</file>\ntwo\n");
}

#[test]
fn a_file_without_its_end_or_outside_is_refused() {
    for (answer, error) in [
        (
            "<file path=\"a.py\">\nx = 1\n",
            EditFormatError::NotEnded {
                line: 1,
                end: "</file>",
            },
        ),
        (
            "<file path=\"../a.py\">\nx = 1\n</file>",
            EditFormatError::BadPath("../a.py".to_owned()),
        ),
    ] {
        assert_eq!(parse(EditFormat::Whole, answer), Err(error));
    }
}

#[test]
fn a_weak_model_writes_a_path_and_a_fence() {
    let answer = "calc.py\n```python\ndef add(a, b):\n    return a + b\n```\n";
    let batch = outcome(EditFormat::Whole, answer, &[ADD]);
    assert_eq!(batch.files["calc.py"], "def add(a, b):\n    return a + b\n");
}

#[test]
fn broken_blocks_are_errors_not_half_an_edit() {
    for (answer, error) in [
        (
            "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
            EditFormatError::NoPath(1),
        ),
        (
            "a.py\n<<<<<<< SEARCH\na\n=======\nb\n",
            EditFormatError::NotEnded {
                line: 2,
                end: ">>>>>>> REPLACE",
            },
        ),
        (
            "a.py\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE",
            EditFormatError::NotEnded {
                line: 2,
                end: "=======",
            },
        ),
        (
            "a.py\n<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE",
            EditFormatError::TwoDividers(2),
        ),
        (
            "../a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
            EditFormatError::BadPath("../a.py".into()),
        ),
        (
            "/etc/a.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE",
            EditFormatError::BadPath("/etc/a.py".into()),
        ),
        (
            "a.py\n<<<<<<< LINES 3-4\na\n>>>>>>> END",
            EditFormatError::BadHeader("LINES 3-4".into()),
        ),
        (
            "a.py\n<<<<<<< FUNCTION main\na\n>>>>>>> END",
            EditFormatError::BadHeader("FUNCTION main".into()),
        ),
    ] {
        assert_eq!(
            parse(EditFormat::SearchReplace, answer),
            Err(error),
            "{answer}"
        );
    }
}

#[test]
fn words_without_a_block_are_no_edit() {
    assert_eq!(
        parse(EditFormat::SearchReplace, "I would change calc.py."),
        Ok(vec![])
    );
}

proptest::proptest! {
    #[test]
    fn hostile_answers_never_panic(
        answer in "(a\\.py|<<<<<<< SEARCH|<<<<<<< LINES 1:aaaa|<<<<<<< FILE|=======|>>>>>>> REPLACE|>>>>>>> END|```|x = 1|  é|\n){0,20}",
        file in "(x = 1|  é|\n|\r\n|\t){0,12}",
    ) {
        for format in [EditFormat::SearchReplace, EditFormat::LineRange, EditFormat::Whole, EditFormat::Function] {
            if let Ok(edits) = parse(format, &answer) {
                let _ = apply_all(&edits, |_| Some(file.clone()));
            }
        }
    }
}
