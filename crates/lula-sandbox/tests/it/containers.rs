//! The engine inside other people's containers: a masked /proc, a filesystem without id maps.
//!
//! Each scene is set in a mount namespace of its own, in which a test marked `ignore` is then run.

use std::process::Command as Host;

use lula_protocol::IsolationTier;
use lula_sandbox::tiers::OWN_PROC;
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
fn a_user_in_a_container_with_a_masked_proc_gets_namespaces_and_is_told_what_proc_shows() {
    in_scene(MASKED, NOBODY, "containers::shared_proc");
}

#[test]
#[ignore = "run with a masked /proc by the test above"]
fn shared_proc() {
    let engine = new_engine();
    let workspace = crate::support::workspace();
    let mut policy = build_policy();
    let asked = Sandbox::new(policy.clone(), workspace.path()).toolchains(HostToolchains::none());
    let session = engine.open(&asked).unwrap();
    assert_eq!(session.tier(), IsolationTier::Namespace);
    let outside = std::process::id();
    let line = format!(
        "grep -c NoNewPrivs /proc/self/status; tr '\\0' ' ' < /proc/{outside}/cmdline; \
         cat /proc/{outside}/environ; ls /proc/{outside}/root/; kill -0 {outside}; echo $$"
    );
    let finished = session.run(&SandboxCommand::shell(line)).unwrap();
    let (said, refused) = (finished.stdout.text(), finished.stderr.text());
    // Names and command lines can be read; nothing that needs permission can.
    assert!(
        said.starts_with("1\n") && said.contains("shared_proc"),
        "{said}"
    );
    for what in ["environ: Permission denied", "root/': Permission denied"] {
        assert!(refused.contains(what), "{refused}");
    }
    assert!(refused.contains("No such process"), "{refused}");
    let missing = &finished.receipt.not_applied;
    assert!(
        missing.iter().any(|one| one.asked == OWN_PROC),
        "{missing:?}"
    );

    // As a floor, the tier is all that it stands for, or nothing.
    policy.min_tier = IsolationTier::Namespace;
    let asked = Sandbox::new(policy, workspace.path()).toolchains(HostToolchains::none());
    let refused = engine.open(&asked).unwrap_err().to_string();
    assert!(
        refused.contains("/proc of this container is masked"),
        "{refused}"
    );
}

#[test]
fn with_a_shared_proc_the_right_processes_are_ended() {
    in_scene(MASKED, NOBODY, "containers::shared_numbers");
}

#[test]
#[ignore = "run with a masked /proc by the test above"]
fn shared_numbers() {
    let engine = new_engine();
    let workspace = crate::support::workspace();
    let asked = Sandbox::new(build_policy(), workspace.path()).toolchains(HostToolchains::none());
    let session = engine.open(&asked).unwrap();
    let beats = |name: &str| {
        let file = workspace.path().join(name);
        std::fs::metadata(file).map_or(0, |file| file.len())
    };
    let heart = |name: &str| {
        let line =
            format!("setsid sh -c 'while :; do echo x >> {name}; sleep 0.02; done' & sleep 60");
        SandboxCommand::shell(line)
    };
    // One command is killed with its daemon; another, and its daemon, go on.
    let spared = session.start_in_background(&heart("spared")).unwrap();
    let killed = session.run(&heart("killed").timeout(std::time::Duration::from_millis(500)));
    assert!(beats("killed") > 0, "{killed:?}");
    let (dead, alive) = (beats("killed"), beats("spared"));
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert_eq!(beats("killed"), dead);
    assert!(beats("spared") > alive);
    drop(spared);
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
