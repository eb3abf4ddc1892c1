//! Who may connect, what a hostile client gets, and how it ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use lula_protocol::ToolOutputDetails;
use serde_json::{Value, json};

use super::{Scene, done, refusal};
use crate::support::LulaEnv;

pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A runner on a port of its own.
pub(super) struct Port {
    child: Child,
    pub(super) place: String,
}

impl Port {
    fn start(world: &LulaEnv, variables: &[(&str, &str)]) -> Self {
        Self::start_with(world, variables, &[])
    }

    pub(super) fn start_with(world: &LulaEnv, variables: &[(&str, &str)], more: &[&str]) -> Self {
        let root = world.work();
        let arguments = ["runner", "--json", "--listen", "127.0.0.1:0", "--root"];
        let root = [root.to_str().unwrap()];
        let mut command = world.command(&[&arguments[..], &root, more].concat());
        command
            .envs(variables.iter().copied())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        let mut byte = [0];
        // One JSON document, printed over several lines.
        let place = loop {
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "it ended");
            said.push(byte[0]);
            if let Ok(document) = serde_json::from_slice::<Value>(&said) {
                break document["listening"].as_str().unwrap().to_owned();
            }
        };
        Self { child, place }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        // One that is turned away early may not be read to its end.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, key: Option<&str>) -> String {
        let key = key.map_or(String::new(), |key| {
            format!("authorization: Bearer {key}\r\n")
        });
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{key}\r\n"
        ))
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_port_needs_a_key_and_takes_no_other() {
    let world = LulaEnv::new();
    let root = world.work();
    let root = root.to_str().unwrap();
    let refused = world.run(&["runner", "--listen", "127.0.0.1:0", "--root", root]);
    refused.exits(2).says("needs a key");
    let short = [("LULA_RUNNER_KEY", "short")];
    let refused = world.run_with(
        &short,
        &["runner", "--listen", "127.0.0.1:0", "--root", root],
    );
    refused.exits(2).says("needs a key");

    let port = Port::start(
        &world,
        &[("LULA_RUNNER_KEY", KEY), ("SOME_API_KEY", "canary-4711")],
    );
    let status = |answer: String| answer.split(' ').nth(1).unwrap_or_default().to_owned();
    assert_eq!(status(port.get("/healthz", None)), "200");
    assert_eq!(status(port.get("/v1/capabilities", None)), "401");
    assert_eq!(status(port.get("/v1/capabilities", Some("wrong"))), "401");
    assert_eq!(status(port.get("/v1/capabilities", Some(&KEY[1..]))), "401");
    assert_eq!(status(port.get("/v1/capabilities", Some(KEY))), "200");
    let environ = std::fs::read(format!("/proc/{}/environ", port.child.id())).unwrap();
    assert!(
        !String::from_utf8_lossy(&environ).contains("canary-4711"),
        "a model's key was kept"
    );
}

#[test]
fn nonsense_gets_an_answer_and_never_a_server_error() {
    let world = LulaEnv::new();
    let port = Port::start(&world, &[("LULA_RUNNER_KEY", KEY)]);
    let authorised = format!("host: x\r\nconnection: close\r\nauthorization: Bearer {KEY}\r\n");
    let send = |path: &str, kind: &str, body: &str| {
        let length = body.len();
        port.ask(&format!(
            "POST {path} HTTP/1.1\r\n{authorised}content-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
    };
    let cases = [
        (send("/v1/tools/execute", "application/json", "{"), "400"),
        (send("/v1/tools/execute", "application/json", "null"), "400"),
        (send("/v1/tools/execute", "text/plain", "{}"), "415"),
        (send("/v1/workspaces/nonsense/diff", "application/json", "{}"), "404"),
        (send("/v1/workspaces", "application/json", r#"{"path": "/", "trusted": true}"#), "400"),
        (send("/v1/workspaces", "application/json", "{\"path\": \"/\\u0000\"}"), "404"),
        (send("/v1/nowhere", "application/json", "{}"), "404"),
        (port.get("/v1/tools/execute", Some(KEY)), "405"),
        (port.ask(&format!("POST /v1/workspaces HTTP/1.1\r\n{authorised}content-type: application/json\r\ncontent-length: 99999999999\r\n\r\n")), "413"),
        (port.ask("\u{0}\u{1}garbage\r\n\r\n"), "400"),
    ];
    for (answer, status) in cases {
        let got = answer.split(' ').nth(1).unwrap_or_default();
        assert_eq!(got, status, "{answer}");
    }
    let big = format!("{{\"path\": \"{}\"}}", "x".repeat(17 << 20));
    assert!(!send("/v1/workspaces", "application/json", &big).contains(" 500 "));
}

#[test]
fn a_client_that_says_nothing_is_let_go() {
    let scene = Scene::new(&[("a", "")]);
    let socket = socket(&scene);
    let mut idle = UnixStream::connect(socket).unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ")
        .unwrap();
    idle.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let mut answer = Vec::new();
    idle.read_to_end(&mut answer).unwrap();
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
}

/// The socket of a scene's runner, found by what the kernel knows of the process.
fn socket(scene: &Scene) -> std::path::PathBuf {
    let arguments = std::fs::read(format!("/proc/{}/cmdline", scene.pid())).unwrap();
    let arguments = String::from_utf8(arguments).unwrap();
    let listen = arguments
        .split('\0')
        .find_map(|word| word.strip_prefix("unix:"))
        .unwrap();
    listen.into()
}

#[test]
fn a_socket_is_its_owners_alone() {
    let scene = Scene::new(&[("a", "")]);
    let mode = std::fs::metadata(socket(&scene))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_was_begun_is_finished_before_it_ends() {
    let mut scene = Scene::new(&[("a", "")]);
    let call = scene.call("exec", json!({"argv": ["sh", "-c", "sleep 1; echo done"]}));
    let spawned = scene.spawned.take().unwrap();
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(spawned.pid().unwrap()).unwrap()).unwrap();
    let result = scene.runtime.block_on(async {
        let client = spawned.client().clone();
        let sent = tokio::spawn(async move { client.execute(&call).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        sent.await.unwrap()
    });
    let output = done(result.unwrap());
    assert!(
        matches!(
            output.details,
            Some(ToolOutputDetails::Command { status: 0, .. })
        ),
        "{output:?}"
    );
    scene.wait(spawned.shut_down()).unwrap();
}

#[test]
fn the_document_describes_what_is_served() {
    let scene = Scene::new(&[("a", "")]);
    let mut stream = UnixStream::connect(socket(&scene)).unwrap();
    stream
        .write_all(b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let document: Value = serde_json::from_str(body).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let capabilities = scene.wait(scene.client().capabilities()).unwrap();
    assert_eq!(capabilities.tools.len(), 11);
    let unknown = lula_protocol::WorkspaceId::from_parts(1, [9; 10]);
    let asked = scene.wait(scene.client().workspace(&unknown));
    assert_eq!(refusal(asked), (404, "L1009".to_owned()));
}
