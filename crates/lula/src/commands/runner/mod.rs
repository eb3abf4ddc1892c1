//! `lula runner`: the runner, for callers that may ask it.

pub(crate) mod flags;

use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_host::network::{self, SandboxOwner};
use lula_host::repository::find_git;
use lula_host::runner_client::secrets::{key, secrets_inherited, without_secrets};
use lula_host::runner_client::supervisor::supervise;
use lula_host::{rules, sandbox};
use lula_protocol::{Code, RunExit};
use lula_runner::RunnerOptions;
use lula_runner::service::RunnerSetup;
use lula_runner_api::client::RunnerAddress;
use serde::Serialize;

use crate::cli::runs::ApproveMode;
use crate::failure::CommandFailure;
use crate::session::CliSession;
use flags::RunnerFlags;

pub(super) fn run(flags: &RunnerFlags, session: &CliSession) -> Result<RunExit, CommandFailure> {
    shed_secrets(session)?;
    if flags.supervised {
        // The same command line, without this.
        let arguments = std::env::args_os().skip(1);
        let arguments: Vec<_> = arguments.filter(|one| one != "--supervised").collect();
        let over = || std::process::exit(0);
        return Ok(supervise(&arguments, flags.listen.as_deref(), over)?);
    }
    let key = key(flags.key_file.as_deref())?;
    let state = session.host.state_directory()?;
    let listen = match &flags.listen {
        Some(text) => text.parse::<RunnerAddress>().map_err(|error| {
            CommandFailure::new(Code::BadCommandLine, RunExit::Usage, error.to_string())
                .remedy("for example --listen unix:/run/user/1000/lula.sock")
        })?,
        None => RunnerAddress::Unix(state.join("runner.sock")),
    };
    let policy = sandbox::policy(&session.host, flags.profile);
    let project = flags.roots.first().map(PathBuf::as_path);
    // A runner of its own belongs to one run.
    let owner = if flags.with_parent {
        SandboxOwner::OneRun
    } else {
        SandboxOwner::SeveralRuns
    };
    let (policy, door) = network::grant_to(
        owner,
        policy,
        false,
        project.unwrap_or(Path::new("/")),
        &session.host,
    )?;
    let mut operator_rules = rules::for_runner(&session.host, &flags.rules)?;
    if flags.hold_commits {
        operator_rules.push(rules::holding_commits());
    }
    let setup = RunnerSetup {
        roots: flags.roots.clone(),
        policy,
        door,
        environment: lula_host::environment::choice(&session.host),
        explain: flags.explain,
        max_bytes: session.host.config.get(&keys::WORKSPACE_MAX_BYTES),
        home: std::env::var_os("HOME").map(PathBuf::from),
        rules: operator_rules,
        beforehand: flags.approve == Some(ApproveMode::Auto),
        // Without git only directories can be opened; a caller that asks for a commit is told.
        git: find_git(&session.host).ok(),
        state,
    };
    let options = RunnerOptions {
        setup,
        listen,
        key: key.map(Into::into),
        with_parent: flags.with_parent,
    };
    let ready = |place: &str| {
        let screen = &session.screen;
        if screen.is_json() {
            // Fails where it is not read: then it is not missed either.
            let _ = screen.document(&ListeningDocument { listening: place });
        } else {
            screen.note(&format!("listening on {place}"));
        }
    };
    lula_runner::run(options, ready)?;
    Ok(RunExit::Verified)
}

#[derive(Serialize)]
struct ListeningDocument<'a> {
    listening: &'a str,
}

/// The runner holds no model's key. What was inherited is dropped by starting anew without it: a
/// variable that is only removed can still be read in `/proc`.
fn shed_secrets(session: &CliSession) -> Result<(), CommandFailure> {
    // What the operator named as a secret for the network is the runner's to hold.
    let held = network::variables(&session.host)?;
    let mut secret = secrets_inherited();
    secret.retain(|name| !held.iter().any(|held| held.as_str() == name));
    if secret.is_empty() {
        return Ok(());
    }
    let text = "starting anew without the keys of this environment";
    session.screen.detail(text);
    Err(without_secrets(std::env::args_os().skip(1), &secret).into())
}
