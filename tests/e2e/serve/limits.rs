//! How much is taken at one time, and what is said of the rest.

use serde_json::json;

use super::RunningServer;
use crate::support::{FIX, LulaEnv, Repo, wait_until};

#[test]
fn who_asks_too_often_is_told_when_to_come_back() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &["--server-rate", "1"]);
    let answers: Vec<_> = (0..8).map(|_| server.get("/v1/me")).collect();
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 429)
        .collect();
    assert!(
        !refused.is_empty() && answers[0].status == 200,
        "{answers:?}"
    );
    assert_eq!(refused[0].code(), "L1012");
    let seconds: u64 = refused[0].header("retry-after").unwrap().parse().unwrap();
    assert!(seconds >= 1);
    // Whether the server answers is told to everybody.
    server.get("/v1/health").is(200);
}

#[test]
fn a_full_queue_and_too_many_streams_are_refused() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let flags = [
        "--server-runs",
        "1",
        "--server-queue",
        "0",
        "--server-streams",
        "1",
    ];
    let server = RunningServer::start(&world, &flags);
    let run = server.begin(&json!({"task": FIX}));
    let full = server.post("/v1/runs", &json!({"task": FIX}));
    assert_eq!(full.is(503).code(), "L1012");
    let first = server.follow(&run, None);
    let second = server.get(&format!("/v1/runs/{run}/events")).is(503);
    assert!(second.header("retry-after").is_some());
    drop(first);
    server.until(&run, "verified");
    // Counted when its driver has ended, a moment after the run.
    let ended = "lula_server_runs_ended_total{exit=\"verified\"} 1";
    wait_until("the run is counted", || {
        server.get("/metrics").is(200).text().contains(ended)
    });
    let metrics = server.get("/metrics").is(200).text();
    for line in [
        "lula_server_runs_begun_total 1",
        "lula_server_runs_ended_total{exit=\"verified\"} 1",
        "lula_server_requests_total{route=\"create_run\",status=\"503\"} 1",
        "# EOF",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}
