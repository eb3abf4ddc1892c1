//! Walking through a workspace by handle, leaving out what `.gitignore` leaves out.

use std::ffi::OsStr;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use globset::{GlobBuilder, GlobMatcher};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::error::ToolError;
use super::limits;
use super::root::{ToolboxPath, WorkspaceRoot};

/// Never walked into: it is no part of the project.
const LEFT_OUT: [&str; 10] = [
    ".git",
    ".hg",
    ".jj",
    ".svn",
    ".lula",
    ".nox",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
];
/// Files that say what to leave out.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// Largest of them that is read.
const IGNORE_FILE: u64 = 256 << 10;

/// A name met on the way.
pub(super) struct WalkedName<'a> {
    /// From the top of the workspace. Bytes that are no UTF-8 are replaced.
    pub(super) path: &'a str,
    pub(super) kind: FileType,
    /// Size of a file.
    pub(super) bytes: u64,
    /// The open directory it lies in, and its name there.
    pub(super) directory: &'a OwnedFd,
    pub(super) name: &'a OsStr,
}

/// Why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkEnding {
    /// Every name below the root was met.
    Whole,
    /// Time, depth or the number of names ran out, or the visitor had enough.
    Early,
}

/// How a walk goes.
pub(super) struct DirectoryWalk {
    pub(super) depth: usize,
    pub(super) deadline: Instant,
    visited: usize,
    early: bool,
    rules: Vec<(usize, Gitignore)>,
}

impl DirectoryWalk {
    pub(super) fn new(depth: Option<u32>) -> Self {
        let depth = depth.map_or(limits::DEPTH, |depth| depth as usize);
        Self {
            depth: depth.min(limits::DEPTH),
            deadline: Instant::now() + limits::TIME,
            visited: 0,
            early: false,
            rules: Vec::new(),
        }
    }

    /// Meets every name below `start`, in order.
    pub(super) fn run(
        mut self,
        root: &WorkspaceRoot,
        start: &ToolboxPath,
        visit: &mut dyn FnMut(&WalkedName<'_>) -> ControlFlow<()>,
    ) -> Result<WalkEnding, ToolError> {
        // The rules of the directories above hold too.
        let mut above = String::new();
        for part in start.as_str().split('/').filter(|part| !part.is_empty()) {
            let directory = root.directory(&ToolboxPath::parse(&above)?)?;
            self.take_rules(&directory, &above);
            if !above.is_empty() {
                above.push('/');
            }
            above.push_str(part);
        }
        let directory = root.directory(start)?;
        let flow = self.enter(&directory, start.as_str(), 1, visit);
        if flow.is_break() || self.early {
            return Ok(WalkEnding::Early);
        }
        Ok(WalkEnding::Whole)
    }

    fn enter(
        &mut self,
        directory: &OwnedFd,
        path: &str,
        depth: usize,
        visit: &mut dyn FnMut(&WalkedName<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let rules = self.rules.len();
        self.take_rules(directory, path);
        let mut names = Vec::new();
        if let Ok(entries) = Dir::read_from(directory) {
            for entry in entries.flatten() {
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." {
                    self.visited += 1;
                    if self.visited > limits::VISITED {
                        self.early = true;
                        return ControlFlow::Break(());
                    }
                    names.push(OsStr::from_bytes(name).to_owned());
                }
            }
        } else {
            self.early = true;
        }
        names.sort_unstable();
        for name in names {
            if Instant::now() >= self.deadline {
                self.early = true;
                return ControlFlow::Break(());
            }
            if LEFT_OUT.iter().any(|left_out| name == *left_out) {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue; // it went away meanwhile
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let text = name.to_string_lossy();
            let inner = if path.is_empty() {
                text.into_owned()
            } else {
                format!("{path}/{text}")
            };
            if self.is_ignored(&inner, kind == FileType::Directory) {
                continue;
            }
            visit(&WalkedName {
                path: &inner,
                kind,
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
                directory,
                name: &name,
            })?;
            if kind == FileType::Directory {
                if depth >= self.depth {
                    self.early |= self.depth == limits::DEPTH;
                    continue;
                }
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                match rustix::fs::openat(directory, &name, flags, Mode::empty()) {
                    Ok(below) => self.enter(&below, &inner, depth + 1, visit)?,
                    Err(_) => self.early = true,
                }
            }
        }
        self.rules.truncate(rules);
        ControlFlow::Continue(())
    }

    fn take_rules(&mut self, directory: &OwnedFd, path: &str) {
        for name in IGNORE_FILES {
            let Some(text) = open_regular(directory, OsStr::new(name)).and_then(|file| {
                let mut text = String::new();
                file.take(IGNORE_FILE).read_to_string(&mut text).ok()?;
                Some(text)
            }) else {
                continue;
            };
            // Relative: rules are matched against paths below this directory.
            let mut builder = GitignoreBuilder::new("");
            for line in text.lines() {
                // A line that is no glob ignores nothing, as in git.
                let _ = builder.add_line(None, line);
            }
            if let Ok(rules) = builder.build() {
                let prefix = if path.is_empty() { 0 } else { path.len() + 1 };
                self.rules.push((prefix, rules));
            }
        }
    }

    /// The rule nearest to a file decides.
    fn is_ignored(&self, path: &str, is_directory: bool) -> bool {
        for (prefix, rules) in self.rules.iter().rev() {
            let below = path.get(*prefix..).unwrap_or(path);
            match rules.matched(Path::new(below), is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// Opens a file met on the way, through no link and without waiting.
pub(super) fn open_regular(directory: &OwnedFd, name: &OsStr) -> Option<std::fs::File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    let file = std::fs::File::from(handle);
    file.metadata().ok()?.is_file().then_some(file)
}

/// A glob as people write it: without a slash it is about the name, with one about the whole path.
pub(super) struct WalkGlob {
    matcher: GlobMatcher,
    whole: bool,
}

impl WalkGlob {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let bad = |why: String| ToolError::Pattern { what: "glob", why };
        if text.len() > limits::PATTERN {
            return Err(bad(format!("it is longer than {} bytes", limits::PATTERN)));
        }
        let glob = GlobBuilder::new(text.trim_start_matches('/'))
            .literal_separator(true)
            .build()
            .map_err(|error| bad(error.to_string()))?;
        Ok(Self {
            matcher: glob.compile_matcher(),
            whole: text.contains('/'),
        })
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        self.matcher.is_match(if self.whole { path } else { name })
    }
}
