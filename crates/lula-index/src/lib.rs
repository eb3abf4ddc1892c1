//! Symbols of a project, and the map of what matters in it for a task.
//!
//! [`Index::update`] takes a listing and a way to read files, and keeps what each file defines and
//! uses (tree-sitter; [`Language`] says in which languages). [`Index::map`] ranks definitions by
//! who uses them, pulled towards the words of a task, and renders the best of them within a budget
//! of tokens. [`Index::find`] looks a definition up, [`Index::users`] tells who uses one.
//! [`Index::load`] and [`Index::save`] keep the index between commands.
//!
//! It never opens a workspace: whoever calls it lists and reads, through a runner or a handle. The
//! same files and the same task give the same map, whatever the index knew before. Files are
//! somebody else's bytes: size, depth and parsing steps are bounded, and what is left out is told.
#![forbid(unsafe_code)]

mod cache;
mod extract;
mod find;
mod index;
mod language;
mod map;
mod names;
mod rank;
mod reach;
mod rules;
mod symbol;
mod task;

pub use cache::{CacheError, MAX_CACHE, Origin, cache_name};
pub use extract::{MAX_FILE, MAX_SYMBOLS, MAX_USES, tags};
pub use find::Found;
pub use index::{Fingerprint, Index, Listed, MAX_FILES, Update};
pub use language::Language;
pub use map::{Map, MappedFile, MappedSymbol, estimate};
pub use reach::User;
pub use symbol::{Kind, Skipped, Symbol, Tags};
pub use task::Task;
