//! The merge queue: who comes in, who does not and why, and what everybody begins with.

use lula_protocol::{Digest, EffectId};
use lula_repair::trial::TestRunAttempt;
use lula_runner_api::{
    BranchWorkspaceStart, ChangeDelivery, CommitAgentChange, DeliverChanges, EffectCall,
    IntegrationBranchView, MergeAgentChangeResult, MergeTestRequirement, OpenWorkspaceOnBranch,
    TaskCommit, TaskHistory,
};
use serde_json::json;

use super::{CODE, merged, of, scene, workspace};
use crate::runner::{Scene, fresh, refusal};
use crate::support::{git, listing};

#[test]
fn three_agents_side_by_side_with_a_textual_and_a_semantic_conflict() {
    let mut scene = scene();
    let before = listing(&scene.tree());
    let branch = scene.branch_in(&scene.tree());
    let name = of(&branch);
    assert_eq!((&branch.base, branch.commits.len()), (&branch.commit, 0));

    // All of them begin with the same commit.
    let first = scene.agent(&name, &[], BranchWorkspaceStart::Branch);
    assert_eq!(first.origin.unwrap().commit, branch.base);
    let tests = MergeTestRequirement {
        folder: String::new(),
        command: None,
        before: Some(Box::new(scene.baseline())),
        accept: vec!["test -f notes.txt".to_owned()],
        tests_ms: 60_000,
    };
    let tests = || Some(tests.clone());
    scene.puts("notes.txt", "ONE\ntwo\nthree\n");
    scene.puts(
        "shop.py",
        &CODE.replace("str(price(amount))", "f'{price(amount)}'"),
    );
    let one = scene.commit_step(&name, "first");
    assert_eq!((one.files.len(), one.outside.len()), (2, 0));
    scene.agent(&name, &[], BranchWorkspaceStart::Branch);
    scene.puts("notes.txt", "eins\ntwo\nthree\n");
    let two = scene.commit_step(&name, "second");
    scene.agent(&name, &[], BranchWorkspaceStart::Branch);
    // Right by itself and beside the first one's lines, but not together with them.
    let renamed = CODE
        .replace("def price", "def cost")
        .replace("str(price(amount))", "str(cost(amount))");
    scene.puts(
        "shop.py",
        &format!("{}\n\nprice = cost\n", renamed.trim_end()),
    );
    let own = scene.commit_step(&name, "fourth");
    scene.agent(&name, &[], BranchWorkspaceStart::Branch);
    scene.puts(
        "tests/test_more.py",
        "import inspect\nimport unittest\n\nimport shop\n\n\nclass More(unittest.TestCase):\n    \
         def test_more(self):\n        self.assertIn('str(', inspect.getsource(shop.shown))\n",
    );
    let three = scene.commit_step(&name, "third");

    let MergeAgentChangeResult::Merged {
        commit,
        tests: said,
        ..
    } = scene.merge(&name, "first", &one.commit, tests())
    else {
        panic!();
    };
    assert_eq!(said.unwrap().passing.len(), 2);
    let at = |scene: &Scene| {
        scene
            .wait(scene.client().branch(&branch.branch))
            .unwrap()
            .commit
    };
    assert_eq!(at(&scene), commit);
    match scene.merge(&name, "second", &two.commit, tests()) {
        MergeAgentChangeResult::Conflict {
            onto,
            files,
            ours,
            theirs,
        } => {
            assert_eq!(
                (onto, files[0].path.as_str()),
                (commit.clone(), "notes.txt")
            );
            assert!(files[0].hunks[0].text.contains("eins"));
            assert!(ours.contains("+ONE") && theirs.contains("+eins"));
        }
        other => panic!("{other:?}"),
    }
    match scene.merge(&name, "third", &three.commit, tests()) {
        MergeAgentChangeResult::TestConflict {
            failing, messages, ..
        } => {
            assert!(failing[0].contains("test_more"), "{failing:?}");
            assert!(messages[0].1.contains("not found"), "{messages:?}");
        }
        other => panic!("{other:?}"),
    }
    let textual = scene.merge(&name, "fourth", &own.commit, tests());
    assert!(
        matches!(textual, MergeAgentChangeResult::Conflict { .. }),
        "{textual:?}"
    );
    assert_eq!(at(&scene), commit, "no conflict moved the branch");

    // The same agent, on the new branch, with its change merged over it.
    let start = BranchWorkspaceStart::Merge {
        commit: two.commit.clone(),
    };
    let opened = scene.agent(&name, &[], start);
    assert_eq!(opened.origin.unwrap().commit, commit);
    let marked = scene.does("read_file", json!({"path": "notes.txt"})).text;
    assert!(
        marked.contains("<<<<<<<") && marked.contains("eins"),
        "{marked}"
    );
    let unresolved = scene.agent_commit(&name, "second");
    let refused = scene.wait(scene.client().commit_agent_change(&unresolved));
    assert_eq!(refusal(refused).0, 409, "markers are no resolution");
    scene.puts("notes.txt", "ONE eins\ntwo\nthree\n");
    let resolved = scene.commit_step(&name, "second");
    let last = merged(scene.merge(&name, "second", &resolved.commit, tests()));

    let view = scene.wait(scene.client().branch(&branch.branch)).unwrap();
    let states: Vec<(&str, bool)> = view
        .commits
        .iter()
        .map(|one| (one.step.as_str(), one.merged))
        .collect();
    assert_eq!(view.commit, last);
    assert_eq!(states.len(), 5, "every commit is kept");
    let all = |step: &str| states.iter().filter(|one| one.0 == step).all(|one| one.1);
    assert!(all("first") && all("second") && !all("third") && !all("fourth"));
    assert_eq!(
        listing(&scene.tree()),
        before,
        "nothing reached the repository"
    );

    delivered_and_archived(&scene, &branch, &[commit, last]);
}

#[test]
fn a_test_that_fails_without_the_change_too_is_flaky_and_no_conflict() {
    let mut scene = scene();
    let name = of(&scene.branch_in(&scene.tree()));
    scene.agent(&name, &[], BranchWorkspaceStart::Branch);
    scene.puts(
        "tests/test_luck.py",
        "import unittest\n\n\nclass Luck(unittest.TestCase):\n    def test_luck(self):\n        self.fail('bad luck')\n",
    );
    let unlucky = scene.commit_step(&name, "unlucky");
    merged(scene.merge(&name, "unlucky", &unlucky.commit, None));

    // It was lucky when the tests were run before.
    scene.agent(&name, &[], BranchWorkspaceStart::Branch);
    let mut before = scene.baseline();
    let TestRunAttempt::Ran(results) = &mut before.looked else {
        panic!("{before:?}");
    };
    let lucky = std::mem::take(&mut results.failing);
    assert_eq!(lucky.len(), 1);
    results.passing.extend(lucky.iter().cloned());
    let tests = MergeTestRequirement {
        before: Some(Box::new(before)),
        tests_ms: 60_000,
        ..MergeTestRequirement::default()
    };
    scene.puts("more.txt", "more\n");
    let harmless = scene.commit_step(&name, "harmless");
    let call = scene.merge_of(&name, "harmless", &harmless.commit, Some(tests.clone()));
    for _ in 0..2 {
        // Asked again, the same is told.
        match scene.wait(scene.client().merge(&call)).unwrap() {
            MergeAgentChangeResult::Merged {
                tests: said, flaky, ..
            } => assert_eq!((said.unwrap().flaky, flaky), (lucky.clone(), lucky.clone())),
            other => panic!("{other:?}"),
        }
    }

    scene.agent(&name, &[], BranchWorkspaceStart::Branch);
    scene.puts("shop.py", "def price(amount):\n    return -1\n");
    let wrong = scene.commit_step(&name, "wrong");
    match scene.merge(&name, "wrong", &wrong.commit, Some(tests)) {
        MergeAgentChangeResult::TestConflict { failing, why, .. } => {
            assert!(!failing.is_empty() && failing.iter().all(|id| !lucky.contains(id)));
            let named = format!("flaky, and not counted: {}", lucky.first().unwrap());
            assert!(why.contains(&named), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

fn delivered_and_archived(scene: &Scene, branch: &IntegrationBranchView, merged: &[String]) {
    // The whole is one change of the run, verified and delivered like that of a single one.
    let (id, judged) = scene.whole(branch);
    let call = scene.once(DeliverChanges {
        deliveries: vec![ChangeDelivery {
            workspace: id,
            tree: judged,
            branch: "lula/whole".to_owned(),
            message: "all of it\n".to_owned(),
            at: 1_000_002,
            into_files: false,
            history: None,
        }],
    });
    scene.wait(scene.client().deliver(&call)).unwrap();
    let repository = scene.tree();
    assert_eq!(
        git(&repository, &["show", "lula/whole:notes.txt"]),
        "ONE eins\ntwo\nthree"
    );
    assert_eq!(git(&repository, &["rev-parse", "lula/whole^"]), branch.base);

    // The same with a commit for each of the tasks that it came together from.
    let tasks = merged.iter().rev().map(|commit| TaskCommit {
        commit: commit.clone(),
        message: format!("task {}\n\nLula-Task: t\n", &commit[..4]),
    });
    let mut order = call.order.clone();
    "lula/tasks".clone_into(&mut order.deliveries[0].branch);
    order.deliveries[0].history = Some(TaskHistory {
        tasks: tasks.collect(),
        end: "Lula-Verdict: pass\n".to_owned(),
    });
    let call = scene.once(order.clone());
    scene.wait(scene.client().deliver(&call)).unwrap();
    let said = |format: &str| {
        let range = format!("{}..lula/tasks", branch.base);
        git(&repository, &["log", "--reverse", format, &range])
    };
    let subjects: Vec<String> = merged
        .iter()
        .map(|commit| format!("task {}", &commit[..4]))
        .collect();
    assert_eq!(said("--format=%s"), subjects.join("\n"), "in their order");
    assert_eq!(
        said("--format=%P").lines().next(),
        Some(branch.base.as_str())
    );
    assert!(git(&repository, &["log", "-1", "--format=%b", "lula/tasks"]).ends_with("pass"));
    git(
        &repository,
        &["diff", "--exit-code", "lula/whole", "lula/tasks"],
    );
    "lula/strange".clone_into(&mut order.deliveries[0].branch);
    let tasks = &mut order.deliveries[0].history.as_mut().unwrap().tasks;
    tasks[0].commit.clone_from(&branch.base);
    let strange = scene.wait(scene.client().deliver(&scene.once(order)));
    assert_eq!(
        refusal(strange).0,
        409,
        "the branch got no task by that commit"
    );

    let archived = scene
        .wait(scene.client().archive_branch(&branch.branch))
        .unwrap();
    assert!(archived.archived);
    let order = Scene::at(&of(branch), &workspace(), &[], BranchWorkspaceStart::Branch);
    let gone = scene.wait(scene.client().open_on_branch(&order));
    assert_eq!(refusal(gone).0, 409);
}

#[test]
fn a_task_begins_where_its_dependencies_are_and_stays_in_its_scope() {
    let mut scene = scene();
    let branch = scene.branch_in(&scene.tree());
    let name = of(&branch);
    scene.agent(&name, &["docs/**"], BranchWorkspaceStart::Branch);
    let written = scene.send(&scene.call("write_file", json!({"path": "shop.py", "content": "x"})));
    assert!(
        matches!(
            written.unwrap().outcome,
            lula_protocol::ToolOutcome::Denied { .. }
        ),
        "a tool does not write outside"
    );
    // A command does not say where it writes: what is outside is put back, and told.
    let strays = "mkdir -p docs gen; echo a > docs/a.md; echo x > gen/stray.txt; rm notes.txt";
    let said = scene
        .does("exec", json!({"argv": ["sh", "-c", strays]}))
        .text;
    let told = "because this task may not write them: gen/stray.txt, notes.txt]";
    assert!(said.contains(told), "{said}");
    let left = scene.sh("ls; cat notes.txt");
    assert!(left.contains("three") && !left.contains("gen"), "{left}");
    assert!(scene.commit_step(&name, "docs").outside.is_empty());
    // Opened again it may write more, and never less.
    let order = Scene::at(
        &name,
        &scene.workspace,
        &["extra.txt"],
        BranchWorkspaceStart::Branch,
    );
    scene.wait(scene.client().open_on_branch(&order)).unwrap();
    scene.does("write_file", json!({"path": "extra.txt", "content": "x"}));
    scene.sh("echo b >> docs/a.md");
    let wider = scene.commit_step(&name, "docs");
    assert!(wider.outside.is_empty(), "{wider:?}");
    assert_eq!(wider.files, ["docs/a.md", "extra.txt"]);
    // What depends on it has to wait for it.
    let id = workspace();
    let needs = OpenWorkspaceOnBranch {
        contains: vec![wider.commit.clone()],
        ..Scene::at(&name, &id, &[], BranchWorkspaceStart::Branch)
    };
    let open = |scene: &Scene, order: &OpenWorkspaceOnBranch| {
        scene.wait(scene.client().open_on_branch(order))
    };
    assert_eq!(refusal(open(&scene, &needs)).0, 409);
    let last = merged(scene.merge(&name, "docs", &wider.commit, None));
    let opened = open(&scene, &needs).unwrap();
    assert_eq!(opened.origin.clone().unwrap().commit, last);
    // Opened again it is where it began, whatever became of the branch; after a crash too.
    scene.workspace = id;
    scene.puts("docs/b.md", "b\n");
    let more = scene.commit_step(&name, "more");
    merged(scene.merge(&name, "more", &more.commit, None));
    scene.crash();
    assert_eq!(open(&scene, &needs).unwrap().origin, opened.origin);
    // Its name stands for nothing else, and what was not judged is not committed.
    let other = Scene::at(
        &name,
        &scene.workspace,
        &[],
        BranchWorkspaceStart::Merge {
            commit: more.commit,
        },
    );
    assert_eq!(refusal(open(&scene, &other)).0, 409);
    let commit = |change: &dyn Fn(&mut CommitAgentChange)| {
        let mut call = scene.agent_commit(&name, "more");
        change(&mut call.order);
        scene.wait(scene.client().commit_agent_change(&call))
    };
    let stale = commit(&|order| order.tree = Digest::of_bytes(b"another"));
    assert_eq!(refusal(stale).0, 409);
    let odd = commit(&|order| order.step = "../x".to_owned());
    assert_eq!(refusal(odd).0, 400);
    let nowhere = scene.client().branch("run_x.0");
    assert_eq!(refusal(scene.wait(nowhere)).0, 404);
}

/// Whose effect it was is no part of what it was.
#[test]
fn an_effect_of_a_branch_happens_once_and_for_one_request() {
    let mut scene = scene();
    let branch = scene.branch_in(&scene.tree());
    scene.agent(&of(&branch), &[], BranchWorkspaceStart::Branch);
    scene.puts("new.txt", "new\n");
    let call = scene.agent_commit(&of(&branch), "t");
    let commit =
        |call: &EffectCall<CommitAgentChange>| scene.wait(scene.client().commit_agent_change(call));
    let made = commit(&call).unwrap();
    let later = EffectCall {
        epoch: 3,
        ..call.clone()
    };
    assert_eq!(commit(&later).unwrap(), made);
    assert_eq!(refusal(commit(&call)).1, "L1007", "it was replaced");
    let mut reused = later.clone();
    reused.order.step = "other".to_owned();
    assert_eq!(refusal(commit(&reused)).0, 409);
    let foreign = EffectCall {
        run: lula_protocol::RunId::from_parts(5, fresh()),
        effect: EffectId::from_parts(5, fresh()),
        ..later
    };
    assert_eq!(refusal(commit(&foreign)).0, 400);
}
