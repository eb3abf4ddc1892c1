//! `PHPUnit`.

use serde_json::Value;

use super::{DetectedTests, DetectionProject, TestFramework, found};

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    let manifest: Value =
        serde_json::from_str(&project.text("composer.json")).unwrap_or(Value::Null);
    let script = match &manifest["scripts"]["test"] {
        Value::Array(lines) => lines
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" && "),
        line => line.as_str().unwrap_or_default().to_owned(),
    };
    let runs = ["phpunit", "pest", "artisan test"];
    if runs.iter().any(|name| script.contains(name)) {
        let reason = format!("composer.json's test script is `{script}`");
        out.push(found(
            TestFramework::Phpunit,
            &["composer", "test"],
            Vec::new(),
            reason,
        ));
    }
    let depends = |name: &str| {
        ["require-dev", "require"]
            .iter()
            .any(|key| manifest[key].get(name).is_some())
    };
    let configured = ["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"]
        .into_iter()
        .find(|path| project.has(path));
    let (program, reason) = if depends("pestphp/pest") {
        ("vendor/bin/pest", "composer.json depends on Pest")
    } else if depends("phpunit/phpunit") {
        ("vendor/bin/phpunit", "composer.json depends on PHPUnit")
    } else if configured.is_some() {
        ("phpunit", "PHPUnit is configured")
    } else {
        return;
    };
    out.push(found(
        TestFramework::Phpunit,
        &[program],
        Vec::new(),
        reason,
    ));
}
