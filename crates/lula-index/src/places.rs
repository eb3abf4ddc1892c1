//! Where what a task names stands in the sources: what a search by hand would find, the lines that tell
//! most first.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use crate::names::is_unseen;
use crate::standing::FileStanding;
use crate::terms::{TaskTerm, TaskTermKind, fixed_part};

/// Most lines that are shown of a file, and for a term.
const OF_FILE: usize = 4;
const OF_TERM: usize = 6;
/// Most lines of a term that are looked at in one file.
const LOOKED_AT: usize = 40;
/// Longest line that is shown, in characters.
const LINE: usize = 160;
/// In a project of fewer files no word is common.
const FEW: usize = 8;

/// A line that holds what a task names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlace {
    pub path: String,
    /// The number of the line, from 1.
    pub line: u32,
    /// The line, without its indentation.
    pub text: String,
}

impl fmt::Display for TaskPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = |text: &str| -> String { text.chars().filter(|c| !is_unseen(*c)).collect() };
        write!(f, "{}:{}:{}", seen(&self.path), self.line, seen(&self.text))
    }
}

/// What was found of the terms of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskPlaces {
    /// Lines, the best file first and in the order of its text.
    pub lines: Vec<TaskPlace>,
    /// Terms that stand in no source.
    pub missing: Vec<TaskTerm>,
    /// Terms that stand in so many files that they tell nothing.
    pub common: Vec<String>,
}

/// Looks for terms in texts, given in the order of their paths; shows lines of so many bytes together.
pub fn task_places<'a>(
    terms: &[TaskTerm],
    texts: impl Iterator<Item = (&'a str, &'a str)>,
    most: usize,
) -> TaskPlaces {
    let search = Search::new(terms);
    let mut hits: Vec<Hit<'a>> = Vec::new();
    let mut files_with = vec![0_usize; terms.len()];
    let mut files = 0_usize;
    for (path, text) in texts {
        files += 1;
        let found = search.look(path, text);
        let held: HashSet<usize> = found.iter().flat_map(|hit| hit.terms.clone()).collect();
        for term in held {
            files_with[term] += 1;
        }
        hits.extend(found);
    }
    let is_common = |term: usize| {
        let exempt = matches!(terms[term].kind, TaskTermKind::Message | TaskTermKind::Flag);
        !exempt && files >= FEW && files_with[term] * 2 >= files
    };
    // Words are looked at only where nothing better is found.
    let better = (0..terms.len()).any(|term| {
        terms[term].kind != TaskTermKind::Word && files_with[term] > 0 && !is_common(term)
    });
    // A word of one file in five is one of the language that the project is written in.
    let is_frequent = |with: usize| files >= FEW && with * 5 > files;
    let worth = |term: usize| {
        let kind = match terms[term].kind {
            _ if is_common(term) => 0.0,
            TaskTermKind::Message => 8.0,
            TaskTermKind::Flag => 4.0,
            TaskTermKind::Name => 3.0,
            TaskTermKind::Word if better || is_frequent(files_with[term]) => 0.0,
            TaskTermKind::Word => 1.0,
        };
        kind / rarity(files_with[term])
    };
    for hit in &mut hits {
        let sum: f64 = hit.terms.iter().map(|term| worth(*term)).sum();
        hit.score = sum * hit.standing * hit.kind();
    }
    hits.retain(|hit| hit.score > 0.0);
    hits.sort_by(|a, b| {
        let order = b.score.total_cmp(&a.score);
        order.then_with(|| (a.path, a.line).cmp(&(b.path, b.line)))
    });
    let missing = terms
        .iter()
        .enumerate()
        .filter(|(at, term)| files_with[*at] == 0 && term.kind != TaskTermKind::Word);
    TaskPlaces {
        lines: chosen(hits, terms.len(), most),
        missing: missing.map(|(_, term)| term.clone()).collect(),
        common: (0..terms.len())
            .filter(|term| is_common(*term))
            .map(|term| terms[term].text.clone())
            .collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer files than 2^52")]
fn rarity(files: usize) -> f64 {
    (files as f64 + 2.0).ln()
}

/// The best lines that fit, file by file.
fn chosen(hits: Vec<Hit<'_>>, terms: usize, most: usize) -> Vec<TaskPlace> {
    let mut left = most;
    let mut of_term = vec![0_usize; terms];
    let mut by_file: BTreeMap<&str, Vec<TaskPlace>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for hit in hits {
        let shown = by_file.get(hit.path).map_or(0, Vec::len);
        if shown == OF_FILE || hit.terms.iter().all(|term| of_term[*term] >= OF_TERM) {
            continue;
        }
        let place = TaskPlace {
            path: hit.path.to_owned(),
            line: hit.line,
            text: shortened(hit.text),
        };
        let size = place.path.len() + place.text.len() + 8;
        if size > left {
            break;
        }
        left -= size;
        for term in &hit.terms {
            of_term[*term] += 1;
        }
        if shown == 0 {
            order.push(hit.path);
        }
        by_file.entry(hit.path).or_default().push(place);
    }
    let mut lines = Vec::new();
    for path in order {
        let mut own = by_file.remove(path).unwrap_or_default();
        own.sort_by_key(|place| place.line);
        lines.append(&mut own);
    }
    lines
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= LINE {
        return text.to_owned();
    }
    let cut: String = text.chars().take(LINE).collect();
    format!("{cut}…")
}

struct Hit<'a> {
    path: &'a str,
    line: u32,
    text: &'a str,
    /// By their places in the list of terms.
    terms: Vec<usize>,
    standing: f64,
    score: f64,
}

impl Hit<'_> {
    /// A line that only brings a name in says less than one that uses it.
    fn kind(&self) -> f64 {
        let text = self.text.trim_start();
        let brings = [
            "import ",
            "from ",
            "use ",
            "#include",
            "require(",
            "export * from",
        ];
        let remarks = ["#", "//", "*", "/*", "--", "\"\"\"", ":", ">>>"];
        if brings.iter().any(|start| text.starts_with(start)) {
            0.2
        } else if remarks.iter().any(|start| text.starts_with(start)) {
            0.3
        } else {
            1.0
        }
    }
}

/// The terms, ready to be looked for.
struct Search<'t> {
    names: HashMap<&'t str, usize>,
    /// What is found as it is written: whole, and if nowhere, by what does not vary.
    literal: Vec<(usize, &'t str, Option<&'t str>)>,
}

impl<'t> Search<'t> {
    fn new(terms: &'t [TaskTerm]) -> Self {
        let mut search = Self {
            names: HashMap::new(),
            literal: Vec::new(),
        };
        for (at, term) in terms.iter().enumerate() {
            match term.kind {
                TaskTermKind::Name | TaskTermKind::Word => {
                    search.names.insert(term.text.as_str(), at);
                }
                TaskTermKind::Message => {
                    search
                        .literal
                        .push((at, &term.text, fixed_part(&term.text)));
                }
                TaskTermKind::Flag => search.literal.push((at, &term.text, None)),
            }
        }
        search
    }

    fn look<'a>(&self, path: &'a str, text: &'a str) -> Vec<Hit<'a>> {
        let standing = FileStanding::of(path).weight();
        if standing == 0.0 {
            return Vec::new();
        }
        let literal: Vec<(usize, &str)> = self
            .literal
            .iter()
            .filter_map(|(term, whole, part)| {
                let wanted = [Some(*whole), *part].into_iter().flatten();
                wanted
                    .into_iter()
                    .find(|wanted| text.contains(wanted))
                    .map(|it| (*term, it))
            })
            .collect();
        let mut hits: Vec<Hit<'a>> = Vec::new();
        let mut seen: HashMap<usize, usize> = HashMap::new();
        for (line, number) in text.lines().zip(1_u32..) {
            let mut terms: Vec<usize> = Vec::new();
            for word in line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')) {
                if let Some(term) = self.names.get(word)
                    && !terms.contains(term)
                {
                    terms.push(*term);
                }
            }
            terms.extend(
                literal
                    .iter()
                    .filter(|(_, it)| line.contains(it))
                    .map(|(term, _)| *term),
            );
            terms.retain(|term| {
                let seen = seen.entry(*term).or_default();
                *seen += 1;
                *seen <= LOOKED_AT
            });
            if !terms.is_empty() {
                hits.push(Hit {
                    path,
                    line: number,
                    text: line,
                    terms,
                    standing,
                    score: 0.0,
                });
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::task_terms;

    fn found(task: &str, files: &[(&str, &str)], most: usize) -> Vec<String> {
        let terms = task_terms(task, &[]);
        let places = task_places(&terms, files.iter().copied(), most);
        let lines = places.lines.iter();
        lines.map(ToString::to_string).collect()
    }

    const FILES: [(&str, &str); 4] = [
        (".gitignore", "load_items\n"),
        ("CHANGELOG.md", "- load_items reads twice\n"),
        (
            "shop/items.py",
            "def load_items():\n    raise ValueError('cannot load the list')\n",
        ),
        (
            "tests/test_items.py",
            "from shop.items import load_items\n\nload_items()\n",
        ),
    ];

    #[test]
    fn source_comes_first_and_prose_last() {
        let lines = found("load_items fails", &FILES, 1_000);
        assert_eq!(
            lines,
            [
                "shop/items.py:1:def load_items():",
                "tests/test_items.py:1:from shop.items import load_items",
                "tests/test_items.py:3:load_items()",
                "CHANGELOG.md:1:- load_items reads twice",
            ]
        );
        assert_eq!(found("load_items fails", &FILES, 40).len(), 1);
    }

    #[test]
    fn a_message_leads_to_where_it_is_written() {
        let lines = found("ValueError: cannot load the list 'a' of 3", &FILES, 1_000);
        assert_eq!(
            lines[0],
            "shop/items.py:2:raise ValueError('cannot load the list')"
        );
    }

    #[test]
    fn a_name_in_half_of_all_files_tells_nothing() {
        let paths: Vec<String> = (0..10).map(|n| format!("shop/m{n}.py")).collect();
        let mut files: Vec<(&str, &str)> = paths
            .iter()
            .map(|path| (path.as_str(), "from shop import the_base\n"))
            .collect();
        files.push(("shop/odd.py", "the_rare_one()\n"));
        let lines = found("the_base and the_rare_one differ", &files, 1_000);
        assert_eq!(lines, ["shop/odd.py:1:the_rare_one()"]);
        let places = task_places(&task_terms("the_base", &[]), files.iter().copied(), 100);
        assert_eq!(places.common, ["the_base"]);
    }
}
