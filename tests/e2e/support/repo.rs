//! Repositories that tests work on.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::env::{LulaEnv, listing};

pub(crate) const CODE: &str = "\
def last(items):
    return items[len(items)]

def double(x):
    return x * 2
";

pub(crate) const MENDED: &str = "    return items[len(items) - 1]";

pub(crate) const TESTS: &str = "\
import unittest

from items import double, last

class Items(unittest.TestCase):
    def test_last(self):
        self.assertEqual(last([1, 2, 3]), 3)

    def test_double(self):
        self.assertEqual(double(4), 8)
";

pub(crate) const FIX: &str = "fix the failing tests";

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@localhost"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository, with what a test asks of it.
pub(crate) struct Repo {
    path: PathBuf,
}

impl Repo {
    /// The one in the working directory of an environment.
    pub(crate) fn of(env: &LulaEnv) -> Self {
        Self { path: env.work() }
    }

    /// Made in the working directory, with these files in its first commit.
    pub(crate) fn with(env: &LulaEnv, files: &[(&str, &str)]) -> Self {
        let repo = Self::of(env);
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        for (path, text) in files {
            let path = repo.path.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "--quiet", "--message=one"]);
        repo
    }

    /// A project with a bug that a test shows.
    pub(crate) fn buggy(env: &LulaEnv) -> Self {
        Self::buggy_with(env, &[])
    }

    /// The same with more files.
    pub(crate) fn buggy_with(env: &LulaEnv, more: &[(&str, &str)]) -> Self {
        let files = [
            ("items.py", CODE),
            ("tests/__init__.py", ""),
            ("tests/test_items.py", TESTS),
        ];
        Self::with(env, &[&files, more].concat())
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.path, arguments)
    }

    /// The branches that runs delivered.
    pub(crate) fn branches(&self) -> Vec<String> {
        let listed = self.git(&["branch", "--list", "--format=%(refname:short)", "lula/*"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// Everything of a checkout and its repository but what git adds for a delivery.
    pub(crate) fn untouched(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = listing(&self.path);
        let added = [
            ".git/objects",
            ".git/refs/heads/lula",
            ".git/logs/refs/heads/lula",
        ];
        let is_added = |path: &PathBuf| {
            added
                .iter()
                .any(|name| path.starts_with(self.path.join(name)))
        };
        files.retain(|(path, _)| !is_added(path));
        files
    }
}
