//! What the tests need from the machine: how to see that it is there, what brings it, and why.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{repository::Repository, steps::Check};

/// One thing a check needs, as data.
pub(crate) struct Requirement {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    pub(crate) probe: Probe,
    pub(crate) source: Source,
    pub(crate) needed_by: Check,
    pub(crate) only_on_linux: bool,
}

/// How to see that something is there.
pub(crate) enum Probe {
    /// All of these programs, on the PATH or in a directory of [`SERVER_DIRECTORIES`].
    Programs(&'static [&'static str]),
    /// Some `python3` on the PATH has this module.
    PythonModule(&'static str),
    /// The subcommand of cargo is installed.
    CargoCommand(&'static str),
    /// What the manifest of this folder names is installed in it.
    NodeFolder(&'static str),
}

/// What installs the tool.
pub(crate) enum Source {
    Packages(Packages),
    Cargo {
        package: &'static str,
        version: &'static str,
        features: &'static [&'static str],
    },
    /// `npm install` in this folder.
    Npm(&'static str),
}

/// The package's name for each manager; `None` where it has none.
pub(crate) struct Packages {
    pub(crate) apt: Option<&'static str>,
    pub(crate) dnf: Option<&'static str>,
    pub(crate) apk: Option<&'static str>,
    pub(crate) pacman: Option<&'static str>,
    pub(crate) brew: Option<&'static str>,
}

/// Where distributions put server programs that they keep off the PATH; `*` is one component.
const SERVER_DIRECTORIES: &[&str] = &[
    "/usr/lib/postgresql/*/bin",
    "/usr/libexec/postgresql*",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
];

/// What tests install from the registry of npm.
const JAVASCRIPT: &str = "tests/javascript";

pub(crate) const REQUIREMENTS: &[Requirement] = &[
    Requirement {
        name: "git",
        why: "workspaces are git worktrees, and the checks list the repository's files with it",
        probe: Probe::Programs(&["git"]),
        source: Source::Packages(Packages {
            apt: Some("git"),
            dnf: Some("git"),
            apk: Some("git"),
            pacman: Some("git"),
            brew: Some("git"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "python3 with pytest",
        why: "the repositories that tests repair are Python projects whose tests run under pytest",
        probe: Probe::PythonModule("pytest"),
        source: Source::Packages(Packages {
            apt: Some("python3-pytest"),
            dnf: Some("python3-pytest"),
            apk: Some("py3-pytest"),
            pacman: Some("python-pytest"),
            brew: None,
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "node and npm",
        why: "JavaScript's test runners have to work inside the sandbox",
        probe: Probe::Programs(&["node", "npm"]),
        source: Source::Packages(Packages {
            apt: Some("npm"),
            dnf: Some("npm"),
            apk: Some("npm"),
            pacman: Some("npm"),
            brew: Some("node"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "runners of JavaScript",
        why: "Jest, Vitest, Mocha, uvu and pnpm have to work inside the sandbox as they are",
        probe: Probe::NodeFolder(JAVASCRIPT),
        source: Source::Npm(JAVASCRIPT),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "tmux",
        why: "chats are held in a real terminal",
        probe: Probe::Programs(&["tmux"]),
        source: Source::Packages(Packages {
            apt: Some("tmux"),
            dnf: Some("tmux"),
            apk: Some("tmux"),
            pacman: Some("tmux"),
            brew: Some("tmux"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "java",
        why: "a just-in-time compiler has to work inside the sandbox",
        probe: Probe::Programs(&["java", "javac"]),
        source: Source::Packages(Packages {
            apt: Some("default-jdk-headless"),
            dnf: Some("java-latest-openjdk-devel"),
            apk: Some("openjdk21-jdk"),
            pacman: Some("jdk-openjdk"),
            brew: Some("openjdk"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "go",
        why: "the tests of a Go project are run and read test by test",
        probe: Probe::Programs(&["go"]),
        source: Source::Packages(Packages {
            apt: Some("golang-go"),
            dnf: Some("golang"),
            apk: Some("go"),
            pacman: Some("go"),
            brew: Some("go"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "CMake",
        why: "CTest is run and read test by test",
        probe: Probe::Programs(&["cmake", "ctest"]),
        source: Source::Packages(Packages {
            apt: Some("cmake"),
            dnf: Some("cmake"),
            apk: Some("cmake"),
            pacman: Some("cmake"),
            brew: Some("cmake"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "RSpec",
        why: "the tests of a Ruby project are run and read test by test",
        probe: Probe::Programs(&["rspec"]),
        source: Source::Packages(Packages {
            apt: Some("ruby-rspec"),
            dnf: Some("rubygem-rspec"),
            apk: Some("ruby-rspec"),
            pacman: Some("ruby-rspec"),
            brew: None,
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "PHPUnit",
        why: "the tests of a PHP project are run and read test by test",
        probe: Probe::Programs(&["php", "phpunit"]),
        source: Source::Packages(Packages {
            apt: Some("phpunit"),
            dnf: Some("phpunit9"),
            apk: None,
            pacman: Some("phpunit"),
            brew: Some("phpunit"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "make",
        why: "tests are found inside of what a makefile runs",
        probe: Probe::Programs(&["make"]),
        source: Source::Packages(Packages {
            apt: Some("make"),
            dnf: Some("make"),
            apk: Some("make"),
            pacman: Some("make"),
            brew: Some("make"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "bubblewrap",
        why: "the sandbox is compared with it",
        probe: Probe::Programs(&["bwrap"]),
        source: Source::Packages(Packages {
            apt: Some("bubblewrap"),
            dnf: Some("bubblewrap"),
            apk: Some("bubblewrap"),
            pacman: Some("bubblewrap"),
            brew: None,
        }),
        needed_by: Check::Test,
        only_on_linux: true,
    },
    Requirement {
        name: "Podman",
        why: "the program has to work in its containers, and its profile is what others are made of",
        probe: Probe::Programs(&["podman"]),
        source: Source::Packages(Packages {
            apt: Some("podman"),
            dnf: Some("podman"),
            apk: Some("podman"),
            pacman: Some("podman"),
            brew: None,
        }),
        needed_by: Check::Test,
        only_on_linux: true,
    },
    Requirement {
        name: "runc",
        why: "containers and pods are set up with it by their rules, without an engine",
        probe: Probe::Programs(&["runc"]),
        source: Source::Packages(Packages {
            apt: Some("runc"),
            dnf: Some("runc"),
            apk: Some("runc"),
            pacman: Some("runc"),
            brew: None,
        }),
        needed_by: Check::Test,
        only_on_linux: true,
    },
    Requirement {
        name: "gVisor",
        why: "the program has to say in it what works and what does not",
        probe: Probe::Programs(&["runsc"]),
        source: Source::Packages(Packages {
            apt: Some("runsc"),
            dnf: None,
            apk: None,
            pacman: None,
            brew: None,
        }),
        needed_by: Check::Test,
        only_on_linux: true,
    },
    Requirement {
        name: "Redis",
        why: "the Redis store is tested against a real server",
        probe: Probe::Programs(&["redis-server"]),
        source: Source::Packages(Packages {
            apt: Some("redis-server"),
            dnf: Some("redis"),
            apk: Some("redis"),
            pacman: Some("valkey"),
            brew: Some("redis"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "PostgreSQL",
        why: "the PostgreSQL store is tested against a real server",
        probe: Probe::Programs(&["initdb", "postgres"]),
        source: Source::Packages(Packages {
            apt: Some("postgresql"),
            dnf: Some("postgresql-server"),
            apk: Some("postgresql"),
            pacman: Some("postgresql"),
            brew: Some("postgresql@17"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "openssl",
        why: "test servers are spoken to encrypted, with certificates made for each",
        probe: Probe::Programs(&["openssl"]),
        source: Source::Packages(Packages {
            apt: Some("openssl"),
            dnf: Some("openssl"),
            apk: Some("openssl"),
            pacman: Some("openssl"),
            brew: Some("openssl"),
        }),
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "setpriv",
        why: "test servers run without root's rights and end with the process that started them",
        probe: Probe::Programs(&["setpriv"]),
        source: Source::Packages(Packages {
            apt: Some("util-linux"),
            dnf: Some("util-linux"),
            apk: Some("setpriv"),
            pacman: Some("util-linux"),
            brew: None,
        }),
        needed_by: Check::Test,
        only_on_linux: true,
    },
    Requirement {
        name: "cargo-nextest",
        why: "runs each test in its own process and ends those that hang",
        probe: Probe::CargoCommand("nextest"),
        source: Source::Cargo {
            package: "cargo-nextest",
            version: "0.9.143",
            features: &["default-no-update"],
        },
        needed_by: Check::Test,
        only_on_linux: false,
    },
    Requirement {
        name: "cargo-deny",
        why: "holds dependencies to the licences, sources and bans of deny.toml",
        probe: Probe::CargoCommand("deny"),
        source: Source::Cargo {
            package: "cargo-deny",
            version: "0.20.2",
            features: &[],
        },
        needed_by: Check::Deny,
        only_on_linux: false,
    },
];

impl Requirement {
    pub(crate) fn applies_here(&self) -> bool {
        !self.only_on_linux || cfg!(target_os = "linux")
    }

    pub(crate) fn is_met(&self, repository: &Repository) -> bool {
        match self.probe {
            Probe::Programs(programs) => programs.iter().all(|name| program(name).is_some()),
            Probe::PythonModule(module) => python_with(module).is_some(),
            Probe::CargoCommand(name) => succeeds(
                Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                    .args([name, "--version"]),
            ),
            Probe::NodeFolder(folder) => is_installed(&repository.root().join(folder)),
        }
    }
}

/// Whether npm installed here what the manifest names: it writes that file when it has come to its end. A
/// folder without a manifest wants nothing.
fn is_installed(folder: &Path) -> bool {
    let time = |path: &str| {
        let found = fs::metadata(folder.join(path));
        found.and_then(|found| found.modified()).ok()
    };
    let installed = time("node_modules/.package-lock.json");
    time("package.json").is_none_or(|wanted| installed.is_some_and(|installed| wanted <= installed))
}

/// The first place a program is found: the PATH, then where servers are kept.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    on_path(name).next().or_else(|| {
        server_directories()
            .map(|directory| directory.join(name))
            .find(|path| path.is_file())
    })
}

/// A `python3` that has the module: the first on the PATH may be one that lacks it.
pub(crate) fn python_with(module: &str) -> Option<PathBuf> {
    let question = format!(
        "import importlib.util, sys; sys.exit(importlib.util.find_spec({module:?}) is None)"
    );
    on_path("python3").find(|python| succeeds(Command::new(python).args(["-c", &question])))
}

fn on_path(name: &str) -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|directory| directory.join(name))
        .filter(|file| file.is_file())
        .collect::<Vec<_>>();
    found.into_iter()
}

/// The newest version of a server comes first.
fn server_directories() -> impl Iterator<Item = PathBuf> {
    SERVER_DIRECTORIES.iter().flat_map(|pattern| {
        let mut found = vec![PathBuf::from("/")];
        for component in pattern.split('/').filter(|component| !component.is_empty()) {
            found = found
                .iter()
                .flat_map(|directory| matching(directory, component))
                .collect();
        }
        found.sort();
        found.into_iter().rev()
    })
}

fn matching(directory: &Path, component: &str) -> Vec<PathBuf> {
    let Some((start, end)) = component.split_once('*') else {
        return vec![directory.join(component)];
    };
    let Ok(entries) = directory.read_dir() else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        })
        .map(|entry| entry.path())
        .collect()
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_nobody_has_is_not_found() {
        assert_eq!(program("lula-has-no-such-program"), None);
        assert_eq!(python_with("lula_has_no_such_module"), None);
    }

    #[test]
    fn a_folder_of_npm_is_complete_only_when_npm_came_to_its_end_after_the_manifest_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            fs::create_dir_all(folder.path().join("node_modules")).unwrap();
            fs::write(folder.path().join(path), "{}").unwrap();
        };
        assert!(is_installed(folder.path()));
        file("package.json");
        assert!(!is_installed(folder.path()));
        file("node_modules/.package-lock.json");
        assert!(is_installed(folder.path()));
        let later = std::time::SystemTime::now() + std::time::Duration::from_mins(1);
        let manifest = fs::File::options()
            .write(true)
            .open(folder.path().join("package.json"));
        manifest.unwrap().set_modified(later).unwrap();
        assert!(!is_installed(folder.path()));
    }

    #[test]
    fn a_star_in_a_server_directory_stands_for_one_component() {
        let root = tempfile::tempdir().unwrap();
        for name in ["pgsql-15", "pgsql-17", "mysql-8"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let mut found = matching(root.path(), "pgsql-*");
        found.sort();
        assert_eq!(
            found,
            [root.path().join("pgsql-15"), root.path().join("pgsql-17")]
        );
    }
}
