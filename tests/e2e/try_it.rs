//! `lula try`

use std::path::Path;

use crate::lula::{World, listing};

#[test]
fn the_sample_is_tested_and_mended_in_the_sandbox() {
    let ran = World::new().run(&["try"]).exits(0);
    ran.says("2 of 12 fail")
        .says("tests.test_rates.BaseRate.test_weight_on_the_edge_of_a_band")
        .says("AssertionError: 590 != 390")
        .says("10 others pass")
        .says("+        if grams <= heaviest:")
        .says("12 of 12 tests pass, and without the patch they fail again");
}

#[test]
fn the_story_is_told_to_machines_with_its_receipt() {
    let story = World::new().run(&["try", "--json"]).exits(0).json();
    let tests = story["baseline"]["tests"].as_array().unwrap();
    let count = |outcome: &str| {
        tests
            .iter()
            .filter(|test| test["outcome"] == outcome)
            .count()
    };
    assert_eq!(
        (count("passed"), count("failed"), count("broken")),
        (10, 1, 1)
    );
    let layers = story["receipt"]["layers"].as_array().unwrap();
    for layer in ["seccomp", "landlock", "no_network", "clean_environment"] {
        assert!(
            layers.iter().any(|entry| entry["layer"] == layer),
            "{layer} is missing: {layers:?}"
        );
    }
    assert_eq!(story["repair"]["outcome"], "fixed");
    assert_eq!(story["repository"], serde_json::Value::Null);
}

#[test]
fn nothing_is_left_behind_unless_it_is_kept() {
    let world = World::new();
    let temporary = world.work().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let variables = [("TMPDIR", temporary.to_str().unwrap())];
    world.run_with(&variables, &["try"]).exits(0);
    assert_eq!(listing(&temporary), []);

    let story = world
        .run_with(&variables, &["try", "--keep", "--json"])
        .exits(0)
        .json();
    let kept = Path::new(story["repository"].as_str().unwrap());
    assert!(kept.join("parcel/rates.py").is_file());
    assert!(kept.join(".git").is_dir());
}

#[test]
fn a_floor_that_cannot_be_met_refuses_to_run() {
    let ran = World::new()
        .run(&["try", "--sandbox-min-tier", "microvm"])
        .exits(6);
    ran.says("error[L0301]").says("microvm");
}
