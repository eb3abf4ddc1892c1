//! The runner is killed at random moments; what it was asked for happens exactly once.

use std::time::Duration;

use lula_protocol::{ToolCall, ToolOutcome, ToolResult};
use lula_runner_api::client::RunnerClientError;
use serde_json::json;

use super::Scene;
use crate::support::{Dice, strike};

/// Sequences in the suite; `LULA_RUNNER_KILLS` makes it more.
const SEQUENCES: u64 = 20;
const CALLS: usize = 6;

impl Scene {
    /// Kills the runner as a power cut would, and starts it again.
    pub(crate) fn crash(&mut self) {
        let spawned = self.spawned.take().unwrap();
        self.wait(spawned.kill()).unwrap();
        self.start();
    }

    /// Asks for something and kills the runner a moment later; another one is there afterwards.
    pub(crate) fn struck_after<T: Send>(
        &mut self,
        wait: Duration,
        ask: impl Fn(&Self) -> Result<T, RunnerClientError> + Sync,
    ) -> Result<T, RunnerClientError> {
        let scene = &*self;
        let answered = std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(scene));
            std::thread::sleep(wait);
            scene.strike();
            asked.join().unwrap()
        });
        self.spawned = None;
        self.start();
        answered
    }

    fn strike(&self) {
        assert!(strike(self.pid()), "there is a runner to kill");
    }
}

fn sequence(scene: &Scene, dice: &mut Dice) -> Vec<ToolCall> {
    (0..CALLS)
        .map(|number| match dice.roll(6) {
            0 => scene.call("write_file", json!({"path": format!("new/{number}"), "content": format!("{number}\n")})),
            1 => {
                let text = format!("--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+line {number}\n--- a/b\n+++ b/b\n@@ -0,0 +1 @@\n+line {number}\n");
                scene.call("apply_patch", json!({"format": "unified_diff", "diff": text}))
            }
            2 | 3 => {
                let line = format!("echo {number} >> log; sleep 0.01; echo {number} >> log; mkdir -p d/{number}");
                scene.call("exec", json!({"argv": ["sh", "-c", line]}))
            }
            4 => scene.call("snapshot", json!({"label": format!("s{}", dice.roll(2))})),
            _ => scene.call("undo", json!({})),
        })
        .collect()
}

/// What a result says, without what differs between two runs of the same thing.
fn told(result: ToolResult) -> ToolOutcome {
    result.outcome
}

fn whole(scene: &Scene) -> String {
    scene.sh("find . -type f | sort | while read f; do echo \"== $f\"; cat \"$f\"; done; find . -type d | sort")
}

#[test]
fn killed_at_any_moment_each_effect_happens_once() {
    let sequences = std::env::var("LULA_RUNNER_KILLS").ok();
    let sequences = sequences.map_or(SEQUENCES, |text| text.parse().unwrap());
    let files = [("a", "top\n"), ("b", "top\n"), ("log", "")];
    let mut calm = Scene::new(&files);
    let mut struck = Scene::new(&files);
    let (mut kills, mut cut_off) = (0, 0);
    for seed in 0..sequences {
        calm.workspace = calm.open();
        struck.workspace = struck.open();
        let calls = sequence(&calm, &mut Dice(seed));
        let expected: Vec<ToolOutcome> = calls
            .iter()
            .map(|call| told(calm.send(call).unwrap()))
            .collect();
        let mut dice = Dice(seed ^ 0xdead_beef);
        let calls = sequence(&struck, &mut Dice(seed));
        for (call, expected) in calls.iter().zip(expected) {
            let outcome = if dice.roll(3) == 0 {
                kills += 1;
                let wait = Duration::from_micros(dice.roll(40_000));
                let answered = std::thread::scope(|scope| {
                    let sent = scope.spawn(|| struck.send(call));
                    std::thread::sleep(wait);
                    struck.strike();
                    sent.join().unwrap()
                });
                struck.spawned = None;
                struck.start();
                match answered {
                    // It was told before the kill: the same is told after it.
                    Ok(result) => {
                        assert_eq!(struck.send(call).unwrap(), result, "seed {seed}");
                        told(result)
                    }
                    Err(error) => {
                        assert!(error.is_worth_repeating(), "{error}");
                        cut_off += 1;
                        told(struck.send(call).unwrap())
                    }
                }
            } else {
                told(struck.send(call).unwrap())
            };
            assert_eq!(outcome, expected, "seed {seed}, {:?}", call.action);
        }
        assert_eq!(whole(&struck), whole(&calm), "seed {seed}");
        for scene in [&calm, &struck] {
            let diff = scene.wait(scene.client().diff(&scene.workspace)).unwrap();
            let _: Result<_, RunnerClientError> = scene
                .wait(scene.client().discard(&scene.workspace))
                .map(|_| diff);
        }
    }
    assert!(
        kills > 0 && cut_off > 0,
        "{kills} kills, {cut_off} in the middle of a call"
    );
}
