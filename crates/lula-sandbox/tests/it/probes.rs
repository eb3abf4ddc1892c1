//! The attacks, on this machine.

use std::path::Path;

use lula_protocol::Tier;
use lula_sandbox::policy::LayerName;
use lula_sandbox::probes::{Attack, Family, Outcome, Report, catalogue};
use lula_sandbox::{Engine, Helper};

const PROGRAM: &str = env!("CARGO_BIN_EXE_lula-sandbox-helper");

fn engine() -> Engine {
    Engine::start_with(Helper::program(PROGRAM)).unwrap()
}

fn attack(tier: Tier) -> Report {
    Attack::new(&engine(), Path::new(PROGRAM), tier)
        .run()
        .unwrap()
}

fn not_held(report: &Report) -> Vec<String> {
    let failed = report
        .probes
        .iter()
        .filter(|probe| probe.outcome != Outcome::Held);
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
    let report = attack(Tier::Namespace);
    assert_eq!(not_held(&report), Vec::<String>::new());
    assert!(report.probes.len() >= 80, "{}", report.probes.len());
}

#[test]
fn the_landlock_tier_holds_against_every_probe() {
    let report = attack(Tier::Landlock);
    assert_eq!(not_held(&report), Vec::<String>::new());
    assert!(report.probes.len() >= 80, "{}", report.probes.len());
}

/// The names of the probes that no longer hold without a layer.
fn broken_without(tier: Tier, layer: LayerName) -> Vec<String> {
    let engine = engine();
    let report = Attack::new(&engine, Path::new(PROGRAM), tier)
        .without(layer)
        .run()
        .unwrap();
    let broken = report
        .probes
        .into_iter()
        .filter(|probe| probe.outcome == Outcome::Broken);
    broken.map(|probe| probe.name).collect()
}

#[test]
fn zz() {
    for tier in [Tier::Namespace, Tier::Landlock] {
        eprintln!("{tier}: {} probes", attack(tier).probes.len());
        for layer in LayerName::ALL {
            eprintln!(
                "{tier} without {layer}: {:?}",
                std::panic::catch_unwind(|| broken_without(tier, *layer))
            );
        }
    }
}
