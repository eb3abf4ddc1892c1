//! Questions: exactly what is shown is approved, by people who may.

use serde_json::{Value, json};

use super::RunningServer;
use crate::support::{FIX, LulaEnv, MENDED, Repo};

/// A key for a person.
pub(super) fn key(world: &LulaEnv, who: &str, more: &[&str]) -> String {
    let fixed = ["server", "keys", "add", "--json", "--for", who];
    let made = world.run(&[&fixed[..], more].concat()).exits(0).json();
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_question_shows_the_diff_and_an_answer_names_it() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let run = server.begin(&json!({"task": FIX, "consent": "always"}));
    let question = server.question(&run);
    assert_eq!(
        (&question["kind"], &question["needed"]),
        (&json!("run"), &json!(1))
    );
    assert!(
        question["rendered"].as_str().unwrap().contains(MENDED),
        "{question:#}"
    );
    let path = format!("/v1/approvals/{}/approve", question["id"].as_str().unwrap());
    let other = json!({"digest": format!("b3:{}", "0".repeat(64))});
    assert_eq!(server.post(&path, &other).is(409).code(), "L0404");
    assert_eq!(server.post(&path, &json!({})).is(400).code(), "L1010");
    let forged = json!({"digest": question["digest"], "by": "local:0"});
    assert_eq!(server.post(&path, &forged).is(400).code(), "L1010");
    assert!(repo.branches().is_empty());

    server.answer(&question, "approve").is(200);
    server.until(&run, "verified");
    assert_eq!(repo.branches().len(), 1);
    // It is good once.
    assert_eq!(server.answer(&question, "approve").is(404).code(), "L0502");
}

#[test]
fn a_rejected_change_goes_nowhere() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let run = server.begin(&json!({"task": FIX, "consent": "always"}));
    let question = server.question(&run);
    server.answer(&question, "reject").is(200);
    server.until(&run, "failed");
    assert!(repo.branches().is_empty());
}

#[test]
fn an_effect_that_a_rule_asks_about_waits_and_happens_once_it_is_approved() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let rules = world.home().join(".config/lula/rules.toml");
    std::fs::create_dir_all(rules.parent().unwrap()).unwrap();
    let rule = "[[rule]]\nid = \"test.guarded\"\npaths = [\"items.py\"]\ndecision = \"ask\"\n\
        reason = \"it is guarded\"\n";
    std::fs::write(rules, rule).unwrap();
    let ada = key(&world, "ada", &["--role", "operator"]);
    let bob = key(&world, "bob", &["--role", "approver"]);
    let mut server = RunningServer::start(&world, &["--server-auth", "bearer"]);
    let run = server.with_token(&ada).begin(&json!({"task": FIX}));
    let mut asked = 0;
    // The change of a guarded file is asked about, and so is its delivery.
    while server.rests(&run)["status"] != "done" {
        let question = server.with_token(&ada).question(&run);
        assert_eq!(question["kind"], "effect");
        assert_eq!(question["may_approve"], false);
        assert_eq!(server.answer(&question, "approve").is(403).code(), "L1011");
        assert!(repo.branches().is_empty());
        server.with_token(&bob).answer(&question, "approve").is(200);
        asked += 1;
    }
    assert!(asked > 0);
    server.until(&run, "verified");
    assert_eq!(repo.branches().len(), 1);
}

#[test]
fn who_begins_a_run_does_not_approve_it() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let both = ["--role", "operator", "--role", "approver"];
    let ada = key(&world, "ada", &both);
    // Two keys of one person are one person.
    let ada_again = key(&world, "ada", &["--role", "admin"]);
    let bob = key(&world, "bob", &both);
    let admin = key(&world, "root", &["--role", "admin"]);
    let mut server = RunningServer::start(&world, &["--server-auth", "bearer"]);
    let run = server
        .with_token(&ada)
        .begin(&json!({"task": FIX, "consent": "always"}));
    let question = server.question(&run);
    assert_eq!(question["requester"], "ada");
    assert_eq!(server.answer(&question, "approve").is(403).code(), "L1011");
    let again = server.with_token(&ada_again).answer(&question, "approve");
    assert_eq!(again.is(403).code(), "L1011");
    let agreed = server
        .with_token(&bob)
        .answer(&question, "approve")
        .is(200)
        .json();
    assert_eq!(agreed["by"], "bob");
    server.until(&run, "verified");
    assert_eq!(repo.branches().len(), 1);

    // The audit log names both, by what they were identified as.
    let audit = server.with_token(&admin).get("/v1/audit").is(200).json();
    let entries = audit["entries"].as_array().unwrap();
    let by = |tool: &str| -> Vec<Value> {
        let found = entries.iter().filter(|entry| entry["tool"] == tool);
        found.map(|entry| entry["principal"].clone()).collect()
    };
    assert_eq!(by("server.create_run"), [json!("ada")]);
    assert_eq!(by("server.vote"), [json!("bob")]);
    world.run(&["audit", "verify"]).exits(0);
}
