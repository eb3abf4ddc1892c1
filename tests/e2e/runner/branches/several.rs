//! Deliveries to several repositories: all of them get their branches, or none does.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lula_protocol::Digest;
use lula_runner_api::client::RunnerClientError;
use lula_runner_api::{BranchWorkspaceStart, ChangeDelivery, DeliverChanges, EffectCall};

use super::{merged, of, repository};
use crate::runner::{Scene, refusal};
use crate::support::{Dice, git};

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
    /// An integration branch with one change in it, which fills a workspace.
    fn result_in(&mut self, tree: &Path, file: &str) -> ChangeDelivery {
        let branch = self.branch_in(tree);
        self.agent(&of(&branch), &[], BranchWorkspaceStart::Branch);
        self.sh(&format!("echo new > {file}"));
        let made = self.commit_step(&of(&branch), "t");
        merged(self.merge(&of(&branch), "t", &made.commit, None));
        let (workspace, tree) = self.whole(&branch);
        ChangeDelivery {
            workspace,
            tree,
            branch: "lula/set".to_owned(),
            message: "a set\n".to_owned(),
            at: 1_000_003,
            into_files: false,
            history: None,
        }
    }

    fn set(&self, parts: &[ChangeDelivery]) -> EffectCall<DeliverChanges> {
        self.once(DeliverChanges {
            deliveries: parts.to_vec(),
        })
    }
}

#[test]
fn several_repositories_get_their_branches_together_or_none_does() {
    let (mut scene, trees) = several(&["one", "two"]);
    let mut parts: Vec<ChangeDelivery> = trees
        .iter()
        .map(|tree| scene.result_in(tree, "b.txt"))
        .collect();
    let deliver =
        |scene: &Scene, call: &EffectCall<DeliverChanges>| scene.wait(scene.client().deliver(call));
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
        ChangeDelivery {
            tree: taken.tree,
            ..guarded
        },
    ]);
    let held = deliver(&scene, &held);
    assert!(matches!(held, Err(RunnerClientError::Held(_))), "{held:?}");
    assert!(!has(&trees[0]) && !has(&trees[1]));
    // The same order, sent again, whichever process sends it, is the same delivery.
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
    let base: Vec<ChangeDelivery> = trees
        .iter()
        .map(|tree| scene.result_in(tree, "b.txt"))
        .collect();
    let mut dice = Dice(7);
    let mut cut_off = 0;
    // At least eight deliveries, and more where the machine was quicker than every kill.
    for round in 0.. {
        if round >= 8 && cut_off > 0 {
            break;
        }
        assert!(round < 64, "no delivery of {round} was cut off");
        let mut parts = base.clone();
        for part in &mut parts {
            part.branch = format!("lula/set-{round}");
        }
        let order = scene.set(&parts);
        let wait = Duration::from_micros(dice.roll(120_000));
        let answered = scene.struck_after(wait, |scene| scene.wait(scene.client().deliver(&order)));
        // The next runner has put it right before it answers anything.
        let there = |tree: &PathBuf| {
            !git(tree, &["branch", "--list", &format!("lula/set-{round}")]).is_empty()
        };
        let count = trees.iter().filter(|tree| there(tree)).count();
        assert!(
            count == 0 || count == trees.len(),
            "{count} in round {round}"
        );
        let again = scene.wait(scene.client().deliver(&order)).unwrap();
        match answered {
            Ok(answered) => assert_eq!(again, answered),
            Err(error) => {
                assert!(error.is_worth_repeating(), "{error}");
                cut_off += 1;
            }
        }
        assert!(trees.iter().all(there));
    }
}
