//! What a task says about names and files.

use std::collections::{HashMap, HashSet};

use crate::index::SymbolIndex;
use crate::names;
use crate::standing::FileStanding;
use crate::terms::{TaskTerm, TaskTermKind, task_terms};

/// What the map is for. An empty task gives the map of the project as such.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapQuery {
    /// The task in the user's words.
    pub text: String,
    /// Files that are known to matter.
    pub files: Vec<String>,
    /// Names that are known to matter.
    pub names: Vec<String>,
    /// Lines that are known to matter, each with its file: what they stand in is on the map.
    pub lines: Vec<(String, u32)>,
    /// Names that tell nothing, such as the project's own.
    pub silent: Vec<String>,
    /// Files the reader already has in full: they pull the map towards what they use, and are not
    /// in it.
    pub given: Vec<String>,
}

impl MapQuery {
    /// What the text and the names of the query name.
    pub(crate) fn terms(&self) -> Vec<TaskTerm> {
        let named = self.names.iter().map(|name| TaskTerm {
            text: name.clone(),
            kind: TaskTermKind::Name,
        });
        named.chain(task_terms(&self.text, &self.silent)).collect()
    }
}

/// Longest text whose words are looked at, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// In a project of fewer files no word is common.
const FEW: usize = 8;
/// Most words of a task that are told apart when files are counted.
const COUNTED: usize = 64;

/// How much names and paths have to do with a task, from 0 to 1.
pub(crate) struct Relevance {
    text: String,
    exact: HashSet<String>,
    words: HashSet<String>,
    /// How telling a word is: one that stands in every name tells nothing.
    telling: HashMap<String, f64>,
    /// Words of half of all paths: they tell no file from another.
    common_in_paths: HashSet<String>,
    files: HashSet<String>,
}

impl Relevance {
    /// With what is common in a project left out.
    pub(crate) fn of_project(task: &MapQuery, index: &SymbolIndex) -> Self {
        let mut relevance = Self::new(task, index.names.list().iter().map(String::as_str));
        if relevance.words.is_empty() {
            return relevance;
        }
        let common = common_words(&relevance.words, index);
        relevance.words.retain(|word| !common.contains(word));
        let paths: Vec<&str> = index.parsed().map(|(path, _)| path).collect();
        if paths.len() >= FEW {
            let mut counts: HashMap<String, usize> = HashMap::new();
            for path in &paths {
                let words: HashSet<String> = names::words(path).into_iter().collect();
                for word in words {
                    *counts.entry(word).or_default() += 1;
                }
            }
            let half = |count: usize| count * 2 >= paths.len();
            let common = counts.into_iter().filter(|(_, count)| half(*count));
            relevance.common_in_paths = common.map(|(word, _)| word).collect();
        }
        relevance
    }

    pub(crate) fn new<'a>(task: &MapQuery, names: impl Iterator<Item = &'a str>) -> Self {
        let mut end = task.text.len().min(MAX_TEXT);
        while !task.text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &task.text[..end];
        let terms = task.terms();
        let exact: HashSet<String> = terms
            .iter()
            .filter(|term| term.kind == TaskTermKind::Name)
            .map(|term| term.text.clone())
            .collect();
        let silent: HashSet<String> = task
            .silent
            .iter()
            .flat_map(|name| names::words(name))
            .collect();
        let words: HashSet<String> = names::words(text)
            .into_iter()
            .chain(task.names.iter().flat_map(|name| names::words(name)))
            .filter(|word| !names::is_stop_word(word) && !names::is_request(word))
            .filter(|word| !silent.contains(word))
            .collect();
        let telling = if words.is_empty() {
            HashMap::new()
        } else {
            telling(names)
        };
        let source = |path: &&String| FileStanding::of(path) == FileStanding::Source;
        let places = task.lines.iter().map(|(path, _)| path).filter(source);
        let files = task.files.iter().chain(&task.given).chain(places);
        let files = files.cloned().collect();
        Self {
            text: text.to_owned(),
            exact,
            words,
            telling,
            common_in_paths: HashSet::new(),
            files,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.exact.is_empty() && self.files.is_empty()
    }

    pub(crate) fn of_name(&self, name: &str) -> f64 {
        if self.exact.contains(name) {
            return 1.0;
        }
        self.of_words(name)
    }

    /// A path named in the task is as relevant as can be, one with its words less so.
    pub(crate) fn of_path(&self, path: &str) -> f64 {
        if self.names_file(path) {
            return 1.0;
        }
        let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
        0.5 * stem
            .rsplit('/')
            .take(3)
            .map(|part| self.of_words_but(part, &self.common_in_paths))
            .fold(0.0, f64::max)
    }

    pub(crate) fn names_file(&self, path: &str) -> bool {
        if self.files.contains(path) {
            return true;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        // A name without an ending is a word like any other.
        name.contains('.') && (mentions(&self.text, path) || mentions(&self.text, name))
    }

    fn of_words(&self, text: &str) -> f64 {
        self.of_words_but(text, &HashSet::new())
    }

    fn of_words_but(&self, text: &str, without: &HashSet<String>) -> f64 {
        if self.words.is_empty() {
            return 0.0;
        }
        let (mut all, mut matched, mut best) = (0.0, 0.0, 0.0_f64);
        for word in names::words(text) {
            if without.contains(&word) {
                continue;
            }
            let telling = self.telling.get(&word).copied().unwrap_or(1.0);
            all += telling;
            if self.words.contains(&word) {
                matched += telling;
                best = best.max(telling);
            }
        }
        if all > 0.0 {
            matched / all * (2.0 * best).min(1.0)
        } else {
            0.0
        }
    }
}

/// Whether the text names exactly this, and not only a longer name that ends in it.
fn mentions(text: &str, what: &str) -> bool {
    let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    text.match_indices(what).any(|(at, _)| {
        !text[..at].ends_with(joined) && !text[at + what.len()..].starts_with(joined)
    })
}

/// Those of the words that half of all files have in a name they define or use.
fn common_words(words: &HashSet<String>, index: &SymbolIndex) -> HashSet<String> {
    let mut sorted: Vec<&String> = words.iter().collect();
    sorted.sort();
    sorted.truncate(COUNTED);
    let bit_of: HashMap<&str, u64> = sorted
        .iter()
        .zip(0_u32..)
        .map(|(word, at)| (word.as_str(), 1_u64 << at))
        .collect();
    let of_name = |name: &String| {
        let held = names::words(name);
        held.iter()
            .filter_map(|word| bit_of.get(word.as_str()))
            .fold(0, |held, bit| held | bit)
    };
    let held: Vec<u64> = index.names.list().iter().map(of_name).collect();
    let mut counts = vec![0_usize; sorted.len()];
    let mut files = 0_usize;
    for (_, key) in index.parsed() {
        let Some(tags) = index.tags.get(&key) else {
            continue;
        };
        files += 1;
        let names = tags.symbols.iter().map(|symbol| symbol.name);
        let names = names.chain(tags.uses.iter().map(|(name, _)| *name));
        let all = names.fold(0, |all, name| {
            all | held.get(name as usize).copied().unwrap_or(0)
        });
        for (at, count) in counts.iter_mut().enumerate() {
            *count += usize::from(all & (1 << at) != 0);
        }
    }
    let common = sorted.into_iter().zip(counts);
    let common = common.filter(|(_, count)| files >= FEW && count * 2 >= files);
    common.map(|(word, _)| word.clone()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "far fewer names than 2^52")]
fn telling<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<String, f64> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut all = 0_usize;
    for name in names {
        all += 1;
        let words: HashSet<String> = names::words(name).into_iter().collect();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
    }
    let most = ((all + 2) as f64).ln();
    let tell = |count: usize| (((all + 2) as f64 / (count + 1) as f64).ln() / most).max(0.05);
    counts
        .into_iter()
        .map(|(word, count)| (word, tell(count)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relevance(text: &str) -> Relevance {
        let task = MapQuery {
            text: text.to_owned(),
            ..MapQuery::default()
        };
        let names = ["get_cart", "get_user", "get_price", "get_all", "CartTotal"];
        Relevance::new(&task, names.into_iter())
    }

    #[test]
    fn a_name_in_the_task_matters_most_and_a_word_of_it_some() {
        let relevance = relevance("total of the cart is wrong, see apply_discount");
        assert!((relevance.of_name("apply_discount") - 1.0).abs() < 1e-9);
        assert!((relevance.of_name("CartTotal") - 1.0).abs() < 1e-9);
        let some = relevance.of_name("get_cart");
        assert!(some > 0.3 && some < 1.0, "{some}");
        assert!(relevance.of_name("get_user") < 1e-9);
    }

    #[test]
    fn a_file_is_named_by_its_path_or_its_name() {
        let relevance = relevance("look at cart.py and src/price.rs");
        assert!(relevance.names_file("shop/cart.py"));
        assert!(relevance.names_file("src/price.rs"));
        assert!(!relevance.names_file("shop/smart_cart.py.txt"));
        assert!(!relevance.names_file("art.py"));
    }
}
