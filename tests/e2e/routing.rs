//! Which of several models is asked, and what `lula models stats` says of them

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{LulaEnv, Models, Ran, Repo, edit, git};

const FIX: &str = "fix the failing tests";

fn mending(times: u32) -> ModelScript {
    (0..times).fold(ModelScript::default(), |script, _| {
        script
            .then_call("edit_file", edit())
            .then_call("submit", json!({"summary": "done"}))
    })
}

fn talking(times: u32) -> ModelScript {
    (0..times).fold(ModelScript::default(), |script, _| script.then_say("Done!"))
}

fn run(world: &LulaEnv, models: [&str; 2]) -> Ran {
    let [first, second] = models;
    world.run(&[
        "run", "--json", "--task", FIX, "--coder", "model", "--model", first, "--model", second,
    ])
}

#[test]
fn runs_prefer_the_model_that_did_better_and_say_why() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let talker = MockModelServer::start(talking(20)).unwrap();
    let mender = MockModelServer::start(mending(2)).unwrap();
    let (talks, mends) = (Models::strong(&talker), Models::strong(&mender));

    // The first one named is asked first, fails, and the other one mends it.
    let report = run(&world, [&talks, &mends]).exits(0).json();
    assert_eq!(report["models"][0]["model"], talks, "{report}");
    assert_eq!(report["models"][0]["verified"], false);
    let last = report["models"].as_array().unwrap().last().unwrap();
    assert_eq!(last["model"], mends);
    assert_eq!(last["verified"], true);
    let asked = talker.arrived().len();

    // What happened there decides whom the next run asks first.
    let report = run(&world, [&talks, &mends]).exits(0).json();
    assert_eq!(report["models"][0]["model"], mends, "{report}");
    let because = report["models"][0]["because"].as_str().unwrap();
    assert!(because.contains("1 of 1 verified"), "{because}");
    assert_eq!(talker.arrived().len(), asked);
    let run = report["run"].as_str().unwrap();
    world.run(&["replay", run, "--verify"]).exits(0);

    let stats = world.run(&["models", "stats", "--json"]).exits(0).json();
    let row = |name: &str| {
        let rows = stats["models"].as_array().unwrap().iter();
        rows.clone()
            .find(|row| row["model"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(row(&mends)["verified"], 2);
    assert_eq!(row(&mends)["asked"], 2);
    assert_eq!(row(&talks)["verified"], 0);
    assert_eq!(
        (&row(&mends)["reward"], &row(&mends)["uplift"]),
        (&json!(1.0), &json!(1.0))
    );
    assert!(row(&mends)["output_tokens"].as_u64() > Some(0), "{stats}");
    let shown = world.run(&["models", "stats"]).exits(0).stdout;
    assert!(shown.contains("2 of 2"), "{shown}");
    assert_eq!(git(&world.work(), &["status", "--porcelain"]), "");
}

#[test]
fn no_run_yet_means_no_stats() {
    let said = LulaEnv::new().run(&["models", "stats"]).exits(0).stdout;
    assert!(said.contains("no run has asked a model yet"), "{said}");
}
