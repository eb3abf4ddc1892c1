//! Ports of servers inside, reached from outside and from a neighbour, and only where they were published.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use lula_egress::{
    ConnectionSide, DomainName, EgressRefusal, EgressStage, EgressVerdict, SandboxNeighbours,
    SandboxNetwork,
};

use crate::sandbox::{Sandbox, Setup, read_all};
use crate::server::Server;

/// Answers every line with itself, until the listener is gone.
fn echo(listener: TcpListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    let _ = stream.write_all(&bytes[..length]);
                }
            });
        }
    });
}

fn outside() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

fn published(sandbox: &Sandbox, port: &str) -> std::net::SocketAddr {
    let listener = outside();
    let at = listener.local_addr().unwrap();
    let port = port.parse().unwrap();
    sandbox.engine().publish(port, listener).unwrap();
    at
}

fn said(stream: &mut TcpStream, text: &str) -> String {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

#[test]
fn a_published_port_leads_to_the_server_inside() {
    let sandbox = Setup::rules(&[], 1).start();
    for address in ["0.0.0.0", "127.0.0.1", "::1"] {
        let port = if address == "::1" { 8081 } else { 8080 };
        let server = sandbox.serve(address, port);
        let ours = server.try_clone().unwrap();
        echo(server);
        let at = published(&sandbox, &format!("0:{port}"));
        let mut client = TcpStream::connect(at).unwrap();
        assert_eq!(said(&mut client, "hello"), "hello", "{address}");
        drop(client);
        let record = sandbox.record(EgressStage::Published);
        assert_eq!(record.verdict, EgressVerdict::Allowed);
        assert_eq!((record.bytes_up, record.bytes_down), (5, 5));
        assert_eq!(record.rule.as_deref(), Some("--publish 0:8080"));
        rustix::net::shutdown(&ours, rustix::net::Shutdown::Both).unwrap();
    }
}

#[test]
fn what_was_not_published_or_is_no_longer_leads_nowhere() {
    let sandbox = Setup::rules(&[], 1).start();
    echo(sandbox.serve("0.0.0.0", 8080));
    let at = published(&sandbox, "0:8080");
    let mut open = TcpStream::connect(at).unwrap();
    assert_eq!(said(&mut open, "x"), "x");
    assert_eq!(sandbox.engine().published().len(), 1);
    assert!(sandbox.engine().unpublish(8080));
    // The open connection is cut, and there is no new one.
    assert_eq!(read_all(&mut open).unwrap_or_default(), "");
    sandbox.refused(EgressRefusal::Revoked);
    let closed = || TcpStream::connect(at).is_err();
    assert!((0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        closed()
    }));
    assert!(!sandbox.engine().unpublish(8080));
}

#[test]
fn a_server_that_is_not_there_is_told_and_not_waited_for() {
    let sandbox = Setup::rules(&[], 1).start();
    let at = published(&sandbox, "0:8080");
    let mut client = TcpStream::connect(at).unwrap();
    assert_eq!(read_all(&mut client).unwrap_or_default(), "");
    let record = sandbox.record(EgressStage::Published);
    let failure = record.failure.unwrap();
    assert!(failure.contains("on port 8080"), "{failure}");
}

/// One sandbox under one name.
struct Neighbour(&'static str, u16, Arc<dyn SandboxNetwork>);

impl SandboxNeighbours for Neighbour {
    fn find(&self, name: &DomainName, port: u16) -> Option<Arc<dyn SandboxNetwork>> {
        let Self(known, published, network) = self;
        (name.as_str() == *known && port == *published).then(|| Arc::clone(network))
    }
}

#[test]
fn a_neighbour_is_reached_by_name_where_both_sides_grant_it() {
    let first = Setup::rules(&[], 1).start();
    echo(first.serve("127.0.0.1", 5432));
    echo(first.serve("127.0.0.1", 5433));
    let neighbour = || Neighbour("db.lula.internal", 5432, first.network());
    let second = Setup::rules(&["tcp://db.lula.internal:5432"], 1)
        .neighbours(neighbour())
        .start();
    let mut stream = second.connect("db.lula.internal", 5432);
    assert_eq!(said(&mut stream, "select 1"), "select 1");
    drop(stream);
    let record = second.record(EgressStage::Connection);
    assert_eq!(record.name.as_deref(), Some("db.lula.internal"));
    assert_eq!(record.verdict, EgressVerdict::Allowed);
    // Another port of it is not published, and another name is not there.
    let address = second.resolve("db.lula.internal").unwrap().to_string();
    assert!(second.dial(&address, 5433).is_err());
    assert_eq!(
        second.resolve("web.lula.internal"),
        Err(ResponseCode::NXDomain)
    );
    // Without a rule of its own a sandbox does not know the name.
    let third = Setup::rules(&[], 1).neighbours(neighbour()).start();
    assert_eq!(
        third.resolve("db.lula.internal"),
        Err(ResponseCode::NXDomain)
    );
    // And without the other's grant a rule leads nowhere: such a name is never asked for outside.
    let fourth = Setup::rules(&["tcp://db.lula.internal:5432"], 1).start();
    fourth.resolver.set("db.lula.internal", &["127.0.0.1"]);
    assert_eq!(
        fourth.resolve("db.lula.internal"),
        Err(ResponseCode::NXDomain)
    );
    assert_eq!(fourth.resolver.asked(), Vec::<String>::new());
}

#[test]
fn a_port_that_is_granted_later_is_answered_from_then_on() {
    let server = Server::echo();
    let sandbox = Setup::rules(&["db.example.org:444 private"], 444).start();
    let address = sandbox.resolve("db.example.org").unwrap().to_string();
    assert!(sandbox.dial(&address, server.port).is_err());
    let rule = format!("tcp://db.example.org:{} private", server.port);
    sandbox.engine().grant(rule.parse().unwrap()).unwrap();
    let mut stream = sandbox.connect("db.example.org", server.port);
    assert_eq!(said(&mut stream, "x"), "x");
    // A port on which a program inside listens stays its own.
    let _own = sandbox.serve("0.0.0.0", 6000);
    let refused = sandbox
        .engine()
        .grant("tcp://db.example.org:6000".parse().unwrap());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("port 6000"), "{said}");
}

#[test]
fn a_connection_that_its_client_drops_did_not_fail() {
    let (plain, tls) = (Server::echo(), Server::https());
    for (rule, port) in [
        ("tcp://a.example.org:PORT private", plain.port),
        ("a.example.org:PORT private", tls.port),
        ("a.example.org:PORT/** private", tls.port),
    ] {
        let sandbox = Setup::rules(&[rule], port).start();
        if port == plain.port {
            let mut stream = sandbox.connect("a.example.org", port);
            said(&mut stream, "x");
            reset(&stream);
            drop(stream);
        } else {
            let mut talk = sandbox.tls("a.example.org", port);
            let host = format!("a.example.org:{port}");
            let request = format!("GET /bytes/30000000 HTTP/1.1\r\nHost: {host}\r\n\r\n");
            talk.0.write_all(request.as_bytes()).unwrap();
            talk.0.read_exact(&mut [0; 1000]).unwrap();
            reset(&talk.0.sock);
            drop(talk);
        }
        let record = sandbox.record(EgressStage::Connection);
        assert_eq!(record.failure, None, "{rule}");
        assert_eq!(record.verdict, EgressVerdict::Allowed, "{rule}");
        assert_eq!(record.dropped_by, Some(ConnectionSide::Inside), "{rule}");
    }
}

/// Ends a connection as a program that is killed with bytes unread.
fn reset(stream: &TcpStream) {
    let soon = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(stream, soon).unwrap();
}
