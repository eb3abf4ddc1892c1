//! Go, Maven, Gradle and makefiles: detected and run, not repaired.

use super::{Framework, Project, TestsFound, found};

pub(super) fn look(project: &Project<'_>, out: &mut Vec<TestsFound>) {
    if project.has("go.mod") {
        out.push(found(
            Framework::GoTest,
            &["go", "test", "-json", "./..."],
            Vec::new(),
            "go.mod declares a module",
        ));
    }
    if project.has("pom.xml") {
        let program = if project.has("mvnw") { "./mvnw" } else { "mvn" };
        out.push(found(
            Framework::Maven,
            &[program, "-q", "-o", "test"],
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
            Framework::Gradle,
            &[program, "--offline", "test"],
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
                Framework::Make,
                &["make", target],
                Vec::new(),
                format!("{makefile} has the target {target}"),
            ));
            break;
        }
    }
}
