//! Live events: each once, in order, through lost connections and restarts.

use serde_json::json;

use super::RunningServer;
use super::client::HeardEvent;
use crate::support::{FIX, LulaEnv, Repo};

/// The numbers of events, of which none may be missing or doubled.
fn numbers(events: &[HeardEvent]) -> Vec<u64> {
    events.iter().filter_map(|event| event.id).collect()
}

#[test]
fn events_come_as_they_happen_and_end_with_the_run() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let run = server.begin(&json!({"task": FIX, "consent": "always"}));
    let mut live = server.follow(&run, None);
    let mut heard: Vec<HeardEvent> = Vec::new();
    // It asks in the middle of the stream, and goes on in the same stream.
    for event in live.by_ref() {
        let asks = event.name == "suspended";
        heard.push(event);
        if asks {
            break;
        }
    }
    let question = server.question(&run);
    server.answer(&question, "approve").is(200);
    heard.extend(live);
    assert_eq!(heard.last().unwrap().name, "end");
    let all = server.until(&run, "verified")["events"].as_u64().unwrap();
    assert_eq!(numbers(&heard), (0..all).collect::<Vec<_>>());
    // The same that the command line prints.
    let logged = world.run(&["logs", &run, "--json"]).exits(0).stdout;
    let sent: Vec<String> = heard
        .iter()
        .filter(|event| event.id.is_some())
        .map(|event| event.data.to_string())
        .collect();
    let logged: Vec<String> = logged
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line)
                .unwrap()
                .to_string()
        })
        .collect();
    assert_eq!(sent, logged);
}

#[test]
fn a_reader_that_comes_back_sees_the_rest_and_nothing_twice() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &[]);
    let run = server.begin(&json!({"task": FIX, "consent": "always"}));
    let mut heard: Vec<HeardEvent> = Vec::new();
    // Lost after every few events.
    loop {
        let last = numbers(&heard).last().copied();
        for event in server.follow(&run, last).take(5) {
            heard.push(event);
            // Nothing comes after it until it is answered.
            if heard.last().is_some_and(|event| event.name == "suspended") {
                break;
            }
        }
        if heard.last().is_some_and(|event| event.name == "suspended") {
            break;
        }
    }
    let question = server.question(&run);
    drop(server);
    // Another server on the same state.
    let server = RunningServer::start(&world, &[]);
    server.answer(&question, "approve").is(200);
    let last = numbers(&heard).last().copied();
    heard.extend(server.follow(&run, last));
    let all = server.until(&run, "verified")["events"].as_u64().unwrap();
    assert_eq!(numbers(&heard), (0..all).collect::<Vec<_>>());
    // Who has seen everything is told not to come back.
    let seen = (all - 1).to_string();
    let path = format!("/v1/runs/{run}/events");
    let over = server.send(("GET", &path), &[("last-event-id", &seen)], b"");
    assert_eq!((over.is(204).body.len()), 0);
    for bad in ["x", "-1", "99999", "18446744073709551615"] {
        let answer = server.send(("GET", &path), &[("last-event-id", bad)], b"");
        assert_eq!(answer.is(400).code(), "L1010");
    }
}

#[test]
fn many_readers_each_see_every_event_once() {
    let world = LulaEnv::new();
    Repo::buggy(&world);
    let server = RunningServer::start(&world, &["--server-rate", "10000"]);
    let run = server.begin(&json!({"task": FIX}));
    let heard: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..64)
            .map(|_| scope.spawn(|| numbers(&server.follow(&run, None).collect::<Vec<_>>())))
            .collect();
        readers.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let all = server.until(&run, "verified")["events"].as_u64().unwrap();
    for one in heard {
        assert_eq!(one, (0..all).collect::<Vec<_>>());
    }
}
