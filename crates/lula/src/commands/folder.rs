//! A project that is a folder of a larger repository: started from inside it, a run tests that one.

use std::path::Path;

use lula_workspace::Folder;

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
pub(super) fn project<'a>(top: &Path, here: &'a Path) -> Option<&'a Path> {
    let has = |folder: &Path, name: &str| {
        let found = folder.join(name).symlink_metadata();
        found.is_ok_and(|found| found.is_file())
    };
    here.ancestors()
        .take_while(|folder| *folder != top && folder.starts_with(top))
        .find(|folder| MANIFESTS.iter().any(|name| has(folder, name)))
}

/// The command that tests a folder, where its files tell one.
pub(super) fn tests(folder: &Path) -> Option<String> {
    let opened = Folder::at(folder).ok()?;
    let files = opened.files().ok()?;
    let read = |path: &str| String::from_utf8(opened.read(path).ok()?).ok();
    let found = lula_repair::detect(&files, &read);
    let words = found.tests.first()?.argv.iter().map(|word| quoted(word));
    Some(words.collect::<Vec<_>>().join(" "))
}

/// A command for the top of the repository that runs another in a folder of it.
pub(super) fn inside(folder: &str, command: &str) -> String {
    let whole = command.contains(['|', ';', '&', '\n']);
    if whole {
        format!("cd {} && ( {command} )", quoted(folder))
    } else {
        format!("cd {} && {command}", quoted(folder))
    }
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let simple = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(simple) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
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
    fn a_command_is_run_in_a_folder_whatever_their_names() {
        assert_eq!(inside("a/b", "make test"), "cd a/b && make test");
        assert_eq!(inside("it's", "a; b"), "cd 'it'\\''s' && ( a; b )");
    }
}
