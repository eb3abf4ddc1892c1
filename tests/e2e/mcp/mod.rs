//! `lula mcp serve`: the sandbox under an agent from elsewhere.

mod client;

use serde_json::{Value, json};

use crate::support::{CODE, LulaEnv, MENDED, Repo};
use client::McpClient;

/// The versions of the protocol that clients speak; the last has no handshake.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

const FIX: &str = "{\"path\": \"items.py\", \"old\": \"items[len(items)]\", \
    \"new\": \"items[len(items) - 1]\"}";

fn fix() -> Value {
    serde_json::from_str(FIX).unwrap()
}

fn items(world: &LulaEnv) -> String {
    std::fs::read_to_string(world.work().join("items.py")).unwrap()
}

#[test]
fn an_agent_edits_tests_and_commits_what_an_approver_agreed_to() {
    for version in VERSIONS {
        let world = LulaEnv::new();
        Repo::buggy(&world);
        let mut agent = McpClient::start(&world, version, &[]);
        let before = agent.call("test", &json!({})).well();
        assert!(
            before.text().starts_with("1 pass, 1 fail"),
            "{}",
            before.text()
        );
        agent.call("edit_file", &fix()).well();
        let after = agent.call("test", &json!({})).well();
        assert!(
            after.text().starts_with("2 pass, 0 fail"),
            "{}",
            after.text()
        );
        // Held: the operator's files are as they were.
        assert_eq!(items(&world), CODE);

        let digest = agent.digest();
        let asked = agent.call("commit", &json!({"digest": digest})).refused();
        assert_eq!(asked.data()["status"], "needs_approval");
        let approval = asked.data()["approval"].as_str().unwrap();
        assert!(asked.text().contains(&format!("lula approve {approval}")));
        let again = agent.call("commit", &json!({"digest": digest})).refused();
        assert_eq!(again.data()["approval"], approval, "it is asked once");
        assert_eq!(items(&world), CODE);

        world.run(&["approve", approval, "--yes"]).exits(0);
        let done = agent.call("commit", &json!({"digest": digest})).well();
        assert_eq!(done.data()["paths"], json!(["items.py"]));
        assert!(items(&world).contains(MENDED));

        agent
            .call("workspace", &json!({"action": "undo_commit"}))
            .well();
        assert_eq!(items(&world), CODE);
        assert_eq!(agent.leave(), "", "nothing is held, and nothing is left");
    }
}

#[test]
fn an_approval_is_for_what_was_shown_and_nothing_after_it() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mut agent = McpClient::start(&world, VERSIONS[0], &[]);
    agent.call("edit_file", &fix()).well();
    let digest = agent.digest();
    let asked = agent.call("commit", &json!({"digest": digest})).refused();
    let approval = asked.data()["approval"].as_str().unwrap().to_owned();
    world.run(&["approve", &approval, "--yes"]).exits(0);
    let more = json!({"path": "items.py", "old": "x * 2", "new": "x * 3"});
    agent.call("edit_file", &more).well();
    let late = agent.call("commit", &json!({"digest": digest})).refused();
    assert!(
        late.text().contains("not what that digest names"),
        "{late:?}"
    );
    assert_eq!(items(&world), CODE);
    // What it is now is another question.
    let digest = agent.digest();
    let other = agent.call("commit", &json!({"digest": digest})).refused();
    assert_ne!(other.data()["approval"], json!(approval));
    world
        .run(&[
            "reject",
            other.data()["approval"].as_str().unwrap(),
            "--yes",
        ])
        .exits(0);
    let refused = agent.call("commit", &json!({"digest": digest})).refused();
    assert!(refused.text().contains("refused"), "{}", refused.text());
    assert_eq!(items(&world), CODE);
    let said = agent.leave();
    assert!(
        said.contains("holds what the client left: lula diff ws_"),
        "{said}"
    );
    world.run(&["diff"]).exits(0).says("x * 3");
}

#[test]
fn no_argument_of_a_call_weakens_a_gate() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mut agent = McpClient::start(&world, VERSIONS[0], &[]);
    agent.call("edit_file", &fix()).well();
    let digest = agent.digest();
    for field in [
        "approve",
        "approved",
        "skip_approval",
        "hold",
        "include_git",
        "yes",
        "epoch",
    ] {
        let mut asked = json!({"digest": digest});
        asked[field] = json!(true);
        let answered = agent.call("commit", &asked).refused();
        assert!(
            answered.text().contains("unknown field"),
            "{field}: {}",
            answered.text()
        );
        let asked = json!({"command": "true", field: true});
        agent.call("run", &asked).refused();
        let asked = json!({"action": "start", "task": "x", field: "auto"});
        agent.call("task", &asked).refused();
    }
    for path in ["../outside", "/etc/passwd", ".git/config", "a/../../b"] {
        let write = json!({"path": path, "content": "x"});
        agent.call("write_file", &write);
        assert_eq!(
            agent.digest(),
            digest,
            "{path} is part of what would be committed"
        );
    }
    assert_eq!(items(&world), CODE);
    agent
        .call("workspace", &json!({"action": "discard"}))
        .well();
    assert_eq!(agent.leave(), "");
}

#[test]
fn a_command_runs_in_the_sandbox_and_its_answer_says_so() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let secret = world.home().join("secret");
    std::fs::write(&secret, "canary-of-home").unwrap();
    let mut agent = McpClient::start(&world, VERSIONS[1], &[]);
    let look = format!("cat {}; echo $HOME; ls; exit 3", secret.display());
    let ran = agent.call("run", &json!({"command": look})).refused();
    assert!(ran.text().starts_with("exit status 3"), "{}", ran.text());
    assert!(ran.text().contains("items.py") && !ran.text().contains("canary-of-home"));
    let receipt = &ran.0["_meta"]["lula/receipt"];
    assert!(receipt["tier"].is_string(), "{receipt:#}");
    // A push waits for an approver, wherever it is written.
    let push = agent
        .call("run", &json!({"command": "true; git push origin main"}))
        .refused();
    assert_eq!(push.data()["status"], "needs_approval");

    let job = json!({"command": "echo begun; read line; echo got $line", "background": true});
    let started = agent.call("run", &job).well();
    let id = started.text().split_whitespace().last().unwrap().to_owned();
    let send = json!({"id": id, "action": "send", "input": "word\n"});
    let mut heard = agent.call("job", &send).well().text().to_owned();
    while !heard.contains("got word") {
        let look = json!({"id": id, "action": "look", "wait_s": 10});
        heard.push_str(agent.call("job", &look).well().text());
    }
    agent.leave();
}

#[test]
fn a_cancelled_call_ends_what_runs_for_it() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mut agent = McpClient::start(&world, VERSIONS[0], &[]);
    agent.call("run", &json!({"command": "true"})).well();
    let sleep = json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call",
        "params": {"name": "run", "arguments": {"command": "sleep 1000"}}});
    agent.send(&sleep);
    std::thread::sleep(std::time::Duration::from_millis(500));
    agent.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 900}}),
    );
    // The workspace is free again: a call that would wait for the other one is answered.
    agent.call("run", &json!({"command": "true"})).well();
    agent.leave();
}

#[test]
fn two_agents_do_not_see_each_other() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mut one = McpClient::start(&world, VERSIONS[0], &[]);
    let mut two = McpClient::start(&world, VERSIONS[1], &[]);
    one.call("write_file", &json!({"path": "one.txt", "content": "1"}))
        .well();
    let seen = two.call("run", &json!({"command": "ls"})).well();
    assert!(!seen.text().contains("one.txt"), "{}", seen.text());
    two.leave();
    assert!(one.leave().contains("holds what the client left"));
}

#[test]
fn a_whole_task_is_begun_followed_and_delivered_as_a_branch() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let mut agent = McpClient::start(&world, VERSIONS[0], &[]);
    let begun = agent.call(
        "task",
        &json!({"action": "start", "task": "fix the failing tests", "repair": true}),
    );
    let run = begun.well().data()["run"].as_str().unwrap().to_owned();
    let mut looked = json!({"status": "running"});
    while looked["status"] == "running" {
        let look = json!({"action": "look", "run": run, "wait_s": 60});
        looked = agent.call("task", &look).well().data().clone();
    }
    assert_eq!(
        (&looked["exit"], &looked["status"]),
        (&json!("verified"), &json!("done"))
    );
    assert_eq!(repo.branches().len(), 1);
    agent.leave();
    // A run of another client can be looked at here, and not ended.
    let mut other = McpClient::start(&world, VERSIONS[0], &[]);
    other
        .call("task", &json!({"action": "look", "run": run}))
        .well();
    other
        .call("task", &json!({"action": "cancel", "run": run}))
        .refused();
    other.leave();
}

#[test]
fn lines_that_are_no_messages_end_nothing() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let mut agent = McpClient::start(&world, VERSIONS[0], &[]);
    let long = format!(
        "{{\"jsonrpc\": \"2.0\", \"method\": \"{}\"}}",
        "x".repeat(1 << 20)
    );
    for odd in [
        "",
        "{",
        "nonsense",
        "[]",
        "\u{1b}[2J",
        "{\"jsonrpc\": \"1.0\"}",
        &long,
    ] {
        agent.line(odd);
    }
    agent.call("run", &json!({"command": "true"})).well();
    let unknown = agent.ask("tools/call", &json!({"name": "shell", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602);
    agent.leave();
}

#[test]
fn a_place_that_cannot_be_worked_on_is_refused_before_anything_begins() {
    let world = LulaEnv::new();
    world
        .run(&["mcp", "serve", "--dir", "/nowhere"])
        .exits(2)
        .says("/nowhere");
    let home = world.home();
    world
        .run(&["mcp", "serve", "--dir", home.to_str().unwrap()])
        .exits(2);
}
