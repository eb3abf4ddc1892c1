//! `lula models`

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;

use crate::support::LulaEnv;

const CANARY: &str = "sk-canary-0123456789abcdef";

/// A model that says what a good one would say to the three questions of a trial.
fn capable() -> MockModelServer {
    serve(
        r#"
        [[turn]]
        when = "Say the word ready"
        say = "ready"
        [[turn]]
        when = "Which day"
        call = [{ name = "pick_day", arguments = { number = 3 } }]
        [[turn]]
        when = "Write the word blue"
        say = '{"color": "red"}'
        "#,
    )
}

fn serve(script: &str) -> MockModelServer {
    MockModelServer::start(ModelScript::parse(script).unwrap()).unwrap()
}

fn name(server: &MockModelServer) -> String {
    format!("openai-compatible@{}/v1/m", server.url())
}

#[test]
fn a_trial_says_what_a_model_can_do() {
    let server = capable();
    let ran = LulaEnv::new()
        .run(&["models", "test", &name(&server), "--json"])
        .exits(0);
    let document = ran.json();
    assert_eq!(document["answers"], true);
    assert_eq!(document["tool_calls"], true);
    assert_eq!(document["json_schema"], true);
    assert_eq!(document["use_with"], "tool-calls");
}

#[test]
fn a_model_that_does_not_answer_fails_the_trial() {
    let server = serve("[[turn]]\nfault = { status = 401 }\n");
    let ran = LulaEnv::new()
        .run(&["models", "test", &name(&server), "--json"])
        .exits(1);
    assert_eq!(ran.json()["answers"], false);
}

#[test]
fn a_chosen_model_is_written_down_with_what_it_can_do() {
    let (world, server) = (LulaEnv::new(), capable());
    world.run(&["models", "use", &name(&server)]).exits(0);
    let listed = world.run(&["models", "list", "--json"]).exits(0).json();
    assert_eq!(listed["in_use"][0]["model"], name(&server));
    let seen = world
        .run(&["config", "get", "models.capabilities"])
        .exits(0);
    assert_eq!(seen.stdout.trim(), format!("{}=tool-calls", name(&server)));
}

#[test]
fn a_dead_model_is_not_chosen() {
    let world = LulaEnv::new();
    let dead = "openai-compatible@http://127.0.0.1:9/v1/m";
    let ran = world
        .run(&["models", "use", dead, "--timeout", "1s"])
        .exits(6);
    assert!(ran.stderr.contains("L0703"), "{}", ran.stderr);
    assert!(crate::support::listing(&world.home()).is_empty());
    world.run(&["models", "use", dead, "--untried"]).exits(0);
    let listed = world.run(&["models", "list", "--json"]).json();
    assert_eq!(listed["in_use"][0]["model"], dead);
}

#[test]
fn a_server_on_loopback_is_listed_with_the_name_to_use() {
    let server = serve("");
    let ran = LulaEnv::new().run(&[
        "models",
        "list",
        "--json",
        "--models-local-urls",
        &server.url(),
    ]);
    let document = ran.exits(0).json();
    let places: Vec<_> = document["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|provider| provider["place"].as_str().unwrap())
        .collect();
    assert!(places.contains(&server.url().as_str()), "{places:?}");
}

#[test]
fn a_key_is_used_and_never_shown() {
    let server = serve("[[turn]]\nfault = { status = 401 }\n");
    let world = LulaEnv::new();
    let keys = format!("{}=env:GPU_KEY", server.url());
    let ran = world.run_with(
        &[("GPU_KEY", CANARY), ("LULA_MODELS_KEYS", &keys)],
        &["-v", "models", "test", &name(&server)],
    );
    assert!(!ran.stdout.contains(CANARY) && !ran.stderr.contains(CANARY));
    // A key leaves the machine over TLS only, and loopback is this machine.
    let arrived = server.arrived();
    let sent = arrived[0]
        .headers
        .iter()
        .any(|(_, value)| value.contains(CANARY));
    assert!(sent, "{arrived:?}");
}

#[test]
fn a_key_comes_from_a_private_file_a_program_or_the_keyring() {
    use std::os::unix::fs::PermissionsExt;
    let world = LulaEnv::new();
    let script = |name: &str, text: &str, mode: u32| {
        let path = world.home().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let file = script("key", &format!("{CANARY}\n"), 0o600);
    // The keyring is asked the way its own program wants it.
    let say = format!("#!/bin/sh\n[ \"$*\" = 'lookup service gpu' ] && echo {CANARY}\n");
    let program = script("secret-tool", &say, 0o700);
    let path = format!("{}:/usr/bin:/bin", world.home().display());
    let ask = |reference: &str| {
        let server = serve("[[turn]]\nfault = { status = 401 }\n");
        let keys = format!("{}={reference}", server.url());
        let variables = [("LULA_MODELS_KEYS", keys.as_str()), ("PATH", &path)];
        let ran = world.run_with(&variables, &["models", "test", &name(&server)]);
        assert!(!ran.stdout.contains(CANARY) && !ran.stderr.contains(CANARY));
        let arrived = server.arrived();
        let mut headers = arrived.iter().flat_map(|request| &request.headers);
        (headers.any(|(_, value)| value.contains(CANARY)), ran.status)
    };
    let command = format!("command:{program} lookup service gpu");
    for reference in [format!("file:{file}"), command, "keyring:gpu".to_owned()] {
        assert_eq!(ask(&reference), (true, 1), "{reference}");
    }
    // A key that others can read, and a keyring that has none, are refused before anything is sent.
    let exposed = script("exposed", CANARY, 0o644);
    for reference in [format!("file:{exposed}"), "keyring:other".to_owned()] {
        assert_eq!(ask(&reference), (false, 6), "{reference}");
    }
}

#[test]
fn a_name_that_means_nothing_is_explained() {
    let ran = LulaEnv::new().run(&["models", "test", "gpt"]).exits(2);
    assert!(ran.stderr.contains("PROVIDER/MODEL"), "{}", ran.stderr);
}
