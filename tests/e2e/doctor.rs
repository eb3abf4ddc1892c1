//! `lula doctor`

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use crate::support::{LulaEnv, listing};

fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap()
}

#[test]
fn every_tier_is_listed_with_a_reason() {
    let document = LulaEnv::new().run(&["doctor", "--json"]).json();
    let tiers = document["tiers"].as_array().unwrap();
    let names: Vec<_> = tiers
        .iter()
        .map(|tier| tier["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["microvm", "gvisor", "namespace", "landlock", "process"]
    );
    for tier in tiers {
        assert!(tier["available"].is_boolean());
        assert!(!tier["reason"].as_str().unwrap().is_empty(), "{tier}");
        assert!(tier["layers"].is_array());
    }
}

#[test]
fn looking_changes_nothing() {
    let world = LulaEnv::new();
    world.run(&["doctor"]);
    assert_eq!(listing(&world.home()), []);
}

#[test]
fn a_floor_that_no_tier_meets_makes_the_machine_unfit() {
    let ran = LulaEnv::new()
        .run(&["doctor", "--json", "--sandbox-min-tier", "microvm"])
        .exits(6);
    let document = ran.json();
    assert_eq!(document["fit"], false);
    assert_eq!(check(&document, "sandbox")["state"], "bad");
}

#[test]
fn a_missing_git_is_named_with_a_remedy() {
    let ran = LulaEnv::new()
        .run(&["doctor", "--json", "--git-program", "/nowhere/git"])
        .exits(6);
    let document = ran.json();
    let git = check(&document, "git");
    assert_eq!(git["state"], "bad");
    assert!(git["remedy"].as_str().unwrap().contains("git.program"));
}

#[test]
fn a_full_disk_is_noticed() {
    let ran = LulaEnv::new()
        .run(&["doctor", "--json", "--doctor-min-free-disk", "9000TiB"])
        .exits(6);
    assert_eq!(check(&ran.json(), "disk")["state"], "bad");
}

#[test]
fn an_unwritable_state_directory_is_noticed() {
    let ran = LulaEnv::new()
        .run(&["doctor", "--json", "--state-dir", "/proc/lula"])
        .exits(6);
    assert_eq!(check(&ran.json(), "store")["state"], "bad");
}

#[test]
fn a_model_server_on_loopback_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"data\":[{\"id\":\"tiny\"}]}";
        let _ = stream.write_all(answer.as_bytes());
    });
    let arguments = [
        "doctor",
        "--json",
        "--models-local-urls",
        &url,
        "--models-probe-timeout",
        "20s",
    ];
    let document = LulaEnv::new().run(&arguments).json();
    let providers = document["providers"].as_array().unwrap();
    let found = providers
        .iter()
        .find(|provider| provider["place"] == url.as_str())
        .unwrap();
    assert_eq!(found["models"][0], "tiny");
    assert_eq!(check(&document, "model")["state"], "good");
}

#[test]
fn a_key_is_seen_but_never_shown() {
    let canary = "sk-canary-3b1f";
    let world = LulaEnv::new();
    for arguments in [&["doctor", "--json"][..], &["doctor", "-v"]] {
        let ran = world.run_with(&[("OPENAI_API_KEY", canary)], arguments);
        assert!(!ran.stdout.contains(canary) && !ran.stderr.contains(canary));
        ran.says("$OPENAI_API_KEY").says("key is set");
    }
}

#[test]
fn every_attack_on_every_tier_that_works_here_is_held_off() {
    let world = LulaEnv::new();
    let tiers = world.run(&["doctor", "--json"]).json();
    let works = |name: &str| {
        let tiers = tiers["tiers"].as_array().unwrap();
        tiers
            .iter()
            .any(|tier| tier["name"] == name && tier["available"] == true)
    };
    for tier in ["namespace", "landlock"] {
        assert!(
            works(tier),
            "the tests of this product need the {tier} tier: see lula doctor"
        );
        let report = world
            .run(&["doctor", "--attack", "--tier", tier, "--json"])
            .exits(0)
            .json();
        assert_eq!(report["tier"], tier);
        let probes = report["probes"].as_array().unwrap();
        assert!(probes.len() >= 80, "only {} probes", probes.len());
        for probe in probes {
            // What this machine refuses outside as well proves nothing of the sandbox, and says so.
            let outcome = probe["outcome"].as_str().unwrap();
            assert!(["held", "untried"].contains(&outcome), "{probe}");
        }
    }
}

#[test]
fn a_tier_without_probes_cannot_be_attacked() {
    LulaEnv::new()
        .run(&["doctor", "--attack", "--tier", "process"])
        .exits(2)
        .says("error[L0001]");
}
