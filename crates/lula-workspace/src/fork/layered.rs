//! Forks as layers: an upper directory over the project's, read here the way the kernel reads it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use lula_files::beneath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{DEPENDENCIES, ForkError, LEFT_OUT, MAX_DEPTH, MAX_FILES, failed, is_plain};
use crate::commit::own_like;
use crate::copies::own;
use crate::ignored::{is_whiteout, make_whiteout};
use crate::layer::overlay::OPAQUE;
use crate::tree::node::{FileNodeKind, PERMISSION_BITS, Stat};
use crate::tree::{RootedTree, attribute, open_to_empty, remove, set_attribute};

const UPPER: &str = "upper";
const WORK: &str = "work";
/// What the kernel leaves in its working directory where a layer was never flushed; it does not mount
/// the layer again before that is gone.
const UNFLUSHED: &str = "incompat";

/// What the names of forks begin with; the number of the process that made them follows.
const PREFIX: &str = "fork-";

/// Removes forks that processes which are no more have left.
pub(super) fn sweep(home: &Path) {
    let Ok(home) = RootedTree::open(home) else {
        return;
    };
    let Ok(entries) = Dir::read_from(&home.top) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('-').next());
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            let _ = remove(&home.top, OsStr::new(&name));
        }
    }
}

/// The directories of a fork, to be mounted as an overlay with `userxattr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkLayers {
    /// What shows below, the uppermost first. The fork is seen at the path of the last.
    pub lowers: Vec<PathBuf>,
    /// The layer that changes go to.
    pub upper: PathBuf,
    /// What overlayfs itself needs.
    pub work: PathBuf,
}

/// A layer over a project.
#[derive(Debug)]
pub struct LayeredFork {
    lowers: Vec<PathBuf>,
    /// The upper directory, then the lower ones.
    handles: Vec<OwnedFd>,
    home: RootedTree,
    name: String,
    owner: (u32, u32),
}

/// Where a path is.
struct ForkEntry {
    parent: OwnedFd,
    stat: Stat,
    /// Whether it is in the upper directory.
    #[cfg(test)]
    upper: bool,
}

impl LayeredFork {
    pub(super) fn make(home: &Path, lowers: Vec<PathBuf>) -> Result<Self, ForkError> {
        let at_home = |source| failed(&home.display().to_string(), source);
        let other = |error: crate::WorkspaceError| at_home(std::io::Error::other(error));
        let home = RootedTree::create(home).map_err(other)?;
        let directory = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir_in(&home.path)
            .map_err(at_home)?
            .keep();
        let name = directory
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let open = |path: &Path| {
            RootedTree::open(path)
                .map(|tree| tree.top)
                .map_err(|error| failed(&path.display().to_string(), std::io::Error::other(error)))
        };
        for part in [UPPER, WORK] {
            std::fs::create_dir(directory.join(part)).map_err(at_home)?;
        }
        let mut handles = vec![open(&directory.join(UPPER))?];
        for lower in &lowers {
            handles.push(open(lower)?);
        }
        let of_system = |error: Errno| at_home(error.into());
        let base = handles
            .last()
            .ok_or_else(|| at_home(std::io::ErrorKind::NotFound.into()))?;
        let owner = Stat::of_open(base).map_err(of_system)?.owner;
        own_like(&handles[0], base).map_err(of_system)?;
        Ok(Self {
            lowers,
            handles,
            home,
            name,
            owner,
        })
    }

    pub(super) fn shown(&self) -> &Path {
        self.lowers.last().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// The directories, ready to be mounted (again).
    pub(super) fn layers(&self) -> Result<ForkLayers, ForkError> {
        let directory = self.home.path.join(&self.name);
        let work = directory.join(WORK);
        let failed = |error: Errno| failed(&work.display().to_string(), error.into());
        let of_kernel = beneath(
            &self.home.top,
            format!("{}/{WORK}", self.name),
            OFlags::DIRECTORY,
        )
        .and_then(|work| open_to_empty(&work, OsStr::new("work")));
        match of_kernel {
            // A fork is thrown away, so nothing of it needs to reach the disk.
            Ok(of_kernel) => remove(&of_kernel, OsStr::new(UNFLUSHED)).map_err(failed)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(ForkLayers {
            lowers: self.lowers.clone(),
            upper: directory.join(UPPER),
            work,
        })
    }

    /// The project's own files: those of its uppermost lower directory, as changed.
    pub(super) fn files(&self) -> Result<Vec<String>, ForkError> {
        let mut found = Vec::new();
        let layers: Vec<&OwnedFd> = self.handles.iter().take(2).collect();
        list(&layers, "", 0, &mut found)?;
        found.sort();
        Ok(found)
    }

    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, ForkError> {
        let found = self.existing(path)?;
        let name = path.rsplit('/').next().unwrap_or(path);
        let io = |error: Errno| failed(path, error.into());
        let file = beneath(&found.parent, name, OFlags::RDONLY).map_err(io)?;
        let mut file = File::from(file);
        if Stat::of_open(&file).map_err(io)?.kind != FileNodeKind::File {
            return Err(no_file(path));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|source| failed(path, source))?;
        Ok(bytes)
    }

    pub(super) fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ForkError> {
        let mode = match self.find(path)? {
            Some(found) if found.stat.kind != FileNodeKind::File => return Err(no_file(path)),
            Some(found) => found.stat.mode & PERMISSION_BITS,
            None => 0o644,
        };
        self.put_file(path, bytes, mode)
    }

    pub(super) fn remove(&self, path: &str) -> Result<(), ForkError> {
        self.existing(path)?;
        self.put_nothing(path)
    }

    /// A file with these permissions, whatever was at that path.
    pub(crate) fn put_file(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), ForkError> {
        let (parent, name) = self.place(path)?;
        let io = |error: Errno| failed(path, error.into());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = File::from(beneath(&parent, name, flags).map_err(io)?);
        own(&file, self.owner).map_err(io)?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode)).map_err(io)?;
        file.write_all(bytes).map_err(|source| failed(path, source))
    }

    /// A link, whatever was at that path.
    pub(crate) fn put_link(&self, path: &str, target: &[u8]) -> Result<(), ForkError> {
        let (parent, name) = self.place(path)?;
        rustix::fs::symlinkat(target, &parent, name).map_err(|error| failed(path, error.into()))
    }

    /// A directory, with what shows in it from below where there was one.
    pub(crate) fn put_directory(&self, path: &str) -> Result<(), ForkError> {
        self.parents(path).map(drop)
    }

    /// Nothing, whatever was at that path.
    pub(crate) fn put_nothing(&self, path: &str) -> Result<(), ForkError> {
        if self.find(path)?.is_none() {
            return Ok(());
        }
        let (parent, name) = self.place(path)?;
        if self.find(path)?.is_some() {
            make_whiteout(&parent, OsStr::new(name)).map_err(|error| failed(path, error.into()))?;
        }
        Ok(())
    }

    /// The upper directory that a path is in, with nothing at its name.
    fn place<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), ForkError> {
        if !is_plain(path) {
            return Err(ForkError::BadPath(path.to_owned()));
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.parents(above)?;
        remove(&parent, OsStr::new(name)).map_err(|error| failed(path, error.into()))?;
        Ok((parent, name))
    }

    /// A directory of the upper layer, made with those above it.
    fn parents(&self, path: &str) -> Result<OwnedFd, ForkError> {
        let io = |error: Errno| failed(path, error.into());
        let mut directory = rustix::io::dup(&self.handles[0]).map_err(io)?;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let stat = Stat::maybe(&directory, part).map_err(io)?;
            let hidden = is_whiteout(&directory, OsStr::new(part));
            if stat.is_none_or(|stat| stat.kind != FileNodeKind::Directory) {
                remove(&directory, OsStr::new(part)).map_err(io)?;
                rustix::fs::mkdirat(&directory, part, Mode::from_raw_mode(0o755)).map_err(io)?;
                let made = beneath(&directory, part, OFlags::DIRECTORY).map_err(io)?;
                own(&made, self.owner).map_err(io)?;
                if hidden {
                    // What was deleted stays deleted.
                    set_attribute(&made, OPAQUE, b"y").map_err(io)?;
                }
            }
            directory = beneath(&directory, part, OFlags::DIRECTORY).map_err(io)?;
        }
        Ok(directory)
    }

    fn existing(&self, path: &str) -> Result<ForkEntry, ForkError> {
        match self.find(path)? {
            Some(found) if found.stat.kind == FileNodeKind::File => Ok(found),
            Some(_) => Err(no_file(path)),
            None => Err(failed(path, std::io::ErrorKind::NotFound.into())),
        }
    }

    /// What commands see at a path.
    fn find(&self, path: &str) -> Result<Option<ForkEntry>, ForkError> {
        if !is_plain(path) {
            return Err(ForkError::BadPath(path.to_owned()));
        }
        for layer in &self.handles {
            match look(layer, path).map_err(|error| failed(path, error.into()))? {
                LayerLookup::Here(parent, stat) => {
                    return Ok(Some(ForkEntry {
                        parent,
                        stat,
                        #[cfg(test)]
                        upper: std::ptr::eq(layer, &raw const self.handles[0]),
                    }));
                }
                LayerLookup::Hidden => return Ok(None),
                LayerLookup::Through => {}
            }
        }
        Ok(None)
    }

    /// Whether a path was changed in this fork.
    #[cfg(test)]
    fn is_changed(&self, path: &str) -> bool {
        matches!(self.find(path), Ok(Some(ForkEntry { upper: true, .. })))
    }
}

impl Drop for LayeredFork {
    fn drop(&mut self) {
        // What cannot be removed now is found by its name in the home.
        let _ = remove(&self.home.top, OsStr::new(&self.name));
    }
}

fn no_file(path: &str) -> ForkError {
    failed(path, std::io::Error::other("it is not a regular file"))
}

/// What one layer says about a path.
enum LayerLookup {
    /// It is here, in that directory.
    Here(OwnedFd, Stat),
    /// Nothing is there, whatever lies below.
    Hidden,
    /// The layer says nothing: the one below decides.
    Through,
}

fn look(layer: &OwnedFd, path: &str) -> rustix::io::Result<LayerLookup> {
    let mut directory = rustix::io::dup(layer)?;
    let mut opaque = false;
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let Some(stat) = Stat::maybe(&directory, part)? else {
            return Ok(if opaque {
                LayerLookup::Hidden
            } else {
                LayerLookup::Through
            });
        };
        if stat.kind == FileNodeKind::CharacterDevice && stat.represents == (0, 0) {
            return Ok(LayerLookup::Hidden);
        }
        if parts.peek().is_none() {
            return Ok(LayerLookup::Here(directory, stat));
        }
        if stat.kind != FileNodeKind::Directory {
            return Ok(LayerLookup::Hidden);
        }
        directory = beneath(&directory, part, OFlags::DIRECTORY)?;
        opaque |= attribute(directory.as_fd(), OPAQUE).as_deref() == Some(b"y");
    }
    Ok(LayerLookup::Through)
}

/// Regular files of layers over each other, the uppermost first.
fn list(
    layers: &[&OwnedFd],
    place: &str,
    depth: usize,
    found: &mut Vec<String>,
) -> Result<(), ForkError> {
    if depth > MAX_DEPTH || found.len() > MAX_FILES {
        return Err(ForkError::TooLarge);
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, layer) in layers.iter().enumerate() {
        let io = |error: Errno| failed(place, error.into());
        for entry in Dir::read_from(layer).map_err(io)? {
            let entry = entry.map_err(io)?;
            // A name that is not text cannot be named in an edit either.
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") || !seen.insert(name.to_owned()) {
                continue;
            }
            let path = if place.is_empty() {
                name.to_owned()
            } else {
                format!("{place}/{name}")
            };
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(layer, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map(|stat| FileType::from_raw_mode(stat.st_mode))
                    .map_err(io)?,
                kind => kind,
            };
            match kind {
                FileType::RegularFile => found.push(path),
                FileType::Directory
                    if !LEFT_OUT.contains(&name) && !DEPENDENCIES.contains(&name) =>
                {
                    let mut inner = Vec::new();
                    for layer in &layers[index..] {
                        match beneath(layer, name, OFlags::DIRECTORY) {
                            Ok(directory) => {
                                let opaque = attribute(&directory, OPAQUE).as_deref() == Some(b"y");
                                inner.push(directory);
                                if opaque {
                                    break;
                                }
                            }
                            // A layer does not show what is mounted on it.
                            Err(Errno::NOENT | Errno::XDEV) => {}
                            Err(Errno::NOTDIR | Errno::LOOP) => break,
                            Err(error) => return Err(failed(&path, error.into())),
                        }
                    }
                    let inner: Vec<&OwnedFd> = inner.iter().collect();
                    list(&inner, &path, depth + 1, found)?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::{ForkableProject, WorkspaceFork};

    fn project() -> (tempfile::TempDir, ForkableProject) {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("project");
        for name in ["src/deep", "node_modules/x", ".git", "target"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        std::fs::write(top.join("src/a.py"), "a").unwrap();
        std::fs::write(top.join("src/deep/run.sh"), "#!/bin/sh\n").unwrap();
        std::fs::write(top.join("node_modules/x/i.js"), "i").unwrap();
        let project = ForkableProject::at(&top)
            .unwrap()
            .in_layers(directory.path().join("forks"));
        (directory, project)
    }

    #[test]
    fn a_fork_changes_alone_and_is_gone_when_dropped() {
        let (top, project) = project();
        let fork = project.fork().unwrap();
        let home = top.path().join("forks");
        assert_eq!(fork.path(), project.root());
        assert_eq!(fork.files().unwrap(), ["src/a.py", "src/deep/run.sh"]);
        fork.write("src/a.py", b"changed").unwrap();
        fork.write("new/file.txt", b"new").unwrap();
        assert_eq!(fork.read("src/a.py").unwrap(), b"changed");
        assert_eq!(fork.read("node_modules/x/i.js").unwrap(), b"i");
        assert_eq!(
            std::fs::read(project.root().join("src/a.py")).unwrap(),
            b"a"
        );
        let WorkspaceFork::Layered(layered) = &fork else {
            panic!("{fork:?}");
        };
        assert!(layered.is_changed("src/a.py") && !layered.is_changed("src/deep/run.sh"));
        fork.remove("new/file.txt").unwrap();
        fork.remove("src/deep/run.sh").unwrap();
        assert_eq!(fork.files().unwrap(), ["src/a.py"]);
        assert!(fork.read("src/deep/run.sh").is_err());
        // What was removed can come back, alone.
        fork.write("src/deep/run.sh", b"again").unwrap();
        assert_eq!(fork.read("src/deep/run.sh").unwrap(), b"again");
        drop(fork);
        assert_eq!(std::fs::read_dir(home).unwrap().count(), 0);
    }

    #[test]
    fn a_link_in_a_fork_leads_nowhere() {
        let (_top, project) = project();
        let fork = project.fork().unwrap();
        let upper = fork.layers().unwrap().unwrap().upper;
        let outside = project.root().join("src/a.py");
        symlink(&outside, upper.join("link.py")).unwrap();
        symlink(project.root().join("src"), upper.join("linked")).unwrap();
        for path in [
            "link.py",
            "linked/a.py",
            "../escape",
            "/etc/passwd",
            "src/../../x",
            "",
        ] {
            assert!(fork.read(path).is_err(), "{path}");
            assert!(fork.remove(path).is_err(), "{path}");
        }
        for path in ["link.py", "../escape", "/etc/passwd", "src/../../x", ""] {
            assert!(fork.write(path, b"owned").is_err(), "{path}");
        }
        assert_eq!(std::fs::read(outside).unwrap(), b"a");
    }
}
