//! What cargo and go lack when there is no network.

use super::SuiteCommandAttempt;
use crate::environment::BrokenEnvironment;

/// What is broken about an environment in which cargo or go printed this.
pub(crate) fn broken(attempt: &SuiteCommandAttempt<'_>) -> Option<BrokenEnvironment> {
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
            modules(attempt.output),
            Some("go mod download".to_owned()),
        ));
    }
    None
}

/// Modules and packages that go names where it says that it lacks them.
fn modules(output: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in output.lines() {
        let after = |needle: &str| line.split_once(needle).map(|(_, rest)| rest);
        let found = after("providing package ")
            .or_else(|| after("provides package "))
            .or_else(|| after("go: downloading "))
            .or_else(|| after(": ").filter(|rest| rest.contains("@v") && rest.contains(": Get ")));
        let name = found.and_then(|rest| rest.split([' ', '@', ';', ':']).next());
        if let Some(name) = name.filter(|name| name.contains('.') || name.contains('/'))
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    names
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
