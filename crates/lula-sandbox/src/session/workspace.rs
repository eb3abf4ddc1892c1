//! The workspace as the caller names it, checked.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::blueprint::{self, BindMount, PlacedPath, WorkspacePlan};
use crate::error::SandboxError;
use crate::mounts::ProjectEnvironment;

/// Layers a workspace may have below its upper one: the kernel takes their list in one short line.
const MOST_LOWERS: usize = 16;

/// A workspace whose real tree is never written: what is changed inside goes to `upper`, as the
/// kernel's overlay filesystem writes it (whiteouts, and marks in `user.overlay.*`). Only the
/// `namespace` tier has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayWorkspace {
    /// What is seen below the upper layer, most recent first. The last is the real tree; the
    /// workspace is seen at its path.
    pub lowers: Vec<PathBuf>,
    /// Where changes go. Files made inside belong to its owner.
    pub upper: PathBuf,
    /// An empty directory for the kernel, beside `upper`. The kernel leaves an empty directory
    /// `work` in it without read permission: remove it by name before the rest.
    pub work: PathBuf,
}

/// A directory of the host shown inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DirectoryWithin {
    pub(super) source: PathBuf,
    /// Its path below the workspace.
    pub(super) at: PathBuf,
    pub(super) writable: bool,
}

impl DirectoryWithin {
    /// As it is placed into a workspace that is seen there.
    pub(super) fn placed(&self, workspace: &str) -> Result<PlacedPath, SandboxError> {
        let plain = |part| matches!(part, Component::Normal(_));
        if !self.at.components().all(plain) {
            return Err(unusable(
                &self.at,
                "a place within a workspace lies below it",
            ));
        }
        let source = usable(&self.source)?;
        let target = text(&Path::new(workspace).join(&self.at))?;
        let owner = metadata(&source)?;
        held(&source, target, &owner, self.writable)
    }
}

#[derive(Debug, Clone)]
pub(super) enum SessionWorkspace {
    Directory(PathBuf),
    Overlay(OverlayWorkspace),
}

impl SessionWorkspace {
    /// Where it is seen, and what it is made of.
    pub(super) fn plan(
        &self,
        writable: bool,
        unflushed: bool,
        made: Option<&ProjectEnvironment>,
    ) -> Result<WorkspacePlan, SandboxError> {
        let (real, overlay) = match self {
            Self::Directory(path) => (path, None),
            Self::Overlay(overlay) => {
                let base = overlay.lowers.last().ok_or_else(|| {
                    unusable(&overlay.upper, "an overlay has a real tree below it")
                })?;
                (base, Some(overlay.layers(unflushed, made)?))
            }
        };
        let path = usable(real)?;
        Ok(WorkspacePlan {
            device: metadata(&path)?.dev(),
            path: text(&path)?,
            writable,
            overlay,
        })
    }
}

impl OverlayWorkspace {
    fn layers(
        &self,
        unflushed: bool,
        made: Option<&ProjectEnvironment>,
    ) -> Result<blueprint::BlueprintOverlay, SandboxError> {
        let above = made.and_then(|made| made.above.as_ref());
        let below = made.and_then(|made| made.below.as_ref());
        let all: Vec<&PathBuf> = above.into_iter().chain(&self.lowers).chain(below).collect();
        if all.len() > MOST_LOWERS {
            return Err(unusable(
                &self.upper,
                "an overlay has at most 16 layers below it; commit or flatten some",
            ));
        }
        let lowers = all.into_iter().enumerate().map(|(index, lower)| {
            let lower = usable(lower)?;
            let owner = metadata(&lower)?;
            held(&lower, format!("/run/w{index}"), &owner, false)
        });
        let lowers = lowers.collect::<Result<_, _>>()?;
        let (upper, work) = (usable(&self.upper)?, usable(&self.work)?);
        let names = upper.file_name().zip(work.file_name());
        let (Some(beside), Some((upper_name, work_name))) = (upper.parent(), names) else {
            return Err(unusable(&upper, "a layer is a directory below /"));
        };
        if work.parent() != Some(beside) || upper == work {
            return Err(unusable(
                &work,
                "the working directory of an overlay lies beside its upper layer",
            ));
        }
        let owner = metadata(&upper)?;
        let name = |name: &std::ffi::OsStr| text(&Path::new("/run/w").join(name));
        Ok(blueprint::BlueprintOverlay {
            lowers,
            above: held(beside, "/run/w".to_owned(), &owner, true)?,
            upper: name(upper_name)?,
            work: name(work_name)?,
            unflushed,
        })
    }
}

/// A directory to be held at `target`, as a directory of `owner`.
fn held(
    path: &Path,
    target: String,
    owner: &std::fs::Metadata,
    writable: bool,
) -> Result<PlacedPath, SandboxError> {
    let found = metadata(path)?;
    Ok(PlacedPath {
        bind: BindMount {
            source: text(path)?,
            target,
            file: false,
        },
        writable,
        device: found.dev(),
        inode: found.ino(),
        owner: (owner.uid(), owner.gid()),
    })
}

/// A workspace is a directory that is not the whole machine.
fn usable(path: &Path) -> Result<PathBuf, SandboxError> {
    let real = path.canonicalize().map_err(|source| SandboxError::Path {
        path: path.to_owned(),
        source,
    })?;
    if real == Path::new("/") || !real.is_dir() {
        return Err(unusable(path, "a workspace is a directory below /"));
    }
    Ok(real)
}

fn unusable(path: &Path, why: &'static str) -> SandboxError {
    SandboxError::Path {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidInput, why),
    }
}

fn metadata(path: &Path) -> Result<std::fs::Metadata, SandboxError> {
    std::fs::metadata(path).map_err(|source| SandboxError::Path {
        path: path.to_owned(),
        source,
    })
}

/// Paths travel as plain text.
fn text(path: &Path) -> Result<String, SandboxError> {
    path.to_str()
        .filter(|text| !text.chars().any(char::is_control))
        .map(str::to_owned)
        .ok_or_else(|| SandboxError::PathText(path.to_owned()))
}
