//! Who may do what: every route for every role, and every way not to be known.

use std::collections::BTreeSet;

use lula_server::identity::{RoutePermission, ServerRole};
use lula_server::routes::{ROUTES, RouteMethod};
use serde_json::json;

use super::RunningServer;
use super::approvals::key;
use crate::support::{FIX, LulaEnv, Repo};

/// A path of a route, its variable part filled with something that is not there.
fn filled(path: &str) -> String {
    path.replace("{run}", "run_00000000000000000000000000")
        .replace("{approval}", "apr_00000000000000000000000000")
        .replace("{code}", "L0603")
}

#[test]
fn every_route_lets_in_exactly_the_roles_that_may() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let keys =
        ServerRole::ALL.map(|role| (role, key(&world, role.name(), &["--role", role.name()])));
    let flags = ["--server-auth", "bearer", "--server-rate", "10000"];
    let mut server = RunningServer::start(&world, &flags);
    let mut walked = BTreeSet::new();
    for route in ROUTES {
        let (method, path) = (route.method.name(), filled(route.path));
        // Not understood by any of them: nothing begins.
        let body = if route.method == RouteMethod::Post {
            "["
        } else {
            ""
        };
        let kind = [("content-type", "application/json")];
        let stranger = server.send((method, &path), &kind, body.as_bytes());
        if route.permission == RoutePermission::Open {
            stranger.is(200);
            continue;
        }
        assert_eq!(stranger.status, 401, "{route:?}");
        assert_eq!(stranger.code(), "L1011");
        assert!(stranger.header("www-authenticate").is_some());
        for (role, token) in &keys {
            let answer = server
                .with_token(token)
                .send((method, &path), &kind, body.as_bytes());
            let refused = answer.status == 403;
            assert_eq!(
                refused,
                !role.may(route.permission),
                "{route:?} {role:?}: {answer:?}"
            );
            assert!(
                answer.status != 401 && answer.status < 500,
                "{route:?}: {answer:?}"
            );
            walked.insert((route.id, *role));
        }
        server.with_token("");
    }
    let guarded = ROUTES
        .iter()
        .filter(|route| route.permission != RoutePermission::Open);
    assert_eq!(walked.len(), guarded.count() * ServerRole::ALL.len());
}

#[test]
fn strangers_do_not_learn_what_there_is() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let viewer = key(&world, "ada", &["--role", "viewer"]);
    let mut server = RunningServer::start(&world, &["--server-auth", "bearer"]);
    let paths = [
        "/",
        "/x.js",
        "//",
        "/v1/%2e%2e/runs",
        "/v1/runs%00",
        "/favicon.ico",
        "/v1/nothing",
    ];
    for path in paths {
        assert_eq!(server.get(path).is(401).code(), "L1011", "{path}");
    }
    server.send(("DELETE", "/v1/runs"), &[], b"").is(401);
    server.with_token(&viewer);
    for path in paths {
        server.get(path).is(404);
    }
    let forged = format!("{}x", &viewer[..viewer.len() - 1]);
    for token in [
        "lula_x.y",
        "a.b.c",
        "",
        &forged,
        &viewer[..viewer.len() - 1],
    ] {
        assert_eq!(
            server.with_token(token).get("/v1/runs").is(401).code(),
            "L1011"
        );
    }
    // A token is taken from the one place it belongs in.
    server.with_token("");
    server.get(&format!("/v1/runs?token={viewer}")).is(401);
    let cookie = format!("token={viewer}");
    server
        .send(("GET", "/v1/runs"), &[("cookie", &cookie)], b"")
        .is(401);
}

#[test]
fn a_key_that_was_taken_back_or_has_expired_opens_nothing() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let ada = key(&world, "ada", &["--role", "viewer"]);
    let short = key(&world, "bob", &["--role", "viewer", "--expires", "1s"]);
    let mut server = RunningServer::start(&world, &["--server-auth", "bearer"]);
    let me = server.with_token(&ada).get("/v1/me").is(200).json();
    assert_eq!(
        (&me["principal"], &me["roles"]),
        (&json!("ada"), &json!(["viewer"]))
    );
    let listed = world
        .run(&["server", "keys", "list", "--json"])
        .exits(0)
        .json();
    assert!(!listed.to_string().contains(ada.split_once('.').unwrap().1));
    let id = listed[0]["id"].as_str().unwrap();
    world.run(&["server", "keys", "revoke", id]).exits(0);
    server.get("/v1/me").is(401);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    server.with_token(&short).get("/v1/me").is(401);
    world
        .run(&["server", "keys", "revoke", "none"])
        .exits(2)
        .says("L1002");
    let line = ["server", "keys", "add", "--for", "eve", "--role", "king"];
    world
        .run(&line)
        .exits(2)
        .says("viewer, operator, approver, admin");
}

#[test]
fn a_key_for_one_repository_sees_no_other() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let here = key(
        &world,
        "ada",
        &["--role", "operator", "--repository", "work"],
    );
    let there = key(&world, "eve", &["--role", "admin", "--repository", "other"]);
    let mut server = RunningServer::start(&world, &["--server-auth", "bearer"]);
    let run = server
        .with_token(&here)
        .begin(&json!({"task": FIX, "consent": "always"}));
    let question = server.question(&run);
    server.with_token(&there);
    assert_eq!(server.get("/v1/runs").is(200).json()["runs"], json!([]));
    assert_eq!(
        server.get("/v1/approvals").is(200).json()["approvals"],
        json!([])
    );
    for path in [
        "",
        "/events",
        "/patch",
        "/changes",
        "/plan",
        "/timeline",
        "/bundle",
    ] {
        let answer = server.get(&format!("/v1/runs/{run}{path}"));
        assert_eq!(answer.is(404).code(), "L0603");
    }
    assert_eq!(server.answer(&question, "approve").is(404).code(), "L0502");
    let cancel = server.post(&format!("/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(cancel.is(404).code(), "L0603");
    let begin = server.post("/v1/runs", &json!({"task": FIX, "repository": "work"}));
    begin.is(404).code();
}

#[test]
fn a_token_is_in_no_log_event_metric_or_error() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let ada = key(&world, "ada", &["--role", "admin"]);
    let jwt = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJjYW5hcnkifQ.Y2FuYXJ5LXNpZ25hdHVyZQ";
    let flags = ["--server-auth", "bearer"];
    let mut server = RunningServer::start_with(&world, &flags, &[("LULA_LOG", "trace")]);
    let mut said = Vec::new();
    for token in [&ada[..], jwt] {
        server.with_token(token);
        for path in [
            "/v1/me",
            "/v1/nothing",
            "/v1/errors/L9999",
            &format!("/v1/runs/{token}"),
        ] {
            said.push(server.get(path));
        }
        said.push(server.post("/v1/runs", &json!({"task": FIX, "token": "x"})));
    }
    server.with_token(&ada);
    let run = server.begin(&json!({"task": FIX}));
    let events: Vec<String> = server
        .follow(&run, None)
        .map(|event| event.data.to_string())
        .collect();
    said.push(server.get("/metrics").is(200));
    said.push(server.get("/v1/audit").is(200));
    said.push(server.get(&format!("/v1/runs/{run}")).is(200));
    let log = server.end();
    let secret = ada.split_once('.').unwrap().1;
    assert!(
        log.stderr.contains("route="),
        "nothing was logged: {}",
        log.stderr
    );
    for canary in [secret, "Y2FuYXJ5LXNpZ25hdHVyZQ"] {
        assert!(!log.stderr.contains(canary), "{}", log.stderr);
        assert!(!events.iter().any(|event| event.contains(canary)));
        for answer in &said {
            assert!(!answer.text().contains(canary), "{answer:?}");
        }
    }
    for file in crate::support::listing(&world.home()) {
        let text = String::from_utf8_lossy(&file.1).into_owned();
        assert!(!text.contains(secret), "{}", file.0.display());
    }
}
