//! Compilers and interpreters a person installed outside the system directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{SYSTEM, is_below};

/// Toolchains of the host that a sandbox sees read-only: the directories of a search path that are
/// not the system's own, and the homes of the version managers they belong to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Toolchains {
    directories: Vec<PathBuf>,
    search: Vec<String>,
    environment: BTreeMap<String, String>,
    home: Option<PathBuf>,
}

/// A version manager: where it lives in a home, the variable that says so, and which directory of
/// the search path shows that it is used.
struct Known {
    place: &'static str,
    variable: Option<&'static str>,
    shown_by: &'static str,
}

const KNOWN: [Known; 8] = [
    Known {
        place: ".rustup",
        variable: Some("RUSTUP_HOME"),
        shown_by: ".cargo/bin",
    },
    Known {
        place: ".pyenv",
        variable: Some("PYENV_ROOT"),
        shown_by: ".pyenv",
    },
    Known {
        place: ".nvm/versions",
        variable: None,
        shown_by: ".nvm",
    },
    Known {
        place: ".volta",
        variable: Some("VOLTA_HOME"),
        shown_by: ".volta",
    },
    Known {
        place: ".asdf",
        variable: Some("ASDF_DATA_DIR"),
        shown_by: ".asdf",
    },
    Known {
        place: ".sdkman/candidates",
        variable: None,
        shown_by: ".sdkman",
    },
    Known {
        place: ".rbenv",
        variable: Some("RBENV_ROOT"),
        shown_by: ".rbenv",
    },
    Known {
        place: ".local/share/mise",
        variable: Some("MISE_DATA_DIR"),
        shown_by: ".local/share/mise",
    },
];

impl Toolchains {
    /// None: only the system's programs.
    pub fn none() -> Self {
        Self::default()
    }

    /// Those on this process's own `PATH`, with its home for the package caches.
    pub fn of_this_process() -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self::on_path(&path, home.as_deref())
    }

    /// Those on a search path. A home that is itself on the path, or a directory above one, is left
    /// out: nobody keeps a compiler there alone.
    pub fn on_path(path: &str, home: Option<&Path>) -> Self {
        let mut found = Self {
            home: home.map(Path::to_owned),
            ..Self::default()
        };
        for entry in path.split(':') {
            let plain = entry.starts_with('/')
                && !entry.split('/').any(|part| part == "..")
                && !entry.chars().any(char::is_control);
            let is_home = home.is_some_and(|home| home.starts_with(entry));
            if !plain || is_home || found.search.iter().any(|known| known == entry) {
                continue;
            }
            if SYSTEM.iter().any(|system| is_below(entry, system)) {
                found.search.push(entry.to_owned());
                continue;
            }
            if !Path::new(entry).is_dir() {
                continue;
            }
            found.search.push(entry.to_owned());
            found.add(Path::new(entry));
            found.add_manager(entry);
        }
        found
    }

    /// The version manager a directory of the search path belongs to. It is found beside that
    /// directory, which need not be in the home of whoever asks.
    fn add_manager(&mut self, entry: &str) {
        for known in &KNOWN {
            let sign = format!("/{}", known.shown_by);
            let Some((base, rest)) = entry.split_once(&sign) else {
                continue;
            };
            let place = Path::new(base).join(known.place);
            let whole = rest.is_empty() || rest.starts_with('/');
            if !whole || !place.is_dir() {
                continue;
            }
            if let (Some(variable), Some(text)) = (known.variable, place.to_str()) {
                self.environment
                    .insert(variable.to_owned(), text.to_owned());
            }
            self.add(&place);
        }
    }

    fn add(&mut self, directory: &Path) {
        if !self
            .directories
            .iter()
            .any(|known| directory.starts_with(known))
        {
            self.directories
                .retain(|known| !known.starts_with(directory));
            self.directories.push(directory.to_owned());
        }
    }

    /// Directories to show read-only.
    pub fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The search path inside, with the system's own directories at the end.
    pub fn search_path(&self) -> String {
        let mut search = self.search.clone();
        for system in ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"] {
            if !search.iter().any(|known| known == system) {
                search.push(system.to_owned());
            }
        }
        search.join(":")
    }

    /// Variables the version managers need.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// The home package caches are taken from.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_manager_on_the_path_is_found_with_its_home() {
        let home = tempfile::tempdir().unwrap();
        for place in [".cargo/bin", ".rustup", ".ssh"] {
            std::fs::create_dir_all(home.path().join(place)).unwrap();
        }
        let bin = home.path().join(".cargo/bin");
        let path = format!("{}:/usr/bin:/nowhere/bin:relative", bin.display());
        let found = Toolchains::on_path(&path, Some(home.path()));
        assert_eq!(
            found.directories(),
            [bin.clone(), home.path().join(".rustup")]
        );
        assert_eq!(
            found.environment()["RUSTUP_HOME"],
            home.path().join(".rustup").to_str().unwrap()
        );
        assert!(
            found
                .search_path()
                .starts_with(&format!("{}:/usr/bin:", bin.display()))
        );
    }

    #[test]
    fn a_home_on_the_path_is_not_a_toolchain() {
        let home = tempfile::tempdir().unwrap();
        let path = format!("{}:/", home.path().display());
        let found = Toolchains::on_path(&path, Some(home.path()));
        assert!(found.directories().is_empty());
    }
}
