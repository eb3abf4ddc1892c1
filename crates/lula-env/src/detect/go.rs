//! Go: modules of `go.sum`, and the builds of the tests.

use super::{EnvironmentPart, MissingTool, Surroundings, ToolVersionNeed};
use crate::project::{ProjectFiles, within};
use crate::recipe::TOOLS_HOME;
use crate::version::VersionNumber;

pub(super) fn look(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
) -> Option<EnvironmentPart> {
    let at = |name: &str| within(folder, name);
    let module = files.text(&at("go.mod"))?;
    let mut part = EnvironmentPart {
        language: "Go",
        manager: "go",
        folder: folder.to_owned(),
        network: vec!["go".to_owned()],
        ..EnvironmentPart::default()
    };
    let line = |word: &str| {
        let mut lines = module.lines().map(str::trim);
        lines
            .find_map(|line| line.strip_prefix(word))
            .map(str::trim)
    };
    let toolchain = line("toolchain go");
    let wanted = toolchain.or_else(|| line("go "));
    let used = around.machine.version("go");
    if let Some(wanted) = wanted {
        part.versions.push(ToolVersionNeed {
            tool: "go".to_owned(),
            wanted: wanted.to_owned(),
            file: at("go.mod"),
            used: used.map(ToString::to_string),
        });
    }
    if !around.machine.has("go") {
        part.missing.push(MissingTool {
            what: "no go on this machine".to_owned(),
            remedy: "install Go (go.dev/dl or the system's packages) and have it on PATH"
                .to_owned(),
        });
        return Some(part);
    }
    let least: Option<VersionNumber> = wanted.and_then(|wanted| wanted.parse().ok());
    // From 1.21 on, go fetches the toolchain that a module asks for by itself, through the same proxy.
    let fetches: bool = "1.21"
        .parse()
        .is_ok_and(|first: VersionNumber| used.is_some_and(|used| *used >= first));
    if let (Some(least), Some(used)) = (&least, used)
        && !fetches
        && used.minor() < least.minor()
    {
        part.missing.push(MissingTool {
            what: format!("go {least} is asked for, and go {used} is here"),
            remedy: format!("install Go {least} or later; the build goes on with what is here"),
        });
    }
    if files.has(&at("go.sum")) {
        part.reason(at("go.sum"), "every module is pinned there");
    } else {
        part.reason(at("go.mod"), "the project is a module");
    }
    part.variables
        .insert("GOMODCACHE".to_owned(), format!("{TOOLS_HOME}/go/mod"));
    part.variables
        .insert("GOCACHE".to_owned(), format!("{TOOLS_HOME}/go/build"));
    if !files.names(&at("vendor/modules.txt")) {
        part.step("go mod download", "modules of the project");
    }
    let step = part.step(
        "go test -run '^$' ./...",
        "the tests are built once, so that later builds begin there",
    );
    step.optional = true;
    Some(part)
}
