//! The index: what every file of a project defines and uses, kept up to date file by file.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::extract::{Extractor, MAX_FILE};
use crate::language::IndexLanguage;
use crate::symbol::{FileTags, IndexSymbol, SkippedFileReason};

/// Most files of a project that are indexed.
pub const MAX_FILES: usize = 50_000;
/// Most threads that parse at once.
const MAX_THREADS: usize = 8;

/// What tells that a file is still the same without reading it. Leave it out of [`IndexedFile`] where
/// that is not sure, as for a file changed within the clock's last tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFingerprint {
    /// When its content was changed, in nanoseconds.
    pub modified: i128,
    /// When anything about it was changed, in nanoseconds: programs cannot set this one back.
    pub changed: i128,
    /// Which file it is on its file system.
    pub inode: u64,
}

/// A file of a project, as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedFile {
    /// Relative to the project, with `/`.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// What tells that it did not change, if anything does.
    pub fingerprint: Option<FileFingerprint>,
}

/// What an update did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IndexUpdate {
    /// Files of the project.
    pub files: usize,
    /// Files of a language that is understood.
    pub sources: usize,
    /// Files whose bytes were read.
    pub read: usize,
    /// Files that were parsed.
    pub parsed: usize,
    /// Files that were there before and are gone.
    pub gone: usize,
    /// Files left out because there are more than [`MAX_FILES`].
    pub left_out: usize,
    /// Sources without symbols, and why.
    pub skipped: Vec<(String, SkippedFileReason)>,
    /// Whether the index is not what it was.
    #[serde(skip)]
    pub changed: bool,
}

/// Content and language: the same text means other things in other languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct IndexFileKey {
    pub(crate) digest: [u8; 32],
    pub(crate) language: IndexLanguage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum IndexFileState {
    /// No language that is understood: it is known by its name only.
    Plain,
    /// Its symbols are under this key.
    Parsed(IndexFileKey),
    Skipped(SkippedFileReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexFileEntry {
    pub(crate) size: u64,
    pub(crate) fingerprint: Option<FileFingerprint>,
    pub(crate) state: IndexFileState,
}

/// Symbols and uses of a project.
#[derive(Debug, Clone, Default)]
pub struct SymbolIndex {
    pub(crate) names: Names,
    pub(crate) tags: HashMap<IndexFileKey, FileTags<u32>>,
    pub(crate) files: BTreeMap<String, IndexFileEntry>,
}

/// Every name once. A number means its name as long as the index lives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    list: Vec<String>,
    /// Made when a name is first looked up: an index that did not change needs none.
    numbers: HashMap<String, u32>,
}

impl Names {
    pub(crate) fn from_list(list: Vec<String>) -> Self {
        Self {
            list,
            numbers: HashMap::new(),
        }
    }

    pub(crate) fn list(&self) -> &[String] {
        &self.list
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("", String::as_str)
    }

    pub(crate) fn number(&mut self, name: String) -> u32 {
        if self.numbers.len() != self.list.len() {
            let numbered = self.list.iter().cloned().zip(0..);
            self.numbers = numbered.collect();
        }
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.list.push(name.clone());
            next
        })
    }
}

impl FileTags<String> {
    pub(crate) fn numbered(self, names: &mut Names) -> FileTags<u32> {
        FileTags {
            symbols: self
                .symbols
                .into_iter()
                .map(|symbol| IndexSymbol {
                    name: names.number(symbol.name),
                    kind: symbol.kind,
                    line: symbol.line,
                    end: symbol.end,
                    parent: symbol.parent,
                    signature: symbol.signature,
                })
                .collect(),
            uses: self
                .uses
                .into_iter()
                .map(|(name, count)| (names.number(name), count))
                .collect(),
        }
    }
}

/// What came of reading a file.
enum FileReading {
    Known(IndexFileKey),
    New(IndexFileKey, FileTags),
    Skipped(SkippedFileReason),
}

impl SymbolIndex {
    /// Brings the index to what the listing shows. `read` is asked only for files that may have
    /// changed, from several threads, and its bytes are parsed only where they are new.
    pub fn update(
        &mut self,
        listing: impl IntoIterator<Item = IndexedFile>,
        read: &(dyn Fn(&str) -> io::Result<Vec<u8>> + Sync),
    ) -> IndexUpdate {
        let mut listed: BTreeMap<String, IndexedFile> = BTreeMap::new();
        for file in listing {
            listed.insert(file.path.clone(), file);
        }
        let mut update = IndexUpdate::default();
        while listed.len() > MAX_FILES {
            listed.pop_last();
            update.left_out += 1;
        }
        update.files = listed.len();

        let mut files = BTreeMap::new();
        let mut to_read = Vec::new();
        for (path, file) in listed {
            let before = self.files.remove(&path);
            let mut entry = IndexFileEntry {
                size: file.size,
                fingerprint: file.fingerprint,
                state: IndexFileState::Plain,
            };
            match IndexLanguage::of(&path) {
                None => {}
                Some(_) if file.size > MAX_FILE as u64 => {
                    entry.state = IndexFileState::Skipped(SkippedFileReason::TooLarge);
                }
                Some(language) => match before {
                    Some(before)
                        if before.size == file.size
                            && file.fingerprint.is_some()
                            && before.fingerprint == file.fingerprint
                            && before.state
                                != IndexFileState::Skipped(SkippedFileReason::Unreadable) =>
                    {
                        entry.state = before.state;
                    }
                    _ => to_read.push((path.clone(), language)),
                },
            }
            update.changed |= before != Some(entry);
            files.insert(path, entry);
        }
        update.gone = self.files.len();
        update.changed |= update.gone > 0;
        self.files = files;

        let looked = self.look(&to_read, read);
        for ((path, _), looked) in to_read.iter().zip(looked) {
            let state = match looked {
                FileReading::Skipped(reason) => IndexFileState::Skipped(reason),
                FileReading::Known(key) => IndexFileState::Parsed(key),
                FileReading::New(key, tags) => {
                    update.parsed += 1;
                    let tags = tags.numbered(&mut self.names);
                    self.tags.insert(key, tags);
                    IndexFileState::Parsed(key)
                }
            };
            update.read +=
                usize::from(state != IndexFileState::Skipped(SkippedFileReason::Unreadable));
            update.changed = true;
            if let Some(entry) = self.files.get_mut(path) {
                entry.state = state;
            }
        }
        for (path, entry) in &self.files {
            match entry.state {
                IndexFileState::Plain => {}
                IndexFileState::Parsed(_) => update.sources += 1,
                IndexFileState::Skipped(reason) => {
                    update.sources += 1;
                    update.skipped.push((path.clone(), reason));
                }
            }
        }
        if update.changed {
            self.forget_unused();
        }
        update
    }

    /// Reads and parses, in as many threads as there are processors; the answers are in the order
    /// of the questions.
    fn look(
        &self,
        files: &[(String, IndexLanguage)],
        read: &(dyn Fn(&str) -> io::Result<Vec<u8>> + Sync),
    ) -> Vec<FileReading> {
        let threads = std::thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(MAX_THREADS)
            .min(files.len().div_ceil(16));
        let next = AtomicUsize::new(0);
        let work = || {
            let mut extractor = Extractor::default();
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some((path, language)) = files.get(number) else {
                    return done;
                };
                done.push((number, self.look_at(path, *language, read, &mut extractor)));
            }
        };
        let mut done = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut done = work();
            for other in others {
                // A thread that died answered nothing; its files are asked again below.
                done.extend(other.join().unwrap_or_default());
            }
            done
        });
        done.sort_by_key(|(number, _)| *number);
        let mut answers = Vec::with_capacity(files.len());
        for (number, answer) in done {
            while answers.len() < number {
                answers.push(FileReading::Skipped(SkippedFileReason::Unreadable));
            }
            answers.push(answer);
        }
        answers.resize_with(files.len(), || {
            FileReading::Skipped(SkippedFileReason::Unreadable)
        });
        answers
    }

    fn look_at(
        &self,
        path: &str,
        language: IndexLanguage,
        read: &(dyn Fn(&str) -> io::Result<Vec<u8>> + Sync),
        extractor: &mut Extractor,
    ) -> FileReading {
        let Ok(bytes) = read(path) else {
            return FileReading::Skipped(SkippedFileReason::Unreadable);
        };
        if bytes.len() > MAX_FILE {
            return FileReading::Skipped(SkippedFileReason::TooLarge);
        }
        let key = IndexFileKey {
            digest: blake3::hash(&bytes).into(),
            language,
        };
        if self.tags.contains_key(&key) {
            return FileReading::Known(key);
        }
        match extractor.tags(language, &bytes) {
            Ok(tags) => FileReading::New(key, tags),
            Err(reason) => FileReading::Skipped(reason),
        }
    }

    /// Drops what no file has any more, so that the index is as large as its project.
    fn forget_unused(&mut self) {
        let used: std::collections::HashSet<IndexFileKey> =
            self.parsed().map(|(_, key)| key).collect();
        self.tags.retain(|key, _| used.contains(key));
    }

    /// The files that were parsed, in the order of their paths.
    pub(crate) fn parsed(&self) -> impl Iterator<Item = (&str, IndexFileKey)> {
        self.files
            .iter()
            .filter_map(|(path, entry)| match entry.state {
                IndexFileState::Parsed(key) => Some((path.as_str(), key)),
                _ => None,
            })
    }

    /// The files whose symbols are known, in the order of their paths.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.parsed().map(|(path, _)| path)
    }

    /// What a file defines.
    pub fn symbols(&self, path: &str) -> impl Iterator<Item = IndexSymbol<&str>> {
        let key = self.files.get(path).and_then(|entry| match entry.state {
            IndexFileState::Parsed(key) => Some(key),
            _ => None,
        });
        let tags = key.and_then(|key| self.tags.get(&key));
        tags.into_iter().flat_map(|tags| {
            tags.symbols.iter().map(|symbol| IndexSymbol {
                name: self.names.get(symbol.name),
                kind: symbol.kind,
                line: symbol.line,
                end: symbol.end,
                parent: symbol.parent,
                signature: symbol.signature.clone(),
            })
        })
    }
}
