//! `lula trace`: where the time of a run went, as text, as JSON and as a page

use lula_models::mock::MockModelServer;
use lula_models::script::ModelScript;
use serde_json::json;

use crate::support::{FIX, LulaEnv, Models, Repo, edit, run_with};

#[test]
fn the_timeline_has_nodes_acts_tests_and_spend() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let script = ModelScript::default()
        .then_call("read_file", json!({"path": "items.py"}))
        .then_call("edit_file", edit())
        .then_call("run", json!({"command": "sleep 1"}))
        .then_call("submit", json!({"summary": "done"}));
    let server = MockModelServer::start(script).unwrap();
    run_with(&world, &Models::strong(&server), FIX, &[]).exits(0);
    let text = world.run(&["trace", "last"]).exits(0).stdout;
    for word in [
        "context_builder",
        "run_tests",
        "1 pass, 1 fail",
        "read_file",
        "items.py",
        "sleep 1",
        "1 call, price unknown",
        "verified",
    ] {
        assert!(text.contains(word), "{word}\n{text}");
    }
    let trace = world.run(&["trace", "last", "--json"]).exits(0).json();
    assert_eq!(trace["standing"], "verified");
    let visits = trace["visits"].as_array().unwrap();
    let names: Vec<_> = visits
        .iter()
        .map(|visit| visit["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "ingest",
            "router",
            "policy_gate",
            "context_builder",
            "coder",
            "executor",
            "verifier",
            "reporter"
        ]
    );
    let exec = visits[4]["acts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|act| act["name"] == "exec")
        .unwrap();
    let took = exec["end_ms"].as_u64().unwrap() - exec["begin_ms"].as_u64().unwrap();
    assert!(took >= 1000, "{exec}");
    // One after the other, inside the whole.
    let total = trace["total_ms"].as_u64().unwrap();
    let mut last = 0;
    for visit in visits {
        let (begin, end) = (
            visit["begin_ms"].as_u64().unwrap(),
            visit["end_ms"].as_u64().unwrap(),
        );
        assert!(last <= begin && begin <= end && end <= total, "{visit}");
        last = end;
    }
}

/// Everything between < and >: in text both are escaped.
fn tags(page: &str) -> Vec<String> {
    let after = page.split('<').skip(1);
    after
        .map(|part| part.split('>').next().unwrap().to_lowercase())
        .collect()
}

#[test]
fn whatever_a_run_holds_the_page_runs_nothing_and_asks_nobody() {
    let hostile = "</pre></title><script>alert(1)</script><img src=x onerror=alert(1)>";
    let world = LulaEnv::new();
    Repo::with(&world, &[("a.txt", "one\n")]);
    let script = ModelScript::default()
        .then_call("write_file", json!({"path": "a.txt", "content": hostile}))
        .then_call("write_file", json!({"path": "x\"><b>.txt", "content": "x"}))
        .then_call("submit", json!({"summary": hostile}));
    let server = MockModelServer::start(script).unwrap();
    let task = format!("write it {hostile} \u{202e} \u{1b}[2J");
    let accept = ["--accept", "true # <script>"];
    run_with(&world, &Models::strong(&server), &task, &accept);
    let ran = world
        .run(&["trace", "last", "--html", "trace.html"])
        .exits(0)
        .says("trace.html");
    assert_eq!(ran.stdout, "");
    let page = std::fs::read_to_string(world.work().join("trace.html")).unwrap();
    assert!(
        page.contains("&lt;script&gt;alert(1)"),
        "control: it is shown"
    );
    for tag in tags(&page) {
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap();
        let known = "!doctype html head meta title style body main header footer section div span \
                     h1 h2 h3 p code dl dt dd ul li details summary pre table tr th td";
        assert!(known.split_whitespace().any(|it| it == name), "<{tag}>");
        for attribute in ["src", "href", "action", "srcdoc", "data", "poster", "on"] {
            assert!(!tag.contains(&format!(" {attribute}")), "<{tag}>");
        }
        assert!(!tag.contains("url(") && !tag.contains("http:"), "<{tag}>");
    }
    for raw in ["@import", "url(", "\u{202e}", "\u{1b}"] {
        assert!(!page.contains(raw), "{raw}");
    }
    assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    let text = world.run(&["trace", "last"]).exits(0).stdout;
    assert!(
        !text.contains('\u{1b}') && !text.contains('\u{202e}'),
        "{text}"
    );
}

#[test]
fn a_page_that_cannot_be_written_says_so() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = Models::mending(1);
    run_with(&world, &Models::strong(&server), FIX, &[]).exits(0);
    world
        .run(&["trace", "last", "--html", "no/such/directory/trace.html"])
        .exits(6)
        .says("cannot write");
}
