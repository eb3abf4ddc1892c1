//! Changes that are left aside when a person reviews the others: build output and caches, which the
//! repository ignores and does not track.
//!
//! The rules are those of the user's tree: what a command writes into a `.gitignore` of its layer hides
//! nothing. Where git cannot say what is tracked, nothing that it may track is left aside.
//!
//! They are part of the diff and its digest, so that what was reviewed is what is committed. They
//! are not shown, no decision waits for them, and they go with a workspace that has no other
//! changes. git is started only if a rule matches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ignore::gitignore::Gitignore;
use lula_files::read_beneath;

use crate::git::{GitError, GitProgram};
use crate::layer::change::{PathChange, UncommittableReason, WorkspaceDiff};
use crate::store::workspace::Workspace;
use crate::tree::node::FileNodeKind;
use crate::tree::path::WorkspacePath;
use crate::tree::sources::{MAX_IGNORE, SourceDirectory, is_ignored, rules};

/// Caches that are left aside even where no rule says so.
const CACHES: [&[u8]; 4] = [
    b"__pycache__",
    b".pytest_cache",
    b".mypy_cache",
    b".ruff_cache",
];

/// Where changes lie in more directories than these, git is asked about the whole repository.
const MOST_PLACES: usize = 64;

/// Changes that are left aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExcludedChanges {
    /// Each with whether it is no directory.
    paths: BTreeMap<WorkspacePath, bool>,
}

impl ExcludedChanges {
    /// Changes of which none is left out.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether no change is left out.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether the change of that path is.
    pub fn contains(&self, path: &WorkspacePath) -> bool {
        self.paths.contains_key(path)
    }

    /// How many of them are no directories.
    pub fn files(&self) -> usize {
        self.paths.values().filter(|is_file| **is_file).count()
    }

    /// The changes of a diff that are not left aside.
    pub fn rest<'a>(&'a self, diff: &'a WorkspaceDiff) -> impl Iterator<Item = &'a PathChange> {
        let changes = diff.changes.iter();
        changes.filter(|change| !self.contains(&change.path))
    }

    /// The same with what a person named left in: who names a path wants it.
    #[must_use]
    pub fn except(&self, named: &[WorkspacePath]) -> Self {
        let wanted = |path: &WorkspacePath| {
            let mut named = named.iter().filter(|named| self.contains(named));
            named.any(|named| path.is_within(named))
        };
        let mut rest = self.clone();
        rest.paths.retain(|path, _| !wanted(path));
        rest
    }
}

impl Workspace {
    /// Which changes are left aside. `git` finds git; it is asked only where a rule matches.
    pub fn aside(
        &self,
        diff: &WorkspaceDiff,
        git: impl FnOnce() -> Option<GitProgram>,
    ) -> ExcludedChanges {
        let base = self.record().base();
        let Ok(sources) = SourceDirectory::at(&base) else {
            return ExcludedChanges::none();
        };
        let brought = self.brought();
        let is_repository = base.join(".git").symlink_metadata().is_ok();
        let mut ignored = IgnoreRules::of(&sources, is_repository);
        let candidates: Vec<&PathChange> = diff
            .changes
            .iter()
            .filter(|change| change.held_back != Some(UncommittableReason::GitInternals))
            .filter(|change| {
                ignored.holds(&change.path, is_directory(change))
                    || brought.iter().any(|path| change.path.is_within(path))
            })
            .collect();
        if candidates.is_empty() {
            return ExcludedChanges::none();
        }
        let tracked = if is_repository {
            git().and_then(|git| tracked(&git, &base, &candidates).ok())
        } else {
            Some(TrackedPaths::default())
        };
        let is_tracked = |change: &PathChange| match &tracked {
            Some(tracked) => tracked.holds(&change.path),
            None => true,
        };
        let mut aside = ExcludedChanges::none();
        for change in candidates.into_iter().filter(|change| !is_tracked(change)) {
            let is_file = !is_directory(change);
            aside.paths.insert(change.path.clone(), is_file);
        }
        aside
    }
}

fn is_directory(change: &PathChange) -> bool {
    let node = change.new.as_ref().or(change.old.as_ref());
    node.is_some_and(|node| node.kind == FileNodeKind::Directory)
}

/// What the rules of a repository leave out, read directory by directory as they are needed.
struct IgnoreRules<'a> {
    sources: &'a SourceDirectory,
    /// Of `.git/info/exclude`; `None` outside a repository, where no rule counts.
    exclude: Option<Vec<Gitignore>>,
    rules: BTreeMap<String, Option<Gitignore>>,
    directories: BTreeMap<String, bool>,
}

impl<'a> IgnoreRules<'a> {
    fn of(sources: &'a SourceDirectory, is_repository: bool) -> Self {
        let exclude = is_repository.then(|| {
            let text = read_beneath(sources.handle(), ".git/info/exclude", MAX_IGNORE);
            let rules = text.ok().and_then(|text| rules("", &text));
            rules.into_iter().collect()
        });
        Self {
            sources,
            exclude,
            rules: BTreeMap::new(),
            directories: BTreeMap::new(),
        }
    }

    /// Whether a path is ignored, by itself or with a directory above it.
    fn holds(&mut self, path: &WorkspacePath, directory: bool) -> bool {
        let name = path.name();
        if path.parts().any(|part| CACHES.contains(&part))
            || (!directory && (name.ends_with(b".pyc") || name.ends_with(b".pyo")))
        {
            return true;
        }
        // Rules are text; a name that is none matches no rule.
        let Ok(text) = std::str::from_utf8(path.as_bytes()) else {
            return false;
        };
        if self.exclude.is_none() || text.split('/').next() == Some(".git") {
            return false;
        }
        let above = text.match_indices('/').map(|(end, _)| &text[..end]);
        let above: Vec<&str> = above.collect();
        above.into_iter().any(|directory| self.directory(directory))
            || self.matches(text, directory)
    }

    fn directory(&mut self, path: &str) -> bool {
        if let Some(known) = self.directories.get(path) {
            return *known;
        }
        let ignored = self.matches(path, true);
        self.directories.insert(path.to_owned(), ignored);
        ignored
    }

    fn matches(&mut self, path: &str, directory: bool) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| &path[..end]);
        let places: Vec<&str> = std::iter::once("").chain(ends).collect();
        for place in &places {
            self.read_rules(place);
        }
        let in_tree = places
            .iter()
            .rev()
            .filter_map(|place| self.rules.get(*place));
        let exclude = self.exclude.iter().flatten();
        is_ignored(in_tree.flatten().chain(exclude), path, directory)
    }

    fn read_rules(&mut self, place: &str) {
        if self.rules.contains_key(place) {
            return;
        }
        let found = {
            let file = if place.is_empty() {
                ".gitignore".to_owned()
            } else {
                format!("{place}/.gitignore")
            };
            let text = read_beneath(self.sources.handle(), &file, MAX_IGNORE);
            text.ok().and_then(|text| rules(place, &text))
        };
        self.rules.insert(place.to_owned(), found);
    }
}

/// What git tracks: files, and with them the directories they are in.
#[derive(Default)]
struct TrackedPaths(BTreeSet<Vec<u8>>);

impl TrackedPaths {
    /// A directory is tracked if something in it is.
    fn holds(&self, path: &WorkspacePath) -> bool {
        let inside = [path.as_bytes(), b"/"].concat();
        let mut from = self.0.range(inside.clone()..);
        self.0.contains(path.as_bytes())
            || from.next().is_some_and(|file| file.starts_with(&inside))
    }
}

/// What git tracks where the changes lie.
fn tracked(
    git: &GitProgram,
    base: &Path,
    changes: &[&PathChange],
) -> Result<TrackedPaths, GitError> {
    let places = changes.iter().filter_map(|change| {
        let first = change.path.parts().next()?;
        Some(String::from_utf8_lossy(first).into_owned())
    });
    let places: BTreeSet<String> = places.collect();
    let mut arguments: Vec<String> = ["ls-files", "-z", "--"].map(str::to_owned).to_vec();
    if places.len() <= MOST_PLACES && !places.iter().any(|place| place.contains('\u{fffd}')) {
        arguments.extend(places);
    }
    let listed = git.run(base, &arguments)?;
    let files = listed.split('\0').filter(|name| !name.is_empty());
    Ok(TrackedPaths(
        files.map(|name| name.as_bytes().to_vec()).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(files: &[(&str, &str)], is_repository: bool) -> impl FnMut(&str, bool) -> bool {
        let top = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = top.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let sources = SourceDirectory::at(top.path()).unwrap();
        move |path, directory| {
            let _top = &top;
            IgnoreRules::of(&sources, is_repository).holds(&path.parse().unwrap(), directory)
        }
    }

    #[test]
    fn rules_of_a_repository_count_and_caches_of_python_always() {
        let files = [
            (".gitignore", "/target\n*.log\n!keep.log\n"),
            ("src/.gitignore", "gen/\n!loud.log\n"),
            (".git/info/exclude", "private\n"),
        ];
        let mut inside = ignored(&files, true);
        for path in [
            "target/debug/deps/x.rlib",
            "a.log",
            "deep/er/a.log",
            "src/gen/x.rs",
            "private/x",
            "src/__pycache__/x.cpython-311.pyc",
            "x.pyc",
            ".pytest_cache/v/lastfailed",
        ] {
            assert!(inside(path, false), "{path}");
        }
        assert!(inside("target", true));
        for path in [
            "keep.log",
            "src/loud.log",
            "src/target/x",
            "gen/x",
            "x.py",
            ".git/a.log",
        ] {
            assert!(!inside(path, false), "{path}");
        }
        let mut outside = ignored(&files, false);
        assert!(!outside("target/x", false));
        assert!(outside("__pycache__/x", false));
    }

    #[test]
    fn a_directory_is_tracked_with_what_is_in_it() {
        let files = ["a-b", "a/x", "b.log"].map(|name| name.as_bytes().to_vec());
        let tracked = TrackedPaths(files.into());
        let holds = |path: &str| tracked.holds(&path.parse().unwrap());
        assert!(holds("a") && holds("a/x") && holds("b.log"));
        assert!(!holds("a/y") && !holds("b") && !holds("c"));
    }
}
