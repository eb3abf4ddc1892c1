//! Networks by name, through the binary: a small internet in a network namespace of its own, and ordinary
//! clients in sandboxes in the middle of it. No outside host is contacted.

mod chats;
mod clients;
mod credentials;
mod grants;
mod names;
mod runner;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{LulaEnv, Ran};

/// Servers for some names of example.org, and what they hear.
struct Stage {
    world: LulaEnv,
    directory: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        Self {
            world: LulaEnv::new(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// `lula` with these arguments, where the servers are.
    fn command(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/e2e/network/stage.py"
        );
        let mut command = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
            .args(["--net", "--mount", "python3", script])
            .arg(self.directory.path())
            .arg(env!("CARGO_BIN_EXE_lula"))
            .args(arguments)
            .current_dir(self.world.work())
            .env_clear()
            .env("HOME", self.world.home())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .envs(variables.iter().copied())
            .stdin(Stdio::null());
        command
    }

    /// What starts `lula` where the servers are.
    fn program(&self) -> Vec<String> {
        let command = self.command(&[], &[]);
        let program = std::iter::once(command.get_program()).chain(command.get_args());
        program
            .map(|word| word.to_str().unwrap().to_owned())
            .collect()
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(&[], arguments)
    }

    fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
        Ran::from(self.command(variables, arguments).output().unwrap())
    }

    /// Runs a shell line in a sandbox that may reach these names.
    fn exec(&self, net: &[&str], line: &str) -> Ran {
        let mut arguments = vec!["exec"];
        for word in net {
            arguments.extend(["--net", word]);
        }
        arguments.extend(["--", "sh", "-c", line]);
        self.run(&arguments)
    }

    /// The same, still running.
    fn begin(&self, net: &str, line: &str) -> Child {
        let arguments = ["exec", "--net", net, "--", "sh", "-c", line];
        let mut command = self.command(&[], &arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// What the servers heard, a line each.
    fn heard(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("heard")).unwrap()
    }

    /// A file that the servers give to everyone.
    fn serve(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.path().join("served").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The operator's file of network rules.
    fn rules(&self, text: &str) {
        let path = self.world.home().join(".config/lula/network.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn state(&self) -> PathBuf {
        self.world.home().join(".local/state/lula")
    }
}

/// Whether any file below a directory holds this text.
fn is_written_in(directory: &Path, text: &str) -> Option<PathBuf> {
    let files = crate::support::listing(directory).into_iter();
    let mut files = files.filter(|(_, bytes)| {
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    });
    files.next().map(|(path, _)| path)
}
