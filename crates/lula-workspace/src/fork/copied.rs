//! Forks as copies.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use lula_files::beneath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::changes::SortedChanges;
use super::directory::OpenDirectory;
use super::{ForkError, LEFT_OUT, MAX_BYTES, MAX_DEPTH, MAX_FILES, failed};

/// Directories of installed dependencies: large, and not part of the project's own code. A fork
/// links to the project's instead of copying them.
pub(crate) const DEPENDENCIES: [&str; 4] = ["node_modules", ".venv", "venv", ".tox"];

/// Directories of installed dependencies at the top of a project.
pub fn dependencies(root: &Path) -> Vec<PathBuf> {
    let named = DEPENDENCIES.iter().map(|name| root.join(name));
    // A link to them is as good, but what a sandbox shows is where it leads.
    named
        .filter(|path| path.is_dir())
        .map(|path| {
            if path.is_symlink() {
                path.canonicalize().unwrap_or(path)
            } else {
                path
            }
        })
        .collect()
}

/// One copy of a project.
#[derive(Debug)]
pub struct CopiedFork {
    directory: tempfile::TempDir,
    files: OpenDirectory,
}

impl CopiedFork {
    pub(super) fn make(
        root: &Path,
        dependencies: &[PathBuf],
        laid: &SortedChanges,
    ) -> Result<Self, ForkError> {
        let directory = tempfile::Builder::new()
            .prefix("lula-fork-")
            .tempdir()
            .map_err(|source| failed("the temporary directory", source))?;
        let files = OpenDirectory::at(directory.path())?;
        let source = OpenDirectory::at(root)?;
        let mut copy = ProjectCopy { files: 0, bytes: 0 };
        copy.directory(source.handle(), files.handle(), "", 0)?;
        laid.put(files.handle())?;
        for path in dependencies {
            let Some(name) = path.file_name() else {
                continue;
            };
            match rustix::fs::symlinkat(path, files.handle(), name) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(&name.to_string_lossy(), error.into())),
            }
        }
        Ok(Self { directory, files })
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Its files, below their own handle.
    pub const fn files(&self) -> &OpenDirectory {
        &self.files
    }
}

/// The entries of a directory, by name and kind; what is neither file, directory nor link is left
/// out.
fn entries(directory: &OwnedFd, place: &str) -> Result<Vec<(String, FileType)>, ForkError> {
    let read = Dir::read_from(directory).map_err(|error| failed(place, error.into()))?;
    let mut found = Vec::new();
    for entry in read {
        let entry = entry.map_err(|error| failed(place, error.into()))?;
        // A name that is not text cannot be named in an edit either.
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if matches!(name, "." | "..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .map(|stat| FileType::from_raw_mode(stat.st_mode))
                .map_err(|error| failed(place, error.into()))?,
            kind => kind,
        };
        found.push((name.to_owned(), kind));
    }
    Ok(found)
}

pub(crate) fn list(
    directory: &OwnedFd,
    place: &str,
    depth: usize,
    found: &mut Vec<String>,
) -> Result<(), ForkError> {
    if depth > MAX_DEPTH || found.len() > MAX_FILES {
        return Err(ForkError::TooLarge);
    }
    for (name, kind) in entries(directory, place)? {
        let path = if place.is_empty() {
            name.clone()
        } else {
            format!("{place}/{name}")
        };
        match kind {
            FileType::RegularFile => found.push(path),
            FileType::Directory if !LEFT_OUT.contains(&name.as_str()) => {
                let inner = match beneath(directory, &name, OFlags::DIRECTORY) {
                    Ok(inner) => inner,
                    // Something else is mounted there, which is not part of this tree.
                    Err(Errno::XDEV) => continue,
                    Err(error) => return Err(failed(&path, error.into())),
                };
                list(&inner, &path, depth + 1, found)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What was copied so far, held against the limits.
struct ProjectCopy {
    files: usize,
    bytes: u64,
}

impl ProjectCopy {
    fn directory(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        place: &str,
        depth: usize,
    ) -> Result<(), ForkError> {
        if depth > MAX_DEPTH {
            return Err(ForkError::TooLarge);
        }
        for (name, kind) in entries(from, place)? {
            let path = if place.is_empty() {
                name.clone()
            } else {
                format!("{place}/{name}")
            };
            let io_failed = |error: Errno| failed(&path, error.into());
            let name = name.as_str();
            match kind {
                FileType::RegularFile => self.file(from, to, name, &path)?,
                FileType::Symlink => {
                    let target =
                        rustix::fs::readlinkat(from, name, Vec::new()).map_err(io_failed)?;
                    rustix::fs::symlinkat(&target, to, name).map_err(io_failed)?;
                }
                FileType::Directory => {
                    let linked = place.is_empty() && DEPENDENCIES.contains(&name);
                    if linked || LEFT_OUT.contains(&name) {
                        continue;
                    }
                    let inner_from = match beneath(from, name, OFlags::DIRECTORY) {
                        Ok(inner) => inner,
                        // Something else is mounted there, which is not part of this tree.
                        Err(Errno::XDEV) => continue,
                        Err(error) => return Err(io_failed(error)),
                    };
                    rustix::fs::mkdirat(to, name, Mode::from_raw_mode(0o755)).map_err(io_failed)?;
                    let inner_to = beneath(to, name, OFlags::DIRECTORY).map_err(io_failed)?;
                    self.directory(&inner_from, &inner_to, &path, depth + 1)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        name: &str,
        path: &str,
    ) -> Result<(), ForkError> {
        let io_failed = |error: Errno| failed(path, error.into());
        let source = beneath(from, name, OFlags::RDONLY).map_err(io_failed)?;
        let stat = rustix::fs::fstat(&source).map_err(io_failed)?;
        self.files += 1;
        self.bytes += u64::try_from(stat.st_size).unwrap_or(0);
        if self.files > MAX_FILES || self.bytes > MAX_BYTES {
            return Err(ForkError::TooLarge);
        }
        let target =
            beneath(to, name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL).map_err(io_failed)?;
        // Only whether it is a program is kept: no set-user-id bit crosses over.
        let mode = if stat.st_mode & 0o100 == 0 {
            0o644
        } else {
            0o755
        };
        rustix::fs::fchmod(&target, Mode::from_raw_mode(mode)).map_err(io_failed)?;
        let (mut source, mut target) = (File::from(source), File::from(target));
        io::copy(&mut source, &mut target).map_err(|source| failed(path, source))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::ForkableProject;
    use super::*;

    fn project() -> (tempfile::TempDir, ForkableProject) {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        for name in ["src/deep", "node_modules/x", ".git", "target"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        std::fs::write(top.join("src/a.py"), "a").unwrap();
        std::fs::write(top.join("src/deep/run.sh"), "#!/bin/sh\n").unwrap();
        let program = std::fs::Permissions::from_mode(0o4755);
        std::fs::set_permissions(top.join("src/deep/run.sh"), program).unwrap();
        std::fs::write(top.join("node_modules/x/i.js"), "i").unwrap();
        std::fs::write(top.join(".git/config"), "c").unwrap();
        let project = ForkableProject::at(top).unwrap();
        (directory, project)
    }

    #[test]
    fn a_fork_is_a_copy_that_changes_alone() {
        let (top, project) = project();
        let fork = project.fork().unwrap();
        assert_eq!(fork.files().unwrap(), ["src/a.py", "src/deep/run.sh"]);
        fork.write("src/a.py", b"changed").unwrap();
        fork.write("new/file.txt", b"new").unwrap();
        assert_eq!(fork.read("src/a.py").unwrap(), b"changed");
        assert_eq!(std::fs::read(top.path().join("src/a.py")).unwrap(), b"a");
        assert!(!top.path().join("new").exists());
        fork.remove("new/file.txt").unwrap();
        assert_eq!(fork.files().unwrap(), ["src/a.py", "src/deep/run.sh"]);
        let path = fork.path().to_owned();
        drop(fork);
        assert!(!path.exists());
    }

    #[test]
    fn dependencies_are_linked_and_build_results_left_out() {
        let (_top, project) = project();
        let fork = project.fork().unwrap();
        assert_eq!(
            std::fs::read(fork.path().join("node_modules/x/i.js")).unwrap(),
            b"i"
        );
        assert!(fork.path().join("node_modules").is_symlink());
        assert!(!fork.path().join(".git").exists());
        assert!(!fork.path().join("target").exists());
    }

    #[test]
    fn programs_stay_programs_and_lose_their_privileges() {
        let (_top, project) = project();
        let fork = project.fork().unwrap();
        let mode = fork
            .path()
            .join("src/deep/run.sh")
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o755);
    }

    #[test]
    fn a_link_planted_in_a_fork_leads_nowhere() {
        let (top, project) = project();
        let fork = project.fork().unwrap();
        let outside = top.path().join("src/a.py");
        symlink(&outside, fork.path().join("link.py")).unwrap();
        symlink(top.path().join("src"), fork.path().join("linked")).unwrap();
        for path in [
            "link.py",
            "linked/a.py",
            "../escape",
            "/etc/passwd",
            "src/../../x",
            "",
        ] {
            assert!(fork.write(path, b"owned").is_err(), "{path}");
            assert!(fork.read(path).is_err(), "{path}");
            assert!(fork.remove(path).is_err(), "{path}");
        }
        assert_eq!(std::fs::read(outside).unwrap(), b"a");
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_does_not_hang() {
        let (_top, project) = project();
        let fork = project.fork().unwrap();
        let pipe = fork.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            FileType::Fifo,
            Mode::from_raw_mode(0o644),
            0,
        )
        .unwrap();
        assert!(fork.read("pipe").is_err());
        assert!(fork.write("pipe", b"x").is_err());
    }
}
