//! Cases made from real-looking files: a known change, its SEARCH bent in every way models bend
//! it, and the one right result.

use std::collections::BTreeMap;

use lula_edit::{AppliedEdit, FileEdit, anchor, apply, functions, syntax};

const FILES: [(&str, &str); 6] = [
    ("shop.py", include_str!("corpus/shop.py")),
    ("queue.rs", include_str!("corpus/queue.rs")),
    ("words.go", include_str!("corpus/words.go")),
    ("router.js", include_str!("corpus/router.js")),
    ("Account.java", include_str!("corpus/Account.java")),
    ("ring.c", include_str!("corpus/ring.c")),
];

/// What must come of a case.
enum ExpectedEdit {
    Become(String),
    /// An error: any text would be a guess.
    Fail,
}

struct Case {
    kind: &'static str,
    file: String,
    edit: FileEdit,
    must: ExpectedEdit,
}

/// A change: lines `start..end` are quoted, the line `at` becomes `new`.
struct Change {
    path: &'static str,
    lines: Vec<String>,
    start: usize,
    end: usize,
    at: usize,
    new: Vec<String>,
}

impl Change {
    fn search(&self) -> Vec<String> {
        self.lines[self.start..self.end].to_vec()
    }

    fn replace(&self) -> Vec<String> {
        let mut lines = self.search();
        lines.splice(
            self.at - self.start..=self.at - self.start,
            self.new.clone(),
        );
        lines
    }

    fn result_of(&self, file: &[String]) -> Vec<String> {
        let mut lines = file.to_vec();
        lines.splice(self.at..=self.at, self.new.clone());
        lines
    }

    /// How often the quoted lines stand in the file.
    fn occurrences(&self) -> usize {
        let search = self.search();
        self.lines
            .windows(search.len())
            .filter(|window| **window == *search)
            .count()
    }

    fn edit(&self, search: &[String], replace: &[String]) -> FileEdit {
        FileEdit::Replace {
            path: self.path.into(),
            search: text(search),
            replace: text(replace),
        }
    }
}

fn text(lines: &[String]) -> String {
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// A different window for each line of code.
fn changes() -> Vec<Change> {
    let mut changes = Vec::new();
    for (path, source) in FILES {
        let lines: Vec<String> = source.lines().map(str::to_owned).collect();
        for at in (2..lines.len() - 2).step_by(3) {
            if lines[at].trim().len() < 4 {
                continue;
            }
            let start = at.saturating_sub(2 + at % 2);
            let end = (at + 2 + at % 3).min(lines.len());
            if lines[start].trim().is_empty() || lines[end - 1].trim().is_empty() {
                continue;
            }
            let pad = indent(&lines[at]).to_owned();
            let mut new = vec![format!("{pad}changed_line({at})")];
            if at % 2 == 0 {
                new.push(format!("{pad}one_more_line({at})"));
            }
            changes.push(Change {
                path,
                lines: lines.clone(),
                start,
                end,
                at,
                new,
            });
        }
    }
    changes
}

fn map(lines: &[String], change: impl Fn(&str) -> String) -> Vec<String> {
    lines.iter().map(|line| change(line)).collect()
}

#[allow(clippy::too_many_lines)] // One list of ways to bend a block.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for change in changes() {
        let file = &change.lines;
        let (search, replace) = (change.search(), change.replace());
        let once = change.occurrences() == 1;
        let right = |file: &[String]| {
            if once {
                ExpectedEdit::Become(text(&change.result_of(file)))
            } else {
                ExpectedEdit::Fail
            }
        };
        let mut add = |kind, file: String, edit, must| {
            cases.push(Case {
                kind,
                file,
                edit,
                must,
            });
        };

        add(
            "exact",
            text(file),
            change.edit(&search, &replace),
            right(file),
        );
        // Blanks at line ends, in the search or in the file.
        let spaced = |line: &str| format!("{line}  ");
        let edit = change.edit(&map(&search, spaced), &map(&replace, spaced));
        let mut expected = file.clone();
        expected.splice(change.at..=change.at, map(&change.new, spaced));
        let must = if once {
            ExpectedEdit::Become(text(&expected))
        } else {
            ExpectedEdit::Fail
        };
        add("trailing blanks in the search", text(file), edit, must);
        let spaced_file = map(file, |line| {
            if line.is_empty() {
                line.into()
            } else {
                format!("{line} ")
            }
        });
        add(
            "trailing blanks in the file",
            text(&spaced_file),
            change.edit(&search, &replace),
            right(&spaced_file),
        );
        // The whole block moved to the right or to the margin.
        let deeper = |line: &str| {
            if line.is_empty() {
                String::new()
            } else {
                format!("    {line}")
            }
        };
        let edit = change.edit(&map(&search, deeper), &map(&replace, deeper));
        add("indented too deep", text(file), edit, right(file));
        let margin = search
            .iter()
            .filter(|line| !line.trim().is_empty())
            .map(|line| indent(line))
            .min_by_key(|pad| pad.len())
            .unwrap_or_default()
            .to_owned();
        if !margin.is_empty() {
            let shallow = |line: &str| {
                line.strip_prefix(margin.as_str())
                    .unwrap_or(line)
                    .to_owned()
            };
            let edit = change.edit(&map(&search, shallow), &map(&replace, shallow));
            // At the margin, lines of different depth can become alike.
            let bent = map(&search, shallow);
            let alike = file
                .windows(bent.len())
                .filter(|window| {
                    let pad = indent(&window[0]).strip_suffix(indent(&bent[0]));
                    pad.is_some_and(|pad| {
                        window.iter().zip(&bent).all(|(there, line)| {
                            if line.is_empty() {
                                there.is_empty()
                            } else {
                                *there == format!("{pad}{line}")
                            }
                        })
                    })
                })
                .count();
            let must = if alike == 1 {
                right(file)
            } else {
                ExpectedEdit::Fail
            };
            add("not indented", text(file), edit, must);
        }
        // Tabs in the file, spaces in the answer.
        if change.path != "words.go" {
            let tabbed = |line: &str| {
                let pad = indent(line).len();
                format!("{}{}", "\t".repeat(pad / 4), " ".repeat(pad % 4)) + line.trim_start()
            };
            if search
                .iter()
                .chain(&change.new)
                .all(|line| indent(line).len().is_multiple_of(4))
                && search.iter().any(|line| !indent(line).is_empty())
            {
                let file = map(file, tabbed);
                let mut expected = file.clone();
                expected.splice(change.at..=change.at, map(&change.new, tabbed));
                let must = if once {
                    ExpectedEdit::Become(text(&expected))
                } else {
                    ExpectedEdit::Fail
                };
                add(
                    "spaces for tabs",
                    text(&file),
                    change.edit(&search, &replace),
                    must,
                );
            }
        }
        // Line ends, byte order mark, no last line end.
        let crlf = |lines: &[String]| {
            lines
                .iter()
                .flat_map(|line| [line.as_str(), "\r\n"])
                .collect::<String>()
        };
        let must = if once {
            ExpectedEdit::Become(crlf(&change.result_of(file)))
        } else {
            ExpectedEdit::Fail
        };
        add("CRLF", crlf(file), change.edit(&search, &replace), must);
        let must = if once {
            ExpectedEdit::Become(format!(
                "\u{feff}{}",
                text(&change.result_of(file)).trim_end()
            ))
        } else {
            ExpectedEdit::Fail
        };
        add(
            "byte order mark, no last line end",
            format!("\u{feff}{}", text(file).trim_end()),
            change.edit(&search, &replace),
            must,
        );
        // Quotes of the other kind in a line that does not change.
        let requoted = |lines: &[String]| {
            lines
                .iter()
                .map(|line| {
                    if change.new.contains(line) || line.trim().starts_with("\"\"\"") {
                        line.clone()
                    } else {
                        line.replace('"', "'")
                    }
                })
                .collect::<Vec<_>>()
        };
        if requoted(&search) != search {
            add(
                "other quotes",
                text(file),
                change.edit(&requoted(&search), &requoted(&replace)),
                right(file),
            );
        }
        // A blank line left out.
        if search.iter().any(String::is_empty) && change.new.iter().all(|line| !line.is_empty()) {
            let full = |lines: &[String]| {
                lines
                    .iter()
                    .filter(|l| !l.is_empty())
                    .cloned()
                    .collect::<Vec<_>>()
            };
            add(
                "blank line left out",
                text(file),
                change.edit(&full(&search), &full(&replace)),
                right(file),
            );
        }
        // Stale: a word of the quoted code is not what the file has.
        let stale = |line: &str| {
            line.replacen("self", "this_one", 1)
                .replacen("return", "yield_back", 1)
        };
        if map(&search, stale) != search {
            let edit = change.edit(&map(&search, stale), &map(&replace, stale));
            add("stale word", text(file), edit, ExpectedEdit::Fail);
        }
        // The quoted lines are gone; what remains of the file must not be taken for them.
        let mut without = file.clone();
        without.drain(change.start..change.end);
        if once {
            add(
                "lines gone",
                text(&without),
                change.edit(&search, &replace),
                ExpectedEdit::Fail,
            );
        }
        // The same lines twice.
        let mut twice = file.clone();
        twice.extend(search.clone());
        add(
            "twice",
            text(&twice),
            change.edit(&search, &replace),
            ExpectedEdit::Fail,
        );
        // The fixed code where the old code belongs, as a small model wrote it.
        add(
            "new code as old",
            text(file),
            change.edit(&replace, &search),
            ExpectedEdit::Fail,
        );
        add(
            "no change",
            text(file),
            change.edit(&search, &search),
            ExpectedEdit::Become(text(file)),
        );
        // Numbered lines.
        let hashes = anchor::hashes(&text(file));
        let anchor_at = |index: usize| anchor::LineAnchor {
            line: index + 1,
            hash: hashes[index].clone(),
        };
        let range = FileEdit::Lines {
            path: change.path.into(),
            first: anchor_at(change.start),
            last: anchor_at(change.end - 1),
            text: text(&replace),
        };
        add(
            "lines",
            text(file),
            range.clone(),
            ExpectedEdit::Become(text(&change.result_of(file))),
        );
        let mut moved = vec!["new first line".to_owned()];
        moved.extend(file.clone());
        add(
            "lines, file has moved",
            text(&moved),
            range.clone(),
            ExpectedEdit::Fail,
        );
        let mut inside = file.clone();
        inside[change.start].push_str(" changed meanwhile");
        add(
            "lines, changed inside",
            text(&inside),
            range,
            ExpectedEdit::Fail,
        );
    }
    cases
}

#[test]
fn no_edit_ever_lands_in_the_wrong_place() {
    let cases = cases();
    let mut kinds: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let (all, fit, right) = kinds.entry(case.kind).or_default();
        *all += 1;
        let result = apply(&case.edit, Some(&case.file));
        match (&case.must, result) {
            (ExpectedEdit::Become(expected), Ok((text, _))) if text == *expected => {
                *fit += 1;
                *right += 1;
            }
            (ExpectedEdit::Become(_), Err(_)) => *fit += 1,
            (ExpectedEdit::Fail, Err(_)) => {}
            (ExpectedEdit::Become(expected), Ok((text, _))) => {
                wrong.push(format!(
                    "{}: {:?}\ngot {text}\nexpected {expected}",
                    case.kind, case.edit
                ));
            }
            (ExpectedEdit::Fail, Ok((text, _))) => {
                wrong.push(format!(
                    "{}: {:?}\ngot {text}\nexpected an error",
                    case.kind, case.edit
                ));
            }
        }
    }
    let (mut fitting, mut succeeded) = (0, 0);
    for (kind, (all, fit, right)) in &kinds {
        println!("{kind:36} {all:4} cases, {fit:4} that fit, {right:4} applied");
        fitting += fit;
        succeeded += right;
    }
    println!(
        "{} cases, {succeeded} of {fitting} applied, {} wrong",
        cases.len(),
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{} wrong, the first:\n{}",
        wrong.len(),
        wrong[0]
    );
    assert!(cases.len() >= 300, "only {} cases", cases.len());
    assert!(succeeded * 100 >= fitting * 97, "{succeeded} of {fitting}");
}

#[test]
fn a_function_is_rewritten_by_its_number_and_nothing_else_is() {
    let mut checked = 0;
    for (path, source) in FILES {
        for (index, function) in functions::list(path, source).iter().enumerate() {
            let own: Vec<String> = source
                .lines()
                .skip(function.first - 1)
                .take(function.last + 1 - function.first)
                .map(|line| line.replace("item", "thing"))
                .collect();
            // Written from the margin, as models do.
            let pad = indent(&own[0]).to_owned();
            let at_margin = map(&own, |line| {
                line.strip_prefix(pad.as_str()).unwrap_or(line).to_owned()
            });
            let edit = FileEdit::Function {
                path: path.into(),
                number: index + 1,
                text: text(&at_margin),
            };
            let (result, _) = apply(&edit, Some(source)).unwrap();
            let mut expected: Vec<String> = source.lines().map(str::to_owned).collect();
            expected.splice(function.first - 1..function.last, own);
            assert_eq!(result, text(&expected), "{path} {}", function.name);
            assert_eq!(
                syntax::check(path, Some(source), &result),
                syntax::SyntaxVerdict::Fine
            );
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked}");
}

#[test]
fn a_file_written_whole_keeps_its_line_ends() {
    let edit = FileEdit::File {
        path: "a.txt".into(),
        text: "a\nb\n".into(),
    };
    assert_eq!(apply(&edit, Some("x\r\ny\r\n")).unwrap().0, "a\r\nb\r\n");
    assert_eq!(
        apply(&edit, None).unwrap(),
        ("a\nb\n".into(), AppliedEdit::Written)
    );
    assert_eq!(
        apply(&edit, Some("a\nb\n")).unwrap().1,
        AppliedEdit::Nothing
    );
}
