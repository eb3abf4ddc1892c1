//! Bounds, and programs that try to hold something up.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
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

/// Opens so many connections at once, says something on each, and counts those that are answered and those
/// that are turned away. What is neither in time hangs.
const FLOOD: &str = r#"
import resource, select, socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
address = socket.gethostbyname(host)
poll, open_ones, answered, refused = select.epoll(), {}, 0, 0
for at in range(count):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex((address, port))
    open_ones[one.fileno()] = one
    poll.register(one, select.EPOLLOUT)
while open_ones:
    ready = poll.poll(60)
    if not ready:
        break
    for number, events in ready:
        one = open_ones[number]
        try:
            if events & select.EPOLLOUT:
                one.send(b"x")
                poll.modify(one, select.EPOLLIN)
                continue
            done = one.recv(1)
        except OSError:
            done = b""
        answered, refused = answered + len(done), refused + (not done)
        poll.unregister(one)
        del open_ones[number]
        one.close()
print(answered, refused, len(open_ones))
"#;

/// A server of its own process, so that descriptors are enough: echoes, and tells its port first.
const ECHO: &str = r#"
import asyncio, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
async def serve(reader, writer):
    try:
        while data := await reader.read(1000):
            writer.write(data)
    except OSError:
        pass
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"#;

#[test]
fn of_ten_thousand_connections_at_once_each_is_answered_or_turned_away() {
    many_descriptors();
    let mut server = Command::new("python3")
        .args(["-c", ECHO])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(server.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let port: u16 = line.trim().parse().unwrap();
    // As many as it may have, and more than it may have.
    for most in [10_000, 300] {
        let sandbox = Setup::rules(&["tcp://db.example.org:PORT private"], port)
            .limits(|limits| {
                limits.connections = most;
                limits.connects_per_second = 100_000;
            })
            .start();
        let port = port.to_string();
        let flood = ["-c", FLOOD, "db.example.org", &port, "10000"];
        let ran = sandbox.run("python3", &flood);
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        let stdout = String::from_utf8_lossy(&ran.stdout).into_owned();
        let counts: Vec<u32> = stdout
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        let [answered, refused, hanging] = counts[..] else {
            panic!("{stdout} {stderr}");
        };
        assert_eq!((answered + refused, hanging), (10_000, 0), "{stderr}");
        assert!(answered >= most.min(5_000), "{answered} of {most}");
        if most < 1000 {
            assert!(refused > 0, "{answered}");
            sandbox.refused(EgressRefusal::LimitReached);
        }
        // It serves as before.
        let one = ["-c", FLOOD, "db.example.org", &port, "1"];
        let ran = sandbox.run("python3", &one);
        assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "1 0 0");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
