//! A change that is delivered as the tasks it came together from, one commit for each.

use lula_gate::rules::GateAct;
use lula_protocol::RunId;
use lula_workspace::checkout::{BranchDelivery, CheckoutError, GitChange};
use lula_workspace::integration_branch::{MergedTask, TaskChange};
use lula_workspace::{Checkout, IntegrationBranch};

use super::RunnerService;
use super::branches::{message, refused};
use super::refusal::RequestRefusal;
use lula_runner_api::{ChangeDelivery, IntegrationBranchRef};

/// Most tasks of a change.
const TASKS: usize = 64;

/// The tasks of a change that is to be delivered.
pub(super) struct TaskCommits {
    branch: IntegrationBranch,
    tasks: Vec<TaskChange>,
    end: String,
}

impl RunnerService {
    /// The tasks of a delivery, where it names some.
    pub(super) fn task_commits(
        &self,
        run: &RunId,
        checkout: &Checkout,
        delivery: &ChangeDelivery,
    ) -> Result<Option<TaskCommits>, RequestRefusal> {
        let Some(history) = &delivery.history else {
            return Ok(None);
        };
        if delivery.into_files {
            return Err(refused("files of a checkout have no commits"));
        }
        if history.tasks.len() > TASKS {
            let problem = format!("a change has at most {TASKS} tasks");
            return Err(RequestRefusal::BadRequest(problem));
        }
        for task in &history.tasks {
            message(&format!("{}{}", task.message, history.end))?;
        }
        let origin = checkout.origin();
        let branch = self.branch_of(
            run,
            &IntegrationBranchRef {
                run: run.clone(),
                repository: origin.repository.display().to_string(),
                base: Some(origin.commit.clone()),
            },
        )?;
        let tasks: Vec<MergedTask<'_>> = history
            .tasks
            .iter()
            .map(|task| MergedTask {
                commit: &task.commit,
                message: &task.message,
            })
            .collect();
        Ok(Some(TaskCommits {
            tasks: branch.task_changes(&tasks)?,
            end: history.end.clone(),
            branch,
        }))
    }
}

impl TaskCommits {
    /// The last of the commits.
    pub(super) fn line_up(
        &self,
        checkout: &Checkout,
        taken: &GitChange,
        order: &BranchDelivery<'_>,
    ) -> Result<String, CheckoutError> {
        self.branch
            .line_up(&self.tasks, &self.end, (checkout, taken), order)
    }

    /// Puts the objects of a commit into the repository.
    pub(super) fn bring(&self, commit: &str) -> Result<(), CheckoutError> {
        self.branch.bring(commit)
    }
}

/// What rules judge of a delivery: the change, and what any of its tasks adds, since the commit of a
/// task shows what a later one took out again.
pub(super) fn act(taken: &GitChange, tasks: Option<&TaskCommits>) -> GateAct {
    let mut paths: Vec<String> = taken.files.iter().map(|file| file.path.clone()).collect();
    let mut added = vec![lula_gate::rules::added_lines(&taken.diff)];
    for task in tasks.into_iter().flat_map(|tasks| &tasks.tasks) {
        paths.extend(task.paths.iter().cloned());
        added.push(lula_gate::rules::added_lines(&task.diff));
    }
    paths.sort();
    paths.dedup();
    GateAct::commit(paths, added)
}
