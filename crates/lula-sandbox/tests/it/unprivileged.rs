//! The same engine for an ordinary user: the tests below marked `ignore` are run by the first one,
//! as another user, so that they need no privileges and no set-up.

use std::os::unix::process::CommandExt;
use std::process::Command as Host;

use lula_protocol::{IsolationTier, ProtectionLayer};
use lula_sandbox::{HostToolchains, Sandbox, SandboxCommand, SandboxError};

use crate::support::{build_policy, new_engine, printed, sandbox, shell, workspace};

const NOBODY: u32 = 65534;

/// Runs one ignored test of this binary as an ordinary user.
pub(crate) fn as_ordinary_user(test: &str) {
    let program = std::env::current_exe().unwrap();
    let mut host = Host::new(program);
    host.args(["--exact", "--ignored", "--nocapture", test])
        .env_remove("XDG_RUNTIME_DIR")
        .env("HOME", "/nonexistent")
        .env("TMPDIR", "/tmp")
        .current_dir("/tmp");
    if rustix::process::geteuid().is_root() {
        host.uid(NOBODY).gid(NOBODY);
    }
    let output = host.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn an_ordinary_user_gets_a_complete_sandbox() {
    as_ordinary_user("unprivileged::complete");
}

#[test]
#[ignore = "run as an ordinary user by the test above"]
fn complete() {
    assert!(!rustix::process::geteuid().is_root());
    assert_eq!(printed("id -u; echo x > file; cat file"), "1000\nx\n");
    let receipt = shell("true").receipt;
    let names: Vec<_> = receipt.layers.iter().map(ProtectionLayer::name).collect();
    for layer in [
        "namespaces",
        "private_root",
        "landlock",
        "seccomp",
        "no_new_privileges",
        "no_capabilities",
        "no_network",
        "rlimits",
        "clean_environment",
    ] {
        assert!(names.contains(&layer), "{layer} is missing from {names:?}");
    }
    // Where no control group is delegated, the receipt says so instead of claiming limits.
    if !names.contains(&"cgroup") {
        assert!(
            receipt
                .not_applied
                .iter()
                .any(|missing| missing.asked.contains("memory limit"))
        );
    }
    // A terminal works too.
    let (session, _workspace) = crate::support::session();
    let finished = session
        .run(&SandboxCommand::new("tty").terminal(24, 80))
        .unwrap();
    assert_eq!(finished.stdout.text().trim(), "/dev/pts/0");
}

#[test]
fn without_user_namespaces_the_next_tier_is_used_or_the_refusal_names_the_knob() {
    // In a user namespace the limit on further ones is ours to set, as the sysctl does for all.
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \"$@\"";
    let program = std::env::current_exe().unwrap();
    let output = Host::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", forbid, "sh"])
        .arg(program)
        .args([
            "--exact",
            "--ignored",
            "--nocapture",
            "unprivileged::no_user_namespaces",
        ])
        .env("TMPDIR", "/tmp")
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "run without user namespaces by the test above"]
fn no_user_namespaces() {
    let engine = new_engine();
    let workspace = workspace();
    let mut policy = build_policy();
    policy.min_tier = IsolationTier::Landlock;
    let asked = Sandbox::new(policy.clone(), workspace.path()).toolchains(HostToolchains::none());
    let session = engine.open(&asked).unwrap();
    assert_eq!(session.tier(), IsolationTier::Landlock);
    let finished = session.run(&SandboxCommand::shell("echo here")).unwrap();
    assert_eq!(finished.stdout.text(), "here\n");
    assert_eq!(finished.receipt.tier, IsolationTier::Landlock);

    policy.min_tier = IsolationTier::Namespace;
    let asked = Sandbox::new(policy, workspace.path()).toolchains(HostToolchains::none());
    let refused = engine.open(&asked).unwrap_err().to_string();
    assert!(refused.contains("max_user_namespaces"), "{refused}");
}

#[test]
fn the_engine_of_an_ordinary_user_refuses_a_floor_it_cannot_meet() {
    let workspace = workspace();
    let mut policy = build_policy();
    policy.min_tier = IsolationTier::Microvm;
    let refused = new_engine().open(&sandbox(policy, &workspace));
    assert!(matches!(refused, Err(SandboxError::FloorNotMet { .. })));
}
