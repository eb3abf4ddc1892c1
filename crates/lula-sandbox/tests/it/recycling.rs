//! What sandboxes have one after the other must be as good as new.

use lula_sandbox::policy::Profile;
use lula_sandbox::{FinishedCommand, SandboxCommand, SandboxEngine};
use tempfile::TempDir;

use crate::support::{build_policy, new_engine, sandbox, workspace};

/// What crossed the network so far. (Its number says nothing: the kernel gives one out again.)
const NETWORK: &str = "tail -n 1 /proc/net/dev | tr -s ' '";

fn run(engine: &SandboxEngine, workspace: &TempDir, line: &str) -> FinishedCommand {
    let finished = engine
        .run(
            &sandbox(build_policy(), workspace),
            &SandboxCommand::shell(line),
        )
        .unwrap();
    assert!(finished.succeeded(), "{}", finished.stderr.text());
    finished
}

#[test]
fn a_network_that_was_used_is_never_seen_again() {
    let (engine, workspace) = (new_engine(), workspace());
    let talk = "python3 -c \"import socket\nserver = socket.create_server(('127.0.0.1', 0))\n\
                client = socket.create_connection(server.getsockname())\nclient.send(b'x')\"";
    for _ in 0..8 {
        let said = run(
            &engine,
            &workspace,
            &format!("{NETWORK}; {talk}; {NETWORK}"),
        );
        let said = said.stdout.text();
        let untouched: Vec<bool> = said
            .lines()
            .map(|line| {
                let (_, counters) = line.split_once(':').unwrap();
                counters.split_whitespace().all(|counter| counter == "0")
            })
            .collect();
        assert_eq!(untouched, [true, false], "{said}");
        // Give it every chance to be handed on.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn memory_of_an_earlier_sandbox_is_not_counted_again() {
    let (engine, workspace) = (new_engine(), workspace());
    let big = "python3 -c \"x = bytearray(100 << 20)\"";
    for _ in 0..3 {
        let large = run(&engine, &workspace, big).receipt.usage;
        let small = run(&engine, &workspace, "true").receipt.usage;
        let (Some(large), Some(small)) = (large.peak_memory_bytes, small.peak_memory_bytes) else {
            panic!("no memory was read");
        };
        assert!(large > 100 << 20, "{large}");
        assert!(small < 50 << 20, "{small}");
    }
}

#[test]
fn a_fork_bomb_leaves_room_for_the_next_sandbox() {
    let (engine, workspace) = (new_engine(), workspace());
    let policy = Profile::Strict.policy();
    for _ in 0..3 {
        let bomb = "for i in $(seq 300); do sleep 100 & done 2>/dev/null; true";
        let asked = sandbox(policy.clone(), &workspace);
        let _ = engine.run(&asked, &SandboxCommand::shell(bomb)).unwrap();
        let next = engine
            .run(&asked, &SandboxCommand::shell("true & true & true & wait"))
            .unwrap();
        assert!(next.succeeded());
        assert!(next.receipt.denials.is_empty());
    }
}

#[test]
fn nothing_of_a_sandbox_writes_any_more_once_its_command_has_been_run() {
    let (engine, workspace) = (new_engine(), workspace());
    let ticks = workspace.path().join("ticks");
    for _ in 0..10 {
        let busy = "(while :; do echo tick >> ticks; done) & (setsid sh -c 'while :; do echo tock \
                    >> ticks; done' &) ; while [ ! -s ticks ]; do :; done";
        run(&engine, &workspace, busy);
        let written = std::fs::metadata(&ticks).unwrap().len();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(std::fs::metadata(&ticks).unwrap().len(), written);
        std::fs::remove_file(&ticks).unwrap();
    }
}

#[test]
fn sandboxes_side_by_side_are_different_users_in_namespaces_of_their_own() {
    let (engine, places) = (new_engine(), [workspace(), workspace()]);
    let sessions = places
        .each_ref()
        .map(|place| engine.open(&sandbox(build_policy(), place)).unwrap());
    let said = |line: &str| {
        sessions.each_ref().map(|session| {
            let finished = session.run(&SandboxCommand::shell(line)).unwrap();
            finished.stdout.text()
        })
    };
    let [one, other] = said("readlink /proc/self/ns/user");
    assert!(one.starts_with("user:[") && one != other, "{one} {other}");
    // Each knows one user, who is another one outside for each.
    let maps = said("cat /proc/self/uid_map");
    if rustix::process::geteuid().is_root() {
        assert_ne!(maps[0], maps[1]);
    }
    for map in maps {
        assert_eq!(map.lines().count(), 1, "{map}");
        assert_eq!(map.split_whitespace().last(), Some("1"), "{map}");
    }
    for groups in said("cat /proc/self/setgroups") {
        assert_eq!(groups, "deny\n");
    }
}
