//! Connections that are opened because a rule speaks of requests.

use std::io::{Read, Write};

use lula_egress::{EgressRefusal, EgressStage, EgressVerdict, Relay};

use crate::sandbox::{Setup, read_all};
use crate::server::Server;

#[test]
fn a_rule_about_paths_is_held_to_for_each_request() {
    let server = Server::https();
    let sandbox = Setup::rules(&["GET api.example.org:PORT/repos/** private"], server.port).start();
    let host = format!("api.example.org:{}", server.port);
    let allowed = sandbox
        .tls("api.example.org", server.port)
        .get(&host, "/repos/a?page=2", "")
        .unwrap();
    assert!(
        allowed.starts_with("HTTP/1.1 200") && allowed.ends_with("hello from outside\n"),
        "{allowed}"
    );
    let denied = sandbox
        .tls("api.example.org", server.port)
        .get(&host, "/user", "")
        .unwrap();
    assert!(denied.starts_with("HTTP/1.1 403"), "{denied}");
    let grant = format!("GET api.example.org:{}/user private", server.port);
    assert!(denied.contains(&grant), "{denied}");
    assert_eq!(
        sandbox
            .refused(EgressRefusal::RequestNotAllowed)
            .denial
            .unwrap()
            .grant,
        Some(grant)
    );
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].target, "/repos/a?page=2");
    assert_eq!(seen[0].header("host"), Some(host.as_str()));
    let record = sandbox.record_where(|record| record.status == Some(200));
    assert_eq!(record.request.as_deref(), Some("GET /repos/a"));
    assert_eq!(record.relay, Some(Relay::Intercepted));
}

#[test]
fn a_host_other_than_the_server_name_is_refused() {
    let server = Server::https();
    let sandbox = Setup::rules(&["*.example.org:PORT/** private"], server.port).start();
    for host in ["other.example.org", "evil.example.com", "127.0.0.1"] {
        let answer = sandbox
            .tls("api.example.org", server.port)
            .get(host, "/", "")
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
    }
    sandbox.refused(EgressRefusal::HostMismatch);
    assert!(server.seen().is_empty());
}

#[test]
fn every_request_of_plain_http_is_judged() {
    let server = Server::http();
    let sandbox = Setup::rules(&["http://deb.example.org:PORT private"], server.port).start();
    let host = format!("deb.example.org:{}", server.port);
    let mut stream = sandbox.connect("deb.example.org", server.port);
    write!(stream, "GET /one HTTP/1.1\r\nHost: {host}\r\n\r\nGET /two HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n").unwrap();
    let answers = read_all(&mut stream).unwrap();
    assert!(
        answers.contains("200 OK") && answers.contains("421 Misdirected"),
        "{answers}"
    );
    let targets: Vec<String> = server.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(targets, ["/one"]);
}

#[test]
fn a_program_on_port_80_is_told_why_in_words() {
    let sandbox = Setup::rules(&[], 80).start();
    let mut stream = sandbox.dial("1.1.1.1", 80).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: 1.1.1.1\r\n\r\n")
        .unwrap();
    let answer = read_all(&mut stream).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 403") && answer.contains("without asking for a name"),
        "{answer}"
    );
}

#[test]
fn a_smuggled_request_reaches_no_server() {
    let server = Server::http();
    let sandbox = Setup::rules(
        &["GET,POST http://a.example.org:PORT/public/** private"],
        server.port,
    )
    .start();
    let host = format!("a.example.org:{}", server.port);
    let hidden = format!("GET /private HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let chunked_and_length = format!(
        "POST /public/x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
    );
    let length_and_chunked = format!(
        "POST /public/x HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nContent-Length: {}\r\n\r\n0\r\n\r\n{hidden}",
        5 + hidden.len()
    );
    let obfuscated = format!(
        "POST /public/x HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n{hidden}"
    );
    let two_lengths = format!(
        "POST /public/x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}",
        hidden.len()
    );
    let in_body = format!(
        "POST /public/x HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{hidden}",
        hidden.len()
    );
    for attack in [
        chunked_and_length,
        length_and_chunked,
        obfuscated,
        two_lengths,
        in_body,
    ] {
        let mut stream = sandbox.connect("a.example.org", server.port);
        stream.write_all(attack.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = read_all(&mut stream);
    }
    for seen in server.seen() {
        assert!(seen.target.starts_with("/public/"), "{seen:?}");
        assert!(
            !(seen.headers.contains_key("content-length")
                && seen.headers.contains_key("transfer-encoding"))
        );
    }
}

#[test]
fn connect_through_an_opened_connection_is_refused() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT/** private"], server.port).start();
    let answer = sandbox
        .tls("a.example.org", server.port)
        .say("CONNECT evil.example.com:443 HTTP/1.1\r\nHost: a.example.org\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(server.seen().is_empty());
}

#[test]
fn a_path_with_two_readings_is_below_no_pattern() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT/public/** private"], server.port).start();
    let host = format!("a.example.org:{}", server.port);
    for path in [
        "/public/../private",
        "/public/%2e%2e/private",
        "/public//x",
        "/public/..%2fprivate",
    ] {
        let answer = sandbox
            .tls("a.example.org", server.port)
            .get(&host, path, "")
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn both_sides_may_speak_http_2() {
    let server = Server::https();
    let sandbox = Setup::rules(&["GET a.example.org:PORT/** private"], server.port).start();
    let url = format!("https://a.example.org:{}/x", server.port);
    let output = sandbox.run(
        "curl",
        &["-sS", "--http2", "-w", "%{http_version}", &url, &url],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        text, "hello from outside\n2hello from outside\n2",
        "{output:?}"
    );
    assert_eq!(server.seen()[0].version, hyper::Version::HTTP_2);
    let output = sandbox.run("curl", &["-sS", "--http2", "-X", "DELETE", &url]);
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("no rule allows DELETE"),
        "{output:?}"
    );
}

#[test]
fn the_authority_of_http_2_must_be_the_server_name_too() {
    let server = Server::https();
    let sandbox = Setup::rules(&["*.example.org:PORT/** private"], server.port).start();
    let url = format!("https://a.example.org:{}/x", server.port);
    let host = format!("Host: b.example.org:{}", server.port);
    let output = sandbox.run(
        "curl",
        &["-sS", "--http2", "-w", "%{http_code}", "-H", &host, &url],
    );
    assert!(
        String::from_utf8_lossy(&output.stdout).ends_with("421"),
        "{output:?}"
    );
    assert!(server.seen().is_empty());
}

#[test]
fn a_server_that_speaks_only_http_1_is_reached_from_http_2() {
    let server = Server::https_1();
    let sandbox = Setup::rules(&["GET a.example.org:PORT/** private"], server.port).start();
    let url = format!("https://a.example.org:{}/bytes/[1-8]", server.port);
    let output = sandbox.run("curl", &["-sS", "--http2", "-Z", &url]);
    assert_eq!(output.stdout.len(), 36, "{output:?}");
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.version == hyper::Version::HTTP_11)
    );
}

#[test]
fn a_large_answer_and_a_large_body_pass_whole() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT/** private"], server.port).start();
    let host = format!("a.example.org:{}", server.port);
    let answer = sandbox
        .tls("a.example.org", server.port)
        .get(&host, "/bytes/5000000", "")
        .unwrap();
    assert_eq!(answer.split("\r\n\r\n").nth(1).unwrap().len(), 5_000_000);
    let body = "y".repeat(3_000_000);
    let request = format!(
        "POST /in HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = sandbox
        .tls("a.example.org", server.port)
        .say(&request)
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.seen().last().unwrap().body.len(), 3_000_000);
}

#[test]
fn a_websocket_passes_and_ends_with_its_rule() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT/socket private"], server.port).start();
    let mut conversation = sandbox.tls("a.example.org", server.port);
    let request = format!(
        "GET /socket HTTP/1.1\r\nHost: a.example.org:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.port
    );
    conversation.0.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        conversation.0.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    conversation.0.write_all(b"ping").unwrap();
    let mut echo = [0; 4];
    conversation.0.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"ping");
    let rule = format!("a.example.org:{}/socket private", server.port)
        .parse()
        .unwrap();
    sandbox.engine().revoke(&rule).unwrap();
    assert_eq!(conversation.0.read(&mut echo).unwrap_or(0), 0);
    sandbox.refused(EgressRefusal::Revoked);
}

#[test]
fn a_server_with_a_wrong_certificate_is_not_trusted_for_the_sandbox() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.com:PORT/** private"], server.port).start();
    let answer = sandbox
        .tls("a.example.com", server.port)
        .get(&format!("a.example.com:{}", server.port), "/", "")
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 502") && answer.contains("certificate"),
        "{answer}"
    );
    assert!(server.seen().is_empty());
}

#[test]
fn a_redirect_to_a_denied_host_leads_nowhere() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT/** private"], server.port).start();
    let url = format!("https://a.example.org:{}/elsewhere", server.port);
    let output = sandbox.run("curl", &["-sS", "-L", &url]);
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("resolve host: denied.example.org"),
        "{output:?}"
    );
    assert_eq!(
        sandbox.refused(EgressRefusal::NameNotAllowed).stage,
        EgressStage::Name
    );
}

#[test]
fn other_ways_to_a_server_are_not_advertised() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT/** private"], server.port).start();
    let answer = sandbox
        .tls("a.example.org", server.port)
        .get(&format!("a.example.org:{}", server.port), "/", "")
        .unwrap();
    assert!(!answer.to_lowercase().contains("alt-svc"), "{answer}");
}

#[test]
fn a_repository_narrows_what_the_operator_allows_and_a_grant_is_a_persons_word() {
    let server = Server::https();
    let toml = "[[rules]]\ndomain = \"*.example.org\"\nport = PORT\nprivate_addresses = true";
    let sandbox = Setup::policy(toml, server.port)
        .narrowed(&format!(
            "GET a.example.org:{}/public/** private",
            server.port
        ))
        .start();
    assert!(sandbox.resolve("b.example.org").is_err());
    let host = format!("a.example.org:{}", server.port);
    let answer = sandbox
        .tls("a.example.org", server.port)
        .get(&host, "/private", "")
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let answer = sandbox
        .tls("a.example.org", server.port)
        .get(&host, "/public/x", "")
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    sandbox
        .engine()
        .grant(
            format!("b.example.org:{} private", server.port)
                .parse()
                .unwrap(),
        )
        .unwrap();
    assert!(sandbox.resolve("b.example.org").is_ok());
    assert_eq!(
        sandbox
            .record_where(|record| record.status == Some(200))
            .verdict,
        EgressVerdict::Allowed
    );
}

#[test]
fn a_head_request_is_told_the_length_and_gets_no_body() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT/** private"], server.port).start();
    let request = format!(
        "HEAD /bytes/1234 HTTP/1.1\r\nHost: a.example.org:{}\r\nConnection: close\r\n\r\n",
        server.port
    );
    let answer = sandbox
        .tls("a.example.org", server.port)
        .say(&request)
        .unwrap();
    assert!(
        answer.contains("content-length: 1234") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
}

#[test]
fn requests_of_one_connection_share_one_to_the_server() {
    let server = Server::https();
    let sandbox = Setup::rules(&["a.example.org:PORT/** private"], server.port).start();
    let url = format!("https://a.example.org:{}/x", server.port);
    for version in ["--http1.1", "--http2"] {
        let before = server.connections();
        let output = sandbox.run("curl", &["-sS", version, &url, &url, &url]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(server.connections(), before + 1, "{version}");
    }
}
