//! Runs that are killed, or put down by Ctrl-C, and gone on with.

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptedFault};
use serde_json::{Value, json};

use crate::support::{
    BLOWS, CODE, Dice, FIX, LulaEnv, MENDED, Models, Repo, acts, always, begin, begin_heard, blows,
    edit, ended, events, git, interrupt, kill_child, runners_of, strike, wait_until,
};

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_fail(ScriptedFault::stall_after(0))
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let model = Models::strong(&server);
    let line = ["run", "--task", FIX, "--model", &model, "--coder", "model"];
    let mut child = begin(&world, &line);
    wait_until("the second question", || server.arrived().len() >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(Repo::of(&world).branches().is_empty());

    let report = world.run(&["resume", "last", "--json"]).exits(0).json();
    assert_eq!(report["verdict"]["verdict"], "pass");
    assert_eq!(report["files"], json!(["items.py"]));
    // One answer before, one after; the one that was lost is charged as if it had come.
    assert_eq!(report["spent"]["model_calls"], 3);
    let [branch] = &Repo::of(&world).branches()[..] else {
        panic!("{:?}", Repo::of(&world).branches());
    };
    let text = git(&world.work(), &["show", &format!("{branch}:items.py")]);
    assert_eq!(
        text,
        CODE.replace("    return items[len(items)]", MENDED).trim()
    );
    world.run(&["replay", "last", "--verify"]).exits(0);
    // Going on with what is over changes nothing.
    world.run(&["resume", "last"]).exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

#[test]
fn ctrl_c_puts_a_run_down_and_says_how_to_go_on() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default()
        .then_call("edit_file", edit())
        .then_fail(ScriptedFault::stall_after(0))
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    let model = Models::strong(&server);
    let line = ["run", "--task", FIX, "--model", &model, "--coder", "model"];
    let child = begin_heard(&world, &line);
    wait_until("the second question", || server.arrived().len() >= 2);
    interrupt(&child);
    let ran = ended(child).exits(5);
    ran.says("interrupted").says("lula resume run_");
    world.run(&["resume", "last"]).exits(0);
    assert_eq!(Repo::of(&world).branches().len(), 1);
}

/// Kills a run at several moments of its life and compares the end with one that lived.
#[test]
fn wherever_a_run_is_killed_it_ends_the_same() {
    let calm = LulaEnv::new();
    Repo::buggy(&calm);
    calm.run(&["run", "--task", FIX]).exits(0);
    let tree_of = |world: &LulaEnv| {
        let [branch] = &Repo::of(world).branches()[..] else {
            panic!("{:?}", Repo::of(world).branches());
        };
        git(&world.work(), &["rev-parse", &format!("{branch}^{{tree}}")])
    };
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mut line = vec!["run", "--task", FIX];
    // The moments are where the log has grown to so many events.
    let mut kills = 0;
    for moment in [2, 9, 13, 19, 23] {
        let mut child = begin(&world, &line);
        loop {
            let ended = child.try_wait().unwrap().is_some();
            if ended || events(&world) >= moment {
                break;
            }
        }
        kills += u32::from(kill_child(&mut child));
        line = vec!["resume", "last"];
    }
    assert!(kills > 0, "the run ended by itself before every kill");
    world.run(&["resume", "last"]).exits(0);
    assert_eq!(tree_of(&world), tree_of(&calm));
    let runs = world.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    assert_eq!(runs[0]["status"], "done");
    world.run(&["replay", "last", "--verify"]).exits(0);
}

/// What a run came to, without what differs between two runs of the same task.
fn outcome(world: &LulaEnv) -> Value {
    let [branch] = &Repo::of(world).branches()[..] else {
        panic!("{:?}", Repo::of(world).branches());
    };
    let tree = git(&world.work(), &["rev-parse", &format!("{branch}^{{tree}}")]);
    let shown = world.run(&["show", "last", "--json"]).exits(0).json();
    json!({
        "tree": tree,
        "summary": shown["summary"],
        "verdict": shown["verdict"],
        "evidence": shown["evidence"],
        "files": shown["files"],
        "diff": shown["diff"],
        "attempts": shown["attempts"],
    })
}

/// A model that answers the same to the same, however often it is asked.
fn steady() -> ModelScript {
    let turn =
        |when: &str, name: &'static str, arguments: Value| always(acts(when, &[(name, arguments)]));
    ModelScript {
        turn: vec![
            turn("exit status 0", "submit", json!({"summary": "mended"})),
            turn(
                "wrote items.py",
                "run",
                json!({"command": "echo once >> count.txt; sleep 0.1; echo twice >> count.txt"}),
            ),
            turn("The task:", "edit_file", edit()),
        ],
    }
}

/// Kills a run's driver, its runner, or both at random moments, goes on with it, and compares the end
/// with one that lived. So many kills in the suite; `LULA_RUN_KILLS` makes it more.
#[test]
fn wherever_driver_and_runner_are_killed_a_run_ends_the_same() {
    let kills = std::env::var("LULA_RUN_KILLS").ok();
    let kills: u64 = kills.map_or(6, |text| text.parse().unwrap());
    let server = MockModelServer::start(steady()).unwrap();
    let model = Models::strong(&server);
    let line = ["run", "--task", FIX, "--model", &model, "--coder", "model"];
    let calm = LulaEnv::new();
    Repo::buggy(&calm);
    calm.run(&line).exits(0);
    let whole = events(&calm);
    let expected = outcome(&calm);
    assert_eq!(expected["files"], json!(["count.txt", "items.py"]));
    let mut dice = Dice(7);
    let (mut struck, mut killed, mut seed) = (0, 0, 0);
    let mut early = 0;
    while struck < kills {
        seed += 1;
        let world = LulaEnv::new();
        Repo::buggy(&world);
        let before = Repo::of(&world).untouched();
        let untouched_yet = || assert_eq!(Repo::of(&world).untouched(), before, "seed {seed}");
        let blows = blows(&world, &line, (&mut dice, whole), untouched_yet);
        early += blows.moments.iter().filter(|at| **at < whole).count();
        struck += BLOWS;
        killed += blows.kills;
        world.run(&blows.next).exits(0);
        assert_eq!(outcome(&world), expected, "seed {seed}");
        assert_eq!(Repo::of(&world).untouched(), before, "seed {seed}");
        world.run(&["replay", "last", "--verify"]).exits(0);
        world.run(&["audit", "verify"]).exits(0);
    }
    assert!(killed > 0, "none of {struck} blows killed anything");
    assert!(early > 0, "every kill came too late");
}

#[test]
fn a_runner_that_is_killed_in_mid_run_is_replaced_and_the_run_goes_on() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mut driver = begin(&world, &["run", "--task", FIX]);
    let works = || runners_of(&world).len() == 1;
    let checkouts = world.home().join(".local/state/lula/checkouts");
    wait_until("a runner at work", || works() && checkouts.exists());
    let struck = runners_of(&world).into_iter().filter(|pid| strike(*pid));
    assert_eq!(struck.count(), 1, "there was a runner to kill");
    assert!(driver.wait().unwrap().success());
    assert_eq!(Repo::of(&world).branches().len(), 1);
}
