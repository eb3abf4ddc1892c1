//! The program inside other people's containers, sandboxes and accounts. Each is real: an engine, a profile
//! or a kernel that is missing fails its tests. `cargo xtask surroundings` attacks every tier in all of them;
//! here each is only looked at, and those that differ most are attacked.

use std::path::Path;

use serde_json::Value;

use around::{Stage, Surrounding, pod_without};

#[path = "../surroundings/mod.rs"]
mod around;

/// Where the shipped profiles are, from this crate.
const DEPLOY_FROM_HERE: &str = "../../deploy";

/// The program, with what surroundings are made of.
fn stage() -> Stage {
    assert!(
        rustix::process::geteuid().is_root(),
        "containers, pods and other accounts are set up as root, as engines do it: run these tests as root \
         (`sudo -E cargo xtask test -- surroundings`)"
    );
    Stage::new(Path::new(env!("CARGO_BIN_EXE_lula")))
}

/// What the program prints there.
fn printed(stage: &Stage, surrounding: &str, arguments: &[&str]) -> (i32, Value) {
    let surrounding = Surrounding::named(surrounding);
    for needed in surrounding.needs {
        let found = std::process::Command::new("sh")
            .args(["-c", &format!("command -v {needed}")])
            .output();
        let there = found.is_ok_and(|found| found.status.success());
        assert!(there, "{needed} is needed for {}", surrounding.what);
    }
    answer(&mut surrounding.command(stage, arguments))
}

fn answer(command: &mut std::process::Command) -> (i32, Value) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let document = serde_json::from_str(&said).unwrap_or_else(|error| {
        panic!(
            "{error}: {said}\n{}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code().unwrap_or(-1), document)
}

/// How a tier stands: works as a floor, works with less, or is refused with a line to copy.
fn standing(document: &Value, tier: &str) -> String {
    let tiers = document["tiers"].as_array().unwrap();
    let found = tiers.iter().find(|one| one["name"] == tier).unwrap();
    let remedy = found["remedy"].as_str().unwrap_or_default();
    match (found["available"] == true, found["is_floor"] == true) {
        (true, true) => "works".to_owned(),
        (true, false) => format!("works with less; {remedy}"),
        (false, _) => format!("refused; {remedy}"),
    }
}

#[track_caller]
fn expect(stage: &Stage, surrounding: &str, namespace: &str, landlock: &str) {
    let (_, document) = printed(stage, surrounding, &["doctor", "--json"]);
    let (is_namespace, is_landlock) = (
        standing(&document, "namespace"),
        standing(&document, "landlock"),
    );
    assert!(
        is_namespace.contains(namespace),
        "{surrounding}: {is_namespace}"
    );
    assert!(
        is_landlock.contains(landlock),
        "{surrounding}: {is_landlock}"
    );
}

#[test]
fn every_account_on_the_machine_itself_has_a_tier() {
    let stage = stage();
    for name in [
        "bare-root",
        "bare-user",
        "unknown-user",
        "unshare-root",
        "read-only-root",
        "noexec-tmp",
        "bwrap",
    ] {
        expect(&stage, name, "works", "works");
    }
    expect(&stage, "root-without-capabilities", "--user 1000", "works");
}

#[test]
fn containers_with_a_default_profile_have_landlock_and_name_the_profile_that_gives_more() {
    let stage = stage();
    for name in ["docker", "docker-root", "docker-unmasked"] {
        expect(
            &stage,
            name,
            "--security-opt seccomp=lula-namespace.json",
            "works",
        );
    }
    expect(
        &stage,
        "pod-restricted",
        "localhostProfile: lula-namespace.json",
        "works",
    );
}

#[test]
fn the_shipped_profile_gives_namespaces_and_the_open_proc_is_named() {
    let stage = stage();
    expect(
        &stage,
        "pod-restricted-profile",
        "procMount: Unmasked",
        "works",
    );
    expect(&stage, "unconfined", "systempaths=unconfined", "works");
    expect(&stage, "pod-baseline", "works", "works");
}

#[test]
fn podman_as_it_comes_has_both_tiers() {
    let stage = stage();
    for name in ["podman", "podman-rootless"] {
        expect(&stage, name, "unmask=ALL", "works");
    }
}

#[test]
fn gvisor_is_known_and_says_what_works_in_it() {
    let stage = stage();
    let (status, document) = printed(&stage, "gvisor", &["doctor", "--json"]);
    assert_ne!(status, 0);
    for tier in ["namespace", "landlock"] {
        let standing = standing(&document, tier);
        assert!(standing.contains("--tier process"), "{standing}");
    }
    assert_eq!(standing(&document, "process"), "works");
}

#[test]
fn inside_a_sandbox_of_its_own_it_has_landlock() {
    let stage = stage();
    expect(&stage, "lula", "forbid every mount", "works");
    let arguments = ["exec", "--json", "--write=none", "--", "true"];
    let (_, document) = printed(&stage, "lula", &arguments);
    // A filter below one that has a listener can have none.
    let unseen = document["receipt"]["not_observed"].to_string();
    assert!(
        unseen.contains("system calls that seccomp refused"),
        "{document}"
    );
}

#[test]
fn attacks_are_held_off_where_surroundings_differ_most() {
    let stage = stage();
    for (name, tier) in [
        ("docker", "landlock"),
        ("pod-restricted-profile", "namespace"),
        ("lula", "landlock"),
    ] {
        let attack = ["doctor", "--attack", "--tier", tier, "--json"];
        let (status, report) = printed(&stage, name, &attack);
        let probes = report["probes"].as_array().unwrap();
        assert!(probes.len() >= 80, "{name}: only {} probes", probes.len());
        for probe in probes {
            let outcome = probe["outcome"].as_str().unwrap();
            // Nothing counts processes and memory where no control group was handed over.
            let limit = ["processes", "memory"].contains(&probe["name"].as_str().unwrap());
            // What is refused outside as well proves nothing, and says so.
            assert!(
                ["held", "untried"].contains(&outcome) || (limit && outcome == "unlimited"),
                "{name}: {probe}"
            );
        }
        let held = probes.iter().filter(|probe| probe["outcome"] == "held");
        assert!(held.count() >= 60, "{name}: {report}");
        assert_eq!(status, 0, "{name}");
    }
}

#[test]
fn a_command_in_a_container_has_a_receipt_that_says_what_it_lacks() {
    let stage = stage();
    let run = |surrounding: &str| {
        let arguments = [
            "exec",
            "--json",
            "--write=none",
            "--workspace=/dev/shm",
            "--",
            "/usr/bin/lula",
            "--version",
        ];
        let document = printed(&stage, surrounding, &arguments).1;
        assert!(document["receipt"].is_object(), "{document}");
        document["receipt"].clone()
    };
    let receipt = run("pod-restricted-profile");
    assert_eq!(receipt["tier"], "namespace", "{receipt}");
    let missing = receipt["not_applied"].as_array().unwrap();
    let told = |what: &str| missing.iter().any(|one| one["asked"] == what);
    assert!(told("a /proc of its own"), "{receipt}");
    assert_eq!(run("docker")["tier"], "landlock");
}

/// Each call of the profile that engines keep back by default is needed: without it the tier is refused, and
/// the profile is named again.
#[test]
fn without_one_call_of_the_shipped_profile_the_refusal_is_back() {
    let stage = stage();
    for call in [
        "fsconfig",
        "fsmount",
        "fsopen",
        "mount",
        "mount_setattr",
        "move_mount",
        "open_tree",
        "pivot_root",
        "setns",
        "umount2",
        "unshare",
    ] {
        let (_, document) = answer(&mut pod_without(&stage, call, &["doctor", "--json"]));
        let standing = standing(&document, "namespace");
        assert!(standing.starts_with("refused"), "{call}: {standing}");
        assert!(
            standing.contains("lula-namespace.json"),
            "{call}: {standing}"
        );
    }
    // What has a second way, or is told.
    for call in ["clone3", "sethostname"] {
        let (_, document) = answer(&mut pod_without(&stage, call, &["doctor", "--json"]));
        let standing = standing(&document, "namespace");
        assert!(standing.starts_with("works"), "{call}: {standing}");
    }
}
