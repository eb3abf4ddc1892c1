//! Against the real servers: they answer, and nothing of them is left.

use std::{fs, net::TcpStream, path::Path};

use super::*;

fn port(url: &str) -> u16 {
    let (_, tail) = url.rsplit_once(':').expect("a url with a port");
    tail.split('/')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port")
}

fn answers(need: Need, url: &str) -> bool {
    match need {
        Need::Postgres => postgres::ping(port(url)).is_ok(),
        Need::Redis => redis::ping(port(url)).is_ok(),
    }
}

struct Trace {
    need: Need,
    url: String,
    pid: u32,
    directory: std::path::PathBuf,
}

fn start_all() -> (Servers, Vec<Trace>) {
    let mut servers = Servers::default();
    for need in Need::ALL {
        servers.start(need).expect("the server starts");
    }
    let traces = servers
        .0
        .iter()
        .map(|(need, running)| Trace {
            need: *need,
            url: running.url.clone(),
            pid: running.process.pid(),
            directory: running.process.directory().to_path_buf(),
        })
        .collect();
    (servers, traces)
}

fn assert_gone(traces: &[Trace]) {
    for Trace {
        need,
        url,
        pid,
        directory,
    } in traces
    {
        let address = ("127.0.0.1", port(url));
        assert!(
            TcpStream::connect(address).is_err(),
            "{need:?} still listens at {url}"
        );
        assert!(
            !Path::new(&format!("/proc/{pid}")).exists(),
            "{need:?} is still process {pid}"
        );
        assert!(!directory.exists(), "{need:?} left {}", directory.display());
    }
}

#[test]
fn both_servers_answer_and_are_gone_afterwards() {
    let (servers, traces) = start_all();
    let told = servers
        .variables()
        .map(|(name, url)| (name, url.to_owned()))
        .collect::<Vec<_>>();
    assert_eq!(told.len(), 2);
    for (trace, (name, url)) in traces.iter().zip(&told) {
        assert_eq!(*name, trace.need.variable());
        assert!(
            answers(trace.need, url),
            "{:?} does not answer at {url}",
            trace.need
        );
        assert!(trace.directory.exists());
    }
    drop(servers);
    assert_gone(&traces);
}

#[test]
fn a_panic_stops_the_servers_too() {
    let (servers, traces) = start_all();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _held = servers;
        panic!("a test went wrong");
    }));
    assert!(outcome.is_err());
    assert_gone(&traces);
}

#[test]
fn the_servers_do_not_run_as_root() {
    let (_servers, traces) = start_all();
    for Trace { need, pid, .. } in &traces {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
        let ids = status
            .lines()
            .find(|line| line.starts_with("Uid:"))
            .expect("its user");
        assert!(
            !ids.split_whitespace().skip(1).any(|id| id == "0"),
            "{need:?} runs as {ids}"
        );
    }
}

#[test]
fn crates_say_which_servers_their_tests_need() {
    let metadata = |needs: &str| {
        serde_json::from_str::<Metadata>(&format!(
            r#"{{"packages": [
                {{"name": "lula-store", "manifest_path": "/a/Cargo.toml",
                  "metadata": {{"lula": {{"needs": {needs}}}}}}},
                {{"name": "lula", "manifest_path": "/b/Cargo.toml", "metadata": null}}
            ]}}"#
        ))
        .expect("metadata")
    };
    let both = needs(&metadata(r#"["redis", "postgres"]"#)).expect("known servers");
    assert_eq!(both.into_iter().collect::<Vec<_>>(), Need::ALL);
    assert!(needs(&metadata("[]")).expect("no servers").is_empty());
    let error = needs(&metadata(r#"["mysql"]"#)).expect_err("an unknown server");
    assert!(
        error.to_string().contains("lula-store needs `mysql`"),
        "{error}"
    );
}
