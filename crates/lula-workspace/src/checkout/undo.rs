//! Taking deliveries back: the branches of all repositories go, or none does.
//!
//! In each repository one transaction of `git update-ref` keeps the commit under a reference of ours and
//! removes the branch; all are prepared before the first is committed. After a crash in between, what is
//! gone is known by that reference: undoing it again does the rest.

use super::deliver::{reference, resolve};
use super::together::{BranchUpdate, LockedBranchUpdate, create_all, settle};
use super::{CheckoutError, CheckoutResult};
use crate::git::GitProgram;

/// What was taken back.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct UndoneDelivery {
    /// The branch that is gone.
    pub branch: String,
    /// The commit it named, which is kept.
    pub commit: String,
    /// The reference that keeps it.
    pub kept_as: String,
}

impl BranchUpdate {
    /// The branch of that name.
    pub fn named(repository: &std::path::Path, name: &str, commit: &str) -> Self {
        Self {
            repository: repository.to_owned(),
            name: reference(name),
            commit: commit.to_owned(),
        }
    }

    fn undone(&self) -> UndoneDelivery {
        let branch = self.name.trim_start_matches("refs/heads/");
        let short = branch.rsplit('/').next().unwrap_or(branch);
        UndoneDelivery {
            branch: branch.to_owned(),
            commit: self.commit.clone(),
            kept_as: format!("refs/lula/undone/{short}"),
        }
    }

    /// Whether it was taken back, by an undo that was perhaps cut off before the next.
    fn is_undone(&self, git: &GitProgram) -> bool {
        let names = |name: &str| resolve(git, &self.repository, name);
        names(&self.name).is_none() && names(&self.undone().kept_as).as_ref() == Some(&self.commit)
    }
}

/// Takes deliveries back, if no person has built on any of them: all, or none. The commits stay under
/// references of ours, so that this too can be undone.
pub fn undo(git: &GitProgram, branches: &[BranchUpdate]) -> CheckoutResult<Vec<UndoneDelivery>> {
    for branch in branches {
        settle(git, branch);
    }
    let left: Vec<&BranchUpdate> = branches
        .iter()
        .filter(|branch| !branch.is_undone(git))
        .collect();
    // All of it was undone before; then there is nothing to do, which is said.
    let open = if left.is_empty() {
        branches.iter().collect()
    } else {
        left
    };
    for branch in &open {
        check(git, branch)?;
    }
    let mut ready = Vec::new();
    for branch in &open {
        let UndoneDelivery {
            kept_as, commit, ..
        } = branch.undone();
        let orders = format!("update {kept_as} {commit}\ndelete {} {commit}", branch.name);
        // Those that are ready let go of their locks when they are dropped.
        ready.push(LockedBranchUpdate::prepare(git, branch, &orders)?);
    }
    for (number, pending) in ready.into_iter().enumerate() {
        if let Err(error) = pending.commit() {
            let gone: Vec<BranchUpdate> = open[..=number].iter().copied().cloned().collect();
            create_all(git, &gone)?;
            return Err(error);
        }
    }
    Ok(branches.iter().map(BranchUpdate::undone).collect())
}

/// Refuses where a branch is not ours to take back any more.
fn check(git: &GitProgram, branch: &BranchUpdate) -> CheckoutResult<()> {
    let UndoneDelivery { branch: name, .. } = branch.undone();
    let here = branch.repository.display();
    let refused = |what: &str| {
        let message = format!("the branch {name} in {here} {what}: nothing was changed");
        Err(CheckoutError::Refused(message))
    };
    match resolve(git, &branch.repository, &branch.name) {
        None => return refused("is gone already"),
        Some(found) if found != branch.commit => {
            return refused("has moved since it was delivered, and is yours now");
        }
        Some(_) => {}
    }
    let used = git.run(&branch.repository, &["worktree", "list", "--porcelain"])?;
    let line = format!("branch {}", branch.name);
    if used.lines().any(|other| other == line) {
        return refused("is checked out; change to another one first");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::scratch::ScratchRepository;

    const NAME: &str = "lula/one";

    /// Repositories that each have a branch of that name.
    fn delivered(git: &GitProgram) -> (Vec<ScratchRepository>, Vec<BranchUpdate>) {
        let mut branches = Vec::new();
        let mut repositories = Vec::new();
        for number in 0..3 {
            let text = format!("{number}\n");
            let repository = ScratchRepository::new(git, &[("a.txt", &text)]).unwrap();
            git.run(repository.path(), &["branch", NAME]).unwrap();
            let commit = resolve(git, repository.path(), NAME).unwrap();
            branches.push(BranchUpdate::named(repository.path(), NAME, &commit));
            repositories.push(repository);
        }
        (repositories, branches)
    }

    fn there(git: &GitProgram, branches: &[BranchUpdate]) -> usize {
        let there =
            |branch: &&BranchUpdate| resolve(git, &branch.repository, &branch.name).is_some();
        branches.iter().filter(there).count()
    }

    #[test]
    fn all_branches_are_taken_back_or_none_is() {
        let git = GitProgram::find("", None).unwrap();
        let (repositories, branches) = delivered(&git);
        let last = repositories[2].path();
        // The user built on the last one.
        git.run(last, &["checkout", "--quiet", NAME]).unwrap();
        let refused = undo(&git, &branches).unwrap_err().to_string();
        assert!(refused.contains("checked out"), "{refused}");
        git.run(
            last,
            &["commit", "--quiet", "--allow-empty", "--message=mine"],
        )
        .unwrap();
        git.run(last, &["checkout", "--quiet", "main"]).unwrap();
        let refused = undo(&git, &branches).unwrap_err().to_string();
        assert!(refused.contains("is yours now"), "{refused}");
        git.run(last, &["branch", "--force", NAME, "main"]).unwrap();
        // Another process holds its lock.
        let lock = last.join(".git/refs/heads/lula/one.lock");
        std::fs::write(&lock, "").unwrap();
        assert!(undo(&git, &branches).is_err());
        assert_eq!(there(&git, &branches), 3, "nothing was changed anywhere");
        std::fs::remove_file(lock).unwrap();
        let undone = undo(&git, &branches).unwrap();
        assert_eq!((undone.len(), there(&git, &branches)), (3, 0));
        for (branch, undone) in branches.iter().zip(&undone) {
            let kept = resolve(&git, &branch.repository, &undone.kept_as);
            assert_eq!(kept.as_ref(), Some(&branch.commit));
        }
        let again = undo(&git, &branches).unwrap_err().to_string();
        assert!(again.contains("gone already"), "{again}");
    }

    #[test]
    fn what_a_crash_left_half_undone_is_undone_by_asking_again() {
        let git = GitProgram::find("", None).unwrap();
        let (_repositories, branches) = delivered(&git);
        undo(&git, &branches[..1]).unwrap();
        assert_eq!(there(&git, &branches), 2);
        assert_eq!(undo(&git, &branches).unwrap().len(), 3);
        assert_eq!(there(&git, &branches), 0);
    }

    #[test]
    fn a_branch_that_somebody_removed_is_not_taken_for_undone() {
        let git = GitProgram::find("", None).unwrap();
        let (repositories, branches) = delivered(&git);
        let first = repositories[0].path();
        git.run(first, &["branch", "--quiet", "-D", NAME]).unwrap();
        let refused = undo(&git, &branches).unwrap_err().to_string();
        assert!(refused.contains("gone already"), "{refused}");
        assert_eq!(there(&git, &branches), 2);
    }
}
