//! The index between two commands: one file, written whole or not at all. A file that is not
//! exactly what was written is no error; the index is made anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::index::{IndexFileEntry, IndexFileKey, IndexFileState, Names, SymbolIndex};
use crate::symbol::FileTags;

/// Largest file that is read or written.
pub const MAX_CACHE: u64 = 256 << 20;
/// Raised whenever the rules or the grammars tell other symbols of the same text, or the encoding
/// changes: what an older build wrote says nothing then.
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"lulaindx";
const DIGEST: usize = 32;

/// Why an index was not written.
#[derive(Debug, thiserror::Error)]
pub enum IndexCacheError {
    /// The operating system said no.
    #[error("cannot keep the index in {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The index takes more than [`MAX_CACHE`] bytes.
    #[error("the index is not kept: it is larger than {} MiB", MAX_CACHE >> 20)]
    TooLarge,
}

/// Where an index came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexOrigin {
    /// There was no file, so that every source was read.
    New,
    /// It was read from the file, and brought up to date.
    Kept,
    /// The file was damaged, too large or from another version.
    Unusable,
}

#[derive(Serialize)]
struct CacheDocument<'a> {
    names: Vec<&'a str>,
    tags: BTreeMap<IndexFileKey, FileTags<u32>>,
    files: &'a BTreeMap<String, IndexFileEntry>,
}

#[derive(Deserialize)]
struct ParsedCacheDocument {
    names: Vec<String>,
    tags: Vec<(IndexFileKey, FileTags<u32>)>,
    files: Vec<(String, IndexFileEntry)>,
}

/// The name of a project's cache among those of other projects.
pub fn cache_name(project: &Path) -> String {
    let digest = blake3::hash(project.as_os_str().as_encoded_bytes());
    format!("{}.index", &digest.to_hex()[..32])
}

impl SymbolIndex {
    /// Reads an index; one that is missing or unusable is empty.
    pub fn load(path: &Path) -> (Self, IndexOrigin) {
        let mut bytes = Vec::new();
        let opened = File::open(path);
        match opened.and_then(|file| file.take(MAX_CACHE + 1).read_to_end(&mut bytes)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return (Self::default(), IndexOrigin::New);
            }
            Err(_) => return (Self::default(), IndexOrigin::Unusable),
            Ok(_) => {}
        }
        match Self::from_bytes(&bytes) {
            Some(index) => (index, IndexOrigin::Kept),
            None => (Self::default(), IndexOrigin::Unusable),
        }
    }

    /// Writes the index beside the file and puts it in its place in one step.
    pub fn save(&self, path: &Path) -> Result<(), IndexCacheError> {
        let bytes = self.to_bytes();
        if bytes.len() as u64 > MAX_CACHE {
            return Err(IndexCacheError::TooLarge);
        }
        let write = || {
            let directory = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(directory)?;
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(&bytes)?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(|source| IndexCacheError::Io {
            path: path.to_owned(),
            source,
        })
    }

    /// The index as bytes, which say whether they are whole.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Names are numbered anew, so that those without a use go.
        let mut numbers = vec![u32::MAX; self.names.list().len()];
        let mut names = Vec::new();
        let mut tags = BTreeMap::new();
        let mut renumber = |number: &mut u32| {
            let new = &mut numbers[*number as usize];
            if *new == u32::MAX {
                *new = u32::try_from(names.len()).unwrap_or(u32::MAX);
                names.push(self.names.get(*number));
            }
            *number = *new;
        };
        for (_, key) in self.parsed() {
            let Some(known) = self.tags.get(&key).filter(|_| !tags.contains_key(&key)) else {
                continue;
            };
            let mut known = known.clone();
            for symbol in &mut known.symbols {
                renumber(&mut symbol.name);
            }
            for (name, _) in &mut known.uses {
                renumber(name);
            }
            tags.insert(key, known);
        }
        let written = CacheDocument {
            names,
            tags,
            files: &self.files,
        };
        // Encoding to memory fails for no value of these types.
        Self::sealed(&postcard::to_allocvec(&written).unwrap_or_default())
    }

    /// A body with what says whether it is whole. Fuzzing reaches the reader behind it this way.
    #[doc(hidden)]
    pub fn sealed(body: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(blake3::hash(body).as_bytes());
        bytes.extend(body);
        bytes
    }

    /// Reads what [`SymbolIndex::to_bytes`] wrote; anything else is nothing.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let rest = rest.strip_prefix(&VERSION.to_le_bytes())?;
        let (digest, body) = rest.split_at_checked(DIGEST)?;
        if bytes.len() as u64 > MAX_CACHE || blake3::hash(body).as_bytes() != digest {
            return None;
        }
        Self::from_body(body)
    }

    /// Also bytes whose digest fits may come from a build with a mistake: every number is checked.
    fn from_body(body: &[u8]) -> Option<Self> {
        let read: ParsedCacheDocument = postcard::from_bytes(body).ok()?;
        let names = read.names.len();
        let sound = |tags: &FileTags<u32>| {
            let known = |number: u32| (number as usize) < names;
            tags.uses.iter().all(|(name, _)| known(*name))
                && tags.symbols.iter().enumerate().all(|(at, symbol)| {
                    known(symbol.name) && symbol.parent.is_none_or(|parent| (parent as usize) < at)
                })
        };
        let index = Self {
            names: Names::from_list(read.names),
            tags: read.tags.into_iter().collect(),
            files: read.files.into_iter().collect(),
        };
        let known = |entry: &IndexFileEntry| match entry.state {
            IndexFileState::Parsed(key) => index.tags.contains_key(&key),
            _ => true,
        };
        let sound = index.tags.values().all(sound) && index.files.values().all(known);
        sound.then_some(index)
    }
}
