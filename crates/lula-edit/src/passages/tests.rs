use proptest::prelude::*;

use super::*;

fn edit(old: &str, new: &str) -> PassageEdit {
    PassageEdit {
        old: old.to_owned(),
        new: new.to_owned(),
        all: false,
    }
}

fn one(text: &str, old: &str, new: &str) -> Result<String, String> {
    replace_passages("a.py", Some(text), &[edit(old, new)])
        .map_err(|failures| failures[0].1.to_string())
}

#[test]
fn a_passage_is_any_text_that_stands_there_once() {
    let text = "total = price * 2  # twice\nreturn total\n";
    assert_eq!(
        one(text, "price * 2", "price * 3").unwrap(),
        "total = price * 3  # twice\nreturn total\n"
    );
    assert_eq!(
        one(text, "twice\nreturn", "twice\n\nreturn").unwrap(),
        "total = price * 2  # twice\n\nreturn total\n"
    );
    assert_eq!(
        one(text, "  # twice", "").unwrap(),
        "total = price * 2\nreturn total\n"
    );
}

#[test]
fn a_passage_that_stands_there_several_times_is_replaced_only_if_that_is_wanted() {
    let text = "a = 1\nb = 1\na = 1\n";
    let error = one(text, "= 1", "= 2").unwrap_err();
    assert_eq!(
        error,
        "`old` stands in a.py 3 times, at lines 1, 2, 3: make it longer until it stands there \
         once, or say `all`: true to replace every one"
    );
    let all = PassageEdit {
        all: true,
        ..edit("= 1", "= 2")
    };
    assert_eq!(
        replace_passages("a.py", Some(text), &[all]).unwrap(),
        "a = 2\nb = 2\na = 2\n"
    );
    assert!(one("aaa", "aa", "b").unwrap_err().contains("2 times"));
}

#[test]
fn a_whole_line_is_meant_where_it_also_stands_inside_another() {
    let text = "max = 1\nx = 1\n";
    assert_eq!(one(text, "x = 1", "x = 2").unwrap(), "max = 1\nx = 2\n");
}

#[test]
fn lines_that_differ_in_indentation_are_found_as_before() {
    let text = "class A:\n    def f(self):\n        return 1\n";
    assert_eq!(
        one(
            text,
            "def f(self):\n    return 1\n",
            "def f(self):\n    return 2\n"
        )
        .unwrap(),
        "class A:\n    def f(self):\n        return 2\n"
    );
}

#[test]
fn edits_of_one_call_follow_each_other_and_are_all_made_or_none() {
    let edits = [edit("one", "two"), edit("two", "three")];
    assert_eq!(
        replace_passages("a", Some("one\n"), &edits).unwrap(),
        "three\n"
    );
    let edits = [edit("one", "two"), edit("four", "five"), edit("six", "six")];
    let failures = replace_passages("a", Some("one\n"), &edits).unwrap_err();
    let numbers: Vec<usize> = failures.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn windows_line_endings_stay() {
    assert_eq!(
        one("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz").unwrap(),
        "x\r\ny\r\nz\r\nc\r\n"
    );
}

#[test]
fn nothing_makes_a_file_and_does_not_replace_one() {
    assert_eq!(
        replace_passages("a", None, &[edit("", "x\n")]).unwrap(),
        "x\n"
    );
    assert!(
        one("y\n", "", "x\n")
            .unwrap_err()
            .contains("`old` is empty")
    );
    let error = replace_passages("a", None, &[edit("y", "x\n")]).unwrap_err();
    assert_eq!(error[0].1, PassageError::NoFile("a".to_owned()));
}

#[test]
fn a_miss_says_where_the_nearest_is_or_that_it_is_done_already() {
    let text = "def f():\n    return compute(1)\n";
    let error = one(text, "    return compute(2)", "    return 3").unwrap_err();
    assert!(error.starts_with("`old` does not stand in a.py. The nearest place is line 2:"));
    assert!(
        error.contains("the file has `    return compute(1)`"),
        "{error}"
    );
    let error = one(text, "zzz", "compute(1)").unwrap_err();
    assert!(
        error.ends_with("`new` stands there already, at line 2."),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_text_and_any_passage_are_answered(
        text in "[ab \n]{0,30}", old in "[ab \n]{0,6}", new in "[ab \n]{0,6}", all: bool,
    ) {
        let edits = [PassageEdit { old: old.clone(), new: new.clone(), all }];
        if let Ok(changed) = replace_passages("a", Some(&text), &edits)
            && text.matches(&old).count() == 1 && !old.is_empty() && !all
            && places(&text, &old).0 == 1
        {
            prop_assert_eq!(changed, text.replacen(&old, &new, 1));
        }
    }

    #[test]
    fn a_line_cut_out_of_a_file_is_found_in_it(
        lines in proptest::collection::vec("[a-z]{3,8}", 3..10), at in 0_usize..9,
    ) {
        let at = at % lines.len();
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
        let alone = lines.iter().filter(|line| line.contains(&lines[at])).count() == 1;
        prop_assume!(alone);
        let changed = replace_passages("a", Some(&text), &[edit(&lines[at], "CHANGED")]).unwrap();
        prop_assert_eq!(changed.lines().nth(at), Some("CHANGED"));
    }
}
