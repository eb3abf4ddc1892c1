//! The projects of a repository: folders with a manifest of their own.

use std::borrow::Cow;

use super::is_foreign;

/// Files that make a folder a project.
const MANIFESTS: &[&str] = &[
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    "manage.py",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Gemfile",
    "composer.json",
    "deno.json",
    "deno.jsonc",
];
/// Files that make a folder one where a person named the folder.
const MAKEFILES: &[&str] = &["Makefile", "makefile", "GNUmakefile"];
/// Most that are looked at.
const MOST: usize = 100;

/// The nearest folder at or above a place that is a project; the top where none is.
pub(super) fn around<'a>(files: &[String], place: &'a str) -> &'a str {
    let mut folder = place.trim_matches('/');
    while !folder.is_empty() {
        let is_project = MANIFESTS.iter().chain(MAKEFILES).any(|name| {
            let path = format!("{folder}/{name}");
            files.contains(&path)
        });
        if is_project {
            return folder;
        }
        folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
    }
    ""
}

/// Whether a folder is material for tests or for a reader, whatever it looks like.
fn is_aside(folder: &str) -> bool {
    folder.split('/').any(|part| {
        matches!(
            part,
            "fixtures" | "test" | "tests" | "__tests__" | "testdata" | "examples" | "templates"
        )
    })
}

/// The folders around a file that are projects, the nearest first.
pub(super) fn above<'a>(files: &'a [String], file: &'a str) -> impl Iterator<Item = &'a str> {
    let folder = |path: &'a str| path.rsplit_once('/').map(|(above, _)| above);
    let all = std::iter::successors(folder(file), move |inner| folder(inner));
    let is_project = move |place: &&str| {
        let within = |path: &String| {
            let name = path.strip_prefix(*place)?.strip_prefix('/')?;
            Some(MANIFESTS.contains(&name))
        };
        !is_aside(place) && files.iter().filter_map(within).any(|found| found)
    };
    all.filter(is_project).chain(std::iter::once(""))
}

/// Every folder below the top that is a project.
pub(super) fn below(files: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for file in files.iter().filter(|file| !is_foreign(file)) {
        let Some((folder, name)) = file.rsplit_once('/') else {
            continue;
        };
        let known = found.iter().any(|known| known == folder);
        if MANIFESTS.contains(&name) && !is_aside(folder) && !known {
            found.push(folder.to_owned());
        }
        if found.len() >= MOST {
            break;
        }
    }
    found
}

/// The files of a folder that are tested from there: one that is no project itself leaves those of
/// the projects below to them.
pub(super) fn outside(files: &[String]) -> Cow<'_, [String]> {
    if MANIFESTS
        .iter()
        .any(|name| files.iter().any(|file| file == name))
    {
        return Cow::Borrowed(files);
    }
    let below = below(files);
    let within = |file: &String| {
        let inside = |folder: &String| {
            let rest = file.strip_prefix(folder.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        below.iter().any(inside)
    };
    let loose = files.iter().filter(|file| !within(file));
    Cow::Owned(loose.cloned().collect())
}

/// The files of a folder, named from it.
pub(super) fn inside(files: &[String], folder: &str) -> Vec<String> {
    if folder.is_empty() {
        return files.to_vec();
    }
    let start = format!("{folder}/");
    files
        .iter()
        .filter_map(|file| file.strip_prefix(&start).map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_manifest_is_the_project() {
        let files = ["a/package.json", "a/src/x/y.js", "Cargo.toml", "b/c.rs"].map(str::to_owned);
        assert_eq!(around(&files, "a/src/x"), "a");
        assert_eq!(around(&files, "b"), "");
        assert_eq!(below(&files), ["a"]);
        assert_eq!(above(&files, "a/src/x/y.js").collect::<Vec<_>>(), ["a", ""]);
        assert_eq!(above(&files, "README.md").collect::<Vec<_>>(), [""]);
        assert_eq!(inside(&files, "a"), ["package.json", "src/x/y.js"]);
    }
}
