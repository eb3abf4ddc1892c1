//! Integration branches over kill -9 of the runner.

use std::time::Duration;

use lula_runner_api::client::RunnerClientError;
use lula_runner_api::{BranchWorkspaceStart, IntegrationBranchView, MergeAgentChangeResult};

use super::{of, repository};
use crate::runner::Scene;
use crate::support::{Dice, git, listing};

/// What the files of a branch are.
fn files_of(scene: &Scene, branch: &IntegrationBranchView) -> String {
    let directory = scene.state().join("lines").join(&branch.branch).join("git");
    git(
        &directory,
        &["rev-parse", &format!("{}^{{tree}}", branch.commit)],
    )
}

#[test]
fn killed_at_any_moment_nothing_committed_is_lost_and_nothing_merged_twice() {
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
    let branches = [
        calm.branch_in(&calm.tree()),
        struck.branch_in(&struck.tree()),
    ];
    for round in 0..6 {
        // Three agents of one beginning, some of whom meet.
        let edits: Vec<(u64, u64)> = (0..3).map(|_| (dice.roll(2), dice.roll(12))).collect();
        let mut came: [Vec<bool>; 2] = Default::default();
        for (which, scene) in [&mut calm, &mut struck].into_iter().enumerate() {
            let name = of(&branches[which]);
            let mut products = Vec::new();
            for (number, (file, at)) in edits.iter().enumerate() {
                scene.agent(&name, &[], BranchWorkspaceStart::Branch);
                let path = ["a.txt", "b.txt"][usize::try_from(*file).unwrap()];
                let at = at + 1;
                scene.sh(&format!(
                    "sed -i '{at}s/.*/round {round} by {number}/' {path}"
                ));
                let request = scene.agent_commit(&name, &format!("t{round}-{number}"));
                let made = send(scene, which == 1, &mut dice, &mut cut_off, |scene| {
                    scene.wait(scene.client().commit_agent_change(&request))
                });
                products.push((request.order.step, made.commit));
            }
            for (step, commit) in products {
                let request = scene.merge_of(&name, &step, &commit, None);
                let done = send(scene, which == 1, &mut dice, &mut cut_off, |scene| {
                    scene.wait(scene.client().merge(&request))
                });
                came[which].push(matches!(done, MergeAgentChangeResult::Merged { .. }));
                // The same again, whichever process asks.
                assert_eq!(scene.wait(scene.client().merge(&request)).unwrap(), done);
            }
        }
        assert_eq!(came[0], came[1], "round {round}");
        conflicts += came[0].iter().filter(|merged| !**merged).count();
    }
    let views = [&calm, &struck].map(|scene| scene.branch_in(&scene.tree()));
    assert_eq!(files_of(&calm, &views[0]), files_of(&struck, &views[1]));
    assert_eq!(views[1].commits.len(), 18);
    let left = views[1].commits.iter().filter(|one| !one.merged);
    assert_eq!(
        left.count(),
        conflicts,
        "what is not in the branch is in a conflict"
    );
    let directory = struck
        .state()
        .join("lines")
        .join(&views[1].branch)
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
