//! Credentials that never enter the sandbox.

use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lula_egress::{EgressRefusal, EgressStage};

use crate::sandbox::{Sandbox, Setup};
use crate::server::Server;

const SECRET: &str = "ghp_canary/0123456789/canary";

const POLICY: &str = r#"
    rules = [
        { domain = "api.example.org", port = PORT, private_addresses = true },
        { domain = "other.example.org", port = PORT, private_addresses = true, paths = ["/**"] },
    ]
    [[credentials]]
    name = "token"
    secret = { env = "TOKEN" }
    hosts = ["api.example.org"]
    port = PORT
    paths = ["/reflect/**", "/compressed", "/socket", "/repos/**", "/"]
"#;

fn sandbox(server: &Server) -> Sandbox {
    Setup::policy(POLICY, server.port).secret(SECRET).start()
}

fn get(sandbox: &Sandbox, server: &Server, name: &str, path: &str, headers: &str) -> String {
    let host = format!("{name}:{}", server.port);
    sandbox
        .tls(name, server.port)
        .get(&host, path, headers)
        .unwrap()
}

#[test]
fn the_server_gets_the_secret_and_the_sandbox_only_ever_has_the_placeholder() {
    let server = Server::https();
    let sandbox = sandbox(&server);
    let bearer = format!("Authorization: Bearer {}\r\n", sandbox.credentials[0]);
    let answer = get(&sandbox, &server, "api.example.org", "/repos/a", &bearer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(
        server.seen()[0].header("authorization"),
        Some(format!("Bearer {SECRET}").as_str())
    );
    let record = sandbox.record(EgressStage::Request);
    assert_eq!(record.credentials, ["token"]);
    assert!(!format!("{:?}", sandbox.records()).contains(SECRET));
}

#[test]
fn a_placeholder_anywhere_else_is_refused_and_reported() {
    let server = Server::https();
    let sandbox = sandbox(&server);
    let placeholder = sandbox.credentials[0].clone();
    let bearer = format!("Authorization: Bearer {placeholder}\r\n");
    for (what, name, path, headers) in [
        (
            "another host",
            "other.example.org",
            "/repos/a",
            bearer.clone(),
        ),
        ("another path", "api.example.org", "/user", bearer.clone()),
        (
            "another header",
            "api.example.org",
            "/repos/a",
            format!("Cookie: t={placeholder}\r\n"),
        ),
        (
            "the query",
            "api.example.org",
            &format!("/repos/a?token={placeholder}"),
            String::new(),
        ),
        (
            "the path",
            "api.example.org",
            &format!("/repos/{placeholder}"),
            String::new(),
        ),
        (
            "the referer too",
            "api.example.org",
            "/repos/a",
            format!("{bearer}Referer: {placeholder}\r\n"),
        ),
    ] {
        let answer = get(&sandbox, &server, name, path, &headers);
        assert!(
            answer.starts_with("HTTP/1.1 403") && answer.contains("\"token\""),
            "{what}: {answer}"
        );
    }
    assert!(server.seen().is_empty());
    let reported = sandbox.records().into_iter().filter(|record| {
        record
            .denial
            .as_ref()
            .is_some_and(|denial| denial.reason == EgressRefusal::PlaceholderMisused)
    });
    assert_eq!(reported.count(), 6);
}

#[test]
fn a_placeholder_in_a_body_is_refused_even_across_chunks() {
    let server = Server::https();
    let sandbox = sandbox(&server);
    let (first, second) = sandbox.credentials[0].split_at(9);
    let request = format!(
        "POST /repos/a HTTP/1.1\r\nHost: api.example.org:{}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        server.port,
        first.len(),
        second.len()
    );
    let answer = sandbox
        .tls("api.example.org", server.port)
        .say(&request)
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 403") && answer.contains("the body"),
        "{answer}"
    );
    sandbox.refused(EgressRefusal::PlaceholderMisused);
    assert!(server.seen().is_empty());
}

#[test]
fn a_secret_that_the_server_says_back_does_not_come_back() {
    let server = Server::https();
    let sandbox = sandbox(&server);
    let bearer = format!("Authorization: Bearer {}\r\n", sandbox.credentials[0]);
    let answer = get(&sandbox, &server, "api.example.org", "/reflect/me", &bearer);
    assert!(
        answer.contains("you said Bearer ****") && answer.contains(", did you not?"),
        "{answer}"
    );
    assert!(answer.contains("x-reflected: Bearer ****"), "{answer}");
    assert!(!answer.contains(SECRET));
    assert!(sandbox.record(EgressStage::Request).redacted);
}

#[test]
fn answers_are_asked_for_uncompressed_and_others_are_refused() {
    let server = Server::https();
    let sandbox = sandbox(&server);
    let headers = format!(
        "Authorization: Bearer {}\r\nAccept-Encoding: gzip, br\r\nRange: bytes=0-3\r\n",
        sandbox.credentials[0]
    );
    let answer = get(
        &sandbox,
        &server,
        "api.example.org",
        "/compressed",
        &headers,
    );
    assert!(
        answer.starts_with("HTTP/1.1 502") && answer.contains("compressed"),
        "{answer}"
    );
    let seen = &server.seen()[0];
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert_eq!(seen.header("range"), None);
}

#[test]
fn a_secret_is_not_said_back_through_a_websocket() {
    let server = Server::https();
    let sandbox = sandbox(&server);
    let mut conversation = sandbox.tls("api.example.org", server.port);
    let request = format!(
        "GET /socket HTTP/1.1\r\nHost: api.example.org:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer {}\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
        server.port, sandbox.credentials[0]
    );
    conversation.0.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        conversation.0.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let seen = &server.seen()[0];
    assert_eq!(
        seen.header("authorization"),
        Some(format!("Bearer {SECRET}").as_str())
    );
    assert_eq!(seen.header("sec-websocket-extensions"), None);
    // The echo stands for a server that says the secret.
    conversation
        .0
        .write_all(format!("<{SECRET}>g").as_bytes())
        .unwrap();
    let mut echo = vec![0; SECRET.len() + 3];
    conversation.0.read_exact(&mut echo).unwrap();
    assert_eq!(echo, format!("<{}>g", "*".repeat(SECRET.len())).as_bytes());
}

#[test]
fn no_secret_goes_unencrypted() {
    let server = Server::http();
    let policy = POLICY.replace(
        "port = PORT, private_addresses = true }",
        "port = PORT, protocol = \"http\", private_addresses = true }",
    );
    let sandbox = Setup::policy(&policy, server.port).secret(SECRET).start();
    let mut stream = sandbox.connect("api.example.org", server.port);
    write!(stream, "GET /repos/a HTTP/1.1\r\nHost: api.example.org:{}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n", server.port, sandbox.credentials[0]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(server.seen().is_empty());
}

#[test]
fn a_credential_without_its_secret_starts_nothing() {
    let error = Setup::policy(POLICY, 8443).try_start().err().unwrap();
    assert!(error.to_string().contains("\"token\""), "{error}");
}

#[test]
fn git_pushes_and_clones_with_a_password_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let server = crate::git::serve(folder.path());
    let policy = r#"
        rules = [{ domain = "git.example.org", port = PORT, private_addresses = true }]
        [[credentials]]
        name = "forge"
        secret = { env = "FORGE" }
        hosts = ["git.example.org"]
        port = PORT
        how = "basic_password"
    "#;
    let sandbox = Setup::policy(policy, server.port).secret(SECRET).start();
    let url = format!(
        "https://me:{}@git.example.org:{}/project.git",
        sandbox.credentials[0], server.port
    );
    let script = format!(
        "set -e; git init -q -b main one; cd one; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first; \
         git push -q {url} main; cd ..; git clone -q {url} two; git -C two log --format=%s"
    );
    let output = sandbox.run("sh", &["-c", &script]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "first\n",
        "{output:?}"
    );
    let wanted = format!("Basic {}", STANDARD.encode(format!("me:{SECRET}")));
    let authorized = server
        .seen()
        .iter()
        .filter(|seen| seen.header("authorization") == Some(&wanted))
        .count();
    assert!(authorized >= 3, "{authorized}");
    assert!(
        sandbox
            .records()
            .iter()
            .any(|record| record.credentials == ["forge"])
    );
}
