//! What cargo and go lack when there is no network.

use super::Attempt;
use crate::environment::BrokenEnvironment;

/// What is broken about an environment in which cargo or go printed this.
pub(crate) fn broken(attempt: &Attempt<'_>) -> Option<BrokenEnvironment> {
    let said = |needle: &str| attempt.output.lines().find(|line| line.contains(needle));
    let cargo = [
        "failed to download",
        "no matching package named",
        "unable to update registry",
        "attempting to make an HTTP request, but --offline",
        "failed to load source for dependency",
        "can't checkout from",
    ];
    if let Some(line) = cargo.iter().find_map(|needle| said(needle)) {
        return Some(attempt.failed(
            format!(
                "crates that the project needs are not on this machine: {}",
                line.trim()
            ),
            named(attempt.output),
            Some("cargo fetch".to_owned()),
        ));
    }
    let go = [
        "missing go.sum entry",
        "dial tcp",
        "module lookup disabled by GOPROXY=off",
        "cannot find module providing package",
        "no required module provides package",
    ];
    if let Some(line) = go
        .iter()
        .find_map(|needle| said(needle).filter(|_| attempt.command.contains("go ")))
    {
        return Some(attempt.failed(
            format!(
                "modules that the project needs are not on this machine: {}",
                line.trim()
            ),
            Vec::new(),
            Some("go mod download".to_owned()),
        ));
    }
    None
}

/// Crates that cargo names in backticks.
fn named(output: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in output.lines().filter(|line| {
        line.contains("failed to download") || line.contains("no matching package named")
    }) {
        if let Some(name) = line.split('`').nth(1) {
            let name = name.split(' ').next().unwrap_or(name).to_owned();
            if !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}
