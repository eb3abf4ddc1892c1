//! Which definitions matter: a random walk from files to the names they use and on to the files
//! that define them, pulled towards a task.
//!
//! Going through names instead of drawing an edge from every user to every definer keeps the work
//! proportional to the uses, and tells how much flows through each name: that is the rank of the
//! definition itself. Sums run in the order of paths and of the text, so that the result does not
//! depend on how the index came to know a file.

use crate::index::SymbolIndex;
use crate::names;
use crate::standing::{FileStanding, is_declaration, is_test, is_vendored};
use crate::symbol::{FileTags, SymbolKind};
use crate::task::{MapQuery, Relevance};

/// How much of the walk follows uses instead of starting anew.
const DAMPING: f64 = 0.85;
/// The rest after so many steps is below a thousandth.
const STEPS: usize = 40;
/// What a name in the task counts for over one that is not.
const NAMED: f64 = 9.0;
/// What a file in the task counts for over one that is not.
const FILE_NAMED: f64 = 40.0;
/// Tests use everything and are used by nothing: they say less about what matters.
const TESTS: f64 = 0.5;
/// Code of others is kept in the project, but the project is not about it.
const VENDORED: f64 = 0.05;
/// How much a file's rank says about a definition that no other file uses.
const UNUSED: f64 = 0.05;
/// How much of what matters the words of a task decide alone: what is not used yet can be what it
/// is about.
const WORDS: f64 = 0.3;
/// What stands against the weights of a file's uses: a file with nothing but a plain word to go by
/// starts anew rather than to follow it.
const DOUBT: f64 = 2.0;
const FAMILIES: usize = 7;

/// A definition and its rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RankedSymbol {
    /// By its place among the parsed files.
    pub(crate) file: usize,
    /// By its place in the file.
    pub(crate) symbol: usize,
    pub(crate) rank: f64,
}

/// A parsed file on the way.
pub(crate) struct RankedFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) tags: &'a FileTags<u32>,
    /// Names it defines, each once, and how often.
    defines: Vec<(usize, f64)>,
    /// Names of others that it uses, and the part of the walk that goes there.
    uses: Vec<(usize, f64)>,
    /// The part of the walk that follows none of them.
    doubt: f64,
}

pub(crate) struct Ranking<'a> {
    pub(crate) files: Vec<RankedFile<'a>>,
    /// How much of the walk is at each file.
    pub(crate) ranks: Vec<f64>,
    /// The definitions, the best first.
    pub(crate) symbols: Vec<RankedSymbol>,
}

impl SymbolIndex {
    pub(crate) fn rank(&self, task: &MapQuery) -> Ranking<'_> {
        let relevance = Relevance::of_project(task, self);
        let all = self.names.list().len();
        let mut definers = vec![0.0_f64; all * FAMILIES];
        let mut files = self.files_to_rank(&mut definers);
        let boosts = self.boosts(&relevance);
        self.weigh_uses(&mut files, &definers, &boosts);
        let prior = prior(&files, &relevance, &boosts, all);
        let ranks = walk(&files, &definers, &prior);
        let symbols = self.rank_symbols(&files, &definers, &ranks, &boosts);
        Ranking {
            files,
            ranks,
            symbols,
        }
    }

    fn files_to_rank(&self, definers: &mut [f64]) -> Vec<RankedFile<'_>> {
        let all = self.names.list().len();
        let mut files = Vec::new();
        for (path, key) in self.parsed() {
            let Some(tags) = self.tags.get(&key) else {
                continue;
            };
            let node = |name: u32| usize::from(key.language.family()) * all + name as usize;
            let mut own: Vec<(usize, f64)> = Vec::new();
            let mut places = std::collections::HashMap::new();
            for symbol in tags
                .symbols
                .iter()
                .filter(|symbol| symbol.kind != SymbolKind::Impl)
            {
                let node = node(symbol.name);
                let place = *places.entry(node).or_insert_with(|| {
                    definers[node] += 1.0;
                    own.push((node, 0.0));
                    own.len() - 1
                });
                own[place].1 += 1.0;
            }
            // What a file own itself it does not take from elsewhere.
            let uses = tags
                .uses
                .iter()
                .map(|(name, count)| (node(*name), f64::from(*count)))
                .filter(|(node, _)| !places.contains_key(node))
                .collect();
            files.push(RankedFile {
                path,
                tags,
                defines: own,
                uses,
                doubt: 1.0,
            });
        }
        files
    }

    fn boosts(&self, relevance: &Relevance) -> Vec<f64> {
        let names = self.names.list();
        if relevance.is_empty() {
            return vec![1.0; names.len()];
        }
        let boost = |name: &String| 1.0 + NAMED * relevance.of_name(name);
        names.iter().map(boost).collect()
    }

    /// Turns counts into shares of the walk: rare names, long names and names of the task draw
    /// more; names that many files define tell little about where they lead.
    #[expect(clippy::cast_precision_loss, reason = "far fewer files than 2^52")]
    fn weigh_uses(&self, files: &mut [RankedFile<'_>], definers: &[f64], boosts: &[f64]) {
        let all = boosts.len();
        let mut users = vec![0.0_f64; definers.len()];
        for file in files.iter_mut() {
            file.uses.retain(|(node, _)| definers[*node] > 0.0);
            for (node, _) in &file.uses {
                users[*node] += 1.0;
            }
        }
        let count = files.len() as f64;
        for file in files {
            for (node, weight) in &mut file.uses {
                let name = *node % all;
                let rarity = (1.0 + count / users[*node]).ln();
                let looks = names::weight(&self.names.list()[name]);
                *weight = weight.sqrt() * rarity * looks * boosts[name] / definers[*node];
            }
            let sum: f64 = file.uses.iter().map(|(_, weight)| weight).sum();
            for (_, weight) in &mut file.uses {
                *weight /= sum + DOUBT;
            }
            file.doubt = DOUBT / (sum + DOUBT);
        }
    }

    fn rank_symbols(
        &self,
        files: &[RankedFile<'_>],
        definers: &[f64],
        ranks: &[f64],
        boosts: &[f64],
    ) -> Vec<RankedSymbol> {
        let all = boosts.len();
        let mut through = vec![0.0; definers.len()];
        for (file, rank) in files.iter().zip(ranks) {
            for (node, share) in &file.uses {
                through[*node] += rank * share;
            }
        }
        let relevance = |node: usize| ((boosts[node % all] - 1.0) / NAMED).powi(2);
        let relevant: f64 = files
            .iter()
            .flat_map(|file| &file.defines)
            .map(|(node, _)| relevance(*node) / definers[*node])
            .sum();
        let mut ranked = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let looks = |node: usize| {
                let name = node % all;
                names::weight(&self.names.list()[name]) * boosts[name]
            };
            let places: std::collections::HashMap<usize, f64> =
                file.defines.iter().copied().collect();
            let sum: f64 = file
                .defines
                .iter()
                .map(|(node, times)| looks(*node) * times)
                .sum();
            let own = if is_vendored(file.path) {
                VENDORED
            } else {
                1.0
            };
            // All names of a file are of one family.
            let family = file.defines.first().map_or(0, |(node, _)| node / all * all);
            for (place, symbol) in file.tags.symbols.iter().enumerate() {
                if symbol.kind == SymbolKind::Impl {
                    continue;
                }
                let node = family + symbol.name as usize;
                let times = places.get(&node).copied().unwrap_or(1.0);
                let used = through[node] / definers[node] / times;
                let words = if relevant > 0.0 {
                    WORDS * relevance(node) / relevant / definers[node] / times
                } else {
                    0.0
                };
                let unused = UNUSED * ranks[number] * looks(node) / sum;
                ranked.push(RankedSymbol {
                    file: number,
                    symbol: place,
                    rank: own * ((used + unused) * boosts[node % all] + words),
                });
            }
        }
        // Equal ranks stay in the order of paths and of the text.
        ranked.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        ranked
    }
}

/// Where the walk starts.
fn prior(files: &[RankedFile<'_>], relevance: &Relevance, boosts: &[f64], all: usize) -> Vec<f64> {
    let mut prior: Vec<f64> = files
        .iter()
        .map(|file| {
            let own = standing(file.path);
            if relevance.is_empty() {
                return own;
            }
            let named = FILE_NAMED * relevance.of_path(file.path);
            let defines = file
                .defines
                .iter()
                .map(|(node, _)| boosts[node % all] - 1.0)
                .fold(0.0, f64::max);
            own + named + defines
        })
        .collect();
    let sum: f64 = prior.iter().sum();
    for share in &mut prior {
        *share /= sum;
    }
    prior
}

fn walk(files: &[RankedFile<'_>], definers: &[f64], prior: &[f64]) -> Vec<f64> {
    let mut ranks = prior.to_vec();
    let mut at_name = vec![0.0_f64; definers.len()];
    for _ in 0..STEPS {
        for file in files {
            for (node, _) in &file.uses {
                at_name[*node] = 0.0;
            }
        }
        // What leads nowhere starts anew.
        let mut lost = 0.0;
        for (file, rank) in files.iter().zip(&ranks) {
            lost += rank * file.doubt;
            for (node, share) in &file.uses {
                at_name[*node] += rank * share;
            }
        }
        let anew = 1.0 - DAMPING + DAMPING * lost;
        for ((file, rank), prior) in files.iter().zip(&mut ranks).zip(prior) {
            let come: f64 = file
                .defines
                .iter()
                .map(|(node, _)| at_name[*node] / definers[*node])
                .sum();
            *rank = anew * prior + DAMPING * come;
        }
    }
    ranks
}

fn standing(path: &str) -> f64 {
    if is_vendored(path) || FileStanding::of(path) == FileStanding::Noise {
        VENDORED
    } else if is_test(path) || is_declaration(path) {
        TESTS
    } else {
        1.0
    }
}
