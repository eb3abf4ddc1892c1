//! What a task names: identifiers, options and messages, apart from the words around them. They weigh
//! most when a project is looked over: what a person would search for at once.

use std::collections::HashSet;

use crate::names;

/// Longest text that is looked at, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// Most terms of each kind.
const MESSAGES: usize = 8;
const NAMES: usize = 24;
const WORDS: usize = 60;
/// Shortest and longest message that is looked for.
const MESSAGE: std::ops::RangeInclusive<usize> = 8..=160;

/// What a term is, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskTermKind {
    /// What a program printed: quoted, or behind the name of an error.
    Message,
    /// A name of code: with an underscore or a change of case, quoted, called, or behind a dot.
    Name,
    /// An option of a command line, with its dashes.
    Flag,
    /// A word that may be a name of code all the same.
    Word,
}

/// Something that a task names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskTerm {
    pub text: String,
    pub kind: TaskTermKind,
}

/// What a text names, the most telling first and then in the order of the text. `silent` are names that
/// tell nothing, such as the project's own.
pub fn task_terms(text: &str, silent: &[String]) -> Vec<TaskTerm> {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut found = Collected::new(silent);
    // What a person says comes before what they paste.
    let mut pasted = Vec::new();
    let mut fenced = false;
    for line in text[..end].lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            pasted.push(line);
        } else {
            found.line(line);
        }
    }
    for line in pasted {
        found.line(line);
    }
    found.sorted()
}

struct Collected {
    silent: HashSet<String>,
    terms: Vec<TaskTerm>,
}

impl Collected {
    fn new(silent: &[String]) -> Self {
        Self {
            silent: silent.iter().map(|name| plain(name)).collect(),
            terms: Vec::new(),
        }
    }

    fn sorted(mut self) -> Vec<TaskTerm> {
        self.terms.sort_by_key(|term| term.kind);
        let mut left = [MESSAGES, NAMES, NAMES, WORDS];
        self.terms.retain(|term| {
            let left = &mut left[term.kind as usize];
            let fits = *left > 0;
            *left = left.saturating_sub(1);
            fits
        });
        self.terms
    }

    fn add(&mut self, kind: TaskTermKind, text: &str) {
        if text.is_empty() || self.silent.contains(&plain(text)) {
            return;
        }
        let known = self.terms.iter().position(|term| term.text == text);
        match known {
            // The same word said again as a name is a name.
            Some(at) if self.terms[at].kind > kind => self.terms[at].kind = kind,
            Some(_) => {}
            None => {
                self.terms.push(TaskTerm {
                    text: text.to_owned(),
                    kind,
                });
            }
        }
    }

    fn line(&mut self, line: &str) {
        for quoted in quoted(line) {
            self.quoted(quoted);
        }
        self.error(line);
        self.flags(line);
        self.names(line);
    }

    /// Quoted text is a message where it is several words, and code where it is one.
    fn quoted(&mut self, text: &str) {
        let text = text.trim();
        let several = text.split_whitespace().count() > 1;
        if several && MESSAGE.contains(&text.len()) && !text.contains('(') {
            self.add(TaskTermKind::Message, text);
        }
        if !several && !text.starts_with('-') && !looks_like_path(text) {
            for name in text
                .split(|c: char| !is_name(c))
                .filter(|name| name.len() > 1)
            {
                if !name.starts_with(|c: char| c.is_ascii_digit()) {
                    self.add(TaskTermKind::Name, name);
                }
            }
        }
    }

    /// `SomeError: what it says`.
    fn error(&mut self, line: &str) {
        let Some((before, said)) = line.split_once(": ") else {
            return;
        };
        let name = before
            .rsplit(|c: char| !is_name(c))
            .next()
            .unwrap_or_default();
        let errs = ["Error", "Exception", "Warning", "Failure", "panic", "error"];
        if errs.iter().any(|end| name.ends_with(end)) {
            let said = said.trim().trim_end_matches('.');
            if MESSAGE.contains(&said.len()) && said.contains(' ') {
                self.add(TaskTermKind::Message, said);
            }
        }
    }

    fn flags(&mut self, line: &str) {
        for word in line.split(|c: char| c.is_whitespace() || "`'\"()[],;=".contains(c)) {
            let Some(name) = word.strip_prefix("--") else {
                continue;
            };
            let name = name.trim_end_matches(|c: char| !c.is_alphanumeric());
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.len() > 1 && name.chars().all(fits) {
                self.add(TaskTermKind::Flag, &format!("--{name}"));
                let code = name.replace('-', "_");
                if code.len() > 3 {
                    self.add(TaskTermKind::Name, &code);
                }
            }
        }
    }

    fn names(&mut self, line: &str) {
        let mut from = 0;
        while let Some(start) = line[from..].find(is_name).map(|at| from + at) {
            let rest = &line[start..];
            let end = start + rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
            from = end;
            let (word, before, after) = (&line[start..end], &line[..start], &line[end..]);
            if word.starts_with(|c: char| c.is_ascii_digit()) || before.ends_with('-') {
                continue;
            }
            let in_path =
                before.ends_with('/') || after.starts_with('/') || is_file(before, word, after);
            let called = after.starts_with('(') && word.len() > 1;
            let dotted = (before.ends_with('.')
                && before.len() > 1
                && !before.ends_with("..")
                && before[..before.len() - 1].ends_with(is_name))
                || after
                    .strip_prefix(['.', ':'])
                    .map(|rest| rest.strip_prefix(':').unwrap_or(rest))
                    .is_some_and(|rest| {
                        rest.starts_with(|c: char| c.is_alphabetic() || c == '_')
                            && !after.starts_with(": ")
                    });
            if in_path {
                continue;
            }
            let plain = word.trim_matches('_');
            if looks_like_name(word) || ((called || dotted) && plain.len() > 2) {
                self.add(TaskTermKind::Name, word);
            } else if plain.len() > 2 && !names::is_common_word(&plain.to_lowercase()) {
                self.add(TaskTermKind::Word, plain);
            }
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// A name without what writers of it do differently.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', '_', '.', ' '], "")
}

/// Whether a word is one that no language for people has: `load_items`, `ShoppingCart`, `getItem`.
fn looks_like_name(word: &str) -> bool {
    let inner = word.trim_matches('_');
    let inside = inner.get(1..).unwrap_or_default();
    let mixed = inside.chars().any(char::is_uppercase) && inner.chars().any(char::is_lowercase);
    inner.len() > 2
        && (inner.contains('_') || mixed || word.starts_with("__") || word.starts_with('_'))
}

fn looks_like_path(text: &str) -> bool {
    text.contains('/')
        || text
            .rsplit_once('.')
            .is_some_and(|(_, ending)| known_ending(ending))
}

/// Whether a word is part of the name of a file: `cart.py`.
fn is_file(before: &str, word: &str, after: &str) -> bool {
    let ends = before.ends_with('.') && known_ending(word) && !after.starts_with(['(', '.']);
    let begins = after.strip_prefix('.').is_some_and(|rest| {
        let ending = rest.split(|c: char| !is_name(c)).next().unwrap_or_default();
        let more = &rest[ending.len()..];
        known_ending(ending) && !more.starts_with(['(', '.'])
    });
    ends || begins
}

fn known_ending(ending: &str) -> bool {
    let more = [
        "md", "rst", "txt", "toml", "yaml", "yml", "json", "cfg", "ini", "html", "css", "lock",
        "sh", "xml",
    ];
    more.contains(&ending) || crate::language::IndexLanguage::of(&format!("x.{ending}")).is_some()
}

/// What stands between quotes or backticks on a line.
fn quoted(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (open, close) in [('`', '`'), ('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’')] {
        let mut from = 0;
        while let Some(start) = line[from..].find(open).map(|at| from + at) {
            let inside = start + open.len_utf8();
            // An apostrophe opens nothing.
            let apostrophe = open == '\'' && line[..start].ends_with(char::is_alphanumeric);
            let Some(end) = line[inside..].find(close).map(|at| inside + at) else {
                break;
            };
            if apostrophe {
                from = inside;
                continue;
            }
            found.push(&line[inside..end]);
            from = end + close.len_utf8();
        }
    }
    found
}

/// What of a message is the same whatever was put into it: its longest piece without numbers, quotes
/// and paths.
pub(crate) fn fixed_part(message: &str) -> Option<&str> {
    let varies = |c: char| c.is_ascii_digit() || "'\"`{}<>%[]()/\\=".contains(c);
    message
        .split(varies)
        .map(|piece| piece.trim_matches(|c: char| c.is_whitespace() || ":,.;-".contains(c)))
        .filter(|piece| piece.len() >= 10 && piece.contains(' '))
        .max_by_key(|piece| piece.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let found = task_terms(text, &["my-shop".to_owned()]);
        found
            .into_iter()
            .map(|term| format!("{:?} {}", term.kind, term.text))
            .collect()
    }

    #[test]
    fn names_options_and_messages_come_before_words() {
        assert_eq!(
            terms(
                "my_shop: the discount of `total` in ShoppingCart.apply is wrong with --dry-run.\n\
                 It prints \"no such price\", see shop/cart.py and load_items()."
            ),
            [
                "Message no such price",
                "Name total",
                "Name dry_run",
                "Name ShoppingCart",
                "Name apply",
                "Name load_items",
                "Flag --dry-run",
                "Word discount",
                "Word prints",
                "Word price",
            ]
        );
    }

    #[test]
    fn an_error_says_what_to_look_for() {
        let found = terms("It ends in\n```\nValueError: unknown unit 'km' for 3\n```\nwhen run.");
        assert_eq!(found[0], "Message unknown unit 'km' for 3");
        assert!(found.contains(&"Name ValueError".to_owned()), "{found:?}");
        assert_eq!(fixed_part("unknown unit 'km' for 3"), Some("unknown unit"));
        assert_eq!(fixed_part("x 'km' for 3"), None);
    }

    #[test]
    fn an_apostrophe_quotes_nothing_and_a_sentence_names_nothing() {
        let found = terms("It doesn't work and it shouldn't either. Nothing happens. It's done");
        assert!(
            found.iter().all(|term| term.starts_with("Word")),
            "{found:?}"
        );
    }
}
