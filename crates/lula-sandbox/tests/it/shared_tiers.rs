//! The tiers without namespaces of their own.

use lula_protocol::IsolationTier;
use lula_protocol::receipt::{CommandEnding, ProtectionLayer};
use lula_sandbox::{HostToolchains, Sandbox, SandboxCommand, SandboxError, SandboxSession};
use std::time::Duration;
use tempfile::TempDir;

use crate::support::{build_policy, engine, workspace};

fn open(tier: IsolationTier) -> (SandboxSession, TempDir) {
    let workspace = workspace();
    let mut policy = build_policy();
    policy.min_tier = tier;
    if tier == IsolationTier::Process {
        policy.required_layers.clear();
    }
    let asked = Sandbox::new(policy, workspace.path())
        .tier(tier)
        .toolchains(HostToolchains::none());
    (engine().open(&asked).unwrap(), workspace)
}

#[test]
fn landlock_writes_in_the_workspace_and_nowhere_else() {
    let (session, workspace) = open(IsolationTier::Landlock);
    let outside = crate::support::workspace();
    let line = format!(
        "echo in > file && cat file; echo out > {}/file || echo refused; cat /etc/shadow || echo hidden",
        outside.path().display()
    );
    let finished = session.run(&SandboxCommand::shell(line)).unwrap();
    assert_eq!(finished.stdout.text(), "in\nrefused\nhidden\n");
    assert!(workspace.path().join("file").exists());
    assert!(!outside.path().join("file").exists());
}

#[test]
fn landlock_claims_no_namespace_it_does_not_have() {
    let (session, _workspace) = open(IsolationTier::Landlock);
    let finished = session.run(&SandboxCommand::shell("true")).unwrap();
    let names: Vec<_> = finished
        .receipt
        .layers
        .iter()
        .map(ProtectionLayer::name)
        .collect();
    assert!(
        !names.contains(&"namespaces") && !names.contains(&"private_root"),
        "{names:?}"
    );
    for layer in [
        "landlock",
        "seccomp",
        "no_new_privileges",
        "no_capabilities",
        "no_network",
    ] {
        assert!(names.contains(&layer), "{layer} is missing from {names:?}");
    }
}

#[test]
fn a_copy_that_stands_elsewhere_is_told_of_in_the_receipt() {
    let (copy, original) = (workspace(), workspace());
    for tier in [IsolationTier::Namespace, IsolationTier::Landlock] {
        let mut policy = build_policy();
        policy.min_tier = tier;
        let asked = Sandbox::new(policy, copy.path())
            .tier(tier)
            .copy_of(original.path())
            .toolchains(HostToolchains::none());
        let session = engine().open(&asked).unwrap();
        let finished = session.run(&SandboxCommand::shell("pwd")).unwrap();
        let here = copy.path().canonicalize().unwrap();
        assert_eq!(finished.stdout.text().trim(), here.to_str().unwrap());
        let wanted = format!("the workspace at {}", original.path().display());
        let not_applied = &finished.receipt.not_applied;
        let told = not_applied.iter().find(|one| one.asked == wanted);
        let told = told.unwrap_or_else(|| panic!("{tier}: {not_applied:?}"));
        assert!(told.reason.contains(here.to_str().unwrap()), "{told:?}");
    }
}

#[test]
fn landlock_has_no_sockets_to_anybody() {
    let (session, _workspace) = open(IsolationTier::Landlock);
    let line = "import socket\n\
                for family in (socket.AF_INET, socket.AF_UNIX):\n\
                \ttry: socket.socket(family)\n\
                \texcept OSError as error: print(error.errno)\n\
                a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))";
    let finished = session
        .run(&SandboxCommand::new("/usr/bin/python3").arguments(["-c", line]))
        .unwrap();
    assert_eq!(
        finished.stdout.text(),
        "1\n1\nb'x'\n",
        "{}",
        finished.stderr.text()
    );
}

#[test]
fn a_deadline_finds_daemons_without_a_pid_namespace() {
    for tier in [IsolationTier::Landlock, IsolationTier::Process] {
        let (session, workspace) = open(tier);
        let line = "setsid sh -c 'echo $$ > daemon; (sleep 1000 & echo $! > orphan); sleep 1000' & sleep 1000";
        let finished = session
            .run(&SandboxCommand::shell(line).timeout(Duration::from_millis(500)))
            .unwrap();
        assert_eq!(finished.receipt.ended, CommandEnding::TimedOut);
        for file in ["daemon", "orphan"] {
            let pid = std::fs::read_to_string(workspace.path().join(file)).unwrap();
            let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            assert!(
                status.is_err() || status.unwrap().contains(") Z "),
                "{tier}: {file} is still alive"
            );
        }
    }
}

#[test]
fn closing_the_session_ends_what_it_left_behind() {
    for tier in [
        IsolationTier::Landlock,
        IsolationTier::Process,
        IsolationTier::Namespace,
    ] {
        let (session, workspace) = open(tier);
        let line = "(setsid sleep 1000 >/dev/null 2>&1 & echo $! > left)";
        assert!(
            session
                .run(&SandboxCommand::shell(line))
                .unwrap()
                .succeeded()
        );
        session.close().unwrap();
        if tier != IsolationTier::Namespace {
            let pid = std::fs::read_to_string(workspace.path().join("left")).unwrap();
            let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            assert!(
                status.is_err() || status.unwrap().contains(") Z "),
                "{tier}"
            );
        }
    }
}

#[test]
fn the_weakest_tier_runs_only_when_it_is_named_and_allowed() {
    let (session, _workspace) = open(IsolationTier::Process);
    let finished = session
        .run(&SandboxCommand::shell(
            "env | sort | cut -d= -f1 | tr '\\n' ' '",
        ))
        .unwrap();
    assert_eq!(finished.receipt.tier, IsolationTier::Process);
    let names: Vec<_> = finished
        .receipt
        .layers
        .iter()
        .map(ProtectionLayer::name)
        .collect();
    assert!(!names.contains(&"seccomp"), "{names:?}");

    let workspace = workspace();
    let asked = Sandbox::new(build_policy(), workspace.path()).tier(IsolationTier::Process);
    assert!(matches!(
        engine().open(&asked),
        Err(SandboxError::FloorNotMet { .. })
    ));
}

#[test]
fn a_required_layer_is_required_whatever_the_tier() {
    let workspace = workspace();
    let mut policy = build_policy();
    policy.min_tier = IsolationTier::Process;
    let asked = Sandbox::new(policy, workspace.path()).tier(IsolationTier::Process);
    let touch = SandboxCommand::shell("touch ran");
    for refused in [
        engine().open(&asked).map(drop),
        engine().run(&asked, &touch).map(drop),
    ] {
        assert!(
            matches!(refused, Err(SandboxError::LayerMissing { .. })),
            "{refused:?}"
        );
    }
    assert!(!workspace.path().join("ran").exists());
}
