//! Looking up where something is defined.

use serde::Serialize;

use crate::index::SymbolIndex;
use crate::names;
use crate::symbol::SymbolKind;

/// A definition that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundDefinition {
    pub name: String,
    pub kind: SymbolKind,
    /// Its file, relative to the project.
    pub path: String,
    /// Its first line, from 1.
    pub line: u32,
    /// Its last line, from 1 and included.
    pub end: u32,
    /// What it looks like without its body.
    pub signature: String,
}

/// How well a name answers a query; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    Same,
    SameButCase,
    Begins,
    /// All words of the query are words of the name.
    Words,
    Contains,
}

impl SymbolIndex {
    /// The definitions whose names answer the query, the closest first, at most so many. An empty
    /// query is answered by all of them, in the order of paths.
    pub fn find(&self, query: &str, most: usize) -> Vec<FoundDefinition> {
        let query = query.trim();
        let lower = query.to_lowercase();
        let words = names::words(query);
        // Names are compared once, however many files define them.
        let matches: Vec<Option<Match>> = self
            .names
            .list()
            .iter()
            .map(|name| matched(name, query, &lower, &words))
            .collect();
        let mut hits = Vec::new();
        for (path, key) in self.parsed() {
            let symbols = self.tags.get(&key).map_or(&[][..], |tags| &tags.symbols);
            for symbol in symbols
                .iter()
                .filter(|symbol| symbol.kind != SymbolKind::Impl)
            {
                if let Some(how) = matches[symbol.name as usize] {
                    let length = if query.is_empty() {
                        0
                    } else {
                        self.names.get(symbol.name).len()
                    };
                    hits.push((how, length, path, symbol));
                }
            }
        }
        hits.sort_by_key(|(how, length, path, symbol)| (*how, *length, *path, symbol.line));
        hits.truncate(most);
        hits.into_iter()
            .map(|(_, _, path, symbol)| FoundDefinition {
                name: self.names.get(symbol.name).to_owned(),
                kind: symbol.kind,
                path: path.to_owned(),
                line: symbol.line,
                end: symbol.end,
                signature: symbol.signature.clone(),
            })
            .collect()
    }
}

fn matched(name: &str, query: &str, lower: &str, words: &[String]) -> Option<Match> {
    if query.is_empty() || name == query {
        return Some(Match::Same);
    }
    let name_lower = name.to_lowercase();
    if name_lower == lower {
        return Some(Match::SameButCase);
    }
    if name_lower.starts_with(lower) {
        return Some(Match::Begins);
    }
    let of_name = names::words(name);
    if !words.is_empty() && words.iter().all(|word| of_name.contains(word)) {
        return Some(Match::Words);
    }
    name_lower.contains(lower).then_some(Match::Contains)
}
