//! Lines over kill -9 of the runner.

use std::time::Duration;

use lula_runner_api::client::RunnerClientError;
use lula_runner_api::{BranchWorkspaceStart, IntegrationBranchView, MergeAgentChangeResult};

use super::repository;
use crate::runner::Scene;
use crate::support::{Dice, git, listing};

/// What the files of a line are.
fn files_of(scene: &Scene, line: &IntegrationBranchView) -> String {
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
                scene.agent(&name, &[], BranchWorkspaceStart::Line);
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
                came[which].push(matches!(done, MergeAgentChangeResult::Integrated { .. }));
                // The same again, whichever process asks.
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
    ask: impl Fn(&Scene) -> Result<T, RunnerClientError> + Sync,
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
