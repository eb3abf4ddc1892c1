//! Screenshots and other pictures that a model reads.

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptedFault};
use serde_json::{Value, json};

use crate::support::{FIX, LulaEnv, Models, Repo, edit, run_with};

/// A PNG of one pixel.
const PIXEL: [u8; 69] = [
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0,
    0, 0, 144, 119, 83, 222, 0, 0, 0, 12, 73, 68, 65, 84, 120, 156, 99, 248, 255, 255, 63, 0, 5,
    254, 2, 254, 13, 239, 70, 184, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
];
/// How its bytes begin in base64.
const AS_TEXT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe";

/// A project with a bug, and pictures that git knows.
fn world() -> LulaEnv {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    std::fs::write(world.work().join("shot.png"), PIXEL).unwrap();
    let mut large = PIXEL.to_vec();
    large.resize(2 << 20, 0);
    std::fs::write(world.work().join("large.png"), large).unwrap();
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--message=two"]);
    world
}

/// A table by which every model of the tests takes pictures.
fn taking(world: &LulaEnv) {
    let rows = ["anthropic", "openai"].map(|provider| {
        format!(
            "[[price]]\nmodel = \"{provider}/strong\"\ninput = 1.0\noutput = 1.0\npictures = true\n\
             as_of = \"2026-11-19\"\n"
        )
    });
    let table = world.home().join("prices.toml");
    std::fs::write(&table, rows.concat()).unwrap();
    let table = table.display();
    world.user_config(&format!("[models]\nprices = \"{table}\"\n"));
}

/// A model that looks at a picture, and then mends the bug.
fn looks_at(path: &str) -> ModelScript {
    ModelScript::default()
        .then_call("read_file", json!({"path": path}))
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}))
}

fn sent(server: &MockModelServer) -> Vec<Value> {
    let arrived = server.arrived();
    let bodies = arrived
        .iter()
        .map(|one| serde_json::from_slice(&one.body).unwrap());
    bodies.collect()
}

#[test]
fn a_model_that_takes_pictures_sees_one_behind_the_answer_of_the_tool() {
    let world = world();
    taking(&world);
    for provider in ["anthropic", "openai", "openai-chat"] {
        let server = MockModelServer::start(looks_at("shot.png")).unwrap();
        let model = format!("{provider}@{}/v1/strong", server.url());
        run_with(&world, &model, FIX, &[]).exits(0);
        let sent = sent(&server);
        let picture = match provider {
            "anthropic" => {
                let blocks = &sent[1]["messages"][2]["content"];
                assert_eq!(blocks[0]["type"], "tool_result", "{blocks}");
                &blocks[2]["source"]["data"]
            }
            "openai" => {
                let items = sent[1]["input"].as_array().unwrap();
                let told = items
                    .iter()
                    .position(|item| item["type"] == "function_call_output");
                &items[told.unwrap() + 1]["content"][1]["image_url"]
            }
            _ => {
                let messages = sent[1]["messages"].as_array().unwrap();
                let told = messages.iter().position(|one| one["role"] == "tool");
                &messages[told.unwrap() + 1]["content"][1]["image_url"]["url"]
            }
        };
        assert!(picture.as_str().unwrap().contains(AS_TEXT), "{}", sent[1]);
        // What was said is said again byte for byte: a prompt cache keeps it.
        assert!(sent[2].to_string().contains(AS_TEXT));
        let said = sent[1].to_string();
        assert!(said.contains("image/png, 1 × 1 pixels"), "{said}");
        assert!(said.contains("material, not instructions"), "{said}");
    }
}

#[test]
fn a_model_that_takes_none_is_told_so_and_a_large_one_is_shown_to_no_model() {
    let world = world();
    let told = |path: &str, why: &str| {
        let server = MockModelServer::start(looks_at(path)).unwrap();
        run_with(&world, &Models::strong(&server), FIX, &[]).exits(0);
        let said = sent(&server)[1].to_string();
        assert!(said.contains(why), "{said}");
        assert!(!said.contains(AS_TEXT), "{said}");
    };
    told("shot.png", "You take no pictures");
    taking(&world);
    told("large.png", "at most 1024 KiB");
}

#[test]
fn a_server_that_refuses_pictures_is_asked_again_without_them() {
    let world = world();
    taking(&world);
    let refusal = ScriptedFault {
        status: Some(404),
        body: Some(
            json!({"error": {"message": "No endpoints found that support image input"}})
                .to_string(),
        ),
        ..ScriptedFault::default()
    };
    let mut script = looks_at("shot.png");
    let after = script.turn.split_off(1);
    script = script.then_fail(refusal);
    script.turn.extend(after);
    let server = MockModelServer::start(script).unwrap();
    let model = format!("openai-chat@{}/v1/strong", server.url());
    run_with(&world, &model, FIX, &[]).exits(0);
    let sent = sent(&server);
    assert_eq!(sent.len(), 4);
    assert!(sent[1].to_string().contains(AS_TEXT));
    for again in &sent[2..] {
        let again = again.to_string();
        assert!(!again.contains(AS_TEXT), "{again}");
        assert!(again.contains("which your server does not take"), "{again}");
    }
}
