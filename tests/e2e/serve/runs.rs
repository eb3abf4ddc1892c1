//! Runs from their beginning to what came of them.

use serde_json::json;

use super::RunningServer;
use crate::support::{FIX, LulaEnv, MENDED, Models, Repo, wait_until};

#[test]
fn a_task_becomes_a_verified_branch_and_everything_of_it_can_be_looked_at() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let before = repo.untouched();
    let server = RunningServer::start(&world, &[]);
    let health = server.get("/v1/health").is(200).json();
    assert_eq!(health, json!({"status": "ok"}));
    server.get("/v1/ready").is(200);

    let begun = server.post("/v1/runs", &json!({"task": FIX})).is(201);
    let run = begun.json()["run"].as_str().unwrap().to_owned();
    assert_eq!(begun.header("location"), Some(format!("/v1/runs/{run}")));
    let seen = server.until(&run, "verified");
    assert_eq!(seen["exit"], "verified");
    assert_eq!(seen["report"]["verdict"]["verdict"], "pass");
    assert_eq!(seen["repository"], "work");
    assert_eq!(repo.branches().len(), 1);
    assert_eq!(repo.untouched(), before);

    let changes = server
        .get(&format!("/v1/runs/{run}/changes"))
        .is(200)
        .json();
    assert_eq!(changes["files"][0]["path"], "items.py");
    assert_eq!(
        (&changes["added"], &changes["removed"]),
        (&json!(1), &json!(1))
    );
    let lines = changes["files"][0]["hunks"][0]["lines"].to_string();
    assert!(lines.contains(MENDED), "{lines}");
    let patch = server.get(&format!("/v1/runs/{run}/patch")).is(200).text();
    assert_eq!(patch, seen["report"]["diff"].as_str().unwrap());
    let timeline = server
        .get(&format!("/v1/runs/{run}/timeline"))
        .is(200)
        .json();
    assert!(
        !timeline["visits"].as_array().unwrap().is_empty(),
        "{timeline}"
    );
    let plan = server.get(&format!("/v1/runs/{run}/plan")).is(200).json();
    assert_eq!(plan, json!({"run": run, "plan": null}));

    // The command line sees the same run, and the bundle is one that it verifies.
    let shown = world.run(&["show", &run, "--json"]).exits(0).json();
    assert_eq!(shown["diff"], seen["report"]["diff"]);
    let bundle = server.get(&format!("/v1/runs/{run}/bundle")).is(200);
    let file = world.home().join("run.lula");
    std::fs::write(&file, &bundle.body).unwrap();
    world.run(&["verify", file.to_str().unwrap()]).exits(0);

    let undone = server
        .send(("POST", &format!("/v1/runs/{run}/undo")), &[], b"")
        .is(200);
    assert!(
        undone.json()["branches"][0]["branch"]
            .as_str()
            .unwrap()
            .starts_with("lula/")
    );
    assert!(repo.branches().is_empty());
    server.end().exits(0);
}

#[test]
fn a_model_of_the_configuration_works_on_a_task_and_no_other_can_be_named() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let models = Models::mending(1);
    world.user_config(&format!(
        "[models]\nuse = [\"{}\"]\n",
        Models::strong(&models)
    ));
    let server = RunningServer::start(&world, &[]);
    let other = json!({"task": "mend it", "models": ["anthropic@http://127.0.0.1:9/v1/x"]});
    let refused = server.post("/v1/runs", &other).is(403);
    assert_eq!(refused.code(), "L1011");
    let run = server.begin(&json!({"task": "make last() right", "consent": "by_rules"}));
    let seen = server.until(&run, "verified");
    assert_eq!(seen["spent"]["model_calls"], 2);
    assert_eq!(repo.branches().len(), 1);
}

#[test]
fn the_list_has_pages_and_filters() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    // What no model is configured for ends at once.
    let runs: Vec<String> = (0..3)
        .map(|number| {
            let run = server.begin(&json!({"task": format!("add feature number {number}")}));
            wait_until("the run ends", || {
                server.get(&format!("/v1/runs/{run}")).json()["status"] == "done"
            });
            run
        })
        .collect();
    let page = |query: &str| server.get(&format!("/v1/runs{query}")).is(200).json();
    let ids = |page: &serde_json::Value| -> Vec<String> {
        let runs = page["runs"].as_array().unwrap().iter();
        runs.map(|run| run["run"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = page("?limit=2");
    assert_eq!(ids(&first), [runs[2].clone(), runs[1].clone()]);
    let next = first["next"].as_str().unwrap();
    let second = page(&format!("?limit=2&cursor={next}"));
    assert_eq!(ids(&second), [runs[0].clone()]);
    assert_eq!(second["next"], json!(null));
    assert_eq!(ids(&page("?q=NUMBER%201")), [runs[1].clone()]);
    assert_eq!(ids(&page("?status=done")).len(), 3);
    assert!(ids(&page("?standing=verified")).is_empty());
    assert!(ids(&page("?repository=other")).is_empty());
    for bad in [
        "?limit=0",
        "?limit=x",
        "?status=over",
        "?cursor=x",
        "?colour=red",
    ] {
        assert_eq!(
            server.get(&format!("/v1/runs{bad}")).is(400).code(),
            "L1010"
        );
    }
}

#[test]
fn a_repeated_request_begins_one_run() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let body = json!({"task": FIX});
    let key = [("idempotency-key", "order-17")];
    let first = server.post_with("/v1/runs", &key, &body).is(201);
    let again = server.post_with("/v1/runs", &key, &body).is(201);
    assert_eq!(first.json()["run"], again.json()["run"]);
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(
        again.header("idempotency-replayed").as_deref(),
        Some("true")
    );
    let other = server.post_with("/v1/runs", &key, &json!({"task": "other"}));
    assert_eq!(other.is(422).code(), "L1006");
    drop(server);
    // Also after the server was killed.
    let server = RunningServer::start(&world, &[]);
    let later = server.post_with("/v1/runs", &key, &body).is(201);
    assert_eq!(first.json()["run"], later.json()["run"]);
    let all = server.get("/v1/runs").json();
    assert_eq!(all["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn runs_of_other_repositories_are_not_there() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    world.run(&["run", FIX]).exits(0);
    let begun = world.run(&["runs", "--json"]).json();
    let run = begun[0]["run"].as_str().unwrap().to_owned();
    let elsewhere = world.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    crate::support::git(&elsewhere, &["init", "--quiet"]);
    crate::support::git(
        &elsewhere,
        &["commit", "--quiet", "--allow-empty", "-m", "one"],
    );
    let entry = format!("other={}", elsewhere.display());
    let server = RunningServer::start(&world, &["--server-repositories", &entry]);
    assert_eq!(server.get("/v1/runs").json()["runs"], json!([]));
    assert_eq!(
        server.get(&format!("/v1/runs/{run}")).is(404).code(),
        "L0603"
    );
    let named = server.get("/v1/repositories").is(200).json();
    assert_eq!(named, json!({"repositories": [{"name": "other"}]}));
}

#[test]
fn a_waiting_run_is_ended_for_good_and_steered_no_more() {
    let world = LulaEnv::new();
    let repo = Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let run = server.begin(&json!({"task": FIX, "consent": "always"}));
    server.until(&run, "waiting");
    let note = server.post(
        &format!("/v1/runs/{run}/notes"),
        &json!({"text": "mind the cache"}),
    );
    assert_eq!(note.is(202).json()["model"], false);
    let choice = server.post(
        &format!("/v1/runs/{run}/answers"),
        &json!({"choice": "yes"}),
    );
    assert_eq!(choice.is(409).code(), "L0904");
    let path = format!("/v1/runs/{run}/cancel");
    let ended = server
        .post(&path, &json!({"reason": "not needed"}))
        .is(200)
        .json();
    assert_eq!(
        (&ended["status"], &ended["standing"]),
        (&json!("done"), &json!("failed"))
    );
    assert!(repo.branches().is_empty());
    assert_eq!(server.post(&path, &json!({})).is(409).code(), "L0904");
    let on = server.post(&format!("/v1/runs/{run}/resume"), &json!({}));
    assert_eq!(on.is(409).code(), "L0904");
}
