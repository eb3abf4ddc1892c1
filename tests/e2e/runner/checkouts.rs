//! Workspaces of commits: what a run works on, through the interface.

use lula_protocol::{Digest, WorkspaceId};
use lula_runner_api::{
    ChangeDelivery, CheckoutRequest, DeliverChanges, EffectCall, TestRunEvent, TestRunRequest,
    TestRunResult,
};
use serde_json::json;

use super::{Scene, done, effect, fresh, refusal, text};
use crate::support::git;

const CODE: &str = "def last(items):\n    return items[len(items)]\n";
const TESTS: &str = "\
import unittest

from items import last


class Items(unittest.TestCase):
    def test_last(self):
        self.assertEqual(last([1, 2]), 2)
";

fn scene() -> Scene {
    let mut scene = Scene::new(&[
        ("items.py", CODE),
        ("tests/__init__.py", ""),
        ("tests/test_items.py", TESTS),
        (".gitignore", "*.log\n"),
    ]);
    let tree = scene.tree();
    git(&tree, &["init", "--quiet", "--initial-branch=main"]);
    git(&tree, &["add", "--all"]);
    git(&tree, &["commit", "--quiet", "--message=the beginning"]);
    // What is not committed is no part of it.
    std::fs::write(tree.join("items.py"), "mine\n").unwrap();
    scene.workspace = WorkspaceId::from_parts(7, fresh());
    scene
}

impl Scene {
    fn wanted(&self, commit: Option<String>) -> CheckoutRequest {
        CheckoutRequest {
            id: self.workspace.clone(),
            commit,
        }
    }

    fn open_commit(&self) -> lula_runner_api::WorkspaceView {
        let tree = self.tree();
        let path = tree.to_str().unwrap();
        self.wait(self.client().open_commit(path, "a run", self.wanted(None)))
            .unwrap()
    }

    fn taken(&self) -> lula_runner_api::CommittedChangeView {
        self.wait(self.client().taken(&self.workspace)).unwrap()
    }

    fn order(&self, tree: Digest) -> EffectCall<DeliverChanges> {
        EffectCall {
            effect: effect(),
            epoch: 1,
            run: self.run.clone(),
            order: DeliverChanges {
                deliveries: vec![ChangeDelivery {
                    workspace: self.workspace.clone(),
                    tree,
                    branch: "lula/one".to_owned(),
                    message: "mend it\n".to_owned(),
                    at: 1_000_000,
                    into_files: false,
                    history: None,
                }],
            },
        }
    }
}

#[test]
fn a_commit_is_opened_under_a_chosen_name_and_found_again_after_a_crash() {
    let mut scene = scene();
    let first = scene.open_commit();
    let origin = first.origin.clone().unwrap();
    assert_eq!(origin.commit, git(&scene.tree(), &["rev-parse", "HEAD"]));
    assert_eq!(origin.uncommitted, 1);
    assert_eq!(origin.history, ["the beginning"]);
    assert_eq!(first.path, scene.tree().to_str().unwrap());
    let read = scene.does("read_file", json!({"path": "items.py"}));
    assert_eq!(read.text, CODE, "as it was committed");
    scene.does(
        "write_file",
        json!({"path": "new.py", "content": "x = 1\n"}),
    );
    scene.crash();
    assert_eq!(scene.open_commit(), first);
    assert_eq!(scene.taken().files, ["new.py"]);
    // The name stands for this commit of this repository and nothing else.
    let tree = scene.tree();
    let other = scene.wanted(Some("0".repeat(40)));
    let opened = scene
        .client()
        .open_commit(tree.to_str().unwrap(), "", other);
    assert_eq!(refusal(scene.wait(opened)).0, 409);
    let outside = scene.client().open_commit("/etc", "", scene.wanted(None));
    assert_eq!(refusal(scene.wait(outside)).0, 404);
}

#[test]
fn git_shows_history_and_the_change_so_far_and_reaches_nothing_outside() {
    let mut scene = scene();
    let tree = scene.tree();
    scene.open_commit();
    let before = crate::support::listing(&tree);
    assert_eq!(scene.sh("git status --porcelain"), "");
    assert_eq!(scene.sh("git log --format=%s"), "the beginning\n");
    assert!(scene.sh("git blame items.py").contains("def last(items):"));
    scene.sh("echo '# more' >> items.py; echo x > new.py; echo y > a.log");
    assert_eq!(
        scene.sh("git status --porcelain"),
        " M items.py\n?? new.py\n"
    );
    assert!(scene.sh("git diff").contains("+# more\n"));
    assert_eq!(
        scene.sh("git stash -q; git status --porcelain; git stash pop -q"),
        "?? new.py\n"
    );
    assert_eq!(scene.taken().files, ["items.py", "new.py"]);
    scene.sh("git add -A && git commit -q -m mine && git tag done");
    assert_eq!(scene.sh("git log --format=%s"), "mine\nthe beginning\n");
    assert_eq!(
        scene.sh("git remote; git config --get-all remote.origin.url || true"),
        ""
    );
    // Objects of the repository are read and never written.
    scene.sh("chmod -R u+w .git/below/0; touch .git/below/0/x; true");
    assert!(!tree.join(".git/objects/x").exists());
    assert_eq!(
        scene.taken().files,
        ["items.py", "new.py"],
        "a commit there is no part of the change, and takes nothing from it"
    );
    // What was done with git outlives a crash, and ends where the work begins anew.
    scene.crash();
    scene.open_commit();
    assert_eq!(scene.sh("git log --format=%s"), "mine\nthe beginning\n");
    scene.does("undo", json!({"to": lula_runner_api::START}));
    assert_eq!(
        scene.sh("git log --format=%s; git status --porcelain"),
        "the beginning\n"
    );
    assert_eq!(
        crate::support::listing(&tree),
        before,
        "nothing reached the repository"
    );
}

#[test]
fn a_change_is_what_git_would_take_and_a_delivery_one_branch() {
    let scene = scene();
    scene.open_commit();
    let mended = CODE.replace("len(items)]", "len(items) - 1]");
    scene.does("write_file", json!({"path": "items.py", "content": mended}));
    scene.sh(
        "echo x > a.log; mkdir -p __pycache__; echo y > __pycache__/a.pyc; echo '#!/bin/sh' > go; \
         chmod +x go; ln -s items.py link; rm tests/__init__.py; git init -q inner; echo z > inner/z",
    );
    let taken = scene.taken();
    assert_eq!(taken.files, ["go", "items.py", "link", "tests/__init__.py"]);
    assert!(
        taken.diff.contains("new file mode 100755"),
        "{}",
        taken.diff
    );
    let before = crate::support::listing(&scene.tree());
    let order = scene.order(taken.tree);
    let deliver = |call: &EffectCall<DeliverChanges>| {
        let delivered = scene.wait(scene.client().deliver(call))?;
        Ok(delivered.parts[0].clone())
    };
    // Another state than the judged one is not delivered.
    let stale = scene.order(Digest::of_bytes(b"another"));
    assert_eq!(refusal(deliver(&stale)).0, 409);
    let arrived = deliver(&order).unwrap();
    let tree = scene.tree();
    assert_eq!(Some(git(&tree, &["rev-parse", "lula/one"])), arrived.commit);
    assert_eq!(git(&tree, &["show", "lula/one:items.py"]), mended.trim());
    assert_eq!(
        git(&tree, &["diff", "--name-only", "main", "lula/one"])
            .lines()
            .count(),
        4
    );
    // A driver that takes the run over is told the same; another one finds the branch there.
    let later = EffectCall {
        epoch: 2,
        ..order.clone()
    };
    assert_eq!(deliver(&later).unwrap(), arrived);
    assert_eq!(refusal(deliver(&order)).1, "L1007", "it was replaced");
    let mut second = scene.order(taken.tree);
    second.epoch = 2;
    second.order.deliveries[0].message = "other\n".to_owned();
    assert_eq!(refusal(deliver(&second)).0, 409);
    let mut after = crate::support::listing(&tree);
    after.retain(|(path, bytes)| before.contains(&(path.clone(), bytes.clone())));
    assert_eq!(
        after.len(),
        before.len(),
        "nothing that was there is another now"
    );
    assert_eq!(text(&tree.join("items.py")), "mine\n");
}

#[test]
fn tests_are_run_and_patches_searched_in_forks_of_the_workspace_as_it_is() {
    let scene = scene();
    scene.open_commit();
    let run = |request: TestRunRequest| {
        scene.wait(async {
            let mut events = scene
                .client()
                .run_tests(&scene.workspace, &request)
                .await
                .unwrap();
            loop {
                match events.next().await.unwrap() {
                    Some(TestRunEvent::Ended { result }) => return *result,
                    Some(TestRunEvent::Progress { .. }) => {}
                    None => panic!("no end"),
                }
            }
        })
    };
    let tests = || TestRunRequest::RunTests {
        accept: Vec::new(),
        tests: lula_repair::TestSelection::default(),
        tests_ms: 60_000,
    };
    let TestRunResult::Ran { baseline } = run(tests()) else {
        panic!();
    };
    assert_eq!(baseline.failing().len(), 1);
    let search = TestRunRequest::Search {
        tests: lula_repair::TestSelection::default(),
        search_ms: 60_000,
    };
    let TestRunResult::Searched { found } = run(search) else {
        panic!();
    };
    let [file] = &found.files[..] else {
        panic!("{found:?}");
    };
    assert!(scene.taken().files.is_empty(), "nothing of a trial stays");
    scene.does(
        "write_file",
        json!({"path": file.path, "content": file.text}),
    );
    let verify = TestRunRequest::Verify {
        tests: lula_repair::TestSelection::default(),
        before: baseline,
        first: Vec::new(),
        accept: vec!["grep -q '1' items.py".to_owned()],
        tests_ms: 60_000,
    };
    let TestRunResult::Verified { evidence } = run(verify) else {
        panic!();
    };
    assert_eq!(evidence.after.results().unwrap().passing.len(), 1);
    let without = evidence.without.unwrap();
    assert_eq!(without.results().unwrap().failing.len(), 1);
    assert_eq!(evidence.changed_files, 1);
    assert!(evidence.accepted[0].after && !evidence.accepted[0].before);
}

#[test]
fn whoever_takes_a_run_over_gets_the_result_of_what_was_done_already() {
    let scene = scene();
    scene.open_commit();
    let id = effect();
    let exec = json!({"argv": ["sh", "-c", "echo once >> log.txt"]});
    let first = scene
        .send(&scene.call_as(&id, 1, "exec", exec.clone()))
        .unwrap();
    let again = scene.send(&scene.call_as(&id, 5, "exec", exec)).unwrap();
    assert_eq!(first, again);
    done(again);
    assert_eq!(
        scene.does("read_file", json!({"path": "log.txt"})).text,
        "once\n"
    );
}

#[test]
fn what_is_given_back_is_gone_but_for_where_it_came_from() {
    let scene = scene();
    let opened = scene.open_commit();
    scene.wait(scene.client().remove(&scene.workspace)).unwrap();
    let known = scene
        .wait(scene.client().workspace(&scene.workspace))
        .unwrap();
    assert_eq!(known.origin, opened.origin);
    assert_eq!(
        refusal(scene.wait(scene.client().taken(&scene.workspace))).0,
        404
    );
    let kept = crate::support::listing(&scene.state().join("checkouts"));
    assert_eq!(kept.len(), 1, "{kept:?}");
}
