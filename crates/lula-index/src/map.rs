//! The map: file names and signatures, the most important ones that fit.
//!
//! What is in it is chosen by rank; how it is laid out is not. Files stand in the order of their
//! paths and signatures in the order of the text, without line numbers, so that a small change of
//! the project changes a few lines of the map and a prompt cache keeps what is before them. Only what a
//! task names itself has its lines behind it: that is what will be read first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;

use crate::index::SymbolIndex;
use crate::language::IndexLanguage;
use crate::names;
use crate::pins::PinnedSymbol;
use crate::rank::{RankedFile, Ranking};
use crate::symbol::SymbolKind;
use crate::task::{MapQuery, Relevance};

/// Stands for definitions that are left out.
const LEFT_OUT: &str = "⋮";
/// Signatures are indented no further than so many columns.
const MAX_INDENT: usize = 8;
/// Files at the top of a project that say what it is.
const LANDMARKS: [&str; 13] = [
    "Cargo.toml",
    "CMakeLists.txt",
    "Gemfile",
    "Makefile",
    "README.md",
    "README.rst",
    "build.gradle",
    "go.mod",
    "meson.build",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "setup.py",
];
/// Landmarks matter as much as the definition at this place.
const LANDMARK_PLACE: usize = 10;

/// The part of a project that matters for a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectMap {
    /// What to put before a model.
    pub text: String,
    /// How many tokens that is, by the estimate it was fitted with.
    pub tokens: u64,
    /// How many it could have been.
    pub budget: u64,
    /// How many definitions the project has.
    pub definitions: usize,
    /// What is shown, file by file in the order of the text.
    pub files: Vec<MappedFile>,
}

/// A file on the map.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MappedFile {
    /// Relative to the project.
    pub path: String,
    /// What it is written in, if its symbols are known.
    pub language: Option<IndexLanguage>,
    /// Its share of what matters, from 0 to 1.
    pub rank: f64,
    /// What is shown of it.
    pub symbols: Vec<MappedSymbol>,
}

/// A definition on the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MappedSymbol {
    pub name: String,
    pub kind: SymbolKind,
    /// Its first line, from 1.
    pub line: u32,
    /// Its last line, from 1 and included.
    pub end: u32,
    /// Whether the task names it, or a place in it.
    pub named: bool,
    /// What it looks like without its body.
    pub signature: String,
}

/// Tokens of a text where no tokenizer is known: rather too many than too few.
pub fn estimate(text: &str) -> u64 {
    (text.len() as u64).div_ceil(3)
}

/// Something that can be on the map.
#[derive(Debug, Clone, Copy)]
enum Item<'a> {
    Symbol {
        file: usize,
        symbol: usize,
    },
    /// A file by its name alone.
    Name(&'a str),
}

impl SymbolIndex {
    /// The best map of at most `budget` tokens by the given estimate.
    pub fn map(&self, task: &MapQuery, budget: u64, tokens: &dyn Fn(&str) -> u64) -> ProjectMap {
        let ranking = self.rank(task);
        let pins = self.pins(&ranking, task);
        let items = self.items(&ranking, task, &pins);
        let pinned: BTreeSet<PinnedSymbol> = pins.into_iter().collect();
        let (count, text) = fit(items.len(), budget, tokens, &|count| {
            render(&ranking, &items[..count], &pinned)
        });
        let definitions = ranking.symbols.len();
        ProjectMap {
            tokens: tokens(&text),
            text,
            budget,
            definitions,
            files: self.mapped(&ranking, &items[..count], &pinned),
        }
    }

    /// Everything that can be shown, the best first.
    fn items<'a>(
        &'a self,
        ranking: &Ranking<'a>,
        task: &MapQuery,
        pins: &[PinnedSymbol],
    ) -> Vec<Item<'a>> {
        let given: BTreeSet<&str> = task.given.iter().map(String::as_str).collect();
        let pinned: BTreeSet<&PinnedSymbol> = pins.iter().collect();
        let ranked = ranking
            .symbols
            .iter()
            .map(|ranked| (ranked.file, ranked.symbol));
        let ranked = ranked.filter(|at| !pinned.contains(at));
        let ranked = ranked.filter(|(file, _)| !given.contains(ranking.files[*file].path));
        let mut items: Vec<Item<'a>> = pins
            .iter()
            .copied()
            .chain(ranked)
            .map(|(file, symbol)| Item::Symbol { file, symbol })
            .collect();
        let relevance = Relevance::new(task, std::iter::empty());
        let has_symbols: BTreeSet<&str> = ranking
            .files
            .iter()
            .filter(|file| !file.tags.symbols.is_empty())
            .map(|file| file.path)
            .collect();
        let named: Vec<&str> = self
            .files
            .keys()
            .map(String::as_str)
            .filter(|path| !given.contains(path) && !has_symbols.contains(path))
            .filter(|path| LANDMARKS.contains(path) || relevance.names_file(path))
            .collect();
        let place = items.len().min(pins.len() + LANDMARK_PLACE);
        items.splice(place..place, named.into_iter().map(Item::Name));
        items
    }

    fn mapped(
        &self,
        ranking: &Ranking<'_>,
        items: &[Item<'_>],
        pinned: &BTreeSet<PinnedSymbol>,
    ) -> Vec<MappedFile> {
        let (symbols, mut names) = shown(ranking, items);
        names.extend(symbols.keys().map(|file| ranking.files[*file].path));
        let by_path: BTreeMap<&str, usize> = symbols
            .keys()
            .map(|file| (ranking.files[*file].path, *file))
            .collect();
        let mapped = names.into_iter().map(|path| {
            let file = by_path.get(path).copied();
            let symbols = file.and_then(|file| symbols.get(&file).map(|shown| (file, shown)));
            MappedFile {
                path: path.to_owned(),
                language: file.and_then(|_| IndexLanguage::of(path)),
                rank: file.map_or(0.0, |file| ranking.ranks[file]),
                symbols: symbols
                    .into_iter()
                    .flat_map(|(file, shown)| shown.iter().map(move |symbol| (file, *symbol)))
                    .map(|(file, place)| {
                        let symbol = &ranking.files[file].tags.symbols[place];
                        MappedSymbol {
                            name: self.names.get(symbol.name).to_owned(),
                            kind: symbol.kind,
                            line: symbol.line,
                            end: symbol.end,
                            named: pinned.contains(&(file, place)),
                            signature: symbol.signature.clone(),
                        }
                    })
                    .collect(),
            }
        });
        mapped.collect()
    }
}

/// The most items whose text fits, and the text. Nothing always fits.
fn fit(
    all: usize,
    budget: u64,
    tokens: &dyn Fn(&str) -> u64,
    render: &dyn Fn(usize) -> String,
) -> (usize, String) {
    let mut best = (0, String::new());
    let mut too_many = all + 1;
    // First in growing steps: most projects are far larger than any budget.
    let mut next = 16.min(all);
    while best.0 + 1 < too_many {
        let text = render(next);
        if tokens(&text) <= budget {
            best = (next, text);
        } else {
            too_many = next;
        }
        next = if too_many > all {
            (best.0 * 2).clamp(best.0 + 1, all.max(best.0 + 1))
        } else {
            best.0.midpoint(too_many)
        };
    }
    best
}

type MapSelection<'a> = (BTreeMap<usize, BTreeSet<usize>>, BTreeSet<&'a str>);

/// The definitions to show of each file, with those they stand in, and the files shown by name.
fn shown<'a>(ranking: &Ranking<'a>, items: &[Item<'a>]) -> MapSelection<'a> {
    let mut symbols: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for item in items {
        match item {
            Item::Name(path) => {
                names.insert(*path);
            }
            Item::Symbol { file, symbol } => {
                let shown = symbols.entry(*file).or_default();
                let mut at = Some(*symbol);
                while let Some(symbol) = at {
                    if !shown.insert(symbol) {
                        break;
                    }
                    let parent = ranking.files[*file].tags.symbols[symbol].parent;
                    at = parent.map(|parent| parent as usize);
                }
            }
        }
    }
    (symbols, names)
}

fn render(ranking: &Ranking<'_>, items: &[Item<'_>], pinned: &BTreeSet<PinnedSymbol>) -> String {
    let (symbols, names) = shown(ranking, items);
    let mut by_path: BTreeMap<&str, Option<usize>> =
        names.into_iter().map(|path| (path, None)).collect();
    for file in symbols.keys() {
        by_path.insert(ranking.files[*file].path, Some(*file));
    }
    let mut text = String::new();
    for (path, file) in by_path {
        let seen: String = path.chars().filter(|c| !names::is_unseen(*c)).collect();
        let _ = writeln!(text, "{seen}");
        if let Some(file) = file
            && let Some(shown) = symbols.get(&file)
        {
            let is_pinned = |symbol: usize| pinned.contains(&(file, symbol));
            render_file(&ranking.files[file], shown, &is_pinned, &mut text);
        }
    }
    text
}

fn render_file(
    file: &RankedFile<'_>,
    shown: &BTreeSet<usize>,
    is_pinned: &dyn Fn(usize) -> bool,
    text: &mut String,
) {
    let symbols = &file.tags.symbols;
    let depth = |mut at: usize| {
        let mut depth = 0;
        while let Some(parent) = symbols[at].parent {
            at = parent as usize;
            depth += 1;
        }
        depth.min(MAX_INDENT)
    };
    let mut expected = 0;
    for &symbol in shown {
        let indent = "  ".repeat(depth(symbol) + 1);
        if symbol > expected {
            let _ = writeln!(text, "{indent}{LEFT_OUT}");
        }
        let _ = write!(text, "{indent}{}", symbols[symbol].signature);
        if is_pinned(symbol) {
            let _ = write!(
                text,
                "  (lines {}-{})",
                symbols[symbol].line, symbols[symbol].end
            );
        }
        text.push('\n');
        expected = symbol + 1;
    }
    if expected < symbols.len() {
        let _ = writeln!(text, "  {LEFT_OUT}");
    }
}
