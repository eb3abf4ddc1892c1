//! Files below one directory, by handle.
//!
//! Nothing here ever uses an absolute name. Each path is resolved below the handle of the workspace,
//! by the kernel or step by step ([`ConfinedDirectory`]), and cannot leave it however links are swapped
//! meanwhile. Reading follows links that stay inside; writing follows none.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lula_files::{ConfinedDirectory, LinkPolicy};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::error::ToolError;
use super::limits;

/// Names that file tools never write below: what version control and Lula keep for themselves.
const PROTECTED: [&str; 5] = [".git", ".hg", ".jj", ".svn", ".lula"];

/// Reading follows links, as long as they stay inside.
const INSIDE: LinkPolicy = LinkPolicy::Inside;
/// Writing follows no link, not even one that stays inside.
const NO_LINKS: LinkPolicy = LinkPolicy::Refused;

/// Not waiting for the other end of a pipe, nor becoming the terminal of this process.
const CALM: OFlags = OFlags::CLOEXEC
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// A path inside the workspace in its one spelling: relative, without `.`, `..` or empty parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ToolboxPath(String);

impl ToolboxPath {
    pub(super) fn parse(given: &str) -> Result<Self, ToolError> {
        let bad = |why| {
            Err(ToolError::BadPath {
                path: given.chars().take(200).collect(),
                why,
            })
        };
        if given.len() > limits::PATH {
            return bad("it is too long");
        }
        if given.contains('\0') {
            return bad("it holds a NUL");
        }
        if given.starts_with('/') {
            return bad("it is absolute; name it from the top of the workspace");
        }
        let mut parts = Vec::new();
        for part in given.split('/') {
            match part {
                "" | "." => {}
                ".." => return bad("it holds .."),
                part => parts.push(part),
            }
        }
        Ok(Self(parts.join("/")))
    }

    /// A file's path, which has a name.
    pub(super) fn file(given: &str) -> Result<Self, ToolError> {
        let path = Self::parse(given)?;
        if path.0.is_empty() || given.ends_with('/') {
            return Err(ToolError::BadPath {
                path: given.chars().take(200).collect(),
                why: "it names no file",
            });
        }
        Ok(path)
    }

    /// A file's path that tools may write.
    pub(super) fn writable(given: &str) -> Result<Self, ToolError> {
        let path = Self::file(given)?;
        // Other systems fold case, and the tree may be used there.
        let protected = |part: &str| PROTECTED.iter().any(|name| part.eq_ignore_ascii_case(name));
        if path.0.split('/').any(protected) {
            return Err(ToolError::Protected { path: path.0 });
        }
        Ok(path)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The path for a system call.
    fn name(&self) -> &str {
        if self.0.is_empty() { "." } else { &self.0 }
    }

    /// The directory and the name in it.
    pub(super) fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }
}

impl std::fmt::Display for ToolboxPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileContent {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

/// The handle of a workspace.
#[derive(Debug)]
pub(super) struct WorkspaceRoot {
    directory: ConfinedDirectory,
}

impl WorkspaceRoot {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let directory = ConfinedDirectory::open(path)?;
        Ok(Self { directory })
    }

    /// Opens a regular file for reading and tells its size. A pipe, a device or a directory in its
    /// place is an error, never a wait.
    pub(super) fn regular(&self, path: &ToolboxPath) -> Result<File, ToolError> {
        let opened = self.open_at(path, OFlags::RDONLY | CALM, INSIDE)?;
        let file = File::from(opened);
        let kind = file
            .metadata()
            .map_err(|source| failed(path, source))?
            .file_type();
        if kind.is_file() {
            return Ok(file);
        }
        let found = if kind.is_dir() {
            "a directory"
        } else {
            "a pipe, socket or device"
        };
        Err(ToolError::OtherKind {
            path: path.0.clone(),
            found,
            wanted: "a file",
        })
    }

    /// All of a regular file, if it is not too large.
    pub(super) fn read(&self, path: &ToolboxPath) -> Result<FileContent, ToolError> {
        let file = self.regular(path)?;
        let metadata = file.metadata().map_err(|source| failed(path, source))?;
        if metadata.len() > limits::FILE {
            return Err(ToolError::file_too_large(&path.0, metadata.len()));
        }
        let mut bytes = Vec::new();
        file.take(limits::FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| failed(path, source))?;
        if bytes.len() as u64 > limits::FILE {
            return Err(ToolError::file_too_large(&path.0, bytes.len() as u64));
        }
        let mode = metadata.mode() & 0o777;
        Ok(FileContent { bytes, mode })
    }

    /// A directory to walk through.
    pub(super) fn directory(&self, path: &ToolboxPath) -> Result<OwnedFd, ToolError> {
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY | CALM, INSIDE)
    }

    /// Whether a name stands for anything, links included.
    pub(super) fn kind(&self, path: &ToolboxPath) -> Result<Option<FileType>, ToolError> {
        let opened = self.open_at(
            path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            INSIDE,
        );
        match opened {
            Ok(handle) => {
                let stat = rustix::fs::fstat(&handle).map_err(|e| failed(path, e.into()))?;
                Ok(Some(FileType::from_raw_mode(stat.st_mode)))
            }
            Err(ToolError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_at(
        &self,
        path: &ToolboxPath,
        flags: OFlags,
        links: LinkPolicy,
    ) -> Result<OwnedFd, ToolError> {
        self.directory
            .open_at(path.name(), flags, links)
            .map_err(|error| refused(path, error))
    }

    /// The directory of a file to be written, made where it is missing, through no link.
    fn parent(&self, path: &ToolboxPath) -> Result<OwnedFd, ToolError> {
        let (directory, _) = path.split();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CALM;
        let mut built = String::new();
        for part in directory.split('/').filter(|part| !part.is_empty()) {
            if !built.is_empty() {
                built.push('/');
            }
            built.push_str(part);
            let here = ToolboxPath(built.clone());
            match self.open_at(&here, flags, NO_LINKS) {
                Ok(_) => {}
                Err(ToolError::Missing { .. }) => {
                    let (above, name) = here.split();
                    let above = self.open_at(&ToolboxPath(above.to_owned()), flags, NO_LINKS)?;
                    match rustix::fs::mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(refused(path, error)),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        self.open_at(&ToolboxPath(directory.to_owned()), flags, NO_LINKS)
    }

    /// Puts `content` where `path` is, whole or not at all. A link in its place is refused.
    pub(super) fn replace(
        &self,
        path: &ToolboxPath,
        content: &FileContent,
    ) -> Result<(), ToolError> {
        let parent = self.parent(path)?;
        let (_, name) = path.split();
        check_replaceable(&parent, name, path)?;
        let draft = format!(".lula-draft-{}", std::process::id());
        let written = write_draft(&parent, &draft, content)
            .and_then(|()| Ok(rustix::fs::renameat(&parent, &draft, &parent, name)?));
        written.map_err(|source| {
            let _ = rustix::fs::unlinkat(&parent, &draft, AtFlags::empty());
            failed(path, source)
        })
    }

    /// Directories above a file that are not there, the lowest first.
    pub(super) fn missing_above(&self, path: &ToolboxPath) -> Result<Vec<String>, ToolError> {
        let mut missing = Vec::new();
        let mut at = path.split().0;
        while !at.is_empty() && self.kind(&ToolboxPath(at.to_owned()))?.is_none() {
            missing.push(at.to_owned());
            at = at.rsplit_once('/').map_or("", |(above, _)| above);
        }
        Ok(missing)
    }

    /// Removes a directory if it is there and empty.
    pub(super) fn remove_empty(&self, path: &ToolboxPath) {
        let (above, name) = path.split();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | CALM;
        if let Ok(above) = self.open_at(&ToolboxPath(above.to_owned()), flags, NO_LINKS) {
            let _ = rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR);
        }
    }

    /// Removes a file. A directory in its place is refused.
    pub(super) fn remove(&self, path: &ToolboxPath) -> Result<(), ToolError> {
        let parent = self.parent(path)?;
        let (_, name) = path.split();
        rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map_err(|error| refused(path, error))
    }
}

fn check_replaceable(parent: &impl AsFd, name: &str, path: &ToolboxPath) -> Result<(), ToolError> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(refused(path, error)),
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(()),
            FileType::Symlink => Err(ToolError::Link {
                path: path.0.clone(),
            }),
            FileType::Directory => Err(ToolError::OtherKind {
                path: path.0.clone(),
                found: "a directory",
                wanted: "a file",
            }),
            _ => Err(ToolError::OtherKind {
                path: path.0.clone(),
                found: "a pipe, socket or device",
                wanted: "a file",
            }),
        },
    }
}

fn write_draft(parent: &impl AsFd, draft: &str, content: &FileContent) -> io::Result<()> {
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NOCTTY;
    let open = || rustix::fs::openat(parent, draft, flags, Mode::from_raw_mode(0o600));
    let handle = match open() {
        // Left by a toolbox that was ended in the middle.
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(parent, draft, AtFlags::empty())?;
            open()?
        }
        opened => opened?,
    };
    let mut file = File::from(handle);
    file.write_all(&content.bytes)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(content.mode))?;
    Ok(())
}

fn failed(path: &ToolboxPath, source: io::Error) -> ToolError {
    ToolError::Io {
        path: path.name().to_owned(),
        source,
    }
}

fn refused(path: &ToolboxPath, error: Errno) -> ToolError {
    let path_text = path.name().to_owned();
    match error {
        Errno::NOENT => ToolError::Missing { path: path_text },
        Errno::LOOP => ToolError::Link { path: path_text },
        Errno::XDEV => ToolError::Outside { path: path_text },
        Errno::NOTDIR => ToolError::OtherKind {
            path: path_text,
            found: "below a file or a file itself",
            wanted: "a directory",
        },
        Errno::ISDIR => ToolError::OtherKind {
            path: path_text,
            found: "a directory",
            wanted: "a file",
        },
        Errno::NXIO => ToolError::OtherKind {
            path: path_text,
            found: "a pipe, socket or device",
            wanted: "a file",
        },
        error => failed(path, error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The same tree, opened in both ways.
    fn both(check: impl Fn(&tempfile::TempDir, &WorkspaceRoot)) {
        let (directory, root) = tree();
        check(&directory, &root);
        let (directory, root) = tree();
        let by_steps = WorkspaceRoot {
            directory: root.directory.by_steps(),
        };
        check(&directory, &by_steps);
    }

    fn tree() -> (tempfile::TempDir, WorkspaceRoot) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("ws")).unwrap();
        std::fs::write(directory.path().join("secret"), "outside\n").unwrap();
        std::fs::write(directory.path().join("ws/a.txt"), "inside\n").unwrap();
        let root = WorkspaceRoot::open(&directory.path().join("ws")).unwrap();
        (directory, root)
    }

    fn path(text: &str) -> ToolboxPath {
        ToolboxPath::parse(text).unwrap()
    }

    fn content(text: &str) -> FileContent {
        FileContent {
            bytes: text.into(),
            mode: 0o644,
        }
    }

    #[test]
    fn one_file_has_one_spelling() {
        assert_eq!(path("./a//b/./c").as_str(), "a/b/c");
        for bad in [
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a\0b",
            &"x".repeat(5000),
        ] {
            assert!(ToolboxPath::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["", ".", "a/"] {
            assert!(ToolboxPath::file(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_git_and_lula_keep_is_not_written() {
        for bad in [
            ".git/config",
            "sub/.git/hooks/x",
            ".GIT/config",
            ".lula/x",
            "a/.git",
        ] {
            let error = ToolboxPath::writable(bad).unwrap_err();
            assert_eq!(error.code(), lula_protocol::Code::PathRefused, "{bad}");
        }
        assert!(ToolboxPath::writable(".gitignore").is_ok());
        assert!(ToolboxPath::writable(".github/workflows/ci.yml").is_ok());
    }

    #[test]
    fn links_are_read_inside_and_never_followed_out() {
        both(|directory, root| {
            let ws = directory.path().join("ws");
            symlink("a.txt", ws.join("near")).unwrap();
            symlink("../secret", ws.join("far")).unwrap();
            symlink(directory.path().join("secret"), ws.join("absolute")).unwrap();
            symlink("/proc/self/root/etc/passwd", ws.join("magic")).unwrap();
            assert_eq!(root.read(&path("near")).unwrap().bytes, b"inside\n");
            for out in ["far", "absolute", "magic"] {
                assert!(root.read(&path(out)).is_err(), "{out}");
            }
        });
    }

    #[test]
    fn writing_goes_through_no_link() {
        both(|directory, root| {
            let ws = directory.path().join("ws");
            symlink("..", ws.join("up")).unwrap();
            symlink("a.txt", ws.join("near")).unwrap();
            for link in ["up/secret", "near", "up/new/file"] {
                assert!(root.replace(&path(link), &content("x")).is_err(), "{link}");
            }
            let secret = std::fs::read_to_string(directory.path().join("secret")).unwrap();
            assert_eq!(secret, "outside\n");
            assert!(!directory.path().join("new").exists());
            assert_eq!(
                std::fs::read_to_string(ws.join("a.txt")).unwrap(),
                "inside\n"
            );
        });
    }

    #[test]
    fn a_pipe_is_an_error_and_not_a_wait() {
        both(|directory, root| {
            let fifo = directory.path().join("ws/fifo");
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &fifo,
                FileType::Fifo,
                Mode::from_raw_mode(0o600),
                0,
            )
            .unwrap();
            assert!(matches!(
                root.read(&path("fifo")),
                Err(ToolError::OtherKind { .. })
            ));
            assert!(root.replace(&path("fifo"), &content("x")).is_err());
        });
    }

    #[test]
    fn a_written_file_has_its_directories_its_mode_and_no_draft_beside_it() {
        both(|directory, root| {
            let program = FileContent {
                bytes: b"#!/bin/sh\n".to_vec(),
                mode: 0o755,
            };
            root.replace(&path("new/deep/run"), &program).unwrap();
            assert_eq!(root.read(&path("new/deep/run")).unwrap(), program);
            let names = std::fs::read_dir(directory.path().join("ws/new/deep")).unwrap();
            assert_eq!(names.count(), 1);
        });
    }

    /// An attacker swaps a directory for a link to the outside while files are read and written below
    /// it. `LULA_RACE_ITERATIONS` makes it longer.
    #[test]
    fn a_link_swapped_in_mid_call_never_leads_out() {
        let rounds = std::env::var("LULA_RACE_ITERATIONS").ok();
        let rounds = rounds.map_or(50_000, |text| text.parse::<u32>().unwrap());
        both(|directory, root| {
            let ws = directory.path().join("ws");
            let outside = directory.path().join("outside");
            std::fs::create_dir(&outside).unwrap();
            std::fs::write(outside.join("f"), "outside\n").unwrap();
            std::fs::create_dir(ws.join("real")).unwrap();
            std::fs::write(ws.join("real/f"), "inside\n").unwrap();
            symlink("../outside", ws.join("link")).unwrap();
            std::fs::create_dir(ws.join("d")).unwrap();
            std::fs::write(ws.join("d/f"), "inside\n").unwrap();

            let stop = std::sync::atomic::AtomicBool::new(false);
            let (mut seen, mut refused) = (0_u32, 0_u32);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let handle = rustix::fs::open(&ws, OFlags::DIRECTORY, Mode::empty()).unwrap();
                    let flags = rustix::fs::RenameFlags::EXCHANGE;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        let _ = rustix::fs::renameat_with(&handle, "d", &handle, "link", flags);
                    }
                });
                for round in 0..rounds {
                    match root.read(&path("d/f")) {
                        Ok(content) => {
                            assert_ne!(content.bytes, b"outside\n", "a read escaped");
                            seen += 1;
                        }
                        Err(_) => refused += 1,
                    }
                    if round % 20 == 0 {
                        let _ = root.replace(&path("d/f"), &content("inside\n"));
                    }
                }
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            let kept = std::fs::read_to_string(outside.join("f")).unwrap();
            assert_eq!(kept, "outside\n", "a write escaped");
            assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
            assert!(
                seen > 0 && refused > 0,
                "the race was run: {seen} {refused}"
            );
        });
    }
}
