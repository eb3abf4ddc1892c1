//! The attacks, on this machine.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "these are tests, outside a test module"
)]

use std::collections::BTreeSet;
use std::path::Path;

use lula_protocol::IsolationTier;
use lula_sandbox::policy::{LayerName, Profile};
use lula_sandbox::probes::{AttackOutcome, AttackReport, TierAttack, TierAttackError, catalogue};
use lula_sandbox::{HelperProgram, SandboxEngine, SandboxError};

const PROGRAM: &str = env!("CARGO_BIN_EXE_lula-sandbox-helper");

fn engine() -> SandboxEngine {
    SandboxEngine::start_with(HelperProgram::program(PROGRAM)).unwrap()
}

fn attack(tier: IsolationTier) -> AttackReport {
    TierAttack::new(&engine(), Path::new(PROGRAM), tier)
        .run()
        .unwrap()
}

fn not_held(report: &AttackReport) -> Vec<String> {
    let failed = report
        .probes
        .iter()
        .filter(|probe| !matches!(probe.outcome, AttackOutcome::Held | AttackOutcome::Untried));
    failed
        .map(|p| {
            format!(
                "{:?} {:?}/{}: expected {}, saw {}",
                p.outcome, p.family, p.name, p.expected, p.observed
            )
        })
        .collect()
}

#[test]
fn the_namespace_tier_holds_against_every_probe() {
    let report = attack(IsolationTier::Namespace);
    assert_eq!(not_held(&report), Vec::<String>::new());
    assert!(report.probes.len() >= 80, "{}", report.probes.len());
}

#[test]
fn the_landlock_tier_holds_against_every_probe() {
    let report = attack(IsolationTier::Landlock);
    assert_eq!(not_held(&report), Vec::<String>::new());
    assert!(report.probes.len() >= 80, "{}", report.probes.len());
}

/// The attacks that only a newer Landlock holds off by itself, on every older one.
#[test]
fn an_older_landlock_keeps_signals_and_files_as_a_new_one_does() {
    let names = [
        "kill_outside",
        "truncate",
        "outlive_runner",
        "outlive_timeout",
        "outlive_session",
    ];
    for abi in [1, 5] {
        let engine = engine();
        let attack = TierAttack::new(&engine, Path::new(PROGRAM), IsolationTier::Landlock);
        let report = attack.newest_landlock(abi).only(names).run().unwrap();
        assert_eq!(not_held(&report), Vec::<String>::new(), "Landlock {abi}");
        let held = report.count(AttackOutcome::Held);
        assert_eq!(held, names.len(), "Landlock {abi}: {report:?}");
    }
}

/// The names of the probes that no longer hold without a layer; `None` where there is no sandbox
/// without it.
fn broken_without(tier: IsolationTier, layer: LayerName, probes: &[&str]) -> Option<Vec<String>> {
    let engine = engine();
    let attack = TierAttack::new(&engine, Path::new(PROGRAM), tier).only(probes.iter().copied());
    let report = attack.without(layer).run();
    let report = match report {
        Ok(report) => report,
        Err(TierAttackError::Sandbox(_)) => return None,
        Err(error) => panic!("{error}"),
    };
    let broken = report
        .probes
        .into_iter()
        .filter(|probe| probe.outcome == AttackOutcome::Broken);
    Some(broken.map(|probe| probe.name).collect())
}

/// Without the layer these probes are broken.
fn check(tier: IsolationTier, layer: LayerName, witnesses: &[&str]) {
    let broken = broken_without(tier, layer, witnesses).expect("a sandbox that lacks a layer");
    for witness in witnesses {
        assert!(
            broken.iter().any(|name| name == witness),
            "{witness} holds without {layer}: {broken:?}"
        );
    }
}

#[test]
fn without_its_namespaces_the_host_is_in_reach() {
    check(
        IsolationTier::Namespace,
        LayerName::Namespaces,
        &["separate_ipc", "shared_memory"],
    );
}

#[test]
fn without_masks_the_kernel_shows_its_insides() {
    check(
        IsolationTier::Namespace,
        LayerName::PrivateRoot,
        &["kernel_insides"],
    );
}

#[test]
fn without_landlock_paths_are_open() {
    check(
        IsolationTier::Namespace,
        LayerName::Landlock,
        &["path_rules_in_force"],
    );
    check(
        IsolationTier::Landlock,
        LayerName::Landlock,
        &["secret_by_path", "overwrite", "neighbours_terminal"],
    );
}

#[test]
fn without_seccomp_the_kernel_is_open() {
    check(
        IsolationTier::Namespace,
        LayerName::Seccomp,
        &["push_input", "bpf", "forged_whiteout"],
    );
    check(
        IsolationTier::Landlock,
        LayerName::Seccomp,
        &["host_loopback", "unix_socket", "trace_own_child"],
    );
}

#[test]
fn without_no_new_privileges_nothing_starts() {
    // The kernel takes no filter from a process that could still gain privileges.
    for tier in [IsolationTier::Namespace, IsolationTier::Landlock] {
        assert_eq!(
            broken_without(tier, LayerName::NoNewPrivileges, &["new_privileges"]),
            None
        );
    }
}

#[test]
fn without_dropped_capabilities_some_can_be_gained() {
    check(
        IsolationTier::Namespace,
        LayerName::NoCapabilities,
        &["capabilities_to_gain"],
    );
}

#[test]
fn without_control_groups_bombs_go_off() {
    check(
        IsolationTier::Namespace,
        LayerName::Cgroup,
        &["processes", "memory"],
    );
}

#[test]
fn without_resource_limits_files_are_endless() {
    check(
        IsolationTier::Namespace,
        LayerName::Rlimits,
        &["descriptors", "file_size"],
    );
}

#[test]
fn without_its_own_network_the_host_is_in_reach() {
    check(
        IsolationTier::Namespace,
        LayerName::NoNetwork,
        &["host_loopback", "abstract_socket", "interfaces"],
    );
}

#[test]
fn without_a_clean_environment_variables_leak() {
    check(
        IsolationTier::Namespace,
        LayerName::CleanEnvironment,
        &["inherited_variables"],
    );
}

#[test]
fn a_required_layer_that_is_missing_refuses_to_run() {
    let workspace = crate::support::workspace();
    for layer in [
        LayerName::Seccomp,
        LayerName::Landlock,
        LayerName::Cgroup,
        LayerName::CleanEnvironment,
    ] {
        let mut policy = Profile::Build.policy();
        policy.required_layers.insert(layer);
        let sandbox = crate::support::sandbox(policy, &workspace).without(layer);
        match engine().open(&sandbox) {
            Err(SandboxError::LayerMissing { layer: missing, .. }) => assert_eq!(missing, layer),
            other => panic!("{layer}: {other:?}"),
        }
    }
}

#[test]
fn the_report_reads_as_the_command_line_promises() {
    let report = attack(IsolationTier::Namespace);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["tier"], "namespace");
    let probe = &json["probes"][0];
    assert_eq!(probe["outcome"], "held");
    for key in ["name", "family", "expected", "observed"] {
        assert!(probe[key].is_string(), "{key}");
    }
    let names: BTreeSet<_> = catalogue().into_iter().map(|(name, ..)| name).collect();
    assert!(
        report
            .probes
            .iter()
            .all(|probe| names.contains(probe.name.as_str()))
    );
    let families: BTreeSet<_> = report.probes.iter().map(|probe| probe.family).collect();
    assert_eq!(families.len(), 9, "{families:?}");
}

#[test]
fn both_tiers_hold_for_an_ordinary_user() {
    crate::unprivileged::as_ordinary_user("probes::as_ordinary_user");
}

#[test]
#[ignore = "run as an ordinary user by the test above"]
fn as_ordinary_user() {
    for tier in [IsolationTier::Namespace, IsolationTier::Landlock] {
        let report = attack(tier);
        let failed = report
            .probes
            .iter()
            .filter(|probe| !matches!(probe.outcome, AttackOutcome::Held | AttackOutcome::Untried));
        let failed: Vec<_> = failed.map(|probe| probe.name.as_str()).collect();
        // Where no control group was handed to this user, nothing counts a tree's processes and
        // memory; the sandbox must not claim it, and the attack must say so.
        let (session, _workspace) = crate::support::session();
        let limited = session
            .layers()
            .iter()
            .any(|layer| layer.name() == "cgroup");
        let expected: &[&str] = if limited {
            &[]
        } else {
            &["processes", "memory"]
        };
        assert_eq!(failed, expected, "{:?}", not_held(&report));
        assert!(report.probes.len() >= 80, "{}", report.probes.len());
    }
}
