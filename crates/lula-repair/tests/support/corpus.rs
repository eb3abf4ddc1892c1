//! The seeded bugs below `eval/repair`: a project that works, the edit that breaks it, and tests
//! that the search never sees.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tempfile::TempDir;

use crate::unsandboxed::copy;

/// A bug that was put into a project of the corpus.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bug {
    /// Its name, unique in its project.
    pub(crate) id: String,
    /// What is wrong, in one line.
    pub(crate) about: String,
    /// The file that holds it.
    pub(crate) file: String,
    /// The right code; stands exactly once in the file.
    pub(crate) from: String,
    /// The code with the bug.
    pub(crate) to: String,
}

/// A project with the bugs that can be seeded in it.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// Its name; what stands before the first dash is its language.
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    pub(crate) bugs: Vec<Bug>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    /// Those that the search was improved on.
    Known,
    /// Small algorithms, each with the mistakes that people make in them; the search was improved on
    /// these too.
    Practice,
    /// Those that it was never fitted to.
    HeldOut,
}

/// Every project of a set, by name.
pub(crate) fn projects(set: Set) -> Vec<Project> {
    let folder = match set {
        Set::Known => "../../eval/repair",
        Set::Practice => "../../eval/repair/practice",
        Set::HeldOut => "../../eval/repair/held-out",
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found: Vec<Project> = fs::read_dir(&root)
        .expect("the folder of seeded bugs exists")
        .filter_map(|entry| {
            let root = entry.expect("a readable folder").path();
            let bugs = fs::read_to_string(root.join("bugs.json")).ok()?;
            Some(Project {
                name: root
                    .file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned(),
                bugs: serde_json::from_str(&bugs)
                    .unwrap_or_else(|error| panic!("{}: {error}", root.display())),
                root,
            })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

impl Project {
    /// What it is written in.
    pub(crate) fn language(&self) -> &str {
        self.name.split('-').next().unwrap_or(&self.name)
    }

    /// The project without any bug.
    pub(crate) fn sound(&self) -> TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy(&self.root.join("project"), folder.path()).expect("a copy");
        folder
    }

    /// The project with one bug.
    pub(crate) fn seeded(&self, bug: &Bug) -> TempDir {
        let folder = self.sound();
        let path = folder.path().join(&bug.file);
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}/{}: {error}", self.name, bug.file));
        assert_eq!(
            text.matches(&bug.from).count(),
            1,
            "{}/{}: the right code must stand once in {}",
            self.name,
            bug.id,
            bug.file
        );
        fs::write(&path, text.replacen(&bug.from, &bug.to, 1)).expect("a seeded bug");
        folder
    }

    /// Puts the hidden tests into a copy of the project.
    pub(crate) fn reveal(&self, folder: &Path) {
        copy(&self.root.join("hidden"), folder).expect("hidden tests");
    }
}
