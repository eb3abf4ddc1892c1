//! Go, Maven, Gradle and makefiles: detected and run, not repaired.

use super::{DetectedTests, DetectionProject, TestFramework, found};

pub(super) fn look(project: &DetectionProject<'_>, out: &mut Vec<DetectedTests>) {
    if project.has("go.mod") {
        out.push(found(
            TestFramework::GoTest,
            &["go", "test", "./..."],
            Vec::new(),
            "go.mod declares a module",
        ));
    }
    if project.has("pom.xml") {
        let program = if project.has("mvnw") { "./mvnw" } else { "mvn" };
        out.push(found(
            TestFramework::Maven,
            &[program, "-q", "-o", "--fail-at-end", "test"],
            Vec::new(),
            "pom.xml declares a project",
        ));
    }
    if let Some(manifest) = ["build.gradle", "build.gradle.kts"]
        .iter()
        .find(|path| project.has(path))
    {
        let program = if project.has("gradlew") {
            "./gradlew"
        } else {
            "gradle"
        };
        out.push(found(
            TestFramework::Gradle,
            &[program, "--offline", "--continue", "test"],
            Vec::new(),
            format!("{manifest} declares a build"),
        ));
    }
    for makefile in ["Makefile", "makefile", "GNUmakefile"] {
        let text = project.text(makefile);
        if let Some(target) = ["test", "check"].iter().find(|target| {
            text.lines()
                .any(|line| line.starts_with(&format!("{target}:")))
        }) {
            out.push(found(
                TestFramework::Make,
                &["make", target],
                Vec::new(),
                format!("{makefile} has the target {target}"),
            ));
            break;
        }
    }
}
