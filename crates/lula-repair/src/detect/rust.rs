//! `cargo test`.

use super::{Framework, Project, TestsFound, found};

pub(super) fn look(project: &Project<'_>, out: &mut Vec<TestsFound>) {
    if project.has("Cargo.toml") {
        let kind = if project.text("Cargo.toml").contains("[workspace]") {
            "a workspace"
        } else {
            "a package"
        };
        out.push(found(
            Framework::CargoTest,
            &["cargo", "test"],
            Vec::new(),
            format!("Cargo.toml declares {kind}"),
        ));
    }
}
