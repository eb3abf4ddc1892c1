//! A project that is a folder of a larger repository: started from inside it, a run tests that one.

use std::path::Path;

/// What a project of its own has at its top.
const MANIFESTS: [&str; 14] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Makefile",
    "Gemfile",
    "composer.json",
    "CMakeLists.txt",
];

/// The nearest folder around a place, below the top of its repository, that is a project of its
/// own.
fn project<'a>(top: &Path, here: &'a Path) -> Option<&'a Path> {
    let has = |folder: &Path, name: &str| {
        let found = folder.join(name).symlink_metadata();
        found.is_ok_and(|found| found.is_file())
    };
    here.ancestors()
        .take_while(|folder| *folder != top && folder.starts_with(top))
        .find(|folder| MANIFESTS.iter().any(|name| has(folder, name)))
}

/// The folder of a repository that a task is about, from its top; empty for the top itself. A folder
/// that the person names is meant even where it is no project of its own.
pub fn meant(top: &Path, here: &Path, named: bool) -> String {
    let folder = project(top, here).or_else(|| named.then_some(here));
    let inside = folder.and_then(|folder| folder.strip_prefix(top).ok()?.to_str());
    inside.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_project_below_the_top_is_meant() {
        let top = tempfile::tempdir().unwrap();
        let deep = top.path().join("services/my shop/src");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(top.path().join("Cargo.toml"), "").unwrap();
        assert_eq!(
            project(top.path(), &deep),
            None,
            "the top is no folder of itself"
        );
        std::fs::write(top.path().join("services/my shop/go.mod"), "").unwrap();
        let found = project(top.path(), &deep).unwrap();
        assert!(found.ends_with("services/my shop"), "{found:?}");
    }

    #[test]
    fn a_named_folder_is_kept_and_one_that_only_happens_to_be_around_is_not() {
        let top = tempfile::tempdir().unwrap();
        let deep = top.path().join("services/shop/src");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(meant(top.path(), top.path(), true), "");
        assert_eq!(meant(top.path(), &deep, true), "services/shop/src");
        assert_eq!(meant(top.path(), &deep, false), "");
        std::fs::write(top.path().join("services/shop/package.json"), "").unwrap();
        for named in [true, false] {
            assert_eq!(meant(top.path(), &deep, named), "services/shop");
        }
    }
}
