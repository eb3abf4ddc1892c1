//! Reading an overlay's upper directory the way the kernel does.
//!
//! The sandbox mounts it with `userxattr`: a character device 0/0 is a deleted name, the attribute
//! `user.overlay.opaque` is `y` on a directory that hides what is below it, and `x` on one in which
//! empty files with `user.overlay.whiteout` are deleted names too. `trusted.overlay.*` means nothing
//! there. Attributes that would make a name stand for another one are never written by such a mount;
//! finding one is a reason to refuse, not to guess.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::tree::node::{FileNode, FileNodeKind, Stat};
use crate::tree::path::WorkspacePath;
use crate::tree::{BudgetedReader, MAX_DEPTH, RootedTree, attribute, beneath, open_plain, os};

pub(crate) const OPAQUE: &str = "user.overlay.opaque";
pub(crate) const WHITEOUT: &str = "user.overlay.whiteout";
const REDIRECT: &str = "user.overlay.redirect";
const METACOPY: &str = "user.overlay.metacopy";

/// A path that the workspace touched, and what is there now as seen from inside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TouchedPath {
    pub(crate) path: WorkspacePath,
    pub(crate) new: Option<FileNode>,
}

/// Everything the upper directory says about the tree below it.
pub(crate) fn touched(
    upper: &RootedTree,
    lower: &RootedTree,
    reader: &mut BudgetedReader,
) -> WorkspaceResult<Vec<TouchedPath>> {
    let mut walk = Walk {
        reader,
        found: Vec::new(),
    };
    let top = UpperDirectory {
        path: None,
        depth: 0,
        hides: false,
        marked_whiteouts: attribute(&upper.top, OPAQUE).as_deref() == Some(b"x"),
    };
    walk.directory(&upper.top, Some(&lower.top), &top)?;
    Ok(walk.found)
}

struct Walk<'a> {
    reader: &'a mut BudgetedReader,
    found: Vec<TouchedPath>,
}

/// A directory of the upper layer.
struct UpperDirectory {
    path: Option<WorkspacePath>,
    depth: usize,
    /// Nothing of the lower directory shows through.
    hides: bool,
    /// Empty files with an attribute are deleted names.
    marked_whiteouts: bool,
}

impl UpperDirectory {
    fn child(&self, name: &[u8]) -> WorkspaceResult<WorkspacePath> {
        Ok(match &self.path {
            Some(path) => path.child(name)?,
            None => WorkspacePath::top(name)?,
        })
    }

    fn text(&self) -> String {
        self.path
            .as_ref()
            .map_or_else(|| ".".to_owned(), ToString::to_string)
    }
}

impl Walk<'_> {
    fn directory(
        &mut self,
        upper: &OwnedFd,
        lower: Option<&OwnedFd>,
        place: &UpperDirectory,
    ) -> WorkspaceResult<()> {
        let names = self.reader.names(upper, &place.text())?;
        for name in &names {
            let path = place.child(name)?;
            let Some(stat) = Stat::maybe(upper, os(name)).map_err(|e| failed(&path, e))? else {
                continue;
            };
            if Self::is_whiteout(upper, &path, &stat, place)? {
                self.gone(lower, &path, place.depth)?;
            } else if stat.kind == FileNodeKind::Directory {
                self.inner_directory(upper, lower, place, path)?;
            } else {
                self.hidden_below(lower, &path, place.depth)?;
                // One that went away meanwhile is seen by the next look.
                if let Some((new, _)) = self.reader.node(upper, &path)? {
                    self.found.push(TouchedPath {
                        path,
                        new: Some(new),
                    });
                }
            }
        }
        if let Some(lower) = lower.filter(|_| place.hides) {
            for name in self.reader.names(lower, &place.text())? {
                if names.binary_search(&name).is_err() {
                    self.gone(Some(lower), &place.child(&name)?, place.depth)?;
                }
            }
        }
        Ok(())
    }

    fn inner_directory(
        &mut self,
        upper: &OwnedFd,
        lower: Option<&OwnedFd>,
        place: &UpperDirectory,
        path: WorkspacePath,
    ) -> WorkspaceResult<()> {
        too_deep(place.depth)?;
        let directory = match beneath(upper, os(path.name()), OFlags::DIRECTORY) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(failed(&path, error)),
        };
        for mark in [REDIRECT, METACOPY] {
            if attribute(&directory, mark).is_some() {
                let what = mark.to_owned();
                return Err(WorkspaceError::ForeignMark { path, what });
            }
        }
        let (opaque, marked_whiteouts) = match attribute(&directory, OPAQUE).as_deref() {
            None => (false, false),
            Some(b"y") => (true, false),
            Some(b"x") => (false, true),
            Some(_) => {
                let what = format!("an unknown value of {OPAQUE}");
                return Err(WorkspaceError::ForeignMark { path, what });
            }
        };
        if let Some((new, _)) = self.reader.node(upper, &path)? {
            self.found.push(TouchedPath {
                path: path.clone(),
                new: Some(new),
            });
        }
        let below = lower_directory(lower, &path)?;
        let inner = UpperDirectory {
            path: Some(path),
            depth: place.depth + 1,
            hides: place.hides || opaque,
            marked_whiteouts,
        };
        self.directory(&directory, below.as_ref(), &inner)
    }

    fn is_whiteout(
        upper: &OwnedFd,
        path: &WorkspacePath,
        stat: &Stat,
        place: &UpperDirectory,
    ) -> WorkspaceResult<bool> {
        Ok(match stat.kind {
            FileNodeKind::CharacterDevice => stat.represents == (0, 0),
            FileNodeKind::File if place.marked_whiteouts && stat.size == 0 => {
                attribute(open_plain(upper, path)?, WHITEOUT).is_some()
            }
            _ => false,
        })
    }

    /// Something that is not a directory stands in the place of one.
    fn hidden_below(
        &mut self,
        lower: Option<&OwnedFd>,
        path: &WorkspacePath,
        depth: usize,
    ) -> WorkspaceResult<()> {
        if let Some(directory) = lower_directory(lower, path)? {
            self.all_gone(&directory, path, depth)?;
        }
        Ok(())
    }

    /// A name of the lower directory, with all below it, is not there any more.
    fn gone(
        &mut self,
        lower: Option<&OwnedFd>,
        path: &WorkspacePath,
        depth: usize,
    ) -> WorkspaceResult<()> {
        let Some(lower) = lower else { return Ok(()) };
        let Some(stat) = Stat::maybe(lower, os(path.name())).map_err(|e| failed(path, e))? else {
            return Ok(());
        };
        self.found.push(TouchedPath {
            path: path.clone(),
            new: None,
        });
        if stat.kind == FileNodeKind::Directory {
            self.hidden_below(Some(lower), path, depth)?;
        }
        Ok(())
    }

    fn all_gone(
        &mut self,
        directory: &OwnedFd,
        path: &WorkspacePath,
        depth: usize,
    ) -> WorkspaceResult<()> {
        too_deep(depth)?;
        for name in self.reader.names(directory, &path.to_string())? {
            self.gone(Some(directory), &path.child(&name)?, depth + 1)?;
        }
        Ok(())
    }
}

/// The directory of that name in the lower one, if it is one.
fn lower_directory(
    lower: Option<&OwnedFd>,
    path: &WorkspacePath,
) -> WorkspaceResult<Option<OwnedFd>> {
    let Some(lower) = lower else { return Ok(None) };
    match beneath(lower, os(path.name()), OFlags::DIRECTORY) {
        Ok(directory) => Ok(Some(directory)),
        Err(error) if crate::tree::is_absent(error) => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

fn too_deep(depth: usize) -> WorkspaceResult<()> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(WorkspaceError::TooMuch {
        what: "levels of directories",
        limit: MAX_DEPTH as u64,
    })
}

fn failed(path: &WorkspacePath, error: Errno) -> WorkspaceError {
    WorkspaceError::io("look at", path, error)
}
