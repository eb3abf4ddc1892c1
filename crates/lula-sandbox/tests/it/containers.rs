//! The engine inside other people's containers: a masked /proc, a filesystem without id maps.
//!
//! Each scene is set in a mount namespace of its own, in which a test marked `ignore` is then run.

use std::process::Command as Host;

use lula_protocol::IsolationTier;
use lula_sandbox::{HostToolchains, Sandbox, SandboxCommand};

use crate::support::{build_policy, new_engine, printed};

/// Sets a scene by a shell line and runs one ignored test of this binary in it. Needs root, as the
/// machine's container engine would have.
fn in_scene(scene: &str, user: &str, test: &str) {
    let line = format!("set -e; {scene}; exec {user} \"$@\"");
    let output = Host::new("unshare")
        .args(["--mount", "sh", "-c", &line, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", test])
        .env("TMPDIR", "/tmp")
        .env("HOME", "/nonexistent")
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

const MASKED: &str = "mount --bind /dev/null /proc/keys; mount -t tmpfs -o ro none /proc/bus";
const NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

#[test]
fn root_in_a_container_with_a_masked_proc_gets_a_complete_sandbox() {
    in_scene(MASKED, "", "containers::complete");
}

#[test]
#[ignore = "run with a masked /proc by the test above"]
fn complete() {
    assert_eq!(printed("id -u; ls /proc/self/fd | wc -l"), "1000\n4\n");
}

#[test]
fn a_user_in_a_container_with_a_masked_proc_gets_the_next_tier_and_the_reason() {
    in_scene(MASKED, NOBODY, "containers::next_tier");
}

#[test]
#[ignore = "run with a masked /proc by the test above"]
fn next_tier() {
    let engine = new_engine();
    let workspace = crate::support::workspace();
    let mut policy = build_policy();
    let asked = Sandbox::new(policy.clone(), workspace.path()).toolchains(HostToolchains::none());
    let session = engine.open(&asked).unwrap();
    assert_eq!(session.tier(), IsolationTier::Landlock);
    assert!(
        session
            .run(&SandboxCommand::new("true"))
            .unwrap()
            .succeeded()
    );

    policy.min_tier = IsolationTier::Namespace;
    let asked = Sandbox::new(policy, workspace.path()).toolchains(HostToolchains::none());
    let refused = engine.open(&asked).unwrap_err().to_string();
    assert!(
        refused.contains("/proc of this container is masked"),
        "{refused}"
    );
}

#[test]
fn a_workspace_on_a_filesystem_without_id_maps_works_and_the_receipt_says_how() {
    let scene = "mkdir -p /tmp/lula-scene; mount -t tmpfs none /tmp/lula-scene; cd /tmp/lula-scene; \
                 mkdir lower upper work merged; chown 12345:12345 lower upper; \
                 mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work merged";
    in_scene(scene, "", "containers::without_id_maps");
}

#[test]
#[ignore = "run beside an overlay by the test above"]
fn without_id_maps() {
    let engine = new_engine();
    let asked = Sandbox::new(build_policy(), "/tmp/lula-scene/merged")
        .tier(IsolationTier::Namespace)
        .toolchains(HostToolchains::none());
    // Twice: the first finds out, the second knows.
    for _ in 0..2 {
        let session = engine.open(&asked).unwrap();
        let finished = session
            .run(&SandboxCommand::shell(
                "echo x > file && stat -c %u . file && rm file",
            ))
            .unwrap();
        assert_eq!(
            finished.stdout.text(),
            "1000\n1000\n",
            "{}",
            finished.stderr.text()
        );
        let missing = &finished.receipt.not_applied;
        assert!(
            missing
                .iter()
                .any(|one| one.reason.contains("cannot map ids")),
            "{missing:?}"
        );
    }
}
