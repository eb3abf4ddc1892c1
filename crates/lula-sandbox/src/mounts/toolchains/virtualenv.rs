//! Python's virtual environments: where one is, and which interpreter it leans on.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::links;

/// What makes a directory a virtual environment.
const SETTINGS: &str = "pyvenv.cfg";

/// More of its settings is not read.
const MOST: u64 = 16 * 1024;

/// Names a project's own virtual environment goes by, in the order in which they are looked for.
const NAMES: [&str; 3] = [".venv", "venv", "env"];

/// A virtual environment of Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Virtualenv {
    pub directory: PathBuf,
    /// Why it cannot be used, where it cannot: it has no interpreter, or a link to one that is gone.
    pub broken: Option<String>,
}

impl Virtualenv {
    /// The one at a directory, where there is one.
    pub(super) fn at(directory: &Path) -> Option<Self> {
        if !directory.join(SETTINGS).is_file() {
            return None;
        }
        let python = directory.join("bin/python");
        let broken = if python.is_file() {
            None
        } else if let Ok(to) = fs::read_link(&python) {
            let to = to.display();
            Some(format!(
                "{} leads to {to}, which is not there",
                python.display()
            ))
        } else {
            Some(format!("{} is not there", python.display()))
        };
        Some(Self {
            directory: directory.to_owned(),
            broken,
        })
    }

    /// The nearest one, from a folder up to the top of its repository.
    pub(super) fn nearest(top: &Path, folder: &Path) -> Option<Self> {
        let inside = folder.ancestors().take_while(|one| one.starts_with(top));
        inside
            .flat_map(|folder| NAMES.map(|name| folder.join(name)))
            .find_map(|place| Self::at(&place))
    }

    /// Where its programs are.
    pub fn programs(&self) -> PathBuf {
        self.directory.join("bin")
    }

    /// Directories in which programs of the interpreter beneath it lie.
    pub(super) fn base(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = self.home().into_iter().collect();
        let python = self.programs().join("python");
        let behind = links::followed(&python).into_iter();
        found.extend(behind.filter_map(|file| file.parent().map(Path::to_owned)));
        found
    }

    /// `home = …` of its settings.
    fn home(&self) -> Option<PathBuf> {
        let file = fs::File::open(self.directory.join(SETTINGS)).ok()?;
        let mut text = String::new();
        file.take(MOST).read_to_string(&mut text).ok()?;
        let value = text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == "home").then(|| value.trim())
        })?;
        Some(PathBuf::from(value))
    }
}

/// Whether a prefix holds an installed interpreter with its library.
pub(super) fn holds_python(prefix: &Path) -> bool {
    let is_library = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        ["python3", "python2", "pypy"]
            .iter()
            .any(|begin| name.starts_with(begin))
            && entry.path().is_dir()
    };
    ["lib", "lib64"].iter().any(|library| {
        let entries = fs::read_dir(prefix.join(library));
        entries.into_iter().flatten().flatten().any(is_library)
    })
}
