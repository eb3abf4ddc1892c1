//! Integration branches through the interface: agents side by side, a merge queue that loses nothing, deliveries to
//! several repositories, and all of it over kill -9.

mod kills;
mod people;
mod queue;
mod several;

use std::path::Path;

use lula_protocol::{Digest, WorkspaceId};
use lula_repair::trial::TestBaseline;
use lula_runner_api::{
    BranchWorkspaceStart, CheckoutRequest, CommitAgentChange, CommittedAgentChangeView, EffectCall,
    FillWorkspaceFromBranch, IntegrationBranchRef, IntegrationBranchView, MergeAgentChange,
    MergeAgentChangeResult, MergeTestRequirement, OpenWorkspaceOnBranch, TestRunEvent,
    TestRunRequest, TestRunResult, WorkspaceView,
};
use serde_json::json;

use super::{Scene, effect, fresh};
use crate::support::git;

const CODE: &str = "\
def price(amount):
    return amount * 2


def shown(amount):
    return str(price(amount))
";
const TESTS: &str = "\
import unittest

from shop import price, shown


class Shop(unittest.TestCase):
    def test_price(self):
        self.assertEqual(price(2), 4)

    def test_shown(self):
        self.assertEqual(shown(2), '4')
";

fn repository(tree: &Path) {
    git(tree, &["init", "--quiet", "--initial-branch=main"]);
    git(tree, &["add", "--all"]);
    git(tree, &["commit", "--quiet", "--message=the beginning"]);
}

fn scene() -> Scene {
    let scene = Scene::new(&[
        ("shop.py", CODE),
        ("notes.txt", "one\ntwo\nthree\n"),
        ("tests/__init__.py", ""),
        ("tests/test_shop.py", TESTS),
    ]);
    repository(&scene.tree());
    scene
}

fn workspace() -> WorkspaceId {
    WorkspaceId::from_parts(9, fresh())
}

impl Scene {
    fn branch_in(&self, path: &Path) -> IntegrationBranchView {
        let branch = IntegrationBranchRef {
            run: self.run.clone(),
            repository: path.display().to_string(),
            base: None,
        };
        self.wait(self.client().open_branch(&branch)).unwrap()
    }

    fn at(
        branch: &IntegrationBranchRef,
        id: &WorkspaceId,
        scope: &[&str],
        start: BranchWorkspaceStart,
    ) -> OpenWorkspaceOnBranch {
        OpenWorkspaceOnBranch {
            branch: branch.clone(),
            workspace: id.clone(),
            write_scope: scope.iter().map(|glob| (*glob).to_owned()).collect(),
            contains: Vec::new(),
            start,
        }
    }

    fn once<T>(&self, order: T) -> EffectCall<T> {
        EffectCall {
            effect: effect(),
            epoch: 1,
            run: self.run.clone(),
            order,
        }
    }

    /// Opens a workspace over the branch, which later calls go to.
    fn agent(
        &mut self,
        branch: &IntegrationBranchRef,
        scope: &[&str],
        start: BranchWorkspaceStart,
    ) -> WorkspaceView {
        let id = workspace();
        let order = Self::at(branch, &id, scope, start);
        let view = self.wait(self.client().open_on_branch(&order)).unwrap();
        self.workspace = id;
        view
    }

    fn puts(&self, path: &str, content: &str) {
        self.does("write_file", json!({"path": path, "content": content}));
    }

    fn agent_commit(
        &self,
        branch: &IntegrationBranchRef,
        step: &str,
    ) -> EffectCall<CommitAgentChange> {
        let taken = self.wait(self.client().taken(&self.workspace)).unwrap();
        self.once(CommitAgentChange {
            branch: branch.clone(),
            step: step.to_owned(),
            workspace: self.workspace.clone(),
            tree: taken.tree,
            message: format!("{step}\n\nLula-Task: {step}\n"),
            at: 1_000_000,
        })
    }

    fn commit_step(&self, branch: &IntegrationBranchRef, step: &str) -> CommittedAgentChangeView {
        let call = self.agent_commit(branch, step);
        self.wait(self.client().commit_agent_change(&call)).unwrap()
    }

    fn merge_of(
        &self,
        branch: &IntegrationBranchRef,
        step: &str,
        commit: &str,
        tests: Option<MergeTestRequirement>,
    ) -> EffectCall<MergeAgentChange> {
        self.once(MergeAgentChange {
            branch: branch.clone(),
            step: step.to_owned(),
            commit: commit.to_owned(),
            tests: tests.unwrap_or_default(),
            message: format!("Merge {step}\n"),
            at: 1_000_001,
        })
    }

    fn merge(
        &self,
        branch: &IntegrationBranchRef,
        step: &str,
        commit: &str,
        tests: Option<MergeTestRequirement>,
    ) -> MergeAgentChangeResult {
        let call = self.merge_of(branch, step, commit, tests);
        self.wait(self.client().merge(&call)).unwrap()
    }

    /// Opens the run's own workspace of the branch's first commit and fills it from the branch.
    fn whole(&self, branch: &IntegrationBranchView) -> (WorkspaceId, Digest) {
        let id = workspace();
        let wanted = CheckoutRequest {
            id: id.clone(),
            commit: Some(branch.base.clone()),
        };
        self.wait(self.client().open_commit(&branch.path, "a run", wanted))
            .unwrap();
        let call = self.once(FillWorkspaceFromBranch {
            branch: of(branch),
            workspace: id.clone(),
        });
        let filled = self.wait(self.client().fill(&call)).unwrap();
        assert_eq!(self.wait(self.client().fill(&call)).unwrap(), filled);
        let taken = self.wait(self.client().taken(&id)).unwrap();
        assert_eq!((taken.tree, taken.files), (filled.tree, filled.files));
        (id, filled.tree)
    }

    fn baseline(&self) -> TestBaseline {
        let request = TestRunRequest::RunTests {
            accept: Vec::new(),
            tests: lula_repair::TestSelection::default(),
            tests_ms: 60_000,
        };
        self.wait(async {
            let events = self.client().run_tests(&self.workspace, &request).await;
            let mut events = events.unwrap();
            loop {
                if let Some(TestRunEvent::Ended { result }) = events.next().await.unwrap() {
                    let TestRunResult::Ran { baseline } = *result else {
                        panic!("{result:?}");
                    };
                    return *baseline;
                }
            }
        })
    }
}

/// What orders name a branch by.
fn of(view: &IntegrationBranchView) -> IntegrationBranchRef {
    IntegrationBranchRef {
        run: view.run.clone(),
        repository: view.path.clone(),
        base: Some(view.base.clone()),
    }
}

fn merged(result: MergeAgentChangeResult) -> String {
    match result {
        MergeAgentChangeResult::Merged { commit, .. } => commit,
        other => panic!("{other:?}"),
    }
}
