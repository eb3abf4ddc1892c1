//! What a Node project's tests lack.

use serde_json::Value;

use super::{ProjectFolderFiles, SuiteCommandAttempt, listed, remedy};
use crate::environment::{BrokenEnvironment, CodeOrigin};

/// What is broken about an environment in which a Node runner printed this.
pub(crate) fn broken(
    project: &ProjectFolderFiles<'_>,
    attempt: &SuiteCommandAttempt<'_>,
) -> Option<BrokenEnvironment> {
    let names = missing(project, attempt.output);
    if names.is_empty() {
        return None;
    }
    let what = format!(
        "{} {} not installed",
        listed(&names),
        if names.len() == 1 { "is" } else { "are" }
    );
    Some(attempt.failed(what, names, Some(remedy::node(project))))
}

/// Packages and programs that a text says are not there and that the project declares.
fn missing(project: &ProjectFolderFiles<'_>, text: &str) -> Vec<String> {
    let manifest: Value =
        serde_json::from_str(&project.text("package.json")).unwrap_or(Value::Null);
    let mut names: Vec<String> = Vec::new();
    let mut note = |name: &str| {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    for line in text.lines() {
        for marker in [
            "Cannot find module '",
            "Cannot find module \"",
            "Cannot find package '",
            "Could not resolve \"",
            "Failed to resolve import \"",
        ] {
            let Some(rest) = line.split(marker).nth(1) else {
                continue;
            };
            let name = rest.split(['\'', '"']).next().unwrap_or_default();
            // A path is a matter of the code.
            if name.starts_with(['.', '/', '#', '~']) || name.starts_with("file:") {
                continue;
            }
            let parts: Vec<&str> = name.split('/').collect();
            let package = match parts.as_slice() {
                [scope, name, ..] if scope.starts_with('@') => format!("{scope}/{name}"),
                [name, ..] => (*name).to_owned(),
                [] => continue,
            };
            if manifest["name"].as_str() != Some(&package) {
                note(&package);
            }
        }
        // `sh: 1: mocha: not found`, `sh: mocha: command not found`
        if let Some(before) = line
            .strip_suffix(": not found")
            .or_else(|| line.strip_suffix(": command not found"))
        {
            let name = before.rsplit(": ").next().unwrap_or_default();
            if !name.contains([' ', '/']) {
                note(name);
            }
        }
    }
    names
}

/// A package of the project that tests load from elsewhere than its own folder: from outside of the
/// project, as `npm link` leaves one, or from a copy that another package brought.
pub(crate) fn linked_elsewhere(
    origins: &[CodeOrigin],
    root: &str,
    attempt: &SuiteCommandAttempt<'_>,
) -> Option<BrokenEnvironment> {
    let top = format!("{}/", root.trim_end_matches('/'));
    let own = |origin: &CodeOrigin| {
        origin.path.starts_with(&top) && !origin.path.contains("/node_modules/")
    };
    // Where another process loads the project's own code, that is tested there.
    let tested = |name: &str| origins.iter().any(|one| one.name == name && own(one));
    let origin = origins
        .iter()
        .find(|origin| !own(origin) && !tested(&origin.name))?;
    let what = format!(
        "the tests load {} from {}, which is not the code of this project: a change of it would not be tested",
        origin.name, origin.path
    );
    Some(attempt.failed(what, Vec::new(), Some("npm install".to_owned())))
}
