//! Inert git: every host-side call goes through here.
//!
//! - The binary is an absolute path that was found once.
//! - The environment is built from nothing; system and user configuration are not read.
//! - Whatever a repository's own configuration can make git execute is overridden through
//!   `GIT_CONFIG_COUNT`, which beats every file.

pub mod scratch;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lula_protocol::Code;

/// Oldest git that has what we rely on (`merge-tree --write-tree`).
const MINIMUM: (u32, u32) = (2, 38);

/// Directories searched before PATH, so that a writable one cannot come first.
const USUAL_DIRECTORIES: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin"];

/// Settings that could start a program or reach outside, each switched off.
pub const INERT: [(&str, &str); 17] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
];

/// Commands that show content, and the flags that keep them from starting a program for it.
const SHOWING: [&str; 6] = [
    "diff",
    "diff-tree",
    "diff-index",
    "diff-files",
    "log",
    "show",
];
const PLAIN: [&str; 2] = ["--no-ext-diff", "--no-textconv"];

/// A git that was found and answers.
#[derive(Debug, Clone)]
pub struct GitProgram {
    program: PathBuf,
    version: String,
}

/// What can go wrong with git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git on this machine.
    #[error("git was not found in {searched}")]
    Missing {
        /// Where it was looked for.
        searched: String,
    },
    /// The configured path cannot be used.
    #[error("git.program is {path:?}, which is not an absolute path to a program")]
    BadProgram {
        /// The path that the configuration gives.
        path: PathBuf,
    },
    /// It is too old.
    #[error("{} is git {found}; Lula needs {}.{} or newer", program.display(), MINIMUM.0, MINIMUM.1)]
    TooOld { program: PathBuf, found: String },
    /// It could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// It ran and failed.
    #[error("git {command} failed in {}: {message}", directory.display())]
    Failed {
        command: String,
        directory: PathBuf,
        message: String,
    },
}

impl GitError {
    pub const fn code(&self) -> Code {
        Code::GitUnusable
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::Missing { .. } | Self::TooOld { .. } => {
                format!("install git {}.{} or newer", MINIMUM.0, MINIMUM.1)
            }
            Self::BadProgram { .. } => {
                "set git.program to an absolute path, or leave it empty".into()
            }
            Self::Start { .. } => "check that the file is executable".into(),
            Self::Failed { .. } => "run the command by hand in that directory".into(),
        }
    }
}

impl GitProgram {
    /// Finds git: the configured path if there is one, else the usual directories, then PATH.
    pub fn find(configured: &str, path: Option<&OsStr>) -> Result<Self, GitError> {
        if !configured.is_empty() {
            let program = PathBuf::from(configured);
            if !program.is_absolute() || !program.is_file() {
                return Err(GitError::BadProgram { path: program });
            }
            return Self::check(program);
        }
        let mut directories: Vec<PathBuf> = USUAL_DIRECTORIES.map(PathBuf::from).to_vec();
        directories.extend(path.iter().flat_map(std::env::split_paths));
        let candidates = directories
            .iter()
            .filter(|directory| directory.is_absolute());
        let program = candidates
            .map(|directory| directory.join("git"))
            .find(|file| file.is_file());
        match program {
            Some(program) => Self::check(program),
            None => Err(GitError::Missing {
                searched: directories
                    .iter()
                    .map(|directory| directory.display().to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    fn check(program: PathBuf) -> Result<Self, GitError> {
        let git = Self {
            program,
            version: String::new(),
        };
        let output = git.start(git.bare(Path::new("/")).arg("version"))?;
        let text = succeeded(&output, "version", Path::new("/"))?;
        let version = text.trim().trim_start_matches("git version ").to_owned();
        if parse_version(&version).is_none_or(|found| found < MINIMUM) {
            return Err(GitError::TooOld {
                program: git.program,
                found: version,
            });
        }
        Ok(Self { version, ..git })
    }

    /// The absolute path of the binary.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Its version, as it says.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn bare(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(directory)
            .env_clear()
            .env("PATH", USUAL_DIRECTORIES.join(":"))
            .env("HOME", "/dev/null")
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_PAGER", "cat")
            .env("GIT_EDITOR", "false")
            .stdin(Stdio::null())
            .args(["--no-pager", "--no-replace-objects", "--literal-pathspecs"]);
        command
    }

    /// A git command that will run nothing the repository names.
    pub fn command(&self, directory: &Path) -> Result<Command, GitError> {
        let mut settings: Vec<(String, &str)> = INERT
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        settings.extend(self.named_programs(directory)?);
        let mut command = self.bare(directory);
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (index, (name, value)) in settings.into_iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{index}"), name);
            command.env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        Ok(command)
    }

    /// Filters and merge drivers that the repository's configuration defines, switched off one by
    /// one because their names are the repository's choice. Listing configuration runs nothing.
    fn named_programs(&self, directory: &Path) -> Result<Vec<(String, &'static str)>, GitError> {
        let mut list = self.bare(directory);
        list.args(["config", "--list", "--null", "--name-only"]);
        let listed = succeeded(&self.start(&mut list)?, "config", directory)?;
        let off = listed.split('\0').filter_map(|name| {
            let (section, rest) = name.split_once('.')?;
            let (_, variable) = rest.rsplit_once('.')?;
            let value = match (section, variable) {
                ("filter", "clean" | "smudge" | "process") => "",
                ("filter", "required") | ("merge", "driver") => "false",
                _ => return None,
            };
            Some((name.to_owned(), value))
        });
        Ok(off.collect())
    }

    /// Runs git and returns what it printed.
    pub fn run<A: AsRef<OsStr>>(
        &self,
        directory: &Path,
        arguments: &[A],
    ) -> Result<String, GitError> {
        let mut command = self.command(directory)?;
        let Some((first, rest)) = arguments.split_first() else {
            return Ok(String::new());
        };
        let name = first.as_ref().to_string_lossy().into_owned();
        command.arg(first);
        if SHOWING.contains(&name.as_str()) {
            command.args(PLAIN);
        }
        command.args(rest);
        succeeded(&self.start(&mut command)?, &name, directory)
    }

    fn start(&self, command: &mut Command) -> Result<Output, GitError> {
        command.output().map_err(|source| GitError::Start {
            program: self.program.clone(),
            source,
        })
    }
}

fn succeeded(output: &Output, command: &str, directory: &Path) -> Result<String, GitError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let message = if said.is_empty() {
        output.status.to_string()
    } else {
        said
    };
    Err(GitError::Failed {
        command: command.to_owned(),
        directory: directory.to_owned(),
        message,
    })
}

/// Major and minor from `2.47.3` or `2.39.5 (Apple Git-154)`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::scratch::ScratchRepository;

    fn git() -> GitProgram {
        GitProgram::find("", std::env::var_os("PATH").as_deref()).unwrap()
    }

    fn write_program(path: &Path, marker: &Path) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(path, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse_version("2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert!(parse_version("2.9.1") < parse_version("2.38.0"));
        assert_eq!(parse_version("nonsense"), None);
    }

    #[test]
    fn a_relative_program_is_refused() {
        let error = GitProgram::find("git", None).unwrap_err();
        assert!(matches!(error, GitError::BadProgram { .. }), "{error}");
    }

    /// Hooks, the monitor, filters, external diff and converters of a hostile repository, each
    /// with the control that plain git does run it.
    #[test]
    fn a_hostile_repository_runs_nothing() {
        let git = git();
        let repository = ScratchRepository::new(&git, &[("a.txt", "one\n")]).unwrap();
        let top = repository.path();
        let outside = tempfile::tempdir().unwrap();
        let marker = outside.path().join("ran");
        let trap = outside.path().join("trap");
        write_program(&trap, &marker);
        std::fs::create_dir_all(top.join(".git/hooks")).unwrap();
        std::fs::create_dir_all(top.join(".git/info")).unwrap();
        write_program(&top.join(".git/hooks/pre-commit"), &marker);
        let programs = [
            "core.fsmonitor",
            "diff.external",
            "core.pager",
            "core.editor",
        ];
        for key in [&programs[..], &["filter.a=b.clean", "diff.t.textconv"]].concat() {
            git.run(top, &["config", key, trap.to_str().unwrap()])
                .unwrap();
        }
        std::fs::write(
            top.join(".git/info/attributes"),
            "*.txt filter=a=b diff=t\n",
        )
        .unwrap();
        std::fs::write(top.join("a.txt"), "two\n").unwrap();

        git.run(top, &["status", "--porcelain"]).unwrap();
        git.run(top, &["diff"]).unwrap();
        git.run(top, &["log", "--patch"]).unwrap();
        git.run(top, &["commit", "--all", "--quiet", "--message=m"])
            .unwrap();
        assert!(
            !marker.exists(),
            "inert git ran a program of the repository"
        );

        let plain = |arguments: &[&str]| {
            let _ = std::fs::remove_file(&marker);
            let mut command = Command::new(git.program());
            command
                .current_dir(top)
                .args(arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_ok() && marker.exists()
        };
        let calm = [
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.attributesFile=/dev/null",
        ];
        assert!(plain(&["status"]), "control: plain git runs the monitor");
        std::fs::write(top.join("a.txt"), "three\n").unwrap();
        let filter = [&calm[..], &["add", "a.txt"]].concat();
        assert!(plain(&filter), "control: plain git runs filters");
        std::fs::write(top.join(".git/info/attributes"), "").unwrap();
        std::fs::write(top.join("a.txt"), "four\n").unwrap();
        let diff = [&calm[..], &["diff"]].concat();
        assert!(plain(&diff), "control: plain git runs diff.external");
        let commit = [&calm[..], &["commit", "-qam", "m"]].concat();
        assert!(plain(&commit), "control: plain git runs hooks");
        std::fs::write(top.join(".git/info/attributes"), "*.txt diff=t\n").unwrap();
        let log = [&calm[..], &["log", "-p", "--no-ext-diff"]].concat();
        assert!(plain(&log), "control: plain git runs converters");
    }

    #[test]
    fn the_callers_environment_does_not_reach_git() {
        let git = git();
        let command = git.command(Path::new("/")).unwrap();
        let names: Vec<_> = command
            .get_envs()
            .map(|(name, _)| name.to_owned())
            .collect();
        assert!(
            !names
                .iter()
                .any(|name| name == "GIT_DIR" || name == "SSH_AUTH_SOCK")
        );
        assert!(names.iter().any(|name| name == "GIT_CONFIG_NOSYSTEM"));
    }
}
