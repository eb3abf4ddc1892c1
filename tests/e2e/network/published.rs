//! Servers inside a sandbox, reached from this machine and from its neighbours by explicit grant, and in no
//! other way. Only this machine's own loopback is used.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use lula_protocol::{
    EffectId, ProtocolVersion, RunId, ToolAction, ToolCall, ToolOutcome, ToolOutputDetails,
    WorkspaceId,
};
use lula_runner_api::client::{RunnerClient, RunnerCommand};
use serde_json::{Value, json};

use super::Stage;
use crate::support::LulaEnv;

/// Says `hello` to each client, whatever it asks, on the port given.
const SERVER: &str = "
import socket, sys
s = socket.create_server(('127.0.0.1', int(sys.argv[1])))
while True:
    c, _ = s.accept()
    c.recv(1000)
    c.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nhello')
    c.close()
";

/// A command with a server in it, and what it says on stderr.
struct Serving {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn begin(world: &LulaEnv, flags: &[&str]) -> Serving {
    let command = ["--", "python3", "-c", SERVER, "8080"];
    let line = [&["exec"], flags, &command].concat();
    let mut child = world
        .command(&line)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    Serving { child, said }
}

impl Serving {
    /// Where the command says that the server is.
    fn place(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        let place = line.strip_prefix("published: ").unwrap_or_else(|| {
            panic!("{line}");
        });
        place.split(' ').next().unwrap().to_owned()
    }
}

/// What is answered there; nothing where nothing answers.
fn asked(place: &str) -> Option<String> {
    let mut stream = TcpStream::connect(place).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    (!answer.is_empty()).then_some(answer)
}

/// What is answered there, once the server listens.
fn answered(place: &str) -> String {
    let begun = Instant::now();
    loop {
        if let Some(answer) = asked(place) {
            return answer;
        }
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "no server answers"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn door(world: &LulaEnv) -> Value {
    let begun = Instant::now();
    loop {
        let doors = world.run(&["net", "list", "--json"]).exits(0).json();
        if let Some(door) = doors.as_array().and_then(|doors| doors.last()) {
            return door.clone();
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "no sandbox");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_inside_is_reached_where_it_was_published_and_nowhere_else() {
    let world = LulaEnv::new();
    let mut serving = begin(&world, &["--publish", "0:8080"]);
    let place = serving.place();
    assert!(answered(&place).ends_with("hello"));
    // The log tells who was let in, and to what.
    let log = world.run(&["net", "log", "--json"]).exits(0).json();
    let entries = log.as_array().unwrap();
    let last = entries.last().unwrap();
    assert_eq!(last["record"]["stage"], "published", "{last}");
    assert_eq!(last["record"]["verdict"], "allowed");
    assert_eq!(last["record"]["rule"], "--publish 0:8080");
    assert_eq!(last["record"]["port"], 8080);
    let shown = world.run(&["net", "log"]).exits(0).stdout;
    assert!(shown.contains("inside:8080"), "{shown}");
    let published = door(&world)["published"].to_string();
    assert!(
        published.contains(&format!("{place} -> 8080")),
        "{published}"
    );
    // It ends with its sandbox.
    drop(serving);
    let begun = Instant::now();
    while asked(&place).is_some() {
        assert!(begun.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn without_a_grant_a_server_inside_is_reached_by_nothing() {
    let world = LulaEnv::new();
    // The server reaches itself; the port of this machine leads nowhere.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let line = format!(
        "python3 -c \"{SERVER}\" {port} & for i in $(seq 200); do \
         curl -s --max-time 5 http://127.0.0.1:{port}/ && break; sleep 0.1; done; sleep 2; kill $!"
    );
    let mut child = world
        .command(&["exec", "--", "sh", "-c", &line])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut hello = [0; 5];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut hello)
        .unwrap();
    assert_eq!(&hello, b"hello");
    assert_eq!(asked(&format!("127.0.0.1:{port}")), None);
    child.wait().unwrap();
    // A repository cannot publish.
    std::fs::write(
        world.work().join("lula.toml"),
        "[network]\npublish = [\"0:8080\"]\n",
    )
    .unwrap();
    let ran = world.run(&["exec", "--json", "--", "true"]);
    assert!(!ran.stdout.contains("published"), "{}", ran.stdout);
}

#[test]
fn the_receipt_and_the_audit_say_what_was_published() {
    let world = LulaEnv::new();
    let line = ["exec", "--json", "--publish", "web=0:8080", "--", "true"];
    let document = world.run(&line).exits(0).json();
    let layers = document["receipt"]["layers"].as_array().unwrap().clone();
    let egress = layers.iter().find(|layer| layer["layer"] == "egress");
    let published = egress.unwrap()["published"][0].as_str().unwrap().to_owned();
    assert!(
        published.ends_with("-> 8080 (web.lula.internal)"),
        "{published}"
    );
}

#[test]
fn a_server_is_published_and_taken_back_while_it_runs() {
    let world = LulaEnv::new();
    let _serving = begin(&world, &["--net", "pkg.example.org"]);
    assert_eq!(door(&world)["published"], json!([]));
    let granted = world.run(&["grant", "last", "--port", "0:8080", "--json"]);
    let doors = granted.exits(0).json();
    let published = doors[0]["published"][0].as_str().unwrap();
    let place = published.split(' ').next().unwrap().to_owned();
    assert!(answered(&place).ends_with("hello"));
    world
        .run(&["grant", "last", "--port", "8080", "--revoke"])
        .exits(0)
        .says("taken back from net-");
    let begun = Instant::now();
    while asked(&place).is_some() {
        assert!(begun.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(50));
    }
    let again = ["grant", "last", "--port", "8080", "--revoke"];
    world.run(&again).exits(2).says("is not published");
    let audit = world.run(&["audit", "show"]).exits(0);
    for act in ["net.publish", "net.unpublish"] {
        assert!(audit.stdout.contains(act), "{act}: {}", audit.stdout);
    }
}

#[test]
fn a_port_that_cannot_be_had_is_told_before_anything_runs() {
    let world = LulaEnv::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (word, said) in [
        (port.as_str(), "cannot be had"),
        ("443", "answered there"),
        ("example", "OUTSIDE:INSIDE"),
    ] {
        let line = [
            "exec",
            "--write",
            "direct",
            "--publish",
            word,
            "--",
            "touch",
            "ran",
        ];
        world.run(&line).exits(2).says(said);
    }
    assert!(!world.work().join("ran").exists());
    let line = ["exec", "--net-host", "--publish", "0:8080", "--", "true"];
    world.run(&line).exits(2).says("leave --publish out");
}

/// Does something in a workspace of a runner.
fn exec(
    runtime: &tokio::runtime::Runtime,
    client: &RunnerClient,
    workspace: &WorkspaceId,
    input: &Value,
) -> Option<ToolOutputDetails> {
    let action: ToolAction =
        serde_json::from_value(json!({"tool": "exec", "input": input})).unwrap();
    let call = ToolCall {
        protocol: ProtocolVersion,
        effect: EffectId::from_parts(1, crate::runner::fresh()),
        epoch: 1,
        run: RunId::from_parts(1, [7; 10]),
        workspace: workspace.clone(),
        action,
    };
    match runtime.block_on(client.execute(&call)).unwrap().outcome {
        ToolOutcome::Done { output } => output.details,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sandbox_of_a_run_reaches_the_server_of_another_by_name() {
    let stage = Stage::new();
    let world = &stage.world;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let spawn = RunnerCommand::new(env!("CARGO_BIN_EXE_lula"))
        .pass_on(lula_sandbox::HostToolchains::variables())
        .root(world.work())
        .state(world.home().join("state"))
        .variable("HOME", world.home())
        .argument("--publish")
        .argument("db=0:5432");
    let runner = runtime.block_on(spawn.start()).unwrap();
    let client = runner.client();
    let path = world.work().to_str().unwrap().to_owned();
    let open = || runtime.block_on(client.open(&path, "a test")).unwrap().id;
    let (first, second) = (open(), open());
    let server = json!({"argv": ["python3", "-c", SERVER, "5432"], "background": true});
    exec(&runtime, client, &first, &server);
    let line = "curl -s --retry 60 --retry-delay 1 --retry-all-errors --max-time 60 http://db.lula.internal:5432/";
    let asks = |line: &str| json!({"argv": ["sh", "-c", line]});
    let Some(ToolOutputDetails::Command { status, stdout, .. }) =
        exec(&runtime, client, &second, &asks(line))
    else {
        panic!("no command");
    };
    assert_eq!((status, stdout.as_str()), (0, "hello"));
    // Ports that are not published stay the server's own, and so do other names.
    for line in [
        "curl -sS --max-time 5 http://db.lula.internal:8080/",
        "curl -sS --max-time 5 http://web.lula.internal:5432/",
        "curl -sS --max-time 5 http://127.0.0.1:5432/",
    ] {
        let told = exec(&runtime, client, &second, &asks(line));
        let Some(ToolOutputDetails::Command { status, .. }) = told else {
            panic!("{told:?}");
        };
        assert_ne!(status, 0, "{line}");
    }
    runtime.block_on(runner.shut_down()).unwrap();
}
