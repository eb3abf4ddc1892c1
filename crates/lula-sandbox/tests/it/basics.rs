use lula_protocol::denial::DeniedAttempt;
use lula_protocol::receipt::{CommandEnding, ProtectionLayer};
use lula_sandbox::policy::{LayerName, Profile};
use lula_sandbox::{SandboxCommand, SandboxError};

use crate::support::{build_policy, engine, printed, sandbox, session, shell, workspace};

#[test]
fn a_command_runs_and_says_how_it_ended() {
    let finished = shell("echo out; echo err >&2; exit 7");
    assert_eq!(finished.stdout.text(), "out\n");
    assert_eq!(finished.stderr.text(), "err\n");
    assert_eq!(finished.receipt.ended, CommandEnding::Exited { status: 7 });
}

#[test]
fn the_receipt_lists_every_layer() {
    let finished = shell("true");
    let names: Vec<_> = finished
        .receipt
        .layers
        .iter()
        .map(ProtectionLayer::name)
        .collect();
    assert_eq!(
        names,
        [
            "namespaces",
            "private_root",
            "landlock",
            "seccomp",
            "no_new_privileges",
            "no_capabilities",
            "cgroup",
            "rlimits",
            "no_network",
            "clean_environment"
        ]
    );
}

#[test]
fn one_session_runs_many_commands_in_one_tree() {
    let (session, workspace) = session();
    assert!(
        session
            .run(&SandboxCommand::shell("echo hello > file; echo x > /tmp/y"))
            .unwrap()
            .succeeded()
    );
    let second = session
        .run(&SandboxCommand::shell("cat file /tmp/y"))
        .unwrap();
    assert_eq!(second.stdout.text(), "hello\nx\n");
    assert_eq!(
        std::fs::read_to_string(workspace.path().join("file")).unwrap(),
        "hello\n"
    );
}

#[test]
fn it_sees_itself_as_an_ordinary_user() {
    assert_eq!(
        printed("id -u; id -g; whoami; hostname"),
        "1000\n1000\nuser\nlula\n"
    );
}

#[test]
fn a_refused_system_call_is_named_with_the_grant_that_would_allow_it() {
    let finished = shell("unshare --user true; unshare --user true; exit 0");
    let denials = &finished.receipt.denials;
    assert_eq!(denials.len(), 1, "{denials:?}");
    assert_eq!(
        denials[0].attempt,
        DeniedAttempt::Syscall {
            name: "unshare(0x10000000)".to_owned()
        }
    );
    assert_eq!(denials[0].count, 2);
    assert_eq!(denials[0].grant.as_deref(), Some("nested_userns = true"));
}

#[test]
fn a_flood_of_refused_calls_ends_with_its_deadline() {
    let (session, _workspace) = session();
    let flood = "import ctypes\nlibc = ctypes.CDLL(None)\nwhile True: libc.unshare(0x10000000)";
    let finished = session
        .run(
            &SandboxCommand::new("/usr/bin/python3")
                .arguments(["-c", flood])
                .timeout(std::time::Duration::from_secs(1)),
        )
        .unwrap();
    assert_eq!(finished.receipt.ended, CommandEnding::TimedOut);
    assert!(finished.receipt.denials.len() <= 65);
}

#[test]
fn one_command_in_a_sandbox_of_its_own() {
    let workspace = workspace();
    let asked = sandbox(build_policy(), &workspace);
    let command = SandboxCommand::new("cat").input("hello");
    let finished = engine().run(&asked, &command).unwrap();
    assert_eq!(finished.stdout.text(), "hello");
    assert!(finished.receipt.usage.setup_us > 0);
    assert_eq!(finished.receipt.layers.len(), 10);
}

#[test]
fn one_command_is_not_run_without_a_layer_its_policy_requires() {
    let workspace = workspace();
    let asked = sandbox(Profile::Strict.policy(), &workspace).without(LayerName::Seccomp);
    let refused = engine().run(&asked, &SandboxCommand::shell("touch ran"));
    assert!(matches!(
        refused,
        Err(SandboxError::LayerMissing {
            layer: LayerName::Seccomp,
            ..
        })
    ));
    assert!(!workspace.path().join("ran").exists());
}
