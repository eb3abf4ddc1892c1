//! `lula exec`: behaves like the command, with a fence around it.

use std::io::Write;
use std::process::Stdio;

use crate::lula::{Ran, World};

#[test]
fn output_and_status_are_the_commands_own() {
    let world = World::new();
    let ran = world
        .run(&["exec", "--", "sh", "-c", "echo out; echo err >&2; exit 7"])
        .exits(7);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("out\n", "err\n")
    );
}

#[test]
fn standard_input_reaches_the_command() {
    let world = World::new();
    let mut child = world
        .command(&["exec", "--", "tr", "a-z", "A-Z"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(ran.stdout, "HELLO\n");
}

#[test]
fn the_workspace_is_shared_and_nothing_else_is() {
    let world = World::new();
    std::fs::write(world.home().join("secret"), "canary").unwrap();
    std::fs::write(world.work().join("in.txt"), "in\n").unwrap();
    let secret = world.home().join("secret");
    let script = format!(
        "cat in.txt > out.txt; cat {} 2>&1; ls /root /home 2>&1",
        secret.display()
    );
    let ran = world.run(&["exec", "--write", "direct", "--", "sh", "-c", &script]);
    assert!(!ran.stdout.contains("canary"), "{}", ran.stdout);
    assert_eq!(
        std::fs::read_to_string(world.work().join("out.txt")).unwrap(),
        "in\n"
    );
}

#[test]
fn the_callers_variables_do_not_reach_the_command() {
    let world = World::new();
    let ran = world
        .run_with(
            &[("AWS_SECRET_ACCESS_KEY", "canary")],
            &["exec", "--", "env"],
        )
        .exits(0);
    assert!(!ran.stdout.contains("canary"), "{}", ran.stdout);
}

#[test]
fn a_command_starts_where_the_person_is_and_sees_the_repository() {
    let world = World::new();
    std::fs::create_dir_all(world.work().join(".git")).unwrap();
    std::fs::create_dir_all(world.work().join("deep/er")).unwrap();
    std::fs::write(world.work().join("top.txt"), "top\n").unwrap();
    let mut command = world.command(&["exec", "--", "cat", "../../top.txt"]);
    command.current_dir(world.work().join("deep/er"));
    let ran = Ran::from(command.output().unwrap()).exits(0);
    assert_eq!(ran.stdout, "top\n");
}

#[test]
fn a_read_only_workspace_stays_as_it_is() {
    let world = World::new();
    let ran = world
        .run(&["exec", "--write", "none", "--", "touch", "new.txt"])
        .exits(1);
    assert!(
        ran.stderr.contains("Read-only file system"),
        "{}",
        ran.stderr
    );
    assert!(!world.work().join("new.txt").exists());
}

#[test]
fn time_that_runs_out_is_124_and_ends_the_whole_tree() {
    let world = World::new();
    let script = "setsid sh -c 'sleep 2; echo late > late.txt' & sleep 60";
    world
        .run(&[
            "exec",
            "--write=direct",
            "--timeout=300ms",
            "--",
            "sh",
            "-c",
            script,
        ])
        .exits(124);
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(
        !world.work().join("late.txt").exists(),
        "a daemon outlived its sandbox"
    );
}

#[test]
fn a_refusal_is_125_and_a_missing_command_127() {
    let world = World::new();
    world
        .run(&["exec", "--tier", "microvm", "--", "true"])
        .exits(125)
        .says("error[L0301]");
    world
        .run(&["exec", "--", "no-such-program"])
        .exits(127)
        .says("error[L0302]");
    std::fs::write(world.work().join("plain.txt"), "x").unwrap();
    world.run(&["exec", "--", "./plain.txt"]).exits(126);
}

#[test]
fn a_signal_is_handed_on() {
    let world = World::new();
    let child = world
        .command(&[
            "exec",
            "--",
            "sh",
            "-c",
            "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let mut child = child;
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
    assert_eq!(rest, "caught\n");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn the_receipt_says_what_stood_around_the_command() {
    let world = World::new();
    world
        .run(&["exec", "--receipt", "r.json", "--", "true"])
        .exits(0);
    let text = std::fs::read_to_string(world.work().join("r.json")).unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(receipt["ended"]["how"], "exited");
    assert!(
        receipt["layers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|layer| layer["layer"] == "seccomp")
    );

    let document = world
        .run(&["exec", "--json", "--", "sh", "-c", "echo hi; exit 3"])
        .exits(3)
        .json();
    assert_eq!(document["stdout"], "hi\n");
    assert_eq!(document["status"], 3);
}

#[test]
fn the_home_directory_is_never_a_workspace() {
    let world = World::new();
    let home = world.home();
    let ran = world.run(&["exec", "--workspace", home.to_str().unwrap(), "--", "true"]);
    ran.exits(2).says("error[L0304]");
}

#[test]
fn there_is_no_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 5)");
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("control: the server can be reached");
    let ran = World::new()
        .run(&["exec", "--", "python3", "-c", &script])
        .exits(1);
    assert!(ran.stderr.contains("Connection refused"), "{}", ran.stderr);
}
