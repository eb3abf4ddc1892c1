//! `cargo xtask schemathesis`: hostile requests, made from the own OpenAPI documents of the runner and of
//! the server.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

const VERSION: &str = "schemathesis==4.32.5";
const KEY: &str = "0123456789abcdef0123456789abcdef";
/// A server that takes everything it is sent, one run at a time.
const SERVER: [&str; 12] = [
    "serve",
    "--json",
    "--server-listen",
    "127.0.0.1:0",
    "--server-auth",
    "bearer",
    "--server-rate",
    "100000",
    "--server-runs",
    "1",
    "--server-queue",
    "10000",
];
/// A number written as 1.0 is a whole one to a schema, and refused by us: one value, one spelling.
const NOT_OURS: &str = "positive_data_acceptance";

pub(crate) fn run(
    examples: u32,
    repository: &Repository,
    interrupt: &Interrupt,
) -> Result<ExitCode> {
    let built = command::run(&mut repository.cargo("build --quiet -p lula"), interrupt)?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    let place = repository.root().join("target/schemathesis");
    let tool = place.join("venv/bin/schemathesis");
    if !tool.exists() {
        std::fs::create_dir_all(&place)?;
        let made = Command::new("python3")
            .args(["-m", "venv"])
            .arg(place.join("venv"))
            .status()?;
        let pip = place.join("venv/bin/pip");
        if !made.success()
            || !Command::new(pip)
                .args(["install", "-q", VERSION])
                .status()?
                .success()
        {
            bail!("{VERSION} cannot be installed; a Python package index has to be in reach");
        }
    }
    for target in [Target::Runner, Target::Server] {
        let sent = target.send(&place, examples, repository, interrupt)?;
        if sent != ExitCode::SUCCESS {
            return Ok(sent);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the requests are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Runner,
    Server,
}

impl Target {
    /// Starts it in a world of its own, with the key that its requests carry.
    fn start(self, world: &Path, program: &Path) -> Result<(Child, String)> {
        let mut command = Command::new(program);
        command
            .current_dir(world.join("project"))
            .env("HOME", world)
            .env_remove("XDG_STATE_HOME")
            .stdout(Stdio::piped());
        let key = match self {
            Self::Runner => {
                command
                    .args(["runner", "--json", "--listen", "127.0.0.1:0", "--root", "."])
                    .env("LULA_RUNNER_KEY", KEY);
                KEY.to_owned()
            }
            Self::Server => {
                command.args(SERVER);
                let made = Command::new(program)
                    .args([
                        "server",
                        "keys",
                        "add",
                        "--for",
                        "schemathesis",
                        "--role",
                        "admin",
                    ])
                    .env("HOME", world)
                    .env_remove("XDG_STATE_HOME")
                    .output()?;
                if !made.status.success() {
                    bail!(
                        "the server has no key: {}",
                        String::from_utf8_lossy(&made.stderr)
                    );
                }
                String::from_utf8(made.stdout)?.trim().to_owned()
            }
        };
        Ok((command.spawn().context("it cannot be started")?, key))
    }

    fn send(
        self,
        place: &Path,
        examples: u32,
        repository: &Repository,
        interrupt: &Interrupt,
    ) -> Result<ExitCode> {
        let world = place.join("world");
        let _ = std::fs::remove_dir_all(&world);
        let project = world.join("project");
        std::fs::create_dir_all(&project)?;
        std::fs::write(project.join("a.py"), "def f():\n    return 1\n")?;
        for line in [
            &["init", "--quiet"][..],
            &["add", "--all"],
            &[
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@localhost",
                "commit",
                "-qm",
                "one",
            ],
        ] {
            if !Command::new("git")
                .current_dir(&project)
                .args(line)
                .status()?
                .success()
            {
                bail!("git {} does not work", line[0]);
            }
        }
        let program = repository.root().join("target/debug/lula");
        let (mut child, key) = self.start(&world, &program)?;
        let ended = match listening(&mut child) {
            Ok(address) => command::run(
                Command::new(place.join("venv/bin/schemathesis"))
                    .current_dir(&world)
                    .args([
                        "run",
                        "--no-color",
                        "--checks",
                        "all",
                        "--exclude-checks",
                        NOT_OURS,
                    ])
                    .args(["--max-examples", &examples.to_string()])
                    .args(["--header", &format!("Authorization: Bearer {key}")])
                    .arg(format!("{address}/v1/openapi.json")),
                interrupt,
            ),
            Err(error) => Err(error),
        };
        child.kill()?;
        child.wait()?;
        ended
    }
}

/// Where it says that it listens, in one JSON document.
fn listening(child: &mut Child) -> Result<String> {
    let mut stdout = child.stdout.take().context("it has no output")?;
    let mut said = Vec::new();
    let mut byte = [0];
    while stdout.read(&mut byte)? == 1 {
        said.push(byte[0]);
        if let Ok(document) = serde_json::from_slice::<serde_json::Value>(&said) {
            let place = document["listening"].as_str();
            let place = place.context("it listens nowhere")?;
            let bare = place.trim_start_matches("http://");
            return Ok(format!("http://{bare}"));
        }
    }
    bail!("it ended before it listened")
}
