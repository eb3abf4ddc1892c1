//! Requests that are not served: each says why, with a code, and changes nothing.

use serde_json::json;

use super::RunningServer;
use crate::support::{FIX, LulaEnv, Repo};

#[test]
fn what_is_not_understood_is_refused_and_begins_nothing() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &["--server-body", "4KiB"]);
    let json_type = [("content-type", "application/json")];
    for (status, body) in [
        (400, "{"),
        (400, "[]"),
        (400, "{}"),
        (400, r#"{"task": ""}"#),
        (400, r#"{"task": 7}"#),
        (400, r#"{"task": "x", "task": "y"}"#),
        (400, r#"{"task": "x", "skip_approval": true}"#),
        (400, r#"{"task": "x", "approve": "auto"}"#),
        (404, r#"{"task": "x", "repository": "/etc"}"#),
        (404, r#"{"task": "x", "repository": "../work"}"#),
        (400, "\u{0}"),
    ] {
        let answer = server.send(("POST", "/v1/runs"), &json_type, body.as_bytes());
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        answer.code();
    }
    let long = json!({"task": "x".repeat(8 << 10)}).to_string();
    let answer = server.send(("POST", "/v1/runs"), &json_type, long.as_bytes());
    assert_eq!(answer.is(413).code(), "L1003");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let body = json!({"task": FIX}).to_string();
        let answer = server.send(
            ("POST", "/v1/runs"),
            &[("content-type", kind)],
            body.as_bytes(),
        );
        assert_eq!(answer.is(415).code(), "L1010");
    }
    let key = [("idempotency-key", "with blanks")];
    let answer = server.post_with("/v1/runs", &key, &json!({"task": FIX}));
    assert_eq!(answer.is(400).code(), "L1010");
    assert_eq!(server.get("/v1/runs").is(200).json()["runs"], json!([]));
}

#[test]
fn paths_that_are_none_lead_nowhere() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let long = format!("/v1/runs/{}", "x".repeat(9000));
    for path in [
        "/",
        "/x.js",
        "//",
        "//v1/runs",
        "/v1//runs",
        "/v1/runs/",
        "/v1/runs/../runs",
        "/v1/%2e%2e/metrics",
        "/v1/runs%00",
        "/v1/runs/%00",
        "/v1/runs/%2e%2e%2fhealth",
        "/v1/runs/%ff",
        "/v1/runs/run_%2f",
        "/V1/runs",
        "/v1/runs;x=1",
        "/v2/runs",
        "/metrics/x",
        &long,
    ] {
        let answer = server.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
        answer.code();
    }
    for (method, path) in [
        ("DELETE", "/v1/runs"),
        ("PUT", "/v1/runs"),
        ("POST", "/v1/health"),
    ] {
        let answer = server.send((method, path), &[], b"");
        assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
        assert!(
            answer.header("allow").unwrap().contains("GET"),
            "{answer:?}"
        );
    }
    let page = server.get("/v1/errors/L0603").is(200).text();
    assert!(page.starts_with("# L0603: "), "{page}");
    assert_eq!(server.get("/v1/errors/L9999").is(404).code(), "L0002");
}

#[test]
fn a_page_of_elsewhere_reaches_nothing() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let named = "https://app.example.org";
    let server = RunningServer::start(&world, &["--server-origins", named]);
    // A name that was led to this address.
    let rebound = server.send(("GET", "/v1/runs"), &[("host", "evil.example.org")], b"");
    assert_eq!(rebound.is(403).code(), "L1011");
    let evil = [("origin", "https://evil.example.org")];
    let refused = server.send(("GET", "/v1/runs"), &evil, b"").is(403);
    assert_eq!(refused.header("access-control-allow-origin"), None);
    let begun = server.post_with("/v1/runs", &evil, &json!({"task": FIX}));
    assert_eq!(begun.is(403).code(), "L1011");
    let asks = [evil[0], ("access-control-request-method", "POST")];
    let preflight = server.send(("OPTIONS", "/v1/runs"), &asks, b"");
    assert_eq!(preflight.is(403).code(), "L1011");

    let own = server
        .send(("GET", "/v1/runs"), &[("origin", named)], b"")
        .is(200);
    assert_eq!(
        own.header("access-control-allow-origin").as_deref(),
        Some(named)
    );
    let asks = [("origin", named), ("access-control-request-method", "POST")];
    let preflight = server.send(("OPTIONS", "/v1/runs"), &asks, b"").is(200);
    assert!(
        preflight
            .header("access-control-allow-methods")
            .unwrap()
            .contains("POST")
    );
    for name in [
        "x-content-type-options",
        "x-frame-options",
        "content-security-policy",
    ] {
        assert!(own.header(name).is_some(), "{name}: {own:?}");
    }
    assert_eq!(server.get("/v1/runs").json()["runs"], json!([]));
}

#[test]
fn a_server_that_would_serve_strangers_does_not_start() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    for (flags, says) in [
        (&["--server-listen", "0.0.0.0:0"][..], "server.auth is off"),
        (&["--server-listen", "[::]:0"], "server.auth is off"),
        (
            &["--server-listen", "0.0.0.0:0", "--server-auth", "bearer"],
            "plain HTTP",
        ),
        (&["--server-auth", "jwt"], "server.jwt_issuer"),
        (&["--server-listen", "nowhere"], "cannot listen"),
        (&["--server-repositories", "/nowhere"], "/nowhere"),
    ] {
        let ran = world.run(&[&["serve"], flags].concat());
        assert!(ran.status != 0, "{flags:?}");
        ran.says(says);
    }
}

#[test]
fn the_document_that_is_served_is_the_one_that_is_kept() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let sent = server.get("/v1/openapi.json").is(200).json();
    let kept = include_str!("../../../docs/server-openapi.json");
    let kept: serde_json::Value = serde_json::from_str(kept).unwrap();
    assert_eq!(sent, kept);
}
