//! What a model is sent over the turns of a run, and what its answers cost

use lula_models::mock::MockModelServer;
use lula_models::script::{ModelScript, ScriptTurn, ScriptedCall, ScriptedFault, ScriptedUsage};
use serde_json::{Value, json};

use crate::support::{FIX, LulaEnv, Models, Ran, Repo, edit, run_with};

/// A run by a model that calls tools although its server does not say so.
fn run_by(world: &LulaEnv, model: &str, more: &[&str]) -> Ran {
    let capability = format!("{model}=tool-calls");
    let fixed = [
        "run", "--json", "--task", FIX, "--model", model, "--coder", "model",
    ];
    let variables = [("LULA_MODELS_CAPABILITIES", capability.as_str())];
    world.run_with(&variables, &[&fixed[..], more].concat())
}

fn calls(name: &str, arguments: Value) -> ScriptTurn {
    ScriptTurn {
        call: vec![ScriptedCall {
            name: name.to_owned(),
            arguments,
        }],
        ..ScriptTurn::default()
    }
}

fn mends() -> ModelScript {
    ModelScript::default()
        .then_call("edit_file", edit())
        .then_call("submit", json!({"summary": "done"}))
}

/// The bodies of the requests that arrived.
fn bodies(server: &MockModelServer) -> Vec<Value> {
    let arrived = server.arrived();
    let bodies = arrived.iter().filter(|request| request.method == "POST");
    bodies
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect()
}

#[test]
fn a_conversation_that_is_too_long_goes_on_from_a_summary_of_its_own() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let full = ScriptedUsage {
        input: 7_900,
        output: 20,
        cache_read: 0,
    };
    let summary = "Task: fix the failing tests.\nDone: nothing yet.\nLearned: last() reads past the \
                   end.\nFiles: items.py, the code.\nLeft: mend last in items.py.";
    let mut script = ModelScript::default()
        .then_call("read_file", json!({"path": "items.py"}))
        .then_call("read_file", json!({"path": "tests/test_items.py"}))
        .then_call("read_file", json!({"path": "items.py"}))
        .then(ScriptTurn {
            usage: Some(full),
            ..calls("read_file", json!({"path": "items.py"}))
        })
        .then(ScriptTurn {
            when: Some("This conversation becomes too long.".to_owned()),
            say: Some(summary.to_owned()),
            ..ScriptTurn::default()
        });
    script.turn.extend(mends().turn);
    let server = MockModelServer::start(script).unwrap();
    let model = format!("ollama@{}/v1/strong", server.url());
    let report = run_by(&world, &model, &[]).exits(0).json();
    assert_eq!(report["models"][0]["summaries"], 1, "{report}");

    let sent = bodies(&server);
    let messages = |at: usize| sent[at]["messages"].as_array().unwrap().clone();
    // Up to there each question begins with the one before it.
    for at in 1..5 {
        assert_eq!(
            messages(at)[..messages(at - 1).len()],
            messages(at - 1),
            "question {at}"
        );
    }
    let (asked, after) = (messages(4), messages(5));
    assert_eq!(after[..2], asked[..2], "rules and task stay as they are");
    let text = after[2]["content"].as_str().unwrap();
    assert!(
        text.contains(&format!("<summary>\n{summary}\n</summary>")),
        "{text}"
    );
    assert!(after.len() < asked.len());
    // The last messages are those of before.
    let last = asked.len() - 2;
    assert_eq!(after.last(), asked.get(last));
    assert_eq!(server.unused(), 0);
    world.run(&["replay", "last", "--verify"]).exits(0);
}

#[test]
fn what_nobody_knows_the_price_of_is_no_amount_and_a_model_of_this_machine_is_free() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(mends()).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(0)
        .json();
    assert_eq!(report["spent"]["model_calls"], 2);
    assert_eq!(report["spent"]["unpriced_calls"], 2);
    assert_eq!(report["spent"].get("micro_usd"), None, "{report}");
    let shown = world.run(&["show", "last"]).exits(0).stdout;
    assert!(shown.contains("2 calls, price unknown"), "{shown}");
    world.run(&["models", "stats"]).exits(0).says("unknown");

    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(mends()).unwrap();
    let local = format!("openai-compatible@{}/v1/m", server.url());
    run_by(&world, &local, &["--budget", "0.01"]).exits(0);
    world.run(&["show", "last"]).exits(0).says("2 calls $0");
}

#[test]
fn a_budget_in_money_holds_for_an_unknown_price_and_says_what_to_do() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(mends()).unwrap();
    let model = Models::strong(&server);
    let report = run_with(&world, &model, FIX, &["--budget", "0.0001"])
        .exits(4)
        .json();
    let summary = report["summary"].as_str().unwrap();
    let said =
        format!("The price of {model} is not known, and counts as $100.0000 for a million tokens");
    assert!(summary.contains(&said), "{summary}");
    assert!(
        summary.contains("models.prices") && summary.contains("--max-calls"),
        "{summary}"
    );
    assert!(server.arrived().is_empty());
}

#[test]
fn a_call_that_was_cut_is_never_made_and_is_asked_for_in_parts() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let half = r#"{"path": "items.py", "content": "def last(items):\n    ret"#;
    let mut script = ModelScript::default().then(ScriptTurn {
        say: Some("I write the file anew.".to_owned()),
        stop: Some("length".to_owned()),
        ..calls("write_file", Value::String(half.to_owned()))
    });
    script.turn.extend(mends().turn);
    let server = MockModelServer::start(script).unwrap();
    let report = run_with(&world, &Models::strong(&server), FIX, &[])
        .exits(0)
        .json();
    assert_eq!(report["models"][0]["repairs"], 1, "{report}");
    let sent = bodies(&server);
    let last = sent[1]["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(
        last.contains("cut by the length limit") && last.contains("write less at once"),
        "{last}"
    );
    let diff = report["diff"].as_str().unwrap();
    assert!(diff.contains("+    return items[len(items) - 1]"), "{diff}");
    assert_eq!(
        diff.matches("\n-").count(),
        2,
        "only what was edited differs: {diff}"
    );
}

#[test]
fn a_model_that_declines_is_told_so_and_another_one_takes_over() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let declines = ScriptTurn {
        say: Some("I would rather not.".to_owned()),
        stop: Some("filter".to_owned()),
        ..ScriptTurn::default()
    };
    let shy = MockModelServer::start(ModelScript::default().then(declines)).unwrap();
    let other = MockModelServer::start(mends()).unwrap();
    let (first, second) = (Models::strong(&shy), Models::strong(&other));
    let report = run_with(&world, &first, FIX, &["--model", &second])
        .exits(0)
        .json();
    // The same question is not put to it again.
    assert_eq!(shy.arrived().len(), 1);
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["class"], "malformed", "{report}");
    let why = attempt["evidence"].as_str().unwrap();
    assert!(why.contains("the model declined"), "{why}");
}

#[test]
fn effort_is_sent_as_each_provider_wants_it() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(mends()).unwrap();
    run_with(&world, &Models::strong(&server), FIX, &["--effort", "high"]).exits(0);
    let thinking = &bodies(&server)[0]["thinking"];
    assert_eq!(
        *thinking,
        json!({"type": "enabled", "budget_tokens": 16_384})
    );

    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = MockModelServer::start(mends()).unwrap();
    let new = format!("anthropic@{}/v1/claude-opus-5", server.url());
    world.user_config(&format!("[models]\neffort = [\"low\", \"{new}=medium\"]\n"));
    run_with(&world, &new, FIX, &[]).exits(0);
    let sent = &bodies(&server)[0];
    assert_eq!(sent["thinking"], json!({"type": "adaptive"}));
    assert_eq!(sent["output_config"], json!({"effort": "medium"}));
    assert_eq!(sent.get("temperature"), None);

    let server = MockModelServer::start(mends()).unwrap();
    let other = format!("openai-compatible@{}/v1/m", server.url());
    run_by(&world, &other, &[]).exits(0);
    assert_eq!(bodies(&server)[0]["reasoning_effort"], "low");
    world
        .run(&["run", "--task", FIX, "--effort", "much"])
        .exits(2);
}

#[test]
fn what_a_server_refuses_is_not_sent_again() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let refusal = |said: &str| ScriptedFault {
        status: Some(400),
        body: Some(json!({"error": {"message": said}}).to_string()),
        ..ScriptedFault::default()
    };
    let mut script = ModelScript::default()
        .then_fail(refusal(
            "Unrecognized request argument supplied: reasoning_effort",
        ))
        .then_fail(refusal(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        ));
    script.turn.extend(mends().turn);
    let server = MockModelServer::start(script).unwrap();
    let model = format!("openai-compatible@{}/v1/m", server.url());
    run_by(&world, &model, &["--effort", "low"]).exits(0);
    let sent = bodies(&server);
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[0]["reasoning_effort"], "low");
    for body in &sent[2..] {
        assert_eq!(body.get("reasoning_effort"), None);
        assert_eq!(body.get("max_tokens"), None);
        assert_eq!(body["max_completion_tokens"], 8192);
    }
}

#[test]
fn what_a_task_names_is_shown_before_anything_else() {
    let world = LulaEnv::new();
    let log = "- last() was slow\n".repeat(30);
    let filler: Vec<(String, String)> = (0..40)
        .map(|n| {
            (
                format!("lib/part{n}.py"),
                format!("def part_{n}(x):\n    return x + {n}\n"),
            )
        })
        .collect();
    let mut files: Vec<(&str, &str)> = filler
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let rules = "# Rules\n\n## Tests\n\nRun unittest.\n";
    files.extend([
        ("CHANGELOG.md", log.as_str()),
        ("AGENTS.md", "Use spaces."),
        ("CONTRIBUTING.md", rules),
    ]);
    Repo::buggy_with(&world, &files);
    let server = MockModelServer::start(mends()).unwrap();
    let task = "`last` of items.py raises IndexError for [1, 2, 3]";
    run_with(&world, &Models::strong(&server), task, &[]).exits(0);
    let sent = bodies(&server);
    let text = sent[0]["messages"][0]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert!(
        text.contains("items.py\n  def last(items)  (lines 1-2)\n"),
        "{text}"
    );
    assert!(
        text.contains("\ntests/test_items.py:7:self.assertEqual(last([1, 2, 3]), 3)\n"),
        "{text}"
    );
    assert!(!text.contains("was slow"), "{text}");
    assert!(
        text.contains("Use spaces.") && text.contains("Run unittest."),
        "{text}"
    );
    let map = text.split("<map>").nth(1).unwrap();
    assert!(map.len() < 5_000, "{} bytes", map.len());
    assert_eq!(server.unused(), 0, "no plan was asked for");
}
