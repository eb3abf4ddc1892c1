//! `cargo test` and `cargo nextest`.

use super::{DetectedTests, DetectionProject, TestFramework, found};

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    if project.has("Cargo.toml") {
        let kind = if project.text("Cargo.toml").contains("[workspace]") {
            "a workspace"
        } else {
            "a package"
        };
        out.push(found(
            TestFramework::CargoTest,
            &["cargo", "test"],
            Vec::new(),
            format!("Cargo.toml declares {kind}"),
        ));
        if project.has(".config/nextest.toml") {
            out.push(found(
                TestFramework::Nextest,
                &["cargo", "nextest", "run"],
                Vec::new(),
                ".config/nextest.toml configures nextest",
            ));
        }
    }
}
