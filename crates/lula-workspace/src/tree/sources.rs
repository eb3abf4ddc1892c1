//! The files of a project as they are: listed and read, never written, never copied.
//!
//! Every directory is opened below the one before it and no link is followed, so that nothing
//! outside the project is listed or read. What the project's `.gitignore` files leave out is left
//! out; they are read the same way.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use lula_files::{beneath, read_beneath};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Most files that are listed.
pub const MAX_FILES: usize = 50_000;
/// Deepest directory that is listed.
const MAX_DEPTH: usize = 64;
/// Longest `.gitignore` that is read.
pub(crate) const MAX_IGNORE: u64 = 256 << 10;
/// Never part of a project's own code, whatever it ignores.
const LEFT_OUT: [&str; 10] = [
    ".git",
    ".hg",
    ".svn",
    ".lula",
    ".mypy_cache",
    ".pytest_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
];

/// A directory whose files are listed and read.
#[derive(Debug)]
pub struct SourceDirectory {
    handle: OwnedFd,
}

/// A regular file, as the file system shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Relative to the project.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// When its content was changed, in nanoseconds since 1970.
    pub modified: i128,
    /// When anything about it was changed, in nanoseconds since 1970.
    pub changed: i128,
    /// Its number on the file system.
    pub inode: u64,
}

/// The source files of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceListing {
    /// The files, in the order of their paths.
    pub files: Vec<SourceFile>,
    /// Whether there are more than [`MAX_FILES`], or directories too deep or unreadable.
    pub incomplete: bool,
}

impl SourceDirectory {
    /// The project at that directory.
    pub fn at(root: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(Self { handle })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Every regular file that is not ignored.
    pub fn list(&self) -> SourceListing {
        let mut listing = SourceListing::default();
        let mut ignores = Vec::new();
        let exclude = read_beneath(&self.handle, ".git/info/exclude", MAX_IGNORE);
        ignores.extend(exclude.ok().and_then(|bytes| rules("", &bytes)));
        walk(self.handle.as_fd(), "", 0, &mut ignores, &mut listing);
        listing.files.sort_by(|a, b| a.path.cmp(&b.path));
        listing
    }

    /// The bytes of a file, at most so many and one more.
    pub fn read(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        Ok(read_beneath(&self.handle, path, most.saturating_add(1))?)
    }
}

/// The rules of one file, for paths below its directory. A line that is no rule is none.
pub(crate) fn rules(place: &str, text: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(format!("/{place}"));
    for line in String::from_utf8_lossy(text).lines() {
        let _ = builder.add_line(None, line);
    }
    let rules = builder.build().ok()?;
    (!rules.is_empty()).then_some(rules)
}

/// Deeper rules win over those above them, so they come first.
pub(crate) fn is_ignored<'a>(
    ignores: impl IntoIterator<Item = &'a Gitignore>,
    path: &str,
    directory: bool,
) -> bool {
    let path = format!("/{path}");
    for rules in ignores {
        match rules.matched(&path, directory) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
    }
    false
}

fn walk(
    directory: BorrowedFd<'_>,
    place: &str,
    depth: usize,
    ignores: &mut Vec<Gitignore>,
    listing: &mut SourceListing,
) {
    let Ok(entries) = entries(directory) else {
        listing.incomplete = true;
        return;
    };
    let above = ignores.len();
    if entries.iter().any(|(name, _)| name == ".gitignore") {
        let text = read_beneath(directory, ".gitignore", MAX_IGNORE);
        ignores.extend(text.ok().and_then(|text| rules(place, &text)));
    }
    for (name, kind) in entries {
        if listing.files.len() >= MAX_FILES {
            listing.incomplete = true;
            break;
        }
        let path = if place.is_empty() {
            name.clone()
        } else {
            format!("{place}/{name}")
        };
        let inside = kind == FileType::Directory;
        if !(inside || kind == FileType::RegularFile)
            || (inside && LEFT_OUT.contains(&name.as_str()))
            || is_ignored(ignores.iter().rev(), &path, inside)
        {
            continue;
        }
        if inside {
            match beneath(directory, &name, OFlags::DIRECTORY) {
                Ok(inner) if depth < MAX_DEPTH => {
                    walk(inner.as_fd(), &path, depth + 1, ignores, listing);
                }
                // Something else is mounted there, which is not part of this tree.
                Err(Errno::XDEV) => {}
                _ => listing.incomplete = true,
            }
        } else if let Ok(stat) = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        {
            let nanoseconds = |seconds: i64, rest: i128| i128::from(seconds) * 1_000_000_000 + rest;
            listing.files.push(SourceFile {
                path,
                size: u64::try_from(stat.st_size).unwrap_or(u64::MAX),
                modified: nanoseconds(stat.st_mtime, stat.st_mtime_nsec.into()),
                changed: nanoseconds(stat.st_ctime, stat.st_ctime_nsec.into()),
                inode: stat.st_ino,
            });
        }
    }
    ignores.truncate(above);
}

/// Names and kinds, in the order of the names: where a listing is cut off must not depend on the
/// file system.
fn entries(directory: BorrowedFd<'_>) -> rustix::io::Result<Vec<(String, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        // A name that is not text cannot be named in an edit either.
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if matches!(name, "." | "..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .map(|stat| FileType::from_raw_mode(stat.st_mode))?,
            kind => kind,
        };
        found.push((name.to_owned(), kind));
    }
    found.sort_by(|a: &(String, _), b| a.0.cmp(&b.0));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn listed(files: &[(&str, &str)], links: &[(&str, &str)]) -> (tempfile::TempDir, Vec<String>) {
        let top = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = top.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        for (to, path) in links {
            symlink(to, top.path().join(path)).unwrap();
        }
        let listing = SourceDirectory::at(top.path()).unwrap().list();
        let paths = listing.files.into_iter().map(|file| file.path).collect();
        (top, paths)
    }

    #[test]
    fn ignored_files_are_left_out_as_git_leaves_them_out() {
        let (_top, paths) = listed(
            &[
                (".gitignore", "*.log\n/build\nsecret/\n!keep.log\n"),
                ("a.log", ""),
                ("keep.log", ""),
                ("build/x.py", ""),
                ("src/build/y.py", ""),
                ("src/.gitignore", "/gen.py\n!loud.log\n"),
                ("src/gen.py", ""),
                ("src/loud.log", ""),
                ("src/deep/gen.py", ""),
                ("secret/key.py", ""),
                (".git/config", ""),
                (".git/info/exclude", "private.py\n"),
                ("private.py", ""),
                ("node_modules/x/i.js", ""),
            ],
            &[],
        );
        assert_eq!(
            paths,
            [
                ".gitignore",
                "keep.log",
                "src/.gitignore",
                "src/build/y.py",
                "src/deep/gen.py",
                "src/loud.log"
            ]
        );
    }

    #[test]
    fn a_link_is_neither_listed_nor_read() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("key.py"), "secret").unwrap();
        let out = outside.path().to_str().unwrap();
        let (top, paths) = listed(
            &[("a.py", "a")],
            &[(out, "dir"), (&format!("{out}/key.py"), "key.py")],
        );
        assert_eq!(paths, ["a.py"]);
        let sources = SourceDirectory::at(top.path()).unwrap();
        assert_eq!(sources.read("a.py", 10).unwrap(), b"a");
        for path in ["key.py", "dir/key.py", "../key.py", "/etc/passwd", "."] {
            assert!(sources.read(path, 10).is_err(), "{path}");
        }
    }

    #[test]
    fn a_file_is_read_up_to_one_byte_more_than_asked() {
        let (top, _) = listed(&[("a.py", "0123456789")], &[]);
        let sources = SourceDirectory::at(top.path()).unwrap();
        assert_eq!(sources.read("a.py", 4).unwrap(), b"01234");
    }
}
