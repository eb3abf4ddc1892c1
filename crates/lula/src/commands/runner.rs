//! `lula runner`: the hands, for whoever may ask them.

mod supervise;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_config::variables::RUNNER_KEY as KEY;
use lula_protocol::{Code, Exit};
use lula_runner::client::Address;
use lula_runner::hands::Setup;
use lula_runner::{Options, RunError};
use lula_workspace::Git;
use serde::Serialize;

use crate::cli::RunnerFlags;
use crate::cli::runs::Approve;
use crate::failure::Failure;
use crate::rules;
use crate::sandboxed;
use crate::session::Session;

pub(super) fn run(flags: &RunnerFlags, session: &Session) -> Result<Exit, Failure> {
    shed_secrets(session)?;
    if flags.supervised {
        return supervise::run(flags.listen.as_deref());
    }
    let key = key(flags.key_file.as_deref())?;
    let state = session.state_directory()?;
    let listen = match &flags.listen {
        Some(text) => text.parse::<Address>().map_err(|error| {
            Failure::new(Code::BadCommandLine, Exit::Usage, error.to_string())
                .remedy("for example --listen unix:/run/user/1000/lula.sock")
        })?,
        None => Address::Unix(state.join("runner.sock")),
    };
    let setup = Setup {
        roots: flags.roots.clone(),
        policy: sandboxed::policy(session, flags.profile),
        explain: flags.explain,
        max_bytes: session.config.get(&keys::WORKSPACE_MAX_BYTES),
        home: std::env::var_os("HOME").map(PathBuf::from),
        rules: rules::for_hands(session, &flags.rules)?,
        beforehand: flags.approve == Some(Approve::Auto),
        git: git(session),
        state,
    };
    let options = Options {
        setup,
        listen,
        key: key.map(Into::into),
        with_parent: flags.with_parent,
    };
    let ready = |place: &str| {
        let screen = &session.screen;
        if screen.is_json() {
            // Nobody reads it: then nobody misses it either.
            let _ = screen.document(&Listening { listening: place });
        } else {
            screen.note(&format!("listening on {place}"));
        }
    };
    lula_runner::run(options, ready)?;
    Ok(Exit::Verified)
}

/// Without git only directories can be opened; whoever asks for a commit is told.
fn git(session: &Session) -> Option<Git> {
    let configured = session.config.get(&keys::GIT_PROGRAM);
    match Git::find(&configured, std::env::var_os("PATH").as_deref()) {
        Ok(git) => Some(git),
        Err(error) => {
            session.screen.detail(&error.to_string());
            None
        }
    }
}

#[derive(Serialize)]
struct Listening<'a> {
    listening: &'a str,
}

/// The key from its file or variable.
fn key(file: Option<&Path>) -> Result<Option<String>, Failure> {
    use std::os::unix::fs::MetadataExt;
    let Some(path) = file else {
        return Ok(std::env::var(KEY).ok().filter(|key| !key.is_empty()));
    };
    let refused = |why: String| {
        let message = format!("cannot take the key from {}: {why}", path.display());
        Failure::new(Code::FileAccess, Exit::Usage, message)
            .remedy("name a file of your own that nobody else can read")
    };
    let metadata = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(refused("others can read it".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    Ok(Some(text.trim().to_owned()))
}

/// Whether a variable's name says that it holds a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name != KEY
        && [
            "_API_KEY",
            "_TOKEN",
            "_SECRET",
            "_PASSWORD",
            "_ACCESS_KEY",
            "_CREDENTIALS",
        ]
        .iter()
        .any(|end| name.ends_with(end))
}

/// The hands hold no model's key. What was inherited is dropped by starting anew without it: a
/// variable that is only removed can still be read in `/proc`.
fn shed_secrets(session: &Session) -> Result<(), Failure> {
    let secret: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(is_secret))
        .map(|(name, _)| name)
        .collect();
    if secret.is_empty() {
        return Ok(());
    }
    session
        .screen
        .detail("starting anew without the keys of this environment");
    let mut command = std::process::Command::new("/proc/self/exe");
    command.args(std::env::args_os().skip(1));
    for name in secret {
        command.env_remove(name);
    }
    Err(command.exec().into())
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Hands(refusal) => {
                let problem = refusal.problem();
                let (exit, remedy) = match problem.code {
                    Code::BadRules => (
                        Exit::Usage,
                        "correct that line; `lula policy test` checks the file",
                    ),
                    _ => (
                        Exit::Environment,
                        "`lula doctor` shows what works on this machine",
                    ),
                };
                Self::new(problem.code, exit, problem.message).remedy(remedy)
            }
            RunError::Listen(error) => {
                Self::new(Code::BadCommandLine, Exit::Usage, error.to_string())
                    .remedy("listen on a Unix socket, or give a port and its key")
            }
            RunError::Io(error) => {
                Self::new(Code::EnvironmentUnfit, Exit::Environment, error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_models_are_known_by_their_names() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "db_password",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "LULA_RUNNER_KEY", "TOKENIZERS"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
