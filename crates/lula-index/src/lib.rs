//! Symbols of a project, and the map of what matters in it for a task.
//!
//! [`SymbolIndex::update`] takes a listing and a way to read files, and keeps what each file defines and
//! uses (tree-sitter; [`IndexLanguage`] says in which languages). [`SymbolIndex::map`] ranks definitions by
//! who uses them, pulled towards the words of a task, and renders the best of them within a budget
//! of tokens. [`SymbolIndex::find`] looks a definition up, [`SymbolIndex::users`] tells who uses one.
//! [`SymbolIndex::load`] and [`SymbolIndex::save`] keep the index between commands.
//!
//! It never opens a workspace: the caller lists and reads, through a runner or a handle. The
//! same files and the same task give the same map, whatever the index knew before. Files are
//! untrusted bytes: size, depth and parsing steps are bounded, and what is left out is told.
//!
//! `rules.rs` has a table for each grammar of what defines a name and what uses one; `extract.rs`
//! walks the tree within bounds that are counted, not timed; `index.rs` keeps what it found by
//! content digest, with the file system's fingerprint as a short cut. `rank.rs` is a random walk
//! from files to the names they use and on to the files that define them, pulled towards a task.
//! What a task names itself (`terms.rs`), and the definitions around the places where that stands
//! (`places.rs`), go on the map before everything that is only ranked, with their lines (`pins.rs`).
//! Rank decides what is on the map, never where: `map.rs` lists files in the order of their paths, and
//! what a task does not name without line numbers, so that a prompt cache survives small changes. `lula index` lists and
//! reads through `lula-workspace` (`sources.rs`): by handle, following no link, without what
//! `.gitignore` leaves out. A run reads through its runner.
#![forbid(unsafe_code)]

mod cache;
mod extract;
mod find;
mod index;
mod language;
mod map;
mod names;
mod pins;
mod places;
mod rank;
mod reach;
mod rules;
mod standing;
mod symbol;
mod task;
mod terms;

pub use cache::{IndexCacheError, IndexOrigin, MAX_CACHE, cache_name};
pub use extract::{MAX_FILE, MAX_SYMBOLS, MAX_USES, tags};
pub use find::FoundDefinition;
pub use index::{FileFingerprint, IndexUpdate, IndexedFile, MAX_FILES, SymbolIndex};
pub use language::IndexLanguage;
pub use map::{MappedFile, MappedSymbol, ProjectMap, estimate};
pub use places::{TaskPlace, TaskPlaces, task_places};
pub use reach::DependentFile;
pub use standing::{FileStanding, silent_names};
pub use symbol::{FileTags, IndexSymbol, SkippedFileReason, SymbolKind};
pub use task::MapQuery;
pub use terms::{TaskTerm, TaskTermKind, task_terms};
