//! What a change reaches: from changed lines to what is defined there, and from there to what uses
//! it, step by step.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::index::SymbolIndex;
use crate::names::is_distinctive;
use crate::symbol::{IndexSymbol, SymbolKind};

/// A file that uses something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependentFile {
    pub path: String,
    /// How far it is: one where it uses what was changed, two where it uses a user, and so on.
    pub steps: usize,
}

impl SymbolIndex {
    /// The names of what stands at these lines of a file, each range from its first to its last
    /// line. Where none of them stands in a definition, whatever the file defines may depend on them.
    pub fn names_at(&self, path: &str, lines: &[(u32, u32)]) -> BTreeSet<String> {
        let symbols: Vec<IndexSymbol<&str>> = self.symbols(path).collect();
        let last = symbols.iter().map(|symbol| symbol.end).max().unwrap_or(0);
        let touched: BTreeSet<u32> = lines
            .iter()
            .flat_map(|(from, to)| *from..=(*to).min(last))
            .collect();
        let found = around(&symbols, touched);
        if found.is_empty() {
            return symbols
                .iter()
                .flat_map(|one| named(one, &symbols))
                .collect();
        }
        let found = found.into_iter().filter_map(|at| symbols.get(at));
        found.flat_map(|one| named(one, &symbols)).collect()
    }

    /// The files that use one of these names, or something that uses them, in at most so many steps;
    /// the nearest first. `text` is a file's text as it was indexed.
    pub fn users<'a>(
        &self,
        names: &BTreeSet<String>,
        most_steps: usize,
        text: &dyn Fn(&str) -> Option<&'a str>,
    ) -> Vec<DependentFile> {
        let mut known: BTreeSet<String> = BTreeSet::new();
        let mut new: BTreeSet<String> = names.clone();
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for steps in 1..=most_steps {
            if new.is_empty() {
                break;
            }
            let wanted: HashSet<&str> = new.iter().map(String::as_str).collect();
            let mut next = BTreeSet::new();
            for (path, key) in self.parsed() {
                let here = self.tags.get(&key).into_iter().flat_map(|tags| &tags.uses);
                let hits: HashSet<&str> = here
                    .map(|(name, _)| self.names.get(*name))
                    .filter(|name| wanted.contains(name))
                    .collect();
                if hits.is_empty() {
                    continue;
                }
                found.entry(path.to_owned()).or_insert(steps);
                // A use outside of every definition is an import, or belongs to nothing with a name.
                let symbols: Vec<IndexSymbol<&str>> = self.symbols(path).collect();
                let lines = text(path).map(|text| lines_with(text, &hits));
                let within = around(&symbols, lines.unwrap_or_default());
                let within = within.into_iter().filter_map(|at| symbols.get(at));
                next.extend(within.flat_map(|one| named(one, &symbols)));
            }
            known.append(&mut new);
            new = &next - &known;
        }
        let mut users: Vec<DependentFile> = found
            .into_iter()
            .map(|(path, steps)| DependentFile { path, steps })
            .collect();
        users.sort_by(|a, b| (a.steps, &a.path).cmp(&(b.steps, &b.path)));
        users
    }
}

/// The definitions around these lines, which ascend: for each line the innermost.
fn around(symbols: &[IndexSymbol<&str>], lines: impl IntoIterator<Item = u32>) -> BTreeSet<usize> {
    let mut coming = symbols.iter().enumerate().peekable();
    let mut open: Vec<(usize, u32)> = Vec::new();
    let mut found = BTreeSet::new();
    for line in lines {
        while let Some((at, symbol)) = coming.next_if(|(_, symbol)| symbol.line <= line) {
            while open.pop_if(|(_, end)| *end < symbol.line).is_some() {}
            open.push((at, symbol.end));
        }
        while open.pop_if(|(_, end)| *end < line).is_some() {}
        found.extend(open.last().map(|(at, _)| *at));
    }
    found
}

/// By which names others use a definition. A method with a name that many have is used where
/// what it belongs to is used.
fn named<'a>(
    symbol: &IndexSymbol<&'a str>,
    all: &[IndexSymbol<&'a str>],
) -> impl Iterator<Item = String> + use<'a> {
    let parent = symbol.parent.and_then(|parent| all.get(parent as usize));
    let of = parent.filter(|_| symbol.kind == SymbolKind::Method && !is_distinctive(symbol.name));
    let own =
        (symbol.kind != SymbolKind::Impl && !symbol.name.starts_with("__")).then_some(symbol.name);
    let names = [own, of.map(|parent| parent.name)];
    names.into_iter().flatten().map(str::to_owned)
}

/// The numbers of the lines in which one of these words stands.
fn lines_with(text: &str, words: &HashSet<&str>) -> Vec<u32> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let holds = |line: &str| {
        let mut parts = line.split(|c| !is_part(c));
        parts.any(|part| words.contains(part))
    };
    let numbered = text.lines().zip(1..);
    numbered
        .filter_map(|(line, number)| holds(line).then_some(number))
        .collect()
}
