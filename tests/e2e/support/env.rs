//! Runs the real binary in an environment of its own: an empty home, no inherited variables.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A home directory and a place to work in.
pub(crate) struct LulaEnv {
    directory: tempfile::TempDir,
}

/// What a command printed and how it ended.
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl LulaEnv {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Writes the user's configuration file and tells where it is.
    pub(crate) fn user_config(&self, text: &str) -> PathBuf {
        let path = self.home().join(".config/lula/config.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Makes the working directory a repository with this `.lula.toml`.
    pub(crate) fn repository_config(&self, text: &str) -> PathBuf {
        std::fs::create_dir_all(self.work().join(".git")).unwrap();
        let path = self.work().join(".lula.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The command, ready to be given variables.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lula"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        Ran::from(command.output().unwrap())
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn exits(self, status: i32) -> Self {
        assert_eq!(
            self.status, status,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON: {error}\n{}\n{}", self.stdout, self.stderr))
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text) || self.stderr.contains(text),
            "{text:?} is not in\nstdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }
}

/// Whether two directories hold the same files with the same bytes.
pub(crate) fn listing(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    look(directory).unwrap()
}

/// What a directory holds once no process changes it any more: a runner goes a moment after the command
/// that started it, and takes its files along.
pub(crate) fn at_rest(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut before = None;
    for _ in 0..600 {
        let now = look(directory).ok();
        match now {
            Some(files) if before.as_ref() == Some(&files) => return files,
            other => before = other,
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{} does not come to rest", directory.display());
}

fn look(directory: &Path) -> std::io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                files.push((path.clone(), std::fs::read(path)?));
            }
        }
    }
    files.sort();
    Ok(files)
}
