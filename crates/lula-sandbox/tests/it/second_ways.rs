//! Calls that are not to be had, one at a time and all together, as the seccomp profile of a container
//! engine, gVisor or an older kernel would have it: the sandbox is as good, or it says what it lacks.

use lula_protocol::{IsolationTier, ProtectionLayer};
use lula_sandbox::probes::{AttackOutcome, TierAttack};
use lula_sandbox::{HostToolchains, Sandbox, SandboxCommand, SandboxError, keep_back_calls};

use crate::support::{build_policy, new_engine, workspace};

const EPERM: u16 = 1;
const ENOSYS: u16 = 38;

/// What a sandbox was, of an engine that starts without these calls.
struct Opened {
    layers: Vec<&'static str>,
    not_applied: Vec<String>,
}

/// Opens a sandbox in that tier without these calls, runs commands in it, leaves a daemon behind and ends
/// it, on a thread of its own.
fn without(
    calls: &'static [&'static str],
    errno: u16,
    tier: IsolationTier,
) -> Result<Opened, SandboxError> {
    let thread = std::thread::spawn(move || {
        keep_back_calls(calls, errno).unwrap();
        let (engine, workspace) = (new_engine(), workspace());
        let asked = Sandbox::new(build_policy(), workspace.path())
            .tier(tier)
            .toolchains(HostToolchains::none());
        let session = engine.open(&asked)?;
        let line = "ls /proc/self/fd | wc -l; echo x > file && cat file; setsid sleep 999 &";
        let finished = session.run(&SandboxCommand::shell(line))?;
        // Three streams and the directory that is listed.
        assert_eq!(
            finished.stdout.text(),
            "4\nx\n",
            "{calls:?}: {}",
            finished.stderr.text()
        );
        let begun = std::time::Instant::now();
        session.close()?;
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(3),
            "{calls:?}: the end of the sandbox is not seen"
        );
        // The next one, which finds out nothing any more.
        let session = engine.open(&asked)?;
        assert!(session.run(&SandboxCommand::new("true"))?.succeeded());
        let receipt = finished.receipt;
        Ok(Opened {
            layers: receipt.layers.iter().map(ProtectionLayer::name).collect(),
            not_applied: receipt
                .not_applied
                .into_iter()
                .map(|one| one.asked)
                .collect(),
        })
    });
    thread.join().unwrap()
}

const TIERS: [IsolationTier; 2] = [IsolationTier::Namespace, IsolationTier::Landlock];

/// Calls with a second way that is as good.
const REPLACED: [&[&str]; 6] = [
    &["clone3"],
    &["pidfd_open"],
    &["pidfd_send_signal"],
    &["close_range"],
    &["openat2"],
    &[
        "clone3",
        "pidfd_open",
        "pidfd_send_signal",
        "close_range",
        "openat2",
    ],
];

#[test]
fn every_call_with_a_second_way_can_be_missing() {
    for tier in TIERS {
        let whole = without(&["kexec_load"], EPERM, tier).unwrap();
        for calls in REPLACED {
            for errno in [ENOSYS, EPERM] {
                // The C library starts nothing where `clone3` is refused in that way.
                if errno == EPERM && calls.contains(&"clone3") {
                    continue;
                }
                let opened = without(calls, errno, tier).unwrap();
                assert_eq!(opened.layers, whole.layers, "{calls:?} in {tier}");
                assert_eq!(opened.not_applied, whole.not_applied, "{calls:?} in {tier}");
            }
        }
    }
}

#[test]
fn a_host_name_that_cannot_be_set_is_told() {
    let opened = without(&["sethostname"], EPERM, IsolationTier::Namespace).unwrap();
    let told = |what: &str| opened.not_applied.iter().any(|asked| asked == what);
    assert!(told("a host name of its own"), "{:?}", opened.not_applied);
    assert!(opened.layers.contains(&"namespaces"));
}

#[test]
fn a_process_that_cannot_be_born_in_its_control_group_is_limited_all_the_same() {
    let thread = std::thread::spawn(|| {
        keep_back_calls(&["clone3"], ENOSYS).unwrap();
        let program = env!("CARGO_BIN_EXE_lula-sandbox-helper");
        let engine = new_engine();
        let attack = TierAttack::new(&engine, program, IsolationTier::Namespace);
        attack.only(["processes", "memory"]).run().unwrap()
    });
    let report = thread.join().unwrap();
    assert_eq!(report.count(AttackOutcome::Held), 2, "{report:?}");
}

/// Calls without which a tier is not built: each refusal names the step and what to do.
#[test]
fn a_call_without_a_second_way_refuses_the_tier_and_names_the_remedy() {
    for calls in [
        &["mount_setattr"][..],
        &["fsopen"],
        &["open_tree"],
        &["move_mount"],
        &["unshare"],
        &["pivot_root"],
    ] {
        for errno in [ENOSYS, EPERM] {
            let Err(refused) = without(calls, errno, IsolationTier::Namespace) else {
                panic!("{calls:?} was not needed");
            };
            let said = refused.to_string();
            assert!(said.contains("seccomp profile"), "{calls:?}: {said}");
            assert!(
                without(calls, errno, IsolationTier::Landlock).is_ok(),
                "{calls:?}"
            );
        }
    }
    for calls in [&["landlock_create_ruleset"][..], &["seccomp"]] {
        for tier in TIERS {
            assert!(without(calls, ENOSYS, tier).is_err(), "{calls:?} in {tier}");
        }
    }
}
