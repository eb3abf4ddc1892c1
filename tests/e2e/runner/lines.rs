//! Lines through the interface: agents side by side, a merge queue that loses nothing, deliveries to
//! several repositories, and all of it over kill -9.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lula_protocol::{Digest, EffectId, WorkspaceId};
use lula_repair::trial::Baseline;
use lula_runner::api::{
    CheckoutWanted, DeliverAll, DeliverChange, DeliverPart, IntegrateChange, Integration, LayLine,
    LineStart, LineView, MergeTests, OpenAtLine, OpenLine, ProduceChange, ProducedView, Trial,
    TrialEvent, TrialResult, WorkspaceView,
};
use lula_runner::client::ClientError;
use serde_json::json;

use super::{Scene, effect, fresh, refusal};
use crate::lula::listing;
use crate::processes::Dice;
use crate::run::git;

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
    fn line_in(&self, path: &Path) -> LineView {
        let order = OpenLine {
            run: self.run.clone(),
            path: path.display().to_string(),
            commit: None,
        };
        self.wait(self.client().open_line(&order)).unwrap()
    }

    fn at(id: &WorkspaceId, scope: &[&str], start: LineStart) -> OpenAtLine {
        OpenAtLine {
            id: id.clone(),
            title: "a task".to_owned(),
            write_scope: scope.iter().map(|glob| (*glob).to_owned()).collect(),
            contains: Vec::new(),
            start,
        }
    }

    /// Opens a workspace over the line, which later calls go to.
    fn agent(&mut self, line: &str, scope: &[&str], start: LineStart) -> WorkspaceView {
        let id = workspace();
        let order = Self::at(&id, scope, start);
        let view = self.wait(self.client().open_at_line(line, &order)).unwrap();
        self.workspace = id;
        view
    }

    fn puts(&self, path: &str, content: &str) {
        self.does("write_file", json!({"path": path, "content": content}));
    }

    fn product(&self, task: &str) -> ProduceChange {
        let taken = self.wait(self.client().taken(&self.workspace)).unwrap();
        ProduceChange {
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

    fn produce(&self, line: &str, task: &str) -> ProducedView {
        let order = self.product(task);
        self.wait(self.client().produce(line, &order)).unwrap()
    }

    fn merge_of(&self, task: &str, commit: &str, tests: Option<MergeTests>) -> IntegrateChange {
        IntegrateChange {
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
        tests: Option<MergeTests>,
    ) -> Integration {
        let order = self.merge_of(task, commit, tests);
        self.wait(self.client().integrate(line, &order)).unwrap()
    }

    /// Opens the run's own workspace of the line's first commit and lays the line into it.
    fn whole(&self, line: &LineView) -> (WorkspaceId, Digest) {
        let id = workspace();
        let wanted = CheckoutWanted {
            id: id.clone(),
            commit: Some(line.base.clone()),
        };
        self.wait(self.client().open_commit(&line.path, "a run", wanted))
            .unwrap();
        let order = LayLine {
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

    fn baseline(&self) -> Baseline {
        let trial = Trial::Examine {
            tests: None,
            tests_ms: 60_000,
        };
        self.wait(async {
            let events = self.client().trial(&self.workspace, &trial).await;
            let mut events = events.unwrap();
            loop {
                if let Some(TrialEvent::Ended { result }) = events.next().await.unwrap() {
                    let TrialResult::Examined { baseline } = *result else {
                        panic!("{result:?}");
                    };
                    return baseline;
                }
            }
        })
    }
}

fn integrated(came: Integration) -> String {
    match came {
        Integration::Integrated { commit, .. } => commit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn three_agents_side_by_side_with_a_textual_and_a_semantic_conflict() {
    let mut scene = scene();
    let before = listing(&scene.tree());
    let line = scene.line_in(&scene.tree());
    let name = line.line.clone();
    assert_eq!((&line.base, line.produced.len()), (&line.commit, 0));

    // All of them begin with the same commit.
    let first = scene.agent(&name, &[], LineStart::Line);
    assert_eq!(first.origin.unwrap().commit, line.base);
    let tests = MergeTests {
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
    scene.agent(&name, &[], LineStart::Line);
    scene.puts("notes.txt", "eins\ntwo\nthree\n");
    let two = scene.produce(&name, "second");
    scene.agent(&name, &[], LineStart::Line);
    // Right by itself and beside the first one's lines, but not together with them.
    let renamed = CODE
        .replace("def price", "def cost")
        .replace("str(price(amount))", "str(cost(amount))");
    scene.puts(
        "shop.py",
        &format!("{}\n\nprice = cost\n", renamed.trim_end()),
    );
    let own = scene.produce(&name, "fourth");
    scene.agent(&name, &[], LineStart::Line);
    scene.puts(
        "tests/test_more.py",
        "import inspect\nimport unittest\n\nimport shop\n\n\nclass More(unittest.TestCase):\n    \
         def test_more(self):\n        self.assertIn('str(', inspect.getsource(shop.shown))\n",
    );
    let three = scene.produce(&name, "third");

    let Integration::Integrated {
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
        Integration::Conflict {
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
        Integration::TestConflict {
            failing, messages, ..
        } => {
            assert!(failing[0].contains("test_more"), "{failing:?}");
            assert!(messages[0].1.contains("not found"), "{messages:?}");
        }
        other => panic!("{other:?}"),
    }
    let textual = scene.integrate(&name, "fourth", &own.commit, tests());
    assert!(
        matches!(textual, Integration::Conflict { .. }),
        "{textual:?}"
    );
    assert_eq!(at(&scene), commit, "no conflict moved the line");

    // The same agent, on the new line, with its change merged over it.
    let start = LineStart::Merge {
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

fn delivered_and_archived(scene: &Scene, line: &LineView) {
    // The whole is one change of the run, weighed and delivered like that of a single one.
    let (id, judged) = scene.whole(line);
    let order = DeliverChange {
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
    let order = Scene::at(&workspace(), &[], LineStart::Line);
    let gone = scene.wait(scene.client().open_at_line(&line.line, &order));
    assert_eq!(refusal(gone).0, 409);
}

#[test]
fn a_task_begins_where_its_dependencies_are_and_stays_in_its_scope() {
    let mut scene = scene();
    let line = scene.line_in(&scene.tree());
    let name = line.line.clone();
    scene.agent(&name, &["docs/**"], LineStart::Line);
    let written = scene.send(&scene.call("write_file", json!({"path": "shop.py", "content": "x"})));
    assert!(
        matches!(
            written.unwrap().outcome,
            lula_protocol::Outcome::Denied { .. }
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
    let start = LineStart::Merge {
        commit: strayed.commit.clone(),
    };
    scene.agent(&name, &["docs/**", "stray.txt"], start);
    let wider = scene.produce(&name, "docs");
    assert!(wider.outside.is_empty(), "{wider:?}");
    // What depends on it has to wait for it.
    let id = workspace();
    let needs = OpenAtLine {
        contains: vec![wider.commit.clone()],
        ..Scene::at(&id, &[], LineStart::Line)
    };
    let open =
        |scene: &Scene, order: &OpenAtLine| scene.wait(scene.client().open_at_line(&name, order));
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
        LineStart::Merge {
            commit: more.commit,
        },
    );
    assert_eq!(refusal(open(&scene, &other)).0, 409);
    let stale = ProduceChange {
        tree: Digest::of_bytes(b"another"),
        ..scene.product("more")
    };
    let produced = scene.wait(scene.client().produce(&name, &stale));
    assert_eq!(refusal(produced).0, 409);
    let odd = ProduceChange {
        task: "../x".to_owned(),
        ..scene.product("more")
    };
    let produced = scene.wait(scene.client().produce(&name, &odd));
    assert_eq!(refusal(produced).0, 400);
    let nowhere = scene.client().line("run_x.0");
    assert_eq!(refusal(scene.wait(nowhere)).0, 404);
}

/// A scene whose root holds several repositories.
fn several(names: &[&str]) -> (Scene, Vec<PathBuf>) {
    let files: Vec<(String, &str)> = names
        .iter()
        .map(|name| (format!("{name}/a.txt"), "a\n"))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    let rules = "[[rule]]\nid = \"test.guarded\"\npaths = [\"guarded.txt\"]\ndecision = \"deny\"\nreason = \"it is guarded\"\n";
    let scene = Scene::with_rules(&files, rules);
    let trees: Vec<PathBuf> = names.iter().map(|name| scene.tree().join(name)).collect();
    for tree in &trees {
        repository(tree);
    }
    (scene, trees)
}

impl Scene {
    /// A line in a repository with one change in it, laid into a workspace.
    fn result_in(&mut self, tree: &Path, file: &str) -> DeliverPart {
        let line = self.line_in(tree);
        self.agent(&line.line, &[], LineStart::Line);
        self.sh(&format!("echo new > {file}"));
        let made = self.produce(&line.line, "t");
        integrated(self.integrate(&line.line, "t", &made.commit, None));
        let (workspace, tree) = self.whole(&line);
        DeliverPart {
            workspace,
            tree,
            branch: "lula/set".to_owned(),
            message: "a set\n".to_owned(),
            at: 1_000_003,
        }
    }

    fn set(&self, parts: &[DeliverPart]) -> DeliverAll {
        DeliverAll {
            effect: effect(),
            epoch: 1,
            run: self.run.clone(),
            parts: parts.to_vec(),
        }
    }
}

#[test]
fn several_repositories_get_their_branches_together_or_none_does() {
    let (mut scene, trees) = several(&["one", "two"]);
    let mut parts: Vec<DeliverPart> = trees
        .iter()
        .map(|tree| scene.result_in(tree, "b.txt"))
        .collect();
    let deliver = |scene: &Scene, order: &DeliverAll| scene.wait(scene.client().deliver_all(order));
    let has = |tree: &Path| !git(tree, &["branch", "--list", "lula/set"]).is_empty();
    // A branch that is in the way anywhere is in the way everywhere.
    git(&trees[1], &["branch", "lula/set"]);
    let order = scene.set(&parts);
    assert_eq!(refusal(deliver(&scene, &order)).0, 409);
    assert!(!has(&trees[0]));
    git(&trees[1], &["branch", "--quiet", "-D", "lula/set"]);
    // So is a rule: this one is about a file of the second repository alone.
    let guarded = scene.result_in(&trees[1], "b.txt");
    scene.workspace = guarded.workspace.clone();
    // In a way that no rule about commands understands.
    scene.sh("python3 -c \"open('guarded' + '.txt', 'w').write('x')\"");
    let taken = scene.wait(scene.client().taken(&scene.workspace)).unwrap();
    let held = scene.set(&[
        parts[0].clone(),
        DeliverPart {
            tree: taken.tree,
            ..guarded
        },
    ]);
    let held = deliver(&scene, &held);
    assert!(matches!(held, Err(ClientError::Held(_))), "{held:?}");
    assert!(!has(&trees[0]) && !has(&trees[1]));
    // The same order, sent again, whoever sends it, is the same delivery.
    let arrived = deliver(&scene, &order).unwrap();
    assert_eq!(arrived.parts.len(), 2);
    assert_eq!(deliver(&scene, &order).unwrap(), arrived);
    for (tree, part) in trees.iter().zip(&arrived.parts) {
        assert_eq!(Some(git(tree, &["rev-parse", "lula/set"])), part.commit);
        assert_eq!(git(tree, &["show", "lula/set:b.txt"]), "new");
    }
    parts[1].tree = Digest::of_bytes(b"another");
    let stale = scene.set(&parts);
    assert_eq!(refusal(deliver(&scene, &stale)).0, 409);
}

#[test]
fn killed_in_a_delivery_all_branches_are_there_or_none() {
    let (mut scene, trees) = several(&["one", "two", "three"]);
    let base: Vec<DeliverPart> = trees
        .iter()
        .map(|tree| scene.result_in(tree, "b.txt"))
        .collect();
    let mut dice = Dice(7);
    for round in 0..8 {
        let mut parts = base.clone();
        for part in &mut parts {
            part.branch = format!("lula/set-{round}");
        }
        let order = scene.set(&parts);
        let wait = Duration::from_micros(dice.roll(120_000));
        let answered =
            scene.struck_after(wait, |scene| scene.wait(scene.client().deliver_all(&order)));
        // The next runner has put it right before it answers anything.
        let there = |tree: &PathBuf| {
            !git(tree, &["branch", "--list", &format!("lula/set-{round}")]).is_empty()
        };
        let count = trees.iter().filter(|tree| there(tree)).count();
        assert!(
            count == 0 || count == trees.len(),
            "{count} in round {round}"
        );
        let again = scene.wait(scene.client().deliver_all(&order)).unwrap();
        if let Ok(answered) = answered {
            assert_eq!(again, answered);
        }
        assert!(trees.iter().all(there));
    }
}

/// What the files of a line are.
fn files_of(scene: &Scene, line: &LineView) -> String {
    let directory = scene.state().join("lines").join(&line.line).join("git");
    git(
        &directory,
        &["rev-parse", &format!("{}^{{tree}}", line.commit)],
    )
}

#[test]
fn killed_at_any_moment_nothing_produced_is_lost_and_nothing_merged_twice() {
    let text = (0..12).fold(String::new(), |text, number| {
        format!("{text}line {number}\n")
    });
    let files = [("a.txt", text.as_str()), ("b.txt", text.as_str())];
    let (mut calm, mut struck) = (Scene::new(&files), Scene::new(&files));
    for scene in [&calm, &struck] {
        repository(&scene.tree());
    }
    let untouched = listing(&struck.tree());
    let mut dice = Dice(3);
    let (mut conflicts, mut cut_off) = (0, 0);
    let lines = [calm.line_in(&calm.tree()), struck.line_in(&struck.tree())];
    for round in 0..6 {
        // Three agents of one beginning, some of whom meet.
        let edits: Vec<(u64, u64)> = (0..3).map(|_| (dice.roll(2), dice.roll(12))).collect();
        let mut came: [Vec<bool>; 2] = Default::default();
        for (which, scene) in [&mut calm, &mut struck].into_iter().enumerate() {
            let name = lines[which].line.clone();
            let mut products = Vec::new();
            for (number, (file, at)) in edits.iter().enumerate() {
                scene.agent(&name, &[], LineStart::Line);
                let path = ["a.txt", "b.txt"][usize::try_from(*file).unwrap()];
                let at = at + 1;
                scene.sh(&format!(
                    "sed -i '{at}s/.*/round {round} by {number}/' {path}"
                ));
                let order = scene.product(&format!("t{round}-{number}"));
                let made = send(scene, which == 1, &mut dice, &mut cut_off, |scene| {
                    scene.wait(scene.client().produce(&name, &order))
                });
                products.push((order.task, made.commit));
            }
            for (task, commit) in products {
                let order = scene.merge_of(&task, &commit, None);
                let done = send(scene, which == 1, &mut dice, &mut cut_off, |scene| {
                    scene.wait(scene.client().integrate(&name, &order))
                });
                came[which].push(matches!(done, Integration::Integrated { .. }));
                // The same again, whoever asks.
                assert_eq!(
                    scene.wait(scene.client().integrate(&name, &order)).unwrap(),
                    done
                );
            }
        }
        assert_eq!(came[0], came[1], "round {round}");
        conflicts += came[0].iter().filter(|integrated| !**integrated).count();
    }
    let views = [&calm, &struck].map(|scene| scene.line_in(&scene.tree()));
    assert_eq!(files_of(&calm, &views[0]), files_of(&struck, &views[1]));
    assert_eq!(views[1].produced.len(), 18);
    let left = views[1].produced.iter().filter(|one| !one.integrated);
    assert_eq!(
        left.count(),
        conflicts,
        "what is not in the line is in a conflict"
    );
    let directory = struck
        .state()
        .join("lines")
        .join(&views[1].line)
        .join("git");
    let merges = git(
        &directory,
        &["rev-list", "--merges", "--count", &views[1].commit],
    );
    assert_eq!(merges, (18 - conflicts).to_string(), "each was merged once");
    assert_eq!(listing(&struck.tree()), untouched);
    assert!(
        conflicts > 0 && cut_off > 0,
        "{conflicts} conflicts, {cut_off} cut off"
    );
}

/// Sends something, in the midst of which the runner may be killed; then it is sent again.
fn send<T: Send>(
    scene: &mut Scene,
    kill: bool,
    dice: &mut Dice,
    cut_off: &mut usize,
    ask: impl Fn(&Scene) -> Result<T, ClientError> + Sync,
) -> T {
    if kill && dice.roll(2) == 0 {
        let wait = Duration::from_micros(dice.roll(60_000));
        match scene.struck_after(wait, &ask) {
            Ok(answered) => return answered,
            Err(error) => {
                assert!(error.is_worth_repeating(), "{error}");
                *cut_off += 1;
            }
        }
    }
    ask(scene).unwrap()
}

/// Whose effect it was is no part of what it was.
#[test]
fn an_effect_of_a_line_happens_once_and_for_one_request() {
    let mut scene = scene();
    let line = scene.line_in(&scene.tree());
    scene.agent(&line.line, &[], LineStart::Line);
    scene.puts("new.txt", "new\n");
    let order = scene.product("t");
    let produce = |order: &ProduceChange| scene.wait(scene.client().produce(&line.line, order));
    let made = produce(&order).unwrap();
    let later = ProduceChange {
        epoch: 3,
        ..order.clone()
    };
    assert_eq!(produce(&later).unwrap(), made);
    assert_eq!(refusal(produce(&order)).1, "L1007", "it was replaced");
    let reused = ProduceChange {
        task: "other".to_owned(),
        ..later.clone()
    };
    assert_eq!(refusal(produce(&reused)).0, 409);
    let foreign = ProduceChange {
        run: lula_protocol::RunId::from_parts(5, fresh()),
        effect: EffectId::from_parts(5, fresh()),
        ..later
    };
    assert_eq!(refusal(produce(&foreign)).0, 400);
}

#[test]
fn a_person_sees_lines_and_archives_them_and_strangers_are_set_aside() {
    let mut scene = scene();
    let line = scene.line_in(&scene.tree());
    scene.agent(&line.line, &[], LineStart::Line);
    scene.puts("new.txt", "new\n");
    let made = scene.produce(&line.line, "t");
    integrated(scene.integrate(&line.line, "t", &made.commit, None));
    let stranger = scene.state().join("lines/strange");
    std::fs::create_dir_all(&stranger).unwrap();
    std::fs::write(stranger.join("work"), "somebody's").unwrap();
    let state = scene.state().display().to_string();
    let lula = |scene: &Scene, arguments: &[&str]| {
        let variables = [("LULA_STATE_DIR", state.as_str())];
        scene.world.run_with(&variables, arguments)
    };
    let run = scene.run.to_string();
    // An agent is at work there.
    lula(&scene, &["workspaces", "--archive", &run]).exits(6);
    scene.crash();
    let listed = lula(&scene, &["workspaces", "--lines", "--json"])
        .exits(0)
        .json();
    assert_eq!(listed["lines"][0]["integrated"], 1, "{listed}");
    assert_eq!(listed["quarantined"][0], "strange.0", "{listed}");
    let kept = scene.state().join("quarantine/strange.0/work");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "somebody's");
    lula(&scene, &["workspaces", "--archive", &run])
        .exits(0)
        .says("archived");
    let bundle = scene
        .state()
        .join("lines")
        .join(&line.line)
        .join("archive.bundle");
    assert!(bundle.is_file());
    let none = lula(&scene, &["workspaces", "--archive", "run_none"]);
    none.exits(2).says("has no lines");
}
