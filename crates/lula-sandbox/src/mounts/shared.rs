//! The rules of a sandbox that sees the host's own tree: without mounts there is no private layer, and
//! nothing can be hidden in a directory that is shown.

use std::path::{Path, PathBuf};

use super::{HostToolchains, MountedWorkspace, SYSTEM, caches, etc_entries, text};
use crate::error::SandboxError;
use crate::frames::UnavailableProtection;
use crate::landlock::{PathAccess, PathGrant};
use crate::policy::{AbsolutePath, SandboxPolicy};

/// The rules of a sandbox that sees the host's own tree.
pub(crate) fn shared_grants(
    policy: &SandboxPolicy,
    workspace: MountedWorkspace<'_>,
    toolchains: &HostToolchains,
    private: &Path,
) -> Result<(Vec<PathGrant>, Vec<UnavailableProtection>), SandboxError> {
    let mut grants = Vec::new();
    let mut grant = |path: &Path, access| -> Result<(), SandboxError> {
        grants.push(PathGrant {
            path: text(path)?,
            access,
        });
        Ok(())
    };
    for path in SYSTEM
        .iter()
        .map(|path| (*path).to_owned())
        .chain(etc_entries())
    {
        grant(Path::new(&path), PathAccess::Read)?;
    }
    for file in [
        "/etc/passwd",
        "/etc/group",
        "/etc/hosts",
        "/etc/nsswitch.conf",
        "/proc",
    ] {
        grant(Path::new(file), PathAccess::Read)?;
    }
    for path in policy.paths.read.iter().map(AbsolutePath::as_path) {
        grant(path, PathAccess::Read)?;
    }
    for path in toolchains.directories() {
        for part in without_credentials(path, toolchains.hidden()) {
            grant(&part, PathAccess::Read)?;
        }
    }
    let mut held_back = Vec::new();
    for found in caches::look(&policy.caches, toolchains)? {
        for source in found.sources() {
            grant(Path::new(source), PathAccess::Read)?;
            held_back.push(UnavailableProtection {
                asked: format!("package cache {source} below a private layer"),
                reason: "a tier without mounts has no layers: the cache can be read, and tools \
                         keep one of their own"
                    .to_owned(),
            });
        }
    }
    // Not `pts`: the terminals there are the host's, and typing into one is an escape.
    for device in ["null", "zero", "full", "random", "urandom", "tty", "ptmx"] {
        grant(&Path::new("/dev").join(device), PathAccess::Use)?;
    }
    for path in policy.paths.write.iter().map(AbsolutePath::as_path) {
        grant(path, PathAccess::Write)?;
    }
    let access = if workspace.writable {
        PathAccess::Write
    } else {
        PathAccess::Read
    };
    grant(workspace.path, access)?;
    grant(private, PathAccess::Write)?;
    Ok((grants, held_back))
}

/// A directory, or what is in it where something in there must stay hidden.
fn without_credentials(directory: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(real) = directory.canonicalize() else {
        return Vec::new();
    };
    if !hidden.iter().any(|path| path.starts_with(&real)) {
        return vec![directory.to_owned()];
    }
    let entries = std::fs::read_dir(&real).into_iter().flatten().flatten();
    let parts = entries.map(|entry| entry.path());
    parts
        .filter(|part| !hidden.iter().any(|path| path.starts_with(part)))
        .collect()
}
