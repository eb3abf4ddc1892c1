//! What `CMake`, Ruby, PHP, Deno, Maven and Gradle lack, in their own words.

use super::{ProjectFolderFiles, SuiteCommandAttempt, listed};
use crate::environment::BrokenEnvironment;

/// Something that is not there: its name, and what would bring it.
struct MissingRequirement {
    name: String,
    remedy: Option<String>,
}

/// What is broken about an environment in which one of these printed this.
pub(crate) fn broken(
    project: &ProjectFolderFiles<'_>,
    attempt: &SuiteCommandAttempt<'_>,
) -> Option<BrokenEnvironment> {
    if let Some(what) = unbuilt(attempt.output) {
        let remedy = "cmake -S . -B build && cmake --build build".to_owned();
        return Some(attempt.failed(what, Vec::new(), Some(remedy)));
    }
    let mut names: Vec<String> = Vec::new();
    let mut remedy = None;
    for lack in attempt
        .output
        .lines()
        .filter_map(|line| lack(project, line))
    {
        remedy = remedy.or(lack.remedy);
        if !names.contains(&lack.name) {
            names.push(lack.name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let verb = if names.len() == 1 { "is" } else { "are" };
    let what = format!("{} {verb} not installed", listed(&names));
    Some(attempt.failed(what, names, remedy))
}

/// A program that the tests are started with and that is not there.
pub(crate) fn absent(program: &str, attempt: &SuiteCommandAttempt<'_>) -> BrokenEnvironment {
    let name = program.rsplit('/').next().unwrap_or(program);
    let remedy = match program {
        "vendor/bin/phpunit" | "vendor/bin/pest" => Some("composer install".to_owned()),
        "bundle" => Some("gem install bundler && bundle install".to_owned()),
        _ => None,
    };
    attempt.failed(
        format!("{name} is not installed"),
        vec![name.to_owned()],
        remedy,
    )
}

/// What `CTest` says where nothing was configured or built.
fn unbuilt(output: &str) -> Option<String> {
    let nothing = [
        "No test configuration file found!",
        "No tests were found!!!",
        "Failed to change working directory to",
    ];
    if nothing.iter().any(|said| output.contains(said)) {
        let what = "CTest found no tests: this is no build folder that CMake has configured";
        return Some(what.to_owned());
    }
    let programs: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split_once("Unable to find executable: "))
        .map(|(_, program)| program.trim())
        .collect();
    let first = programs.first()?;
    Some(format!(
        "the programs of the tests are not built, as {first}"
    ))
}

fn lack(project: &ProjectFolderFiles<'_>, line: &str) -> Option<MissingRequirement> {
    let after = |needle: &str| line.split_once(needle).map(|(_, rest)| rest.trim());
    let of = |name: &str, remedy: Option<&str>| {
        let name = name.trim_matches(|c: char| "'\"`.,".contains(c));
        (!name.is_empty()).then(|| MissingRequirement {
            name: name.to_owned(),
            remedy: remedy.map(str::to_owned),
        })
    };
    let word = |text: &str| {
        text.split([' ', ',', '('])
            .next()
            .unwrap_or(text)
            .to_owned()
    };
    let ruby = || {
        let bundled = project.has("Gemfile");
        bundled.then_some("bundle install")
    };
    // Ruby
    if let Some(rest) = after("Could not find gem '") {
        return of(&word(rest), Some("bundle install"));
    }
    if line.contains("in locally installed gems") || line.contains("in any of the sources") {
        return of(&word(after("Could not find ")?), Some("bundle install"));
    }
    if let Some(rest) = after("bundler: command not found: ") {
        return of(rest, Some("bundle install"));
    }
    if let Some(file) = after("cannot load such file -- ") {
        let top = file.split('/').next().unwrap_or(file);
        let own = |path: &String| {
            let name = path.rsplit('/').next().unwrap_or(path);
            name == format!("{top}.rb") || path.starts_with(&format!("lib/{top}/"))
        };
        // A path, or a file that the project has, is a matter of the code.
        if file.starts_with(['/', '.']) || project.files().iter().any(own) {
            return None;
        }
        let install = format!("gem install {top}");
        return of(top, ruby().or(Some(&install)));
    }
    // PHP
    if line.contains("vendor/autoload.php")
        && ["Cannot open", "Failed opening", "Failed to open"]
            .iter()
            .any(|said| line.contains(said))
    {
        return of("vendor/autoload.php", Some("composer install"));
    }
    // CMake
    if let Some(rest) = after("Could NOT find ") {
        return of(&word(rest), None);
    }
    if let Some(rest) = after("Could not find a package configuration file provided by ") {
        return of(&word(rest), None);
    }
    if let Some((_, rest)) = line.split_once("No CMAKE_")
        && let Some((language, _)) = rest.split_once("_COMPILER could be found")
    {
        return of(&format!("a compiler for {language}"), None);
    }
    // Deno
    if let Some(rest) = after("JSR package manifest for '") {
        return of(rest.split('\'').next()?, Some("deno install"));
    }
    if line.contains("error") && (line.contains("Import 'http") || line.contains("npm package '")) {
        return of(line.split('\'').nth(1)?, Some("deno install"));
    }
    // Maven and Gradle
    if line.contains("in offline mode and the artifact ") {
        let artifact = word(after("in offline mode and the artifact ")?);
        return of(&artifact, Some("mvn dependency:go-offline"));
    }
    if line.contains("No cached version of ") {
        return of(&word(after("No cached version of ")?), Some("gradle build"));
    }
    if let Some(artifact) = after("> Could not find ").filter(|rest| rest.matches(':').count() == 2)
    {
        return of(artifact, Some("gradle build"));
    }
    // Rust
    if line.contains("no such command: `nextest`") {
        return of(
            "cargo-nextest",
            Some("cargo install cargo-nextest --locked"),
        );
    }
    None
}
