//! `lula audit`: what was done is on record, and it is not changed unnoticed.

use std::path::PathBuf;

use crate::support::LulaEnv;

fn log(world: &LulaEnv) -> PathBuf {
    world.home().join(".local/state/lula/audit/audit.jsonl")
}

fn with_three_commands() -> LulaEnv {
    let world = LulaEnv::new();
    for status in ["0", "3", "7"] {
        let script = format!("exit {status}");
        world
            .run(&["exec", "--", "sh", "-c", &script])
            .exits(status.parse().unwrap());
    }
    world
}

#[test]
fn every_command_is_on_record_with_its_status_and_receipt() {
    let world = with_three_commands();
    let shown = world.run(&["audit", "show", "--json"]).exits(0).json();
    let entries = shown.as_array().unwrap();
    let statuses: Vec<_> = entries
        .iter()
        .map(|e| e["outcome"]["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [0, 3, 7]);
    for entry in entries {
        assert_eq!(entry["tool"], "exec");
        assert!(entry["principal"].as_str().unwrap().starts_with("local:"));
        assert!(entry["receipt"].as_str().unwrap().starts_with("b3:"));
        assert!(entry["call"].as_str().unwrap().starts_with("b3:"));
    }
    world
        .run(&["audit", "show", "--last", "1"])
        .exits(0)
        .says("exit 7");
    world
        .run(&["audit", "verify"])
        .exits(0)
        .says("intact: 3 entries");
}

#[test]
fn a_command_that_cannot_start_is_on_record_too() {
    let world = LulaEnv::new();
    world.run(&["exec", "--", "no-such-program"]).exits(127);
    world.run(&["audit", "show"]).exits(0).says("L0302");
}

#[test]
fn a_secret_on_the_command_line_is_not_on_record() {
    let world = LulaEnv::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    world
        .run(&["exec", "--", "true", "--password", "canary-pw", &token])
        .exits(0);
    let text = std::fs::read_to_string(log(&world)).unwrap();
    assert!(
        !text.contains("canary-pw") && !text.contains(&token),
        "{text}"
    );
    assert!(text.contains("[redacted:github-token]"), "{text}");
}

#[test]
fn a_changed_record_is_found_with_its_place() {
    let world = with_three_commands();
    let whole = std::fs::read_to_string(log(&world)).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    let put = |lines: &[&str]| std::fs::write(log(&world), lines.join("\n") + "\n").unwrap();

    let edited = lines[2].replace("\"status\":3", "\"status\":0");
    assert_ne!(edited, lines[2]);
    put(&[lines[0], lines[1], &edited, lines[3], lines[4], lines[5]]);
    world
        .run(&["audit", "verify"])
        .exits(1)
        .says("audit.jsonl:3, entry 2")
        .says("edited");
    let report = world.run(&["audit", "verify", "--json"]).exits(1).json();
    assert_eq!(report["intact"], false);
    assert_eq!(report["problems"][0]["trouble"], "edited");
    assert_eq!(report["sealed_through"], 1);

    put(&[lines[0], lines[1], lines[4], lines[5]]);
    world.run(&["audit", "verify"]).exits(1).says("missing");
    put(&lines[..4]);
    world.run(&["audit", "verify"]).exits(1).says("was cut");
    put(&[
        lines[0], lines[1], lines[2], lines[2], lines[3], lines[4], lines[5],
    ]);
    world
        .run(&["audit", "verify"])
        .exits(1)
        .says("a second time");
    std::fs::remove_file(log(&world)).unwrap();
    world.run(&["audit", "verify"]).exits(1).says("was cut");
    std::fs::write(log(&world), &whole).unwrap();
    world.run(&["audit", "verify"]).exits(0);
}

#[test]
fn an_exported_record_is_checked_elsewhere() {
    let world = with_three_commands();
    let exported = world
        .run(&["audit", "export", "-o", "audit.bundle", "--json"])
        .exits(0)
        .json();
    let key = exported["key"].as_str().unwrap().to_owned();
    let elsewhere = LulaEnv::new();
    let bundle = world.work().join("audit.bundle");
    let bundle = bundle.to_str().unwrap();
    elsewhere
        .run(&["audit", "verify", "--bundle", bundle, "--key", &key])
        .exits(0)
        .says("3 entries");
    let other = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    elsewhere
        .run(&["audit", "verify", "--bundle", bundle, "--key", other])
        .exits(1)
        .says("another key");
    let text = std::fs::read_to_string(bundle)
        .unwrap()
        .replace("\"status\":7", "\"status\":0");
    std::fs::write(bundle, text).unwrap();
    elsewhere
        .run(&["audit", "verify", "--bundle", bundle])
        .exits(1);
}

#[test]
fn nothing_runs_that_cannot_be_recorded_unless_told_so() {
    let world = LulaEnv::new();
    let state = world.home().join(".local/state");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("lula"), "in the way").unwrap();
    world
        .run(&["exec", "--write", "direct", "--", "touch", "ran"])
        .exits(6)
        .says("L0506");
    assert!(!world.work().join("ran").exists());
    world
        .run(&[
            "exec",
            "--write",
            "direct",
            "--audit-mode",
            "off",
            "--",
            "touch",
            "ran",
        ])
        .exits(0);
    assert!(world.work().join("ran").exists());
}
