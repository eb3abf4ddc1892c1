//! Rust: crates of the lock file, fetched into the environment, and a build of the tests.

use super::{EnvironmentPart, MissingTool, Surroundings, ToolVersionNeed};
use crate::project::{ProjectFiles, within};
use crate::recipe::TOOLS_HOME;

pub(super) fn look(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
) -> Option<EnvironmentPart> {
    let at = |name: &str| within(folder, name);
    files.text(&at("Cargo.toml"))?;
    let mut part = EnvironmentPart {
        language: "Rust",
        manager: "cargo",
        folder: folder.to_owned(),
        network: vec!["crates".to_owned()],
        ..EnvironmentPart::default()
    };
    toolchain(files, folder, around, &mut part);
    if !around.machine.has("cargo") {
        part.missing.push(MissingTool {
            what: "no cargo on this machine".to_owned(),
            remedy: "install Rust (rustup.rs) and have ~/.cargo/bin on PATH".to_owned(),
        });
        return Some(part);
    }
    let locked = if files.has(&at("Cargo.lock")) {
        part.reason(at("Cargo.lock"), "every version is pinned there");
        " --locked"
    } else {
        part.reason(at("Cargo.toml"), "names crates; nothing pins every version");
        ""
    };
    // Members of a workspace name crates too; the lock file has them all.
    for path in files.all() {
        let name = path.strip_suffix("/Cargo.toml");
        if locked.is_empty() && name.is_some_and(|name| name.split('/').count() <= 3) {
            files.text(path);
        }
    }
    let home = format!("{TOOLS_HOME}/cargo");
    part.variables.insert("CARGO_HOME".to_owned(), home);
    part.variables
        .insert("CARGO_NET_OFFLINE".to_owned(), "true".to_owned());
    part.step(
        format!("CARGO_NET_OFFLINE=false cargo fetch{locked}"),
        "crates of the project",
    )
    .otherwise = vec!["CARGO_NET_OFFLINE=false cargo fetch".to_owned()];
    let step = part.step(
        "cargo test --no-run",
        "the tests are built once, so that later builds begin there",
    );
    step.optional = true;
    Some(part)
}

fn toolchain(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
    part: &mut EnvironmentPart,
) {
    let at = |name: &str| within(folder, name);
    let asked = files.text(&at("rust-toolchain.toml")).map(|text| {
        let table: toml::Table = toml::from_str(&text).unwrap_or_default();
        let channel = table.get("toolchain").and_then(|one| one.get("channel"));
        let channel = channel.and_then(toml::Value::as_str).unwrap_or("stable");
        (channel.to_owned(), at("rust-toolchain.toml"))
    });
    let asked = asked.or_else(|| {
        let text = files.text(&at("rust-toolchain"))?;
        Some((text.trim().to_owned(), at("rust-toolchain")))
    });
    if let Some((wanted, file)) = asked {
        let used = around.machine.version("cargo").map(ToString::to_string);
        part.versions.push(ToolVersionNeed {
            tool: "rust".to_owned(),
            wanted,
            file,
            used,
        });
    }
}
