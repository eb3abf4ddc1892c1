//! The layer of a build, sorted: directories that were installed, files that were generated, and changes of
//! the project's own files, which are taken out.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags};

use super::EnvironmentGround;
use crate::checkout::{CheckoutResult, io_failed};
use crate::ignored::is_whiteout;
use crate::layer::overlay::OPAQUE;
use crate::tree::node::{FileNodeKind, Stat};
use crate::tree::{
    MAX_DEPTH, RootedTree, attribute, beneath, is_absent, os, remove, set_attribute,
};

/// Caches that running something leaves behind.
const CACHES: [&[u8]; 5] = [
    b"__pycache__",
    b".pytest_cache",
    b".mypy_cache",
    b".ruff_cache",
    b".cache",
];

/// What a build left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvironmentHarvest {
    /// Whole directories that it made, from the top.
    pub directories: Vec<String>,
    /// Single files that it made.
    pub files: Vec<String>,
    /// The project's own files that it changed or removed: they are as they were.
    pub changed: Vec<String>,
    /// How much the directories and files hold.
    pub bytes: u64,
}

impl EnvironmentHarvest {
    pub(super) fn take(
        ground: &EnvironmentGround,
        layer: &Path,
        below: &Path,
    ) -> CheckoutResult<Self> {
        let checkout = RootedTree::open(&ground.checkout)?;
        let upper = RootedTree::open(layer)?;
        let below_tree = RootedTree::create(below)?;
        let mut sorting = Sorting {
            ground,
            checkout: &checkout,
            below: &below_tree,
            harvest: Self::default(),
        };
        sorting
            .sort(&upper.top, b"", 0)
            .map_err(|error| io_failed(layer)(error.into()))?;
        let mut harvest = sorting.harvest;
        harvest.bytes = size(&upper.top, 0) + size(&below_tree.top, 0);
        harvest.directories.sort();
        harvest.files.sort();
        harvest.changed.sort();
        Ok(harvest)
    }
}

struct Sorting<'a> {
    ground: &'a EnvironmentGround,
    checkout: &'a RootedTree,
    below: &'a RootedTree,
    harvest: EnvironmentHarvest,
}

impl Sorting<'_> {
    fn sort(&mut self, directory: &OwnedFd, place: &[u8], depth: usize) -> rustix::io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(rustix::io::Errno::LOOP);
        }
        for name in names(directory)? {
            let path = if place.is_empty() {
                name.clone()
            } else {
                [place, b"/", name.as_slice()].concat()
            };
            let text = String::from_utf8_lossy(&path).into_owned();
            let Some(stat) = Stat::maybe(directory, os(&name))? else {
                continue;
            };
            let was = self.was(&path)?;
            if path == b".git" || CACHES.contains(&name.as_slice()) && was.is_none() {
                remove(directory, os(&name))?;
                continue;
            }
            if is_whiteout(directory, os(&name)) {
                if was.is_some() {
                    self.harvest.changed.push(text);
                }
                remove(directory, os(&name))?;
                continue;
            }
            let is_directory = stat.kind == FileNodeKind::Directory;
            match was {
                None if is_directory => {
                    let made = beneath(directory, os(&name), OFlags::DIRECTORY)?;
                    // Nothing that lies at that place is mixed with it.
                    set_attribute(&made, OPAQUE, b"y")?;
                    self.harvest.directories.push(text);
                }
                None => {
                    self.lower(directory, place, &name)?;
                    self.harvest.files.push(text);
                }
                Some(FileNodeKind::Directory) if is_directory => {
                    let inner = beneath(directory, os(&name), OFlags::DIRECTORY)?;
                    if attribute(&inner, OPAQUE).as_deref() == Some(b"y") {
                        self.harvest.changed.push(text);
                        remove(directory, os(&name))?;
                        continue;
                    }
                    self.sort(&inner, &path, depth + 1)?;
                    if names(&inner)?.is_empty() {
                        remove(directory, os(&name))?;
                    }
                }
                Some(_) => {
                    self.harvest.changed.push(text);
                    remove(directory, os(&name))?;
                }
            }
        }
        Ok(())
    }

    /// What the build saw at a path before it began.
    fn was(&self, path: &[u8]) -> rustix::io::Result<Option<FileNodeKind>> {
        if self.ground.hides(path) {
            return Ok(None);
        }
        let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b"."[..], path),
        };
        match beneath(&self.checkout.top, os(above), OFlags::DIRECTORY) {
            Ok(parent) => Ok(Stat::maybe(&parent, os(name))?.map(|stat| stat.kind)),
            Err(error) if is_absent(error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Moves a file to the same place of the lower part.
    fn lower(&self, from: &OwnedFd, place: &[u8], name: &[u8]) -> rustix::io::Result<()> {
        let mut to = rustix::io::dup(&self.below.top)?;
        let parts = place.split(|byte| *byte == b'/');
        for part in parts.filter(|part| !part.is_empty()) {
            match rustix::fs::mkdirat(&to, os(part), Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            to = beneath(&to, os(part), OFlags::DIRECTORY)?;
        }
        rustix::fs::renameat(from, os(name), &to, os(name))
    }
}

fn names(directory: &OwnedFd) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if !matches!(name.as_slice(), b"." | b"..") {
            found.push(name);
        }
    }
    Ok(found)
}

/// Bytes of everything below a directory.
fn size(directory: &OwnedFd, depth: usize) -> u64 {
    let mut bytes = 0;
    for name in names(directory).unwrap_or_default() {
        match Stat::maybe(directory, os(&name)) {
            Ok(Some(stat)) if stat.kind == FileNodeKind::Directory && depth < MAX_DEPTH => {
                if let Ok(inner) = beneath(directory, os(&name), OFlags::DIRECTORY) {
                    bytes += size(&inner, depth + 1);
                }
            }
            Ok(Some(stat)) => bytes += stat.size,
            _ => {}
        }
    }
    bytes
}
