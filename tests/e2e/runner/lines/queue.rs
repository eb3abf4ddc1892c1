//! The merge queue: who comes in, who does not and why, and what everybody begins with.

use lula_protocol::{Digest, EffectId};
use lula_runner_api::{
    BranchWorkspaceStart, CommitAgentChange, DeliverChangeRequest, IntegrationBranchView,
    MergeAgentChangeResult, MergeTestRequirement, OpenWorkspaceOnBranch,
};
use serde_json::json;

use super::{CODE, integrated, scene, workspace};
use crate::runner::{Scene, effect, fresh, refusal};
use crate::support::{git, listing};

#[test]
fn three_agents_side_by_side_with_a_textual_and_a_semantic_conflict() {
    let mut scene = scene();
    let before = listing(&scene.tree());
    let line = scene.line_in(&scene.tree());
    let name = line.line.clone();
    assert_eq!((&line.base, line.produced.len()), (&line.commit, 0));

    // All of them begin with the same commit.
    let first = scene.agent(&name, &[], BranchWorkspaceStart::Line);
    assert_eq!(first.origin.unwrap().commit, line.base);
    let tests = MergeTestRequirement {
        folder: String::new(),
        command: None,
        before: Box::new(scene.baseline()),
        accept: vec!["test -f notes.txt".to_owned()],
        tests_ms: 60_000,
    };
    let tests = || Some(tests.clone());
    scene.puts("notes.txt", "ONE\ntwo\nthree\n");
    scene.puts(
        "shop.py",
        &CODE.replace("str(price(amount))", "f'{price(amount)}'"),
    );
    let one = scene.produce(&name, "first");
    assert_eq!((one.files.len(), one.outside.len()), (2, 0));
    scene.agent(&name, &[], BranchWorkspaceStart::Line);
    scene.puts("notes.txt", "eins\ntwo\nthree\n");
    let two = scene.produce(&name, "second");
    scene.agent(&name, &[], BranchWorkspaceStart::Line);
    // Right by itself and beside the first one's lines, but not together with them.
    let renamed = CODE
        .replace("def price", "def cost")
        .replace("str(price(amount))", "str(cost(amount))");
    scene.puts(
        "shop.py",
        &format!("{}\n\nprice = cost\n", renamed.trim_end()),
    );
    let own = scene.produce(&name, "fourth");
    scene.agent(&name, &[], BranchWorkspaceStart::Line);
    scene.puts(
        "tests/test_more.py",
        "import inspect\nimport unittest\n\nimport shop\n\n\nclass More(unittest.TestCase):\n    \
         def test_more(self):\n        self.assertIn('str(', inspect.getsource(shop.shown))\n",
    );
    let three = scene.produce(&name, "third");

    let MergeAgentChangeResult::Integrated {
        commit,
        tests: said,
    } = scene.integrate(&name, "first", &one.commit, tests())
    else {
        panic!();
    };
    assert_eq!(said.unwrap().passing.len(), 2);
    let at = |scene: &Scene| scene.wait(scene.client().line(&name)).unwrap().commit;
    assert_eq!(at(&scene), commit);
    match scene.integrate(&name, "second", &two.commit, tests()) {
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
    match scene.integrate(&name, "third", &three.commit, tests()) {
        MergeAgentChangeResult::TestConflict {
            failing, messages, ..
        } => {
            assert!(failing[0].contains("test_more"), "{failing:?}");
            assert!(messages[0].1.contains("not found"), "{messages:?}");
        }
        other => panic!("{other:?}"),
    }
    let textual = scene.integrate(&name, "fourth", &own.commit, tests());
    assert!(
        matches!(textual, MergeAgentChangeResult::Conflict { .. }),
        "{textual:?}"
    );
    assert_eq!(at(&scene), commit, "no conflict moved the line");

    // The same agent, on the new line, with its change merged over it.
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
    let unresolved = scene.product("second");
    let refused = scene.wait(scene.client().produce(&name, &unresolved));
    assert_eq!(refusal(refused).0, 409, "markers are no resolution");
    scene.puts("notes.txt", "ONE eins\ntwo\nthree\n");
    let resolved = scene.produce(&name, "second");
    let last = integrated(scene.integrate(&name, "second", &resolved.commit, tests()));

    let view = scene.wait(scene.client().line(&name)).unwrap();
    let states: Vec<(&str, bool)> = view
        .produced
        .iter()
        .map(|one| (one.task.as_str(), one.integrated))
        .collect();
    assert_eq!(view.commit, last);
    assert_eq!(states.len(), 5, "everything that was produced is kept");
    let of = |task: &str| states.iter().filter(|one| one.0 == task).all(|one| one.1);
    assert!(of("first") && of("second") && !of("third") && !of("fourth"));
    assert_eq!(
        listing(&scene.tree()),
        before,
        "nothing reached the repository"
    );

    delivered_and_archived(&scene, &line);
}

fn delivered_and_archived(scene: &Scene, line: &IntegrationBranchView) {
    // The whole is one change of the run, weighed and delivered like that of a single one.
    let (id, judged) = scene.whole(line);
    let order = DeliverChangeRequest {
        effect: effect(),
        epoch: 1,
        run: scene.run.clone(),
        tree: judged,
        branch: "lula/whole".to_owned(),
        message: "all of it\n".to_owned(),
        at: 1_000_002,
        into_files: false,
    };
    scene.wait(scene.client().deliver(&id, &order)).unwrap();
    let repository = scene.tree();
    assert_eq!(
        git(&repository, &["show", "lula/whole:notes.txt"]),
        "ONE eins\ntwo\nthree"
    );
    assert_eq!(git(&repository, &["rev-parse", "lula/whole^"]), line.base);

    let archived = scene.wait(scene.client().archive_line(&line.line)).unwrap();
    assert!(archived.archived);
    let order = Scene::at(&workspace(), &[], BranchWorkspaceStart::Line);
    let gone = scene.wait(scene.client().open_at_line(&line.line, &order));
    assert_eq!(refusal(gone).0, 409);
}

#[test]
fn a_task_begins_where_its_dependencies_are_and_stays_in_its_scope() {
    let mut scene = scene();
    let line = scene.line_in(&scene.tree());
    let name = line.line.clone();
    scene.agent(&name, &["docs/**"], BranchWorkspaceStart::Line);
    let written = scene.send(&scene.call("write_file", json!({"path": "shop.py", "content": "x"})));
    assert!(
        matches!(
            written.unwrap().outcome,
            lula_protocol::ToolOutcome::Denied { .. }
        ),
        "a tool does not write outside"
    );
    // A command does not say where it writes.
    scene.sh("mkdir -p docs; echo a > docs/a.md; echo x > stray.txt");
    let strayed = scene.produce(&name, "docs");
    assert_eq!(strayed.outside, ["stray.txt"]);
    let order = scene.merge_of("docs", &strayed.commit, None);
    let refused = scene.wait(scene.client().integrate(&name, &order));
    assert_eq!(refusal(refused).0, 409);
    // A wider scope is a new workspace, which begins with what there is.
    let start = BranchWorkspaceStart::Merge {
        commit: strayed.commit.clone(),
    };
    scene.agent(&name, &["docs/**", "stray.txt"], start);
    let wider = scene.produce(&name, "docs");
    assert!(wider.outside.is_empty(), "{wider:?}");
    // What depends on it has to wait for it.
    let id = workspace();
    let needs = OpenWorkspaceOnBranch {
        contains: vec![wider.commit.clone()],
        ..Scene::at(&id, &[], BranchWorkspaceStart::Line)
    };
    let open = |scene: &Scene, order: &OpenWorkspaceOnBranch| {
        scene.wait(scene.client().open_at_line(&name, order))
    };
    assert_eq!(refusal(open(&scene, &needs)).0, 409);
    let landed = integrated(scene.integrate(&name, "docs", &wider.commit, None));
    let opened = open(&scene, &needs).unwrap();
    assert_eq!(opened.origin.clone().unwrap().commit, landed);
    // Opened again it is where it began, whatever became of the line; after a crash too.
    scene.workspace = id;
    scene.puts("docs/b.md", "b\n");
    let more = scene.produce(&name, "more");
    integrated(scene.integrate(&name, "more", &more.commit, None));
    scene.crash();
    assert_eq!(open(&scene, &needs).unwrap().origin, opened.origin);
    // Its name stands for nothing else, and what was not judged is not produced.
    let other = Scene::at(
        &scene.workspace,
        &[],
        BranchWorkspaceStart::Merge {
            commit: more.commit,
        },
    );
    assert_eq!(refusal(open(&scene, &other)).0, 409);
    let stale = CommitAgentChange {
        tree: Digest::of_bytes(b"another"),
        ..scene.product("more")
    };
    let produced = scene.wait(scene.client().produce(&name, &stale));
    assert_eq!(refusal(produced).0, 409);
    let odd = CommitAgentChange {
        task: "../x".to_owned(),
        ..scene.product("more")
    };
    let produced = scene.wait(scene.client().produce(&name, &odd));
    assert_eq!(refusal(produced).0, 400);
    let nowhere = scene.client().line("run_x.0");
    assert_eq!(refusal(scene.wait(nowhere)).0, 404);
}

/// Whose effect it was is no part of what it was.
#[test]
fn an_effect_of_a_line_happens_once_and_for_one_request() {
    let mut scene = scene();
    let line = scene.line_in(&scene.tree());
    scene.agent(&line.line, &[], BranchWorkspaceStart::Line);
    scene.puts("new.txt", "new\n");
    let order = scene.product("t");
    let produce = |order: &CommitAgentChange| scene.wait(scene.client().produce(&line.line, order));
    let made = produce(&order).unwrap();
    let later = CommitAgentChange {
        epoch: 3,
        ..order.clone()
    };
    assert_eq!(produce(&later).unwrap(), made);
    assert_eq!(refusal(produce(&order)).1, "L1007", "it was replaced");
    let reused = CommitAgentChange {
        task: "other".to_owned(),
        ..later.clone()
    };
    assert_eq!(refusal(produce(&reused)).0, 409);
    let foreign = CommitAgentChange {
        run: lula_protocol::RunId::from_parts(5, fresh()),
        effect: EffectId::from_parts(5, fresh()),
        ..later
    };
    assert_eq!(refusal(produce(&foreign)).0, 400);
}
