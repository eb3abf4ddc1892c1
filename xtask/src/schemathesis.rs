//! `cargo xtask schemathesis`: hostile requests, made from the runner's own OpenAPI document.

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::interrupt::Interrupt;
use crate::repository::Repository;

const VERSION: &str = "schemathesis==4.32.5";
const KEY: &str = "0123456789abcdef0123456789abcdef";
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
    let world = place.join("world");
    let _ = std::fs::remove_dir_all(&world);
    std::fs::create_dir_all(world.join("project"))?;
    std::fs::write(world.join("project/a.py"), "def f():\n    return 1\n")?;
    let mut runner = Command::new(repository.root().join("target/debug/lula"))
        .args(["runner", "--json", "--listen", "127.0.0.1:0", "--root"])
        .arg(world.join("project"))
        .env("LULA_RUNNER_KEY", KEY)
        .env("HOME", &world)
        .env_remove("XDG_STATE_HOME")
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the runner")?;
    let address = listening(&mut runner);
    let ended = match address {
        Ok(address) => command::run(
            Command::new(&tool)
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
                .args(["--header", &format!("Authorization: Bearer {KEY}")])
                .arg(format!("http://{address}/v1/openapi.json")),
            interrupt,
        ),
        Err(error) => Err(error),
    };
    runner.kill()?;
    runner.wait()?;
    ended
}

/// Where it says that it listens, in one JSON document.
fn listening(runner: &mut std::process::Child) -> Result<String> {
    let mut stdout = runner.stdout.take().context("it has no output")?;
    let mut said = Vec::new();
    let mut byte = [0];
    while stdout.read(&mut byte)? == 1 {
        said.push(byte[0]);
        if let Ok(document) = serde_json::from_slice::<serde_json::Value>(&said) {
            let place = document["listening"].as_str();
            return place.map(str::to_owned).context("it listens nowhere");
        }
    }
    bail!("the runner ended before it listened")
}
