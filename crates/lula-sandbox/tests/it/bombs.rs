//! What attacks on resources come to: contained, named in the receipt, and the host goes on.

use std::time::Duration;

use lula_protocol::denial::DeniedAttempt;
use lula_protocol::receipt::CommandEnding;
use lula_sandbox::policy::{MemoryLimit, SandboxPolicy};
use lula_sandbox::{FinishedCommand, SandboxCommand};

use crate::support::{build_policy, engine, new_engine, sandbox, workspace};

fn small() -> SandboxPolicy {
    let mut policy = build_policy();
    policy.limits.memory = MemoryLimit::Fixed("128MiB".parse().unwrap());
    policy.limits.pids = 64;
    policy.limits.disk = "32MiB".parse().unwrap();
    policy.limits.output = "1MiB".parse().unwrap();
    policy.caches.clear();
    policy
}

fn run(line: &str, seconds: u64) -> FinishedCommand {
    let workspace = workspace();
    let session = engine().open(&sandbox(small(), &workspace)).unwrap();
    session
        .run(&SandboxCommand::shell(line).timeout(Duration::from_secs(seconds)))
        .unwrap()
}

fn exceeded(finished: &FinishedCommand) -> Vec<String> {
    let denials = finished.receipt.denials.iter();
    denials
        .filter_map(|denial| match &denial.attempt {
            DeniedAttempt::Exceed { limit, .. } => Some(limit.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_fork_bomb_meets_the_limit_on_processes() {
    let finished = run("(bomb() { bomb | bomb & }; bomb); exec sleep 1000", 2);
    assert_eq!(finished.receipt.ended, CommandEnding::TimedOut);
    let exceeded = exceeded(&finished);
    assert!(exceeded.contains(&"pids".to_owned()), "{exceeded:?}");
    assert!(exceeded.contains(&"wall".to_owned()), "{exceeded:?}");
}

#[test]
fn the_very_first_command_of_an_engine_is_limited_too() {
    // Its limits are set while its sandbox is being built.
    for _ in 0..5 {
        let (engine, workspace) = (new_engine(), workspace());
        let line = SandboxCommand::shell("for _ in $(seq 100); do sleep 100 & done; wait");
        let finished = engine.run(&sandbox(small(), &workspace), &line).unwrap();
        assert!(!finished.succeeded());
        assert_eq!(exceeded(&finished), ["pids"]);
    }
}

#[test]
fn a_memory_bomb_is_ended_by_its_limit() {
    let finished = run("exec /usr/bin/python3 -c 'x = bytearray(1 << 30)'", 20);
    assert_eq!(
        finished.receipt.ended,
        CommandEnding::LimitReached {
            limit: "memory".to_owned()
        },
        "{}",
        finished.stderr.text()
    );
    assert_eq!(exceeded(&finished), ["memory"]);
}

#[test]
fn a_flood_of_output_is_counted_and_only_its_ends_are_kept() {
    let finished = run("echo first; yes | head -c 50000000; echo last", 20);
    assert!(finished.succeeded());
    let output = &finished.stdout;
    assert_eq!(output.total(), 50_000_000 + 11);
    assert!(output.bytes().len() <= 1 << 20);
    assert!(output.text().starts_with("first\n") && output.text().ends_with("last\n"));
    assert_eq!(finished.receipt.usage.stdout_bytes, output.total());
    assert_eq!(exceeded(&finished), ["output"]);
}

#[test]
fn an_endless_flood_ends_with_its_deadline() {
    let finished = run("yes", 1);
    assert_eq!(finished.receipt.ended, CommandEnding::TimedOut);
    assert!(finished.stdout.total() > 1 << 20);
}

#[test]
fn a_disk_bomb_fills_its_own_disk_only() {
    let finished = run(
        "for file in a b c; do head -c 20000000 /dev/zero > /tmp/$file; done; ls /tmp/a /tmp/b /tmp/c | wc -l",
        20,
    );
    assert_eq!(finished.stdout.text(), "3\n");
    assert!(
        finished.stderr.text().contains("No space"),
        "{}",
        finished.stderr.text()
    );
    assert_eq!(exceeded(&finished), ["disk"]);
}

#[test]
fn a_file_larger_than_the_limit_is_cut_in_the_workspace_too() {
    let finished = run("exec head -c 100000000 /dev/zero > big", 20);
    assert_eq!(
        finished.receipt.ended,
        CommandEnding::LimitReached {
            limit: "disk".to_owned()
        }
    );
}

#[test]
fn a_deadline_ends_daemons_that_left_their_session_and_their_parent() {
    let workspace = workspace();
    let session = engine().open(&sandbox(small(), &workspace)).unwrap();
    let line = "setsid sh -c '(setsid sh -c \"while :; do echo alive >> /tmp/pulse; sleep 0.05; done\" &)' & \
                sleep 1000";
    let finished = session
        .run(&SandboxCommand::shell(line).timeout(Duration::from_millis(500)))
        .unwrap();
    assert_eq!(finished.receipt.ended, CommandEnding::TimedOut);
    let count = "sleep 0.3; wc -l < /tmp/pulse";
    let first = session
        .run(&SandboxCommand::shell(count))
        .unwrap()
        .stdout
        .text();
    let second = session
        .run(&SandboxCommand::shell(count))
        .unwrap()
        .stdout
        .text();
    assert_ne!(first.trim(), "0");
    assert_eq!(first, second, "the daemon outlived its deadline");
}

#[test]
fn a_deadline_spares_the_other_commands_of_the_session() {
    let workspace = workspace();
    let session = engine().open(&sandbox(small(), &workspace)).unwrap();
    let other = session
        .start(&SandboxCommand::shell("sleep 1; echo survived"))
        .unwrap();
    let doomed = session
        .run(&SandboxCommand::shell("sleep 1000 & sleep 1000").timeout(Duration::from_millis(200)))
        .unwrap();
    assert_eq!(doomed.receipt.ended, CommandEnding::TimedOut);
    assert_eq!(other.wait().unwrap().stdout.text(), "survived\n");
}

#[test]
fn open_files_are_limited() {
    let mut policy = small();
    policy.limits.open_files = 32;
    let workspace = workspace();
    let session = engine().open(&sandbox(policy, &workspace)).unwrap();
    let finished = session.run(&SandboxCommand::shell("ulimit -n")).unwrap();
    assert_eq!(finished.stdout.text(), "32\n");
}
