//! The files of a project that many candidates are built from, and how they become again what they
//! were.

use std::collections::{BTreeMap, BTreeSet};

use super::schemata::support;
use crate::detect::is_foreign;
use crate::ground::ProjectFork;
use crate::suite::{CandidateTrial, SuiteError};

/// Roots of crates: the files that `crate::` means.
fn roots(files: &[String]) -> Vec<String> {
    files
        .iter()
        .filter(|path| !is_foreign(path))
        .filter(|path| {
            let parts: Vec<&str> = path.split('/').collect();
            matches!(parts.as_slice(), [.., "src", "lib.rs" | "main.rs"])
                || matches!(parts.as_slice(), [.., "src", "bin", _])
        })
        .cloned()
        .collect()
}

/// Writes texts, with support added to every root.
pub(super) fn write_all(
    fork: &mut dyn ProjectFork,
    mut texts: BTreeMap<String, String>,
    marks: usize,
) -> Result<(), SuiteError> {
    for root in roots(&fork.files()?) {
        let text = fork.read(&root)?;
        texts
            .entry(root)
            .or_insert_with(|| String::from_utf8_lossy(&text).into_owned());
    }
    let all_roots: BTreeSet<String> = roots(&texts.keys().cloned().collect::<Vec<_>>())
        .into_iter()
        .collect();
    for (path, mut text) in texts {
        if all_roots.contains(&path) && !text.contains("mod __lula {") {
            text.push_str(&support(marks));
        }
        fork.write(&path, text.as_bytes())?;
    }
    Ok(())
}

/// What the files that will be written over hold now.
pub(super) fn originals(
    fork: &dyn ProjectFork,
    paths: impl Iterator<Item = String>,
) -> Result<BTreeMap<String, Vec<u8>>, SuiteError> {
    let mut found = BTreeMap::new();
    for path in paths.chain(roots(&fork.files()?)) {
        let bytes = fork.read(&path)?;
        found.insert(path, bytes);
    }
    Ok(found)
}

/// Every file of the project with what it holds; build results are not among them.
pub(super) fn tree(fork: &dyn ProjectFork) -> Result<BTreeMap<String, Vec<u8>>, SuiteError> {
    originals(fork, fork.files()?.into_iter())
}

/// Makes the project what it was before a candidate's tests ran: a build serves many candidates, so
/// they share its place but never what one of them left there.
pub(super) fn put_back(
    fork: &mut dyn ProjectFork,
    tree: &BTreeMap<String, Vec<u8>>,
) -> Result<(), SuiteError> {
    for path in fork.files()? {
        if !tree.contains_key(&path) {
            fork.remove(&path)?;
        }
    }
    for (path, bytes) in tree {
        if fork.read(path).ok().as_ref() != Some(bytes) {
            fork.write(path, bytes)?;
        }
    }
    Ok(())
}

/// Applies a candidate, does something, and takes it back.
pub(super) fn with_changes(
    fork: &mut dyn ProjectFork,
    trial: &CandidateTrial,
    work: impl FnOnce(&mut dyn ProjectFork) -> Result<(), SuiteError>,
) -> Result<(), SuiteError> {
    for change in &trial.files {
        fork.write(&change.path, change.new.as_bytes())?;
    }
    let done = work(fork);
    for change in &trial.files {
        fork.write(&change.path, change.old.as_bytes())?;
    }
    done
}
