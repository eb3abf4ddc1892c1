//! Merging two commits of an integration branch without a work tree: git's own merge, with no strategy options, so
//! that where both sides changed the same no agent's work is chosen over another's.

use std::collections::BTreeMap;

use super::{IntegrationBranch, named};
use crate::checkout::take::odd;
use crate::checkout::{CheckoutError, CheckoutResult, feed};

/// Most places that are told of one file, the longest text of one, and the longest diff.
const HUNKS: usize = 20;
const HUNK: usize = 4 << 10;
const DIFF: usize = 64 << 10;
/// Most conflicting files that are described.
const FILES: usize = 200;

/// What came of merging a candidate with the branch. Nothing has been changed by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// The commit the branch was at.
    pub onto: String,
    /// The commit that was merged with the branch.
    pub candidate: String,
    /// The merged tree; with conflict markers where both sides changed the same.
    pub tree: String,
    /// The conflicts; none where it is clean.
    pub conflicts: Vec<MergeConflict>,
}

/// A path that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflict {
    /// The path on which they disagree.
    pub path: String,
    /// What git says about it.
    pub what: Vec<String>,
    /// The places in the file on which they disagree.
    pub hunks: Vec<MergeConflictHunk>,
}

/// A place that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflictHunk {
    /// The line its marker stands on, counted from 1.
    pub line: u64,
    /// The text with its markers.
    pub text: String,
}

impl IntegrationBranch {
    /// Merges a candidate with the branch as it is.
    pub fn merge(&self, candidate: &str) -> CheckoutResult<Merge> {
        let onto = self.commit()?;
        let arguments = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--messages",
            &onto,
            named(candidate)?,
        ];
        let output = feed(self.command()?.args(arguments), &[])?;
        let clean = match output.status.code() {
            Some(0) => true,
            Some(1) => false,
            _ => {
                let said = String::from_utf8_lossy(&output.stderr);
                let message = format!("git merge-tree failed: {}", said.trim());
                return Err(CheckoutError::Refused(message));
            }
        };
        let told = MergeTreeOutput::read(&output.stdout)?;
        if clean != told.paths.is_empty() {
            return Err(odd());
        }
        let mut conflicts = Vec::new();
        for (path, what) in told.paths.into_iter().take(FILES) {
            let hunks = self.hunks(&told.tree, &path)?;
            conflicts.push(MergeConflict { path, what, hunks });
        }
        Ok(Merge {
            onto,
            candidate: candidate.to_owned(),
            tree: told.tree,
            conflicts,
        })
    }

    /// What each side did to the conflicting files since both parted, as unified diffs.
    pub fn sides(&self, merge: &Merge) -> CheckoutResult<(String, String)> {
        let base = self.text(&["merge-base", &merge.onto, &merge.candidate])?;
        let base = named(base.lines().next().unwrap_or_default())?.to_owned();
        let side = |to: &str| -> CheckoutResult<String> {
            let mut arguments = vec![
                "diff-tree",
                "-p",
                "-r",
                "--no-renames",
                "--no-ext-diff",
                "--no-textconv",
                &base,
                to,
                "--",
            ];
            arguments.extend(
                merge
                    .conflicts
                    .iter()
                    .map(|conflict| conflict.path.as_str()),
            );
            let shown = self.ask(&arguments, &[])?;
            Ok(cut(&String::from_utf8_lossy(&shown), DIFF))
        };
        Ok((side(&merge.onto)?, side(&merge.candidate)?))
    }

    /// The places of a file that hold markers; none where it is no text, or not there.
    fn hunks(&self, tree: &str, path: &str) -> CheckoutResult<Vec<MergeConflictHunk>> {
        let arguments = ["ls-tree", "-z", tree, "--", path];
        let listed = self.ask(&arguments, &[])?;
        let listed = String::from_utf8_lossy(&listed);
        let about = listed.split('\t').next().unwrap_or_default();
        let [mode, "blob", id] = about.split(' ').collect::<Vec<_>>()[..] else {
            return Ok(Vec::new());
        };
        if !mode.starts_with("100") {
            return Ok(Vec::new());
        }
        let bytes = self.ask(&["cat-file", "blob", id], &[])?;
        Ok(std::str::from_utf8(&bytes).map_or_else(|_| Vec::new(), hunks))
    }
}

/// What `merge-tree -z` printed.
struct MergeTreeOutput {
    tree: String,
    /// Conflicting paths with what is said of each.
    paths: BTreeMap<String, Vec<String>>,
}

impl MergeTreeOutput {
    /// A tree; then, one for each stage, `mode id stage<TAB>path`; an empty field; then messages: how
    /// many paths, the paths, a kind, a text.
    fn read(bytes: &[u8]) -> CheckoutResult<Self> {
        let mut fields = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let tree = fields.next().ok_or_else(odd)?.into_owned();
        named(&tree)?;
        let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for field in fields.by_ref() {
            if field.is_empty() {
                break;
            }
            let (_, path) = field.split_once('\t').ok_or_else(odd)?;
            paths.entry(path.to_owned()).or_default();
        }
        while let Some(count) = fields.next() {
            let Ok(count) = count.trim().parse::<usize>() else {
                break;
            };
            let about: Vec<String> = fields.by_ref().take(count).map(Into::into).collect();
            let kind = fields.next().ok_or_else(odd)?;
            let text = fields.next().ok_or_else(odd)?;
            if !kind.starts_with("CONFLICT") {
                continue;
            }
            for path in about.iter().filter(|path| !path.is_empty()) {
                let said = paths.entry(path.clone()).or_default();
                said.push(cut(text.trim(), 500));
            }
        }
        Ok(Self { tree, paths })
    }
}

/// The places between markers, with the markers.
fn hunks(text: &str) -> Vec<MergeConflictHunk> {
    let mut found = Vec::new();
    let mut open: Option<MergeConflictHunk> = None;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if line.starts_with("<<<<<<< ") && open.is_none() {
            open = Some(MergeConflictHunk {
                line: number,
                text: String::new(),
            });
        }
        let Some(hunk) = &mut open else {
            continue;
        };
        hunk.text.push_str(line);
        if line.starts_with(">>>>>>> ") {
            found.extend(open.take());
        }
    }
    found.truncate(HUNKS);
    for hunk in &mut found {
        hunk.text = cut(&hunk.text, HUNK);
    }
    found
}

/// The beginning of a text, on a character boundary.
fn cut(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_with_their_line() {
        let text = "a\n<<<<<<< x\n1\n||||||| b\n0\n=======\n2\n>>>>>>> y\nc\n";
        let [hunk] = &hunks(text)[..] else { panic!() };
        assert_eq!(hunk.line, 2);
        assert!(hunk.text.ends_with(">>>>>>> y\n"), "{}", hunk.text);
    }

    #[test]
    fn what_git_says_is_read_by_path() {
        let tree = "a".repeat(40);
        let text = format!(
            "{tree}\0100644 {tree} 1\tf\0100644 {tree} 2\tf\0\01\0f\0Auto-merging\0Auto-merging f\n\0\
             1\0f\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in f\n\0"
        );
        let told = MergeTreeOutput::read(text.as_bytes()).unwrap();
        assert_eq!(told.tree, tree);
        assert_eq!(told.paths["f"], ["CONFLICT (content): Merge conflict in f"]);
        assert!(MergeTreeOutput::read(b"no tree\0").is_err());
    }
}
