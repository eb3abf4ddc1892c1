//! The runner of a run: one that is configured, or one of our own on a private socket.

use std::path::{Path, PathBuf};

use lula_config::keys;
use lula_config::variables::RUNNER_KEY;
use lula_protocol::{Code, Exit};
use lula_runner::client::{Address, Client, ClientError, Spawn, Spawned};

use super::RunnerHands;
use crate::failure::Failure;
use crate::session::Session;
use crate::term::read_text;

/// A runner that works for this process.
pub(crate) struct Hired {
    pub(crate) hands: RunnerHands,
    /// Ends with this value, where it is our own.
    _own: Option<Spawned>,
}

impl Hired {
    /// Finds the configured runner, or starts one for these repositories. It must be started before
    /// this process locks itself out: what it starts later would be locked out too.
    ///
    /// Whether its rules may take `beforehand` for an answer is said once, to a runner of our own, as
    /// it starts: nothing that is asked of a runner later speaks about approval.
    pub(crate) async fn find(
        repositories: &[&Path],
        beforehand: bool,
        session: &Session,
    ) -> Result<Self, Failure> {
        let configured = session.config.get(&keys::RUNNER_ADDRESS);
        if !configured.is_empty() {
            let address = configured.parse::<Address>().map_err(|error| {
                Failure::new(Code::BadValue, Exit::Usage, error.to_string())
                    .remedy("correct runner.address, or leave it empty")
            })?;
            let key = std::env::var(RUNNER_KEY).ok().filter(|key| !key.is_empty());
            let client = Client::new(address, key.map(Into::into));
            client.capabilities().await?;
            return Ok(Self {
                hands: RunnerHands::new(client),
                _own: None,
            });
        }
        let state = session.state_directory()?;
        std::fs::create_dir_all(&state).map_err(|error| {
            let message = format!("cannot make {}: {error}", state.display());
            Failure::new(Code::FileAccess, Exit::Environment, message)
        })?;
        let mut spawn = Spawn::new(own_program())
            .state(state)
            .argument("--supervised");
        for repository in repositories {
            spawn = spawn.root(*repository);
        }
        if beforehand {
            spawn = spawn.argument("--approve").argument("auto");
        }
        // What this process was told holds for the hands too; keys of models do not travel.
        for (name, value) in settings(session) {
            spawn = spawn.argument(format!("--{name}")).argument(value);
        }
        let own = spawn.start().await?;
        Ok(Self {
            hands: RunnerHands::new(own.client().clone()),
            _own: Some(own),
        })
    }
}

fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// The settings that decide what the hands may do, as flags.
fn settings(session: &Session) -> Vec<(String, String)> {
    let config = &session.config;
    [
        (keys::GIT_PROGRAM.spec(), config.get(&keys::GIT_PROGRAM)),
        (keys::POLICY_RULES.spec(), config.get(&keys::POLICY_RULES)),
        (
            keys::SANDBOX_MIN_TIER.spec(),
            config.get(&keys::SANDBOX_MIN_TIER),
        ),
        (
            keys::SANDBOX_TIMEOUT.spec(),
            format!("{}ms", config.get(&keys::SANDBOX_TIMEOUT).as_millis()),
        ),
        (
            keys::WORKSPACE_MAX_BYTES.spec(),
            format!("{}MiB", config.get(&keys::WORKSPACE_MAX_BYTES) >> 20),
        ),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(spec, value)| (spec.flag(), value))
    .collect()
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        // A runner of ours that cannot start has said why, and what to do about it.
        if let ClientError::NotStarted { reason, .. } = &error
            && let Some(said) = read_text(reason)
        {
            return said;
        }
        Self::new(Code::EnvironmentUnfit, Exit::Environment, error.to_string())
            .remedy("`lula doctor` shows what works here; `lula config explain runner.address`")
    }
}
