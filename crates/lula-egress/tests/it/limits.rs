//! Bounds, and programs that try to hold something up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use lula_egress::{EgressRefusal, EgressStage};

use crate::sandbox::{Setup, many_descriptors};
use crate::server::Server;

#[test]
fn a_thousand_connections_at_once_are_served() {
    many_descriptors();
    let server = Server::echo();
    let sandbox = Setup::rules(&["tcp://db.example.org:PORT private"], server.port)
        .limits(|limits| {
            limits.connections = 1000;
            limits.connects_per_second = 100_000;
        })
        .start();
    let address = sandbox.resolve("db.example.org").unwrap().to_string();
    let mut open: Vec<TcpStream> = (0..1000)
        .map(|_| sandbox.dial(&address, server.port).unwrap())
        .collect();
    for (at, stream) in (0_u32..).zip(&mut open) {
        stream.write_all(&at.to_be_bytes()).unwrap();
    }
    for (at, stream) in (0_u32..).zip(&mut open) {
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(u32::from_be_bytes(answer), at);
    }
    // One more is turned away, and says why.
    let mut more = sandbox.dial(&address, server.port).unwrap();
    assert_eq!(more.read(&mut [0]).unwrap_or(0), 0);
    sandbox.refused(EgressRefusal::LimitReached);
    // Those that end make room.
    drop(open);
    sandbox.record_where(|record| record.stage == EgressStage::Connection && record.bytes_up == 4);
    let mut next = sandbox.dial(&address, server.port).unwrap();
    next.write_all(b"x").unwrap();
    next.read_exact(&mut [0]).unwrap();
}

#[test]
fn a_hello_that_never_ends_is_not_waited_for() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT private"], server.port)
        .limits(|limits| limits.header_timeout_ms = 300)
        .start();
    let mut stream = sandbox.connect("a.example.org", server.port);
    let mut slow = stream.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        for byte in [22, 3, 1, 2, 0, 1, 0, 1]
            .into_iter()
            .chain(std::iter::repeat_n(0, 200))
        {
            if slow.write_all(&[byte]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    sandbox.refused(EgressRefusal::TooSlow);
    assert_eq!(server.connections(), 0);
    drop(stream);
    dripping.join().unwrap();
}

#[test]
fn a_head_that_never_ends_is_not_waited_for() {
    let server = Server::http();
    let sandbox = Setup::rules(&["http://a.example.org:PORT private"], server.port)
        .limits(|limits| limits.header_timeout_ms = 300)
        .start();
    let mut stream = sandbox.connect("a.example.org", server.port);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a.example.org\r\nX-Slow: ")
        .unwrap();
    let started = Instant::now();
    let _ = stream.read_to_end(&mut Vec::new());
    assert!(started.elapsed() < Duration::from_secs(15));
    sandbox.refused(EgressRefusal::TooSlow);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_connection_on_which_nothing_happens_is_closed() {
    let server = Server::echo();
    let sandbox = Setup::rules(&["tcp://db.example.org:PORT private"], server.port)
        .limits(|limits| limits.idle_timeout_ms = 200)
        .start();
    let mut stream = sandbox.connect("db.example.org", server.port);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    let record = sandbox.record(EgressStage::Connection);
    assert!(record.failure.unwrap().contains("nothing was said"));
}

#[test]
fn bytes_beyond_the_limit_do_not_pass() {
    let server = Server::https();
    let rules = [
        "a.example.org:PORT private",
        "b.example.org:PORT/** private",
    ];
    for name in ["a.example.org", "b.example.org"] {
        let sandbox = Setup::rules(&rules, server.port)
            .limits(|limits| limits.bytes_down = 2 << 20)
            .start();
        let host = format!("{name}:{}", server.port);
        let answer = sandbox
            .tls(name, server.port)
            .get(&host, "/bytes/30000000", "")
            .unwrap_or_default();
        assert!(answer.len() < 3 << 20, "{name}: {}", answer.len());
        sandbox.refused(EgressRefusal::LimitReached);
    }
}

#[test]
fn too_many_connections_in_a_second_are_turned_away() {
    let server = Server::echo();
    let sandbox = Setup::rules(&["tcp://db.example.org:PORT private"], server.port)
        .limits(|limits| limits.connects_per_second = 1)
        .start();
    let address = sandbox.resolve("db.example.org").unwrap().to_string();
    let answered = (0..30)
        .filter(|_| {
            let mut stream = sandbox.dial(&address, server.port).unwrap();
            stream.write_all(b"x").is_ok() && stream.read(&mut [0]).unwrap_or(0) == 1
        })
        .count();
    assert!((1..30).contains(&answered), "{answered}");
    sandbox.refused(EgressRefusal::LimitReached);
}
