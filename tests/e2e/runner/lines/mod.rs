//! Lines through the interface: agents side by side, a merge queue that loses nothing, deliveries to
//! several repositories, and all of it over kill -9.

mod kills;
mod people;
mod queue;
mod several;

use std::path::Path;

use lula_protocol::{Digest, WorkspaceId};
use lula_repair::trial::TestBaseline;
use lula_runner_api::{
    BranchWorkspaceStart, CheckoutRequest, CommitAgentChange, CommittedAgentChangeView,
    FillWorkspaceFromBranch, IntegrationBranchView, MergeAgentChange, MergeAgentChangeResult,
    MergeTestRequirement, OpenIntegrationBranch, OpenWorkspaceOnBranch, TestRunEvent,
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
    fn line_in(&self, path: &Path) -> IntegrationBranchView {
        let order = OpenIntegrationBranch {
            run: self.run.clone(),
            path: path.display().to_string(),
            commit: None,
        };
        self.wait(self.client().open_line(&order)).unwrap()
    }

    fn at(id: &WorkspaceId, scope: &[&str], start: BranchWorkspaceStart) -> OpenWorkspaceOnBranch {
        OpenWorkspaceOnBranch {
            id: id.clone(),
            title: "a task".to_owned(),
            write_scope: scope.iter().map(|glob| (*glob).to_owned()).collect(),
            contains: Vec::new(),
            start,
        }
    }

    /// Opens a workspace over the line, which later calls go to.
    fn agent(&mut self, line: &str, scope: &[&str], start: BranchWorkspaceStart) -> WorkspaceView {
        let id = workspace();
        let order = Self::at(&id, scope, start);
        let view = self.wait(self.client().open_at_line(line, &order)).unwrap();
        self.workspace = id;
        view
    }

    fn puts(&self, path: &str, content: &str) {
        self.does("write_file", json!({"path": path, "content": content}));
    }

    fn product(&self, task: &str) -> CommitAgentChange {
        let taken = self.wait(self.client().taken(&self.workspace)).unwrap();
        CommitAgentChange {
            effect: effect(),
            epoch: 1,
            run: self.run.clone(),
            task: task.to_owned(),
            workspace: self.workspace.clone(),
            tree: taken.tree,
            message: format!("{task}\n\nLula-Task: {task}\n"),
            at: 1_000_000,
        }
    }

    fn produce(&self, line: &str, task: &str) -> CommittedAgentChangeView {
        let order = self.product(task);
        self.wait(self.client().produce(line, &order)).unwrap()
    }

    fn merge_of(
        &self,
        task: &str,
        commit: &str,
        tests: Option<MergeTestRequirement>,
    ) -> MergeAgentChange {
        MergeAgentChange {
            effect: effect(),
            epoch: 1,
            run: self.run.clone(),
            task: task.to_owned(),
            commit: commit.to_owned(),
            tests,
            message: format!("Merge {task}\n"),
            at: 1_000_001,
        }
    }

    fn integrate(
        &self,
        line: &str,
        task: &str,
        commit: &str,
        tests: Option<MergeTestRequirement>,
    ) -> MergeAgentChangeResult {
        let order = self.merge_of(task, commit, tests);
        self.wait(self.client().integrate(line, &order)).unwrap()
    }

    /// Opens the run's own workspace of the line's first commit and lays the line into it.
    fn whole(&self, line: &IntegrationBranchView) -> (WorkspaceId, Digest) {
        let id = workspace();
        let wanted = CheckoutRequest {
            id: id.clone(),
            commit: Some(line.base.clone()),
        };
        self.wait(self.client().open_commit(&line.path, "a run", wanted))
            .unwrap();
        let order = FillWorkspaceFromBranch {
            effect: effect(),
            epoch: 1,
            run: self.run.clone(),
            workspace: id.clone(),
        };
        let laid = self.wait(self.client().lay(&line.line, &order)).unwrap();
        assert_eq!(
            self.wait(self.client().lay(&line.line, &order)).unwrap(),
            laid
        );
        let taken = self.wait(self.client().taken(&id)).unwrap();
        assert_eq!((taken.tree, taken.files), (laid.tree, laid.files));
        (id, laid.tree)
    }

    fn baseline(&self) -> TestBaseline {
        let trial = TestRunRequest::Examine {
            accept: Vec::new(),
            tests: lula_repair::TestSelection::default(),
            tests_ms: 60_000,
        };
        self.wait(async {
            let events = self.client().trial(&self.workspace, &trial).await;
            let mut events = events.unwrap();
            loop {
                if let Some(TestRunEvent::Ended { result }) = events.next().await.unwrap() {
                    let TestRunResult::Examined { baseline } = *result else {
                        panic!("{result:?}");
                    };
                    return *baseline;
                }
            }
        })
    }
}

fn integrated(came: MergeAgentChangeResult) -> String {
    match came {
        MergeAgentChangeResult::Integrated { commit, .. } => commit,
        other => panic!("{other:?}"),
    }
}
