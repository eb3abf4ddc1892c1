//! What git ignores in a checkout, shown below the files of a commit.
//!
//! Dependencies at any depth, build results, generated and compiled files are no part of a commit,
//! and a project does not work without them. They are not copied: the checkout itself is a read-only
//! layer of the overlay, the lowest one, and a *mask* of whiteouts lies over it that hides whatever is
//! neither ignored nor in the commit: version control's own files, work that is not committed, files
//! that are known to hold secrets. The files of the commit lie over both.
//!
//! The whole is mounted where the checkout is, so that editable installs, links between packages,
//! shebangs and fingerprints of builds mean the same as outside. A file that is the checkout's byte
//! for byte keeps its time, so that a warm build stays warm. What a run changes below something
//! ignored is never part of its change.

mod extent;
mod masked;
mod secrets;
mod times;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::checkout::take::check_ignored;
use crate::checkout::{CheckoutError, CheckoutResult, feed, io_failed, succeeded};
use crate::commit::own_like;
pub use extent::IgnoredExtent;
pub(crate) use masked::MaskedListing;

use crate::git::GitProgram;
use crate::tree::node::{FileNodeKind, Stat};
use crate::tree::path::WorkspacePath;
use crate::tree::{RootedTree, beneath, is_absent, os};

/// The names of the mask and of the list of what is ignored, beside a commit's files.
const MASK: &str = "mask";
const LIST: &str = "ignored";
/// How deep directories of nothing but ignored files are looked into.
const UNFOLDED: usize = 16;

/// The layers below the files of a commit, the uppermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredLayers {
    mask: PathBuf,
    checkout: PathBuf,
    /// Paths that git ignores, a directory that it ignores as a whole ending with `/`.
    ignored: Vec<Vec<u8>>,
}

impl IgnoredLayers {
    /// Those that were made beside a commit's files, if any were.
    pub(crate) fn find(directory: &Path, checkout: &Path) -> Option<Self> {
        let mask = directory.join(MASK);
        let listed = std::fs::read(directory.join(LIST)).ok()?;
        mask.is_dir().then(|| Self {
            mask,
            checkout: checkout.to_owned(),
            ignored: paths(&listed).map(<[u8]>::to_vec).collect(),
        })
    }

    /// Adds paths to those that were made beside a commit's files, if any were.
    pub(crate) fn add(directory: &Path, more: impl Iterator<Item = String>) -> CheckoutResult<()> {
        let list = directory.join(LIST);
        let Ok(mut listed) = std::fs::read(&list) else {
            return Ok(());
        };
        let known: BTreeSet<Vec<u8>> = paths(&listed).map(<[u8]>::to_vec).collect();
        let before = listed.len();
        for path in more.map(String::into_bytes) {
            if !known.contains(&path) {
                listed.push(0);
                listed.extend(path);
            }
        }
        if listed.len() == before {
            return Ok(());
        }
        let draft = directory.join("ignored.draft");
        std::fs::write(&draft, listed).map_err(io_failed(&draft))?;
        std::fs::rename(&draft, &list).map_err(io_failed(&list))
    }

    /// Makes them in `directory`, for the files of a commit that lie in `tree`. None where the
    /// repository has no checkout.
    pub(crate) fn make(
        git: &GitProgram,
        checkout: &Path,
        tree: &Path,
        directory: &Path,
    ) -> CheckoutResult<Option<Self>> {
        let inside = git.run(checkout, &["rev-parse", "--is-inside-work-tree"]);
        if !inside.is_ok_and(|text| text.trim() == "true") {
            return Ok(None);
        }
        let listed = IgnoredListing::ask(git, checkout)?;
        let tree = RootedTree::open(tree)?;
        let real = RootedTree::open(checkout)?;
        let path = directory.join(MASK);
        let mask = Mask::make(&path, &real)?;
        mask.hide(b".git")?;
        for path in &listed.untracked {
            if !is_installed(&real, path) {
                mask.hide(path)?;
            }
        }
        for path in &listed.tracked {
            if !is_there(&tree, path) {
                mask.hide(path)?;
            }
        }
        for path in &listed.submodules {
            // What a submodule holds shows through; how it is kept does not.
            mask.hide(&[path, b"/.git".as_slice()].concat())?;
        }
        for path in secrets::among(&real, &listed.ignored) {
            mask.hide(&path)?;
        }
        times::keep(&tree, &real);
        let mut ignored = listed.ignored;
        ignored.extend(
            listed
                .untracked
                .into_iter()
                .filter(|path| is_installed(&real, path)),
        );
        let list = directory.join(LIST);
        std::fs::write(&list, ignored.join(&0)).map_err(io_failed(&list))?;
        Ok(Some(Self {
            mask: path,
            checkout: checkout.to_owned(),
            ignored,
        }))
    }

    /// How much it is.
    pub(crate) fn extent(&self) -> CheckoutResult<IgnoredExtent> {
        let checkout = RootedTree::open(&self.checkout)?;
        let hidden = secrets::among(&checkout, &self.ignored);
        Ok(IgnoredExtent::of(&checkout, &self.ignored, &hidden))
    }

    /// Removes what was made beside a commit's files.
    pub(crate) fn clear(directory: &Path) -> CheckoutResult<()> {
        let there = RootedTree::open(directory)?;
        for name in [MASK, LIST] {
            crate::tree::remove(&there.top, name.as_ref())
                .map_err(|error| io_failed(&directory.join(name))(error.into()))?;
        }
        Ok(())
    }

    /// Directories to be mounted below the commit's files, the uppermost first.
    pub fn layers(&self) -> Vec<PathBuf> {
        vec![self.mask.clone(), self.checkout.clone()]
    }

    /// Whether git ignored that path, or something above it, when this was made.
    pub(crate) fn ignores(&self, path: &[u8]) -> bool {
        self.ignored.iter().any(|known| {
            path.strip_prefix(known.as_slice()).is_some_and(|rest| {
                rest.is_empty() || known.ends_with(b"/") || rest.starts_with(b"/")
            })
        })
    }
}

/// What git says about the paths of a checkout.
struct IgnoredListing {
    tracked: Vec<Vec<u8>>,
    submodules: Vec<Vec<u8>>,
    untracked: Vec<Vec<u8>>,
    ignored: Vec<Vec<u8>>,
}

impl IgnoredListing {
    fn ask(git: &GitProgram, checkout: &Path) -> CheckoutResult<Self> {
        let ask = |arguments: &[&str]| -> CheckoutResult<Vec<u8>> {
            let mut command = git.command(checkout)?;
            succeeded(feed(command.args(arguments), &[])?, arguments)
        };
        let others = ["ls-files", "-z", "--others", "--exclude-standard"];
        let folded = ["--directory", "--no-empty-directory"];
        let staged = ask(&["ls-files", "-z", "--stage"])?;
        let untracked = ask(&[&others[..], &folded[..]].concat())?;
        let ignored = ask(&[&others[..], &["--ignored"], &folded[..]].concat())?;
        let (mut tracked, mut submodules) = (BTreeSet::new(), Vec::new());
        for line in paths(&staged) {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else {
                continue;
            };
            let path = line[tab + 1..].to_vec();
            if line.starts_with(b"160000") {
                submodules.push(path);
            } else {
                tracked.insert(path);
            }
        }
        Ok(Self {
            tracked: tracked.into_iter().collect(),
            submodules,
            untracked: paths(&untracked).map(<[u8]>::to_vec).collect(),
            ignored: unfold(git, checkout, paths(&ignored).map(<[u8]>::to_vec).collect())?,
        })
    }
}

/// git names a directory that holds nothing but ignored files, whether or not a rule is about the
/// directory itself. Only where one is does a new file in it count as ignored too.
fn unfold(git: &GitProgram, checkout: &Path, named: Vec<Vec<u8>>) -> CheckoutResult<Vec<Vec<u8>>> {
    let top = RootedTree::open(checkout)?;
    let mut settled = Vec::new();
    let mut open = named;
    for _ in 0..UNFOLDED {
        if open.is_empty() {
            break;
        }
        let paths = open.iter().map(Vec::as_slice);
        let known = check_ignored(&mut git.command(checkout)?, paths)?;
        let (ignored, others): (Vec<_>, Vec<_>) = std::mem::take(&mut open)
            .into_iter()
            .partition(|path| known.contains(path.as_slice()));
        settled.extend(ignored);
        for path in others {
            let Some(folder) = path.strip_suffix(b"/") else {
                continue;
            };
            if let Ok(directory) = beneath(&top.top, os(folder), OFlags::DIRECTORY) {
                open.extend(children(&directory, &path));
            }
        }
    }
    Ok(settled)
}

fn children(directory: &OwnedFd, place: &[u8]) -> Vec<Vec<u8>> {
    let entries = Dir::read_from(directory);
    let entries = entries.into_iter().flatten().flatten();
    entries
        .filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
        .map(|entry| {
            let slash: &[u8] = match entry.file_type() {
                FileType::Directory => b"/",
                _ => b"",
            };
            [place, entry.file_name().to_bytes(), slash].concat()
        })
        .collect()
}

fn paths(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
}

/// Whether an untracked directory that no rule ignores holds installed dependencies, or a build that the
/// developer configured.
fn is_installed(checkout: &RootedTree, path: &[u8]) -> bool {
    let Some(folder) = path.strip_suffix(b"/") else {
        return false;
    };
    if folder.ends_with(b"node_modules") {
        return true;
    }
    beneath(&checkout.top, os(folder), OFlags::DIRECTORY).is_ok_and(|folder| {
        ["pyvenv.cfg", "CACHEDIR.TAG", "CMakeCache.txt"]
            .iter()
            .any(|sign| Stat::maybe(&folder, *sign).is_ok_and(|found| found.is_some()))
    })
}

fn is_there(tree: &RootedTree, path: &[u8]) -> bool {
    // A link is as good as a file, so its name is looked at and not what it leads to.
    let (above, name) = split(path);
    let parent = match above {
        Some(above) => beneath(&tree.top, os(above), OFlags::DIRECTORY | OFlags::PATH),
        None => return Stat::maybe(&tree.top, os(name)).is_ok_and(|found| found.is_some()),
    };
    parent.is_ok_and(|parent| Stat::maybe(&parent, os(name)).is_ok_and(|found| found.is_some()))
}

fn split(path: &[u8]) -> (Option<&[u8]>, &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (Some(&path[..at]), &path[at + 1..]),
        None => (None, path),
    }
}

/// A layer of nothing but whiteouts.
pub(crate) struct Mask<'a> {
    top: OwnedFd,
    checkout: &'a RootedTree,
}

impl<'a> Mask<'a> {
    pub(crate) fn make(path: &Path, checkout: &'a RootedTree) -> CheckoutResult<Self> {
        std::fs::create_dir(path).map_err(io_failed(path))?;
        let top = RootedTree::open(path)?.top;
        own_like(&top, &checkout.top).map_err(|error| io_failed(path)(error.into()))?;
        Ok(Self { top, checkout })
    }

    /// Hides a path and everything below it, if there is something.
    pub(crate) fn hide(&self, path: &[u8]) -> CheckoutResult<()> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let Ok(checked) = WorkspacePath::from_bytes(path) else {
            let text = String::from_utf8_lossy(path).into_owned();
            return Err(CheckoutError::Refused(format!("git named {text:?}")));
        };
        if !is_there(self.checkout, path) {
            return Ok(());
        }
        self.whiteout(path).map_err(|error| CheckoutError::Io {
            path: checked.to_string(),
            source: error.into(),
        })
    }

    fn whiteout(&self, path: &[u8]) -> rustix::io::Result<()> {
        let (above, name) = split(path);
        let mut parent = rustix::io::dup(&self.top)?;
        let mut so_far = Vec::new();
        for part in above
            .into_iter()
            .flat_map(|above| above.split(|b| *b == b'/'))
        {
            if !so_far.is_empty() {
                so_far.push(b'/');
            }
            so_far.extend_from_slice(part);
            match Stat::maybe(&parent, os(part))? {
                // Hidden already, with everything below it.
                Some(stat) if stat.kind != FileNodeKind::Directory => return Ok(()),
                Some(_) => {}
                None => rustix::fs::mkdirat(&parent, os(part), Mode::from_raw_mode(0o755))?,
            }
            parent = beneath(&parent, os(part), OFlags::DIRECTORY)?;
            match beneath(&self.checkout.top, os(&so_far), OFlags::DIRECTORY) {
                Ok(like) => own_like(&parent, &like)?,
                Err(error) if is_absent(error) => {}
                Err(error) => return Err(error),
            }
        }
        make_whiteout(&parent, os(name))
    }
}

/// A name that an overlay shows as absent, whatever lies below it.
pub(crate) fn make_whiteout(parent: &OwnedFd, name: &std::ffi::OsStr) -> rustix::io::Result<()> {
    let make = || {
        let device = rustix::fs::makedev(0, 0);
        rustix::fs::mknodat(
            parent,
            name,
            FileType::CharacterDevice,
            Mode::empty(),
            device,
        )
    };
    match make() {
        Err(Errno::EXIST) => {
            // A directory that was made for what is hidden below it is hidden as a whole.
            crate::tree::remove(parent, name)?;
            make()
        }
        done => done,
    }
}

/// Whether a name is such a whiteout.
pub(crate) fn is_whiteout(parent: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    Stat::maybe(parent, name).is_ok_and(|found| {
        found.is_some_and(|stat| {
            stat.kind == FileNodeKind::CharacterDevice && stat.represents == (0, 0)
        })
    })
}

#[cfg(test)]
mod tests;
