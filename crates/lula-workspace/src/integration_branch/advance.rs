//! The merged files extracted for their tests, and the one step that moves an integration branch.

use std::path::{Path, PathBuf};

use super::{IntegrationBranch, Merge, named};
use crate::checkout::deliver::commit_tree;
use crate::checkout::{BranchDelivery, CheckoutError, CheckoutResult, feed, io_failed, succeeded};
use crate::ignored::IgnoredLayers;

/// Prefix of directories with merged files.
const SCRATCH: &str = "merged-";

/// The files of a tree in a directory of their own, which goes away when dropped.
#[derive(Debug)]
pub struct ExtractedTree {
    directory: tempfile::TempDir,
    below: Option<IgnoredLayers>,
}

impl ExtractedTree {
    /// Where the files are.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("tree")
    }

    /// What is shown below them.
    pub const fn below(&self) -> Option<&IgnoredLayers> {
        self.below.as_ref()
    }
}

/// Whether an integration branch was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchAdvance {
    /// It was moved to this commit.
    Merged(String),
    /// Not: it was moved by another process meanwhile.
    Moved,
}

impl IntegrationBranch {
    /// Extracts the files of a tree.
    pub fn extract(&self, tree: &str) -> CheckoutResult<ExtractedTree> {
        let directory = tempfile::Builder::new()
            .prefix(SCRATCH)
            .tempdir_in(&self.directory)
            .map_err(io_failed(&self.directory))?;
        let mut extracted = ExtractedTree {
            directory,
            below: None,
        };
        let (files, index) = (extracted.path(), extracted.directory.path().join("index"));
        std::fs::create_dir(&files).map_err(io_failed(&files))?;
        for arguments in [
            &["read-tree", named(tree)?][..],
            &["checkout-index", "--all", "--force"][..],
        ] {
            let mut command = self.command()?;
            command
                .current_dir(&files)
                .env("GIT_WORK_TREE", &files)
                .env("GIT_INDEX_FILE", &index)
                .args(arguments);
            succeeded(feed(&mut command, &[])?, arguments)?;
        }
        let (repository, beside) = (&self.record.repository, extracted.directory.path());
        extracted.below = IgnoredLayers::make(&self.git, repository, &files, beside)?;
        Ok(extracted)
    }

    /// Removes what a crash left of merged files. Nothing but copies is in them.
    pub fn sweep(&self) {
        let entries = std::fs::read_dir(&self.directory);
        for entry in entries.into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Makes a clean merge the branch's commit, if the branch still is where it was merged with. The
    /// note is kept with it in the same step: a caller that asks again is told it again.
    pub fn advance(
        &self,
        merge: &Merge,
        order: &BranchDelivery<'_>,
        note: &[u8],
    ) -> CheckoutResult<BranchAdvance> {
        if !merge.conflicts.is_empty() {
            let message = "a merge with conflicts cannot be merged".to_owned();
            return Err(CheckoutError::Refused(message));
        }
        let parents = [merge.onto.as_str(), merge.candidate.as_str()];
        let commit = commit_tree(
            self.command()?,
            &merge.tree,
            &parents,
            order.message,
            order.at,
        )?;
        let note = self.ask(&["hash-object", "-w", "--stdin", "--no-filters"], note)?;
        let note = String::from_utf8_lossy(&note).trim().to_owned();
        let integ = self.reference("integ");
        let told = self.reference(&format!("told/{}", merge.candidate));
        let update = format!(
            "update {integ} {commit} {}\nupdate {told} {note}\n",
            merge.onto
        );
        let arguments = ["update-ref", "--no-deref", "-m", "lula", "--stdin"];
        let output = feed(self.command()?.args(arguments), update.as_bytes())?;
        if output.status.success() {
            return Ok(BranchAdvance::Merged(commit));
        }
        if self.commit()? != merge.onto {
            return Ok(BranchAdvance::Moved);
        }
        succeeded(output, &arguments).map(|_| BranchAdvance::Moved)
    }

    /// The note that was kept when a candidate was merged.
    pub fn note(&self, candidate: &str) -> CheckoutResult<Option<Vec<u8>>> {
        let told = self.reference(&format!("told/{}", named(candidate)?));
        match super::resolve(&self.git, &self.private(), &told) {
            Some(note) => self.ask(&["cat-file", "blob", &note], &[]).map(Some),
            None => Ok(None),
        }
    }

    /// The first commit of the branch itself that contains a candidate.
    pub fn merged_by(&self, candidate: &str) -> CheckoutResult<Option<String>> {
        if !self.contains(candidate)? {
            return Ok(None);
        }
        let range = format!("{}..{}", named(candidate)?, self.commit()?);
        let arguments = ["rev-list", "--first-parent", "--ancestry-path", &range];
        let found = self.text(&arguments)?;
        let last = found.lines().last().map(str::to_owned);
        Ok(Some(last.unwrap_or_else(|| candidate.to_owned())))
    }

    /// Whether two commits or trees hold the same files.
    pub fn same_files(&self, one: &str, other: &str) -> CheckoutResult<bool> {
        let tree = |name: &str| -> CheckoutResult<String> {
            self.text(&[
                "rev-parse",
                "--verify",
                &format!("{}^{{tree}}", named(name)?),
            ])
        };
        Ok(tree(one)? == tree(other)?)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}
