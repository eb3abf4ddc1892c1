//! What was changed over a checkout, as a git tree. Only what was touched is looked at: nothing
//! that ran there can make git read, or run, anything else.

use std::collections::BTreeSet;
use std::process::Command;

use lula_protocol::Digest;

use super::{Checkout, CheckoutError, CheckoutResult, feed, io_failed, succeeded};
use crate::commit::put::{PathContent, PathReplacement};
use crate::error::WorkspaceError;
use crate::layer::change::{PathChange, WorkspaceDiff};
use crate::store::workspace::Workspace;
use crate::tree::node::FileNodeKind;
use crate::tree::path::WorkspacePath;

/// Largest file that can be part of a change.
const LARGEST: u64 = 64 << 20;
/// Most files of a change.
const MOST: usize = 5_000;

/// Asks the private git with something to read.
pub(crate) type PrivateGitQuery<'a> = dyn Fn(&[&str], &[u8]) -> CheckoutResult<Vec<u8>> + 'a;

/// One file of a change, before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedGitFile {
    pub path: String,
    /// Its bytes in the commit; none for a new one, and for what is no plain file.
    pub before: Option<Vec<u8>>,
    /// Its bytes now; none for one that is gone, and for what is no plain file.
    pub after: Option<Vec<u8>>,
}

/// A change, as git sees it: without what is ignored, and what only builds leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitChange {
    /// As a unified diff that `git apply` takes.
    pub diff: String,
    /// The change, file by file.
    pub files: Vec<ChangedGitFile>,
    /// Names the state that the change leads to.
    pub digest: Digest,
    /// git's name of it.
    pub(super) tree: String,
}

impl GitChange {
    pub(crate) fn tree(&self) -> &str {
        &self.tree
    }
}

impl Checkout {
    /// What the workspace over this checkout changed.
    pub fn take(&self, workspace: &Workspace) -> CheckoutResult<GitChange> {
        let scratch = tempfile::Builder::new()
            .prefix("take-")
            .tempdir_in(&self.directory)
            .map_err(io_failed(&self.directory))?;
        let index = scratch.path().join("index");
        let git = |arguments: &[&str], input: &[u8]| self.private(arguments, &index, input);
        let commit = &self.origin.commit;
        git(&["read-tree", commit], &[])?;
        let diff = workspace.diff()?;
        let mut changes = candidates(&diff);
        let ignored = self.ignored(&changes, &index)?;
        let below = self.below();
        changes.retain(|change| {
            let path = change.path.as_bytes();
            // Tracked files count, whatever a rule says.
            let known = change.old.is_some();
            let left_aside = below.as_ref().is_some_and(|below| below.ignores(path));
            !ignored.contains(path) && (known || !left_aside)
        });
        if changes.len() > MOST {
            let count = changes.len();
            return Err(CheckoutError::Refused(format!(
                "{count} files were changed; at most {MOST} can be taken: have build results \
                 ignored by .gitignore"
            )));
        }
        let mut entries = Vec::new();
        for change in changes {
            entries.extend(self.entry(workspace, change, &git)?);
        }
        git(
            &["update-index", "-z", "--add", "--replace", "--index-info"],
            &entries,
        )?;
        let tree = String::from_utf8_lossy(&git(&["write-tree"], &[])?)
            .trim()
            .to_owned();
        let shown = git(
            &[
                "diff-tree",
                "-p",
                "-r",
                "--binary",
                "--no-renames",
                "--no-ext-diff",
                "--no-textconv",
                commit,
                &tree,
            ],
            &[],
        )?;
        let raw = git(
            &[
                "diff-tree",
                "-r",
                "-z",
                "--raw",
                "--no-abbrev",
                "--no-renames",
                commit,
                &tree,
            ],
            &[],
        )?;
        Ok(GitChange {
            diff: String::from_utf8_lossy(&shown).into_owned(),
            files: files(&raw, &git)?,
            digest: Digest::of_bytes(tree.as_bytes()),
            tree,
        })
    }

    /// Paths that git would not add.
    fn ignored(
        &self,
        changes: &[&PathChange],
        index: &std::path::Path,
    ) -> CheckoutResult<BTreeSet<Vec<u8>>> {
        let paths = changes.iter().map(|change| change.path.as_bytes());
        check_ignored(&mut self.command(index)?, paths)
    }

    /// The line that puts a change into an index.
    fn entry(
        &self,
        workspace: &Workspace,
        change: &PathChange,
        git: &PrivateGitQuery<'_>,
    ) -> CheckoutResult<Vec<u8>> {
        let path = change.path.as_bytes();
        let line = |mode: &str, id: &str| {
            let mut line = format!("{mode} {id}\t").into_bytes();
            line.extend_from_slice(path);
            line.push(0);
            line
        };
        let kept = change
            .new
            .as_ref()
            .filter(|node| matches!(node.kind, FileNodeKind::File | FileNodeKind::Symlink));
        let Some(node) = kept else {
            return Ok(line("0", &"0".repeat(self.origin.commit.len())));
        };
        let sides = workspace.sides(change, LARGEST)?;
        let Some(bytes) = sides.new else {
            return Err(CheckoutError::Refused(format!(
                "{} has more than {LARGEST} bytes and cannot be part of a change",
                change.path
            )));
        };
        let text = change.path.to_string();
        let (mode, id) = if node.kind == FileNodeKind::Symlink {
            let id = git(&["hash-object", "-w", "--stdin", "--no-filters"], &bytes)?;
            ("120000", id)
        } else {
            // As the repository wants its line endings.
            let id = git(&["hash-object", "-w", "--stdin", "--path", &text], &bytes)?;
            let mode = if node.mode & 0o100 == 0 {
                "100644"
            } else {
                "100755"
            };
            (mode, id)
        };
        Ok(line(mode, String::from_utf8_lossy(&id).trim()))
    }
}

impl Checkout {
    /// A change path by path, as a directory of the user's holds it.
    pub fn pieces(&self, taken: &GitChange) -> CheckoutResult<Vec<PathReplacement>> {
        let index = self.directory.join("no-index");
        let git = |arguments: &[&str], input: &[u8]| self.private(arguments, &index, input);
        pieces(&self.origin.commit, &taken.tree, &git)
    }
}

/// What lies between two trees, path by path.
pub(crate) fn pieces(
    from: &str,
    to: &str,
    git: &PrivateGitQuery<'_>,
) -> CheckoutResult<Vec<PathReplacement>> {
    let list = [
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        from,
        to,
    ];
    let raw = git(&list, &[])?;
    let mut pieces = Vec::new();
    let mut fields = raw.split(|byte| *byte == 0);
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let about = String::from_utf8_lossy(about);
        let about: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, _] = about[..] else {
            return Err(odd());
        };
        pieces.push(PathReplacement {
            path: WorkspacePath::from_bytes(path).map_err(WorkspaceError::from)?,
            before: content(old_mode, old, git)?,
            after: content(new_mode, new, git)?,
        });
    }
    Ok(pieces)
}

fn content(mode: &str, id: &str, git: &PrivateGitQuery<'_>) -> CheckoutResult<Option<PathContent>> {
    let bytes = || git(&["cat-file", "blob", id], &[]);
    Ok(match mode {
        "000000" => None,
        "100644" | "100664" | "100755" => Some(PathContent::File {
            bytes: bytes()?,
            executable: mode == "100755",
        }),
        "120000" => Some(PathContent::Link(bytes()?)),
        _ => {
            let message = "the change touches a submodule, which is no file".to_owned();
            return Err(CheckoutError::Refused(message));
        }
    })
}

pub(crate) fn odd() -> CheckoutError {
    CheckoutError::Refused("git described a change in an unknown form".to_owned())
}

/// Those of these paths that git would not add, by the rules that the command finds.
pub(crate) fn check_ignored<'a>(
    command: &mut Command,
    paths: impl Iterator<Item = &'a [u8]>,
) -> CheckoutResult<BTreeSet<Vec<u8>>> {
    let mut input = Vec::new();
    for path in paths {
        // No name begins with what git would take for more than a name.
        input.extend_from_slice(b"./");
        input.extend_from_slice(path);
        input.push(0);
    }
    if input.is_empty() {
        return Ok(BTreeSet::new());
    }
    let arguments = ["--no-literal-pathspecs", "check-ignore", "-z", "--stdin"];
    let output = feed(command.args(arguments), &input)?;
    // That nothing is ignored is no success to it, and no failure.
    if output.status.code() == Some(1) {
        return Ok(BTreeSet::new());
    }
    let listed = succeeded(output, &arguments)?;
    let plain = listed
        .split(|byte| *byte == 0)
        .filter_map(|path| path.strip_prefix(b"./"));
    Ok(plain.map(<[u8]>::to_vec).collect())
}

/// Changes of files and links, outside of git directories and of repositories inside.
fn candidates(diff: &WorkspaceDiff) -> Vec<&PathChange> {
    let inner: BTreeSet<WorkspacePath> = diff
        .changes
        .iter()
        .filter(|change| change.path.name() == b".git" && change.new.is_some())
        .filter_map(|change| change.path.parent())
        .collect();
    let plain = |change: &PathChange| {
        let is = |node: &crate::tree::node::FileNode| {
            matches!(node.kind, FileNodeKind::File | FileNodeKind::Symlink)
        };
        change.new.as_ref().is_some_and(is) || change.old.as_ref().is_some_and(is)
    };
    let is_inner = |change: &PathChange| {
        inner
            .iter()
            .any(|directory| change.path.is_within(directory))
    };
    let changes = diff.changes.iter();
    changes
        .filter(|change| change.held_back.is_none() && plain(change) && !is_inner(change))
        .collect()
}

/// The files of a raw comparison with both contents.
fn files(raw: &[u8], git: &PrivateGitQuery<'_>) -> CheckoutResult<Vec<ChangedGitFile>> {
    let mut found = Vec::new();
    let mut wanted = Vec::new();
    let mut fields = raw.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
        let about: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, _] = about[..] else {
            return Err(odd());
        };
        let mut content = |mode: &str, id: &str| {
            let plain = mode.starts_with("100");
            if plain {
                wanted.extend_from_slice(id.as_bytes());
                wanted.push(b'\n');
            }
            plain
        };
        let sides = (content(old_mode, old), content(new_mode, new));
        found.push((path.into_owned(), sides));
    }
    let told = if wanted.is_empty() {
        Vec::new()
    } else {
        git(&["cat-file", "--batch"], &wanted)?
    };
    let mut rest = told.as_slice();
    let mut next = |there: bool| -> CheckoutResult<Option<Vec<u8>>> {
        if !there {
            return Ok(None);
        }
        let end = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or_else(odd)?;
        let head = String::from_utf8_lossy(&rest[..end]);
        let size: usize = head
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse().ok())
            .ok_or_else(odd)?;
        let bytes = rest.get(end + 1..end + 1 + size).ok_or_else(odd)?;
        rest = rest.get(end + 2 + size..).ok_or_else(odd)?;
        Ok(Some(bytes.to_vec()))
    };
    found
        .into_iter()
        .map(|(path, (before, after))| {
            Ok(ChangedGitFile {
                path,
                before: next(before)?,
                after: next(after)?,
            })
        })
        .collect()
}
