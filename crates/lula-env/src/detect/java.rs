//! Java and Kotlin: Maven's artifacts. Gradle is told of, and not set up.

use super::{EnvironmentPart, MissingTool, Surroundings};
use crate::project::{ProjectFiles, within};
use crate::recipe::TOOLS_HOME;

pub(super) fn look(
    files: &ProjectFiles<'_>,
    folder: &str,
    around: Surroundings<'_>,
) -> Option<EnvironmentPart> {
    let at = |name: &str| within(folder, name);
    let mut part = EnvironmentPart {
        language: "Java",
        folder: folder.to_owned(),
        ..EnvironmentPart::default()
    };
    if files.has(&at("pom.xml")) {
        part.manager = "maven";
        part.network = vec!["maven".to_owned()];
        part.reason(at("pom.xml"), "a project of Maven");
        for path in files.all() {
            if path.ends_with("/pom.xml") && path.split('/').count() <= 4 {
                files.text(path);
            }
        }
        if !around.machine.has("mvn") {
            part.missing.push(MissingTool {
                what: "no mvn on this machine".to_owned(),
                remedy: "install Maven and a JDK, and have them on PATH".to_owned(),
            });
            return Some(part);
        }
        let repository = format!("{TOOLS_HOME}/m2");
        part.variables.insert(
            "MAVEN_OPTS".to_owned(),
            format!("-Dmaven.repo.local={repository}"),
        );
        let quiet = "mvn -B -ntp";
        // The part of Surefire that a framework needs is resolved only when a test is about to run.
        let none = "-Dtest=NoTestHasThisName -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false";
        part.step(
            format!("{quiet} test {none}"),
            "artifacts and plugins, and a build of the tests",
        )
        .otherwise = vec![
            format!("{quiet} test -Dmaven.test.failure.ignore=true"),
            format!("{quiet} dependency:go-offline"),
        ];
        return Some(part);
    }
    let gradle = ["build.gradle", "build.gradle.kts"];
    let gradle = gradle.into_iter().find(|name| files.has(&at(name)))?;
    part.manager = "gradle";
    part.reason(at(gradle), "a project of Gradle");
    part.missing.push(MissingTool {
        what: "Gradle is not set up by itself".to_owned(),
        remedy: "write the steps with `lula env edit`, and name what they reach with --net"
            .to_owned(),
    });
    Some(part)
}
