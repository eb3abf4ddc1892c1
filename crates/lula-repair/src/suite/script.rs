//! Test scripts of Node packages: what they start, what they build, and what of them can be left out.

use super::broken::ProjectFolderFiles;
use crate::detect::{followed, is_check};
use crate::ground::ProjectFork;

/// The test script of the package in a folder, with the scripts that it starts in their places.
pub(super) fn text(fork: &dyn ProjectFork, folder: &str) -> String {
    let text = ProjectFolderFiles::of(fork, folder).text("package.json");
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let of = |name: &str| {
        followed(
            &manifest,
            manifest["scripts"][name].as_str().unwrap_or(""),
            3,
        )
    };
    match of("pretest") {
        before if before.is_empty() => of("test"),
        before => format!("{before} && {}", of("test")),
    }
}

/// The names of the repository's own packages.
pub(super) fn packages(fork: &dyn ProjectFork) -> Vec<String> {
    let files = fork.files().unwrap_or_default();
    let manifests = files.iter().filter(|file| {
        (*file == "package.json" || file.ends_with("/package.json"))
            && !file.contains("node_modules/")
    });
    let names = manifests.take(MOST_PACKAGES).filter_map(|file| {
        let manifest: serde_json::Value = serde_json::from_slice(&fork.read(file).ok()?).ok()?;
        let name = manifest["name"].as_str()?;
        (!name.contains(',')).then(|| name.to_owned())
    });
    names.collect()
}

/// Most packages that are asked where they come from.
const MOST_PACKAGES: usize = 40;

/// Words of programs that make the code that tests run out of the code that people edit.
const BUILDERS: &[&str] = &[
    "build", "tsc", "babel", "rollup", "webpack", "esbuild", "tsup", "swc", "compile", "gyp",
    "make", "bundle", "gulp", "grunt", "unbuild", "parcel", "vite",
];

/// Whether a script makes what it tests.
pub(super) fn builds(script: &str) -> bool {
    let builder = |word: &str| {
        word.split(['-', ':', '/'])
            .any(|piece| BUILDERS.contains(&piece))
    };
    script.split(['&', ';', '|']).any(|part| {
        let mut words = part.split_whitespace().filter(|word| !word.contains('='));
        match words.find(|word| !matches!(*word, "npx" | "nyc" | "c8" | "cross-env")) {
            // What a package's other scripts do is told by their names alone.
            Some("npm" | "pnpm" | "yarn" | "run-s" | "run-p" | "npm-run-all") => words.any(builder),
            first => first.is_some_and(builder),
        }
    })
}

/// npm's `test` without the scripts before and after it.
pub(super) fn without_hooks(
    fork: &dyn ProjectFork,
    folder: &str,
    argv: &[String],
) -> Option<Vec<String>> {
    let text = ProjectFolderFiles::of(fork, folder).text("package.json");
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let hooked = ["pretest", "posttest"]
        .iter()
        .any(|name| manifest["scripts"][name].is_string());
    let npm = argv == ["npm", "test"];
    (npm && hooked).then(|| {
        ["npm", "test", "--ignore-scripts"]
            .map(str::to_owned)
            .to_vec()
    })
}

/// A script that stopped at a check of style before its first test, without those checks.
pub(super) fn without_checks(fork: &dyn ProjectFork, folder: &str) -> Option<Vec<String>> {
    let script = text(fork, folder);
    let parts: Vec<&str> = script.split("&&").map(str::trim).collect();
    let kept: Vec<&str> = parts
        .iter()
        .copied()
        .filter(|part| !is_check(part))
        .collect();
    (kept.len() < parts.len() && !kept.is_empty()).then(|| {
        let line = format!(
            "PATH=\"$PWD/node_modules/.bin:$PATH\"; {}",
            kept.join(" && ")
        );
        vec!["sh".to_owned(), "-c".to_owned(), line]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_makes_what_it_tests_is_known() {
        for script in [
            "tsc && mocha dist",
            "npm run build && nyc mocha",
            "run-s build:node test",
            "babel src -d lib; ava",
        ] {
            assert!(builds(script), "{script}");
        }
        for script in [
            "xo && ava && tsd",
            "nyc tape 'test/**/*.js'",
            "eslint . && vitest run",
        ] {
            assert!(!builds(script), "{script}");
        }
    }
}
