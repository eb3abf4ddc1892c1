//! What came together on an integration branch as a line of commits, one for each task, to be
//! delivered: merges and the names of agents' commits stay behind.

use std::collections::BTreeMap;

use super::{IntegrationBranch, named};
use crate::checkout::deliver::{commit_tree, unpack};
use crate::checkout::{BranchDelivery, Checkout, CheckoutError, CheckoutResult, GitChange};

/// A task that is a part of a branch, as it is to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedTask<'a> {
    /// The commit by which the branch got it.
    pub commit: &'a str,
    /// The message of the commit that is delivered.
    pub message: &'a str,
}

/// What one task changed of what was there when it was merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskChange {
    /// The message of its commit.
    pub message: String,
    /// The paths it touches.
    pub paths: Vec<String>,
    /// As a unified diff.
    pub diff: String,
    tree: String,
}

impl IntegrationBranch {
    /// What each of these tasks changed, in the order in which they came together; those that changed
    /// nothing are left out. Refused where the branch did not get one of them.
    pub fn task_changes(&self, tasks: &[MergedTask<'_>]) -> CheckoutResult<Vec<TaskChange>> {
        let mut left: BTreeMap<&str, &str> = BTreeMap::new();
        for task in tasks {
            left.insert(named(task.commit)?, task.message);
        }
        let range = format!("{}..{}", self.base(), self.commit()?);
        let listed = self.text(&["rev-list", "--first-parent", "--reverse", &range])?;
        let mut before = self.tree_of(self.base())?;
        let mut changes = Vec::new();
        for commit in listed.lines() {
            let Some(message) = left.remove(commit) else {
                continue;
            };
            let tree = self.tree_of(commit)?;
            if tree == before {
                continue;
            }
            changes.push(self.task_change(message, &before, &tree)?);
            before = tree;
        }
        match left.keys().next() {
            None => Ok(changes),
            Some(commit) => Err(CheckoutError::Refused(format!(
                "{commit} is no commit by which {} got a task",
                self.name
            ))),
        }
    }

    fn tree_of(&self, commit: &str) -> CheckoutResult<String> {
        self.text(&[
            "rev-parse",
            "--verify",
            &format!("{}^{{tree}}", named(commit)?),
        ])
    }

    fn task_change(&self, message: &str, from: &str, to: &str) -> CheckoutResult<TaskChange> {
        let names = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            from,
            to,
        ];
        let listed = self.ask(&names, &[])?;
        let paths = listed
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty());
        let shown = self.ask(
            &[
                "diff-tree",
                "-p",
                "-r",
                "--no-renames",
                "--no-ext-diff",
                "--no-textconv",
                from,
                to,
            ],
            &[],
        )?;
        Ok(TaskChange {
            message: message.to_owned(),
            paths: paths
                .map(|path| String::from_utf8_lossy(path).into_owned())
                .collect(),
            diff: String::from_utf8_lossy(&shown).into_owned(),
            tree: to.to_owned(),
        })
    }

    /// The last of the commits that lead from the branch's beginning to a judged change, one for each
    /// task and one, with the order's message, for what the change has beside them. `end` stands at
    /// the end of the last task's message, where that is the last commit. Doing it again makes the
    /// same commits.
    pub fn line_up(
        &self,
        tasks: &[TaskChange],
        end: &str,
        (checkout, taken): (&Checkout, &GitChange),
        order: &BranchDelivery<'_>,
    ) -> CheckoutResult<String> {
        if checkout.origin().commit != self.base() {
            return Err(CheckoutError::Refused(format!(
                "the workspace does not begin where the integration branch {} does",
                self.name
            )));
        }
        unpack(self.command()?, &checkout.pack_of(taken)?)?;
        let rest = tasks.last().is_none_or(|last| last.tree != taken.tree());
        let mut parent = self.base().to_owned();
        for (number, task) in tasks.iter().enumerate() {
            let last = number + 1 == tasks.len() && !rest;
            let message = if last {
                format!("{}{end}", task.message)
            } else {
                task.message.clone()
            };
            parent = commit_tree(self.command()?, &task.tree, &[&parent], &message, order.at)?;
        }
        if rest {
            let message = order.message;
            parent = commit_tree(self.command()?, taken.tree(), &[&parent], message, order.at)?;
        }
        Ok(parent)
    }

    /// Puts the objects of a commit into the repository; nothing there names them yet.
    pub fn bring(&self, commit: &str) -> CheckoutResult<()> {
        let wanted = format!("{}\n^{}\n", named(commit)?, self.base());
        let arguments = ["pack-objects", "--revs", "--stdout", "--quiet"];
        let pack = self.ask(&arguments, wanted.as_bytes())?;
        unpack(self.git.command(self.repository())?, &pack)
    }
}
