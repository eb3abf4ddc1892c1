//! Grants while a command runs, and their end.

use std::time::{Duration, Instant};

use super::Stage;
use crate::support::Ran;

/// Waits for a file that the command in the sandbox writes into its layer, by what `lula net list` tells.
fn until_listed(stage: &Stage) {
    let begun = Instant::now();
    loop {
        let doors = stage.world.run(&["net", "list", "--json"]).exits(0).json();
        if doors.as_array().is_some_and(|doors| !doors.is_empty()) {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "no sandbox came up"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_grant_reaches_a_sandbox_that_runs() {
    let stage = Stage::new();
    let line = "for i in $(seq 600); do curl -sSf --max-time 5 https://other.example.org/late && exit 0; \
                sleep 0.1; done; exit 9";
    let child = stage.begin("pkg.example.org", line);
    until_listed(&stage);
    stage
        .world
        .run(&["grant", "last", "other.example.org"])
        .exits(0)
        .says("granted to net-");
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(ran.stdout, "GET /late says other.example.org\n");
    let audit = stage.world.run(&["audit", "show"]).exits(0);
    assert!(audit.stdout.contains("net.grant"), "{}", audit.stdout);
    stage
        .world
        .run(&["grant", "last", "other.example.org"])
        .exits(2)
        .says("lula net list");
}

#[test]
fn what_is_taken_back_is_cut() {
    let stage = Stage::new();
    // A connection that stays open, and says when it is over.
    let script = "
import socket, ssl, time
s = ssl.create_default_context().wrap_socket(socket.create_connection(('pkg.example.org', 443)), server_hostname='pkg.example.org')
s.sendall(b'GET /open HTTP/1.1\\r\\nHost: pkg.example.org\\r\\n\\r\\n')
s.settimeout(60)
said = b''
while not said.endswith(b'says pkg.example.org\\n'): said += s.recv(1000)
print(said.decode().splitlines()[0], flush=True)
s.sendall(b'GET /still HTTP/1.1\\r\\nHost: pkg.example.org\\r\\n\\r\\n')
try:
    while s.recv(1000): pass
    print('ended')
except OSError: print('cut')
try: socket.create_connection(('pkg.example.org', 443)); print('open')
except OSError: print('closed')
";
    let arguments = [
        "exec",
        "--net",
        "pkg.example.org",
        "--",
        "python3",
        "-c",
        script,
    ];
    let mut command = stage.command(&[], &arguments);
    command.stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    until_listed(&stage);
    let begun = Instant::now();
    while !stage.heard_so_far().contains("/still") {
        assert!(begun.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(20));
    }
    let revoke = ["grant", "last", "pkg.example.org", "--revoke"];
    stage.world.run(&revoke).exits(0).says("taken back");
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(0);
    assert!(ran.stdout.starts_with("HTTP/1.1 200"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("cut\n") || ran.stdout.contains("ended\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.trim_end().ends_with("closed"), "{}", ran.stdout);
}

impl Stage {
    /// What the servers heard until now; nothing where they are not up yet.
    fn heard_so_far(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("heard")).unwrap_or_default()
    }
}
