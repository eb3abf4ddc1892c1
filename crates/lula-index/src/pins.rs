//! What a task names is on the map, whatever its rank: the definitions of that name, and what stands
//! around the places that are known to matter.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::index::SymbolIndex;
use crate::names;
use crate::rank::Ranking;
use crate::standing::FileStanding;
use crate::symbol::{IndexSymbol, SymbolKind};
use crate::task::MapQuery;
use crate::terms::TaskTermKind;

/// Most definitions of a name that a task names, and where many have it.
const OF_NAME: usize = 4;
const OF_FREQUENT_NAME: usize = 2;
/// A name with more definitions than this is frequent.
const FREQUENT: usize = 6;
/// A word with more definitions than this is no name.
const OF_WORD: usize = 3;
/// Most definitions for words, and around places.
const WORDS: usize = 8;
const AROUND: usize = 12;

/// What is longer is shown by its parts, in lines.
const LONG: u32 = 60;
/// A description ends so many lines before what it describes at most.
const DESCRIBES: u32 = 40;

/// A definition by the places of its file and of itself.
pub(crate) type PinnedSymbol = (usize, usize);

impl SymbolIndex {
    /// What is on the map first, in this order.
    pub(crate) fn pins(&self, ranking: &Ranking<'_>, task: &MapQuery) -> Vec<PinnedSymbol> {
        let terms = task.terms();
        if terms.is_empty() && task.lines.is_empty() {
            return Vec::new();
        }
        let wanted: HashSet<&str> = terms.iter().map(|term| term.text.as_str()).collect();
        let named: HashSet<&str> = terms
            .iter()
            .filter(|term| term.kind == TaskTermKind::Name)
            .map(|term| term.text.as_str())
            .collect();
        let defined = self.defined(ranking, &wanted, &named);
        let given: HashSet<&str> = task.given.iter().map(String::as_str).collect();
        let mut pins = Pins::default();
        for term in terms.iter().filter(|term| term.kind == TaskTermKind::Name) {
            let all = defined
                .get(term.text.as_str())
                .map_or(&[][..], Vec::as_slice);
            let most = if all.len() > FREQUENT {
                OF_FREQUENT_NAME
            } else {
                OF_NAME
            };
            pins.extend(all.iter().copied().take(most));
        }
        pins.extend(around(ranking, &task.lines).into_iter().take(AROUND));
        let words = terms.iter().filter(|term| term.kind == TaskTermKind::Word);
        let words = words.filter_map(|term| defined.get(term.text.as_str()));
        let words = words.filter(|all| all.len() <= OF_WORD).flatten().copied();
        pins.extend(words.take(WORDS));
        let mut pins = pins.order;
        pins.retain(|(file, _)| !given.contains(ranking.files[*file].path));
        pins
    }

    /// The definitions of each of these names, those first that the task means rather.
    fn defined<'a>(
        &'a self,
        ranking: &Ranking<'_>,
        wanted: &HashSet<&str>,
        named: &HashSet<&str>,
    ) -> BTreeMap<&'a str, Vec<PinnedSymbol>> {
        let ranks: HashMap<PinnedSymbol, f64> = ranking
            .symbols
            .iter()
            .map(|ranked| ((ranked.file, ranked.symbol), ranked.rank))
            .collect();
        let mut found: BTreeMap<&str, Vec<PinnedSymbol>> = BTreeMap::new();
        for (number, file) in ranking.files.iter().enumerate() {
            for (place, symbol) in file.tags.symbols.iter().enumerate() {
                let name = self.names.get(symbol.name);
                if symbol.kind != SymbolKind::Impl && wanted.contains(name) {
                    found.entry(name).or_default().push((number, place));
                }
            }
        }
        // What belongs to something else that the task names is meant rather; then source before tests.
        let order = |pin: &PinnedSymbol| {
            let file = &ranking.files[pin.0];
            let parent = file.tags.symbols[pin.1].parent;
            let parent = parent.and_then(|parent| file.tags.symbols.get(parent as usize));
            let owned = parent.is_some_and(|parent| named.contains(self.names.get(parent.name)));
            let owned = owned || named.contains(module(file.path));
            (!owned, FileStanding::of(file.path))
        };
        for all in found.values_mut() {
            let rank = |pin: &PinnedSymbol| ranks.get(pin).copied().unwrap_or(0.0);
            all.sort_by(|a, b| {
                let meant = order(a).cmp(&order(b));
                meant
                    .then_with(|| rank(b).total_cmp(&rank(a)))
                    .then_with(|| a.cmp(b))
            });
        }
        found.retain(|name, _| !names::is_common_word(name));
        found
    }
}

/// What the code of a file is called by others: `lcs` for `src/algorithms/lcs.rs`.
fn module(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// Each definition once, in the order they come.
#[derive(Default)]
struct Pins {
    order: Vec<PinnedSymbol>,
    known: HashSet<PinnedSymbol>,
}

impl Pins {
    fn extend(&mut self, more: impl Iterator<Item = PinnedSymbol>) {
        for pin in more {
            if self.known.insert(pin) {
                self.order.push(pin);
            }
        }
    }
}

/// The innermost definitions around these lines, in the order of the lines.
fn around(ranking: &Ranking<'_>, lines: &[(String, u32)]) -> Vec<PinnedSymbol> {
    let files: HashMap<&str, usize> = ranking
        .files
        .iter()
        .enumerate()
        .map(|(number, file)| (file.path, number))
        .collect();
    let mut found = Vec::new();
    for (path, line) in lines {
        let Some(&number) = files.get(path.as_str()) else {
            continue;
        };
        let symbols = &ranking.files[number].tags.symbols;
        found.extend(meant(symbols, *line).map(|place| (number, place)));
    }
    found
}

/// The innermost definition around a line. A line of something long that has parts, and stands in none of
/// them, is about the part that follows: it describes it.
fn meant(symbols: &[IndexSymbol<u32>], line: u32) -> Option<usize> {
    // Definitions nest, and stand in the order of the text: the last that holds the line is innermost.
    let holds = |symbol: &IndexSymbol<u32>| symbol.line <= line && line <= symbol.end;
    let innermost = symbols.iter().rposition(holds);
    let Some(around) = innermost else {
        return symbols
            .iter()
            .position(|symbol| symbol.line > line && symbol.line - line <= DESCRIBES);
    };
    let is_part = |symbol: &IndexSymbol<u32>| {
        symbol
            .parent
            .is_some_and(|parent| parent as usize == around)
    };
    if symbols[around].end - symbols[around].line < LONG || !symbols.iter().any(is_part) {
        return Some(around);
    }
    symbols
        .iter()
        .position(|symbol| is_part(symbol) && symbol.line > line && symbol.line - line <= DESCRIBES)
}
