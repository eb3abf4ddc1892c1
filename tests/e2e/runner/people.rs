//! Several people answer, each with a key of their own, from their own machine.

use lula_protocol::{ProtocolVersion, RunId, ToolAction, ToolCall, ToolOutcome};
use lula_runner_api::client::RunnerClient;
use serde_json::json;

use super::serving::{KEY, Port};
use super::{effect, fresh};
use crate::support::{LulaEnv, Ran};

const RULES: &str = r#"
[[rule]]
id = "two.must.look"
paths = ["guarded/**"]
decision = "ask"
reason = "two have to look"
approval = { quorum = 2, role = "maintainer" }
"#;

#[test]
fn two_people_with_keys_of_their_own_let_something_happen() {
    let owner = LulaEnv::new();
    let rules = owner.home().join("rules.toml");
    std::fs::write(&rules, RULES).unwrap();
    let person = |name: &str, role: &str| {
        let file = owner.home().join(format!("{name}.key"));
        let file = file.to_str().unwrap().to_owned();
        let add = ["approvals", "keys", "add", name, "--role", role, "--file"];
        let made = [&add[..], &[&file, "--json"]].concat();
        let id = owner.run(&made).exits(0).json()["key"].clone();
        // What is there is not overwritten.
        owner.run(&[&add[..], &[&file]].concat()).exits(2);
        (file, id.as_str().unwrap().to_owned())
    };
    let (alice, _) = person("alice", "maintainer");
    let (bob, bobs) = person("bob", "maintainer");
    let (carol, _) = person("carol", "reader");
    let listed = owner.run(&["approvals", "keys"]).exits(0).stdout;
    for (name, file) in [("alice", &alice), ("bob", &bob), ("carol", &carol)] {
        assert!(listed.contains(name), "{listed}");
        let key: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let secret = key["keys"][0]["secret"].as_str().unwrap();
        assert!(!listed.contains(secret), "a secret was told");
    }

    let more = ["--rules", rules.to_str().unwrap()];
    let port = Port::start_with(&owner, &[("LULA_RUNNER_KEY", KEY)], &more);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = RunnerClient::new(port.place.parse().unwrap(), Some(KEY.to_owned().into()));
    let work = owner.work();
    let opened = client.open(work.to_str().unwrap(), "");
    let workspace = runtime.block_on(opened).unwrap().id;
    let input = json!({"path": "guarded/a", "content": "agreed\n"});
    let call = |action: serde_json::Value| ToolCall {
        protocol: ProtocolVersion,
        effect: effect(),
        epoch: 1,
        run: RunId::from_parts(1, fresh()),
        workspace: workspace.clone(),
        action: serde_json::from_value::<ToolAction>(action).unwrap(),
    };
    let write = call(json!({"tool": "write_file", "input": input}));
    let send = |call: &ToolCall| runtime.block_on(client.execute(call)).unwrap().outcome;
    let ToolOutcome::NeedsApproval { challenge } = send(&write) else {
        panic!("nobody was asked");
    };
    let id = challenge.id.to_string();
    let elsewhere = LulaEnv::new();
    let answer = |key: &str| -> Ran {
        elsewhere.run_with(
            &[("LULA_RUNNER_KEY", KEY)],
            &[
                "approve",
                &id,
                "--yes",
                "--key",
                key,
                "--runner",
                &port.place,
            ],
        )
    };

    // A person who has another role, or no key that counts, has no say.
    answer(&carol).exits(6);
    let shown = answer(&alice).exits(3);
    assert!(shown.stdout.contains("+agreed"), "{}", shown.stdout);
    answer(&alice).exits(1);
    owner.run(&["approvals", "keys", "retire", &bobs]).exits(0);
    answer(&bob).exits(1);
    assert!(matches!(send(&write), ToolOutcome::NeedsApproval { .. }));

    let (bob, _) = {
        std::fs::remove_file(&bob).unwrap();
        person("bob", "maintainer")
    };
    answer(&bob).exits(0);
    assert!(matches!(send(&write), ToolOutcome::Done { .. }));
    let read = call(json!({"tool": "read_file", "input": {"path": "guarded/a"}}));
    let ToolOutcome::Done { output } = send(&read) else {
        panic!("it cannot be read");
    };
    assert!(output.text.contains("agreed"), "{}", output.text);
}

#[test]
fn a_rotated_key_signs_and_the_old_one_counts_until_it_is_retired() {
    let world = LulaEnv::new();
    let first = world.run(&["approvals", "keys", "--json"]).exits(0).json()[0]["id"].clone();
    let second = world
        .run(&["approvals", "keys", "rotate", "--json"])
        .exits(0)
        .json()["key"]
        .clone();
    assert_ne!(first, second);
    world
        .run(&["approvals", "keys", "retire", first.as_str().unwrap()])
        .exits(0);
    let keys = world.run(&["approvals", "keys", "--json"]).exits(0).json();
    assert_eq!(keys[0]["retired"], true);
    assert_eq!(keys[1]["retired"], false);
    world
        .run(&["approvals", "keys", "retire", "k_none"])
        .exits(6)
        .says("k_none");
}
