//! The runner of a run: one that is configured, or one of our own on a private socket.
//!
//! Whatever a locked process starts is locked too, so the runner is started before the driver's
//! process locks itself in. The types hold that order: [`RunnerProcess::start`] gives a [`ConnectedRunner`],
//! only [`ConnectedRunner::lock_in`] gives a [`FencedDriver`], and the driver takes nothing else.

use std::path::PathBuf;

use lula_agents::RunTask;
use lula_agents::runner_port::RunnerPortClient;
use lula_agents::world::DriverFence;
use lula_config::keys;
use lula_config::variables::RUNNER_KEY;
use lula_runner_api::client::{RunnerAddress, RunnerChild, RunnerClient, RunnerCommand};
use lula_sandbox::HostToolchains;

use crate::diagnosis;
use crate::drive::{DriverKeys, fence};
use crate::error::HostError;
use crate::installation::Installation;
use crate::network;

/// A runner that is to work for this process.
#[derive(Debug)]
pub struct RunnerProcess {
    repositories: Vec<PathBuf>,
    beforehand: bool,
    /// Whether an approver is asked before a held change reaches the operator's files.
    hold_commits: bool,
}

/// A runner that answers, asked by a process that can still reach the repositories.
pub struct ConnectedRunner {
    client: RunnerClient,
    runner: RunnerPortClient,
    repositories: Vec<PathBuf>,
    /// Ends with this value, where it is our own.
    own: Option<RunnerChild>,
}

/// A runner that answers, asked by a process that is locked out of the repositories.
pub struct FencedDriver {
    pub(crate) runner: RunnerPortClient,
    pub(crate) keys: DriverKeys,
    pub(crate) fence: DriverFence,
    /// What keeps the lock from holding, where this kernel has none.
    pub(crate) shortfall: Option<&'static str>,
    /// Ends with this value, where it is our own.
    pub(crate) own: Option<RunnerChild>,
}

impl RunnerProcess {
    /// For the repositories of a task.
    ///
    /// Whether its rules may take `beforehand` for an answer is said once, to a runner of our own, as
    /// it starts: nothing that is asked of a runner later speaks about approval.
    pub fn for_task(task: &RunTask, beforehand: bool) -> Self {
        let all = task.repositories.iter().map(|repository| &repository.path);
        Self {
            repositories: all.map(PathBuf::from).collect(),
            beforehand,
            hold_commits: false,
        }
    }

    /// For a directory that an agent from elsewhere works on. With `hold_commits` its rules ask an approver
    /// before a change is committed, whatever else they say.
    pub fn for_directory(directory: PathBuf, hold_commits: bool) -> Self {
        Self {
            repositories: vec![directory],
            beforehand: false,
            hold_commits,
        }
    }

    /// Finds the configured runner, or starts one of our own.
    pub async fn start(self, installation: &Installation) -> Result<ConnectedRunner, HostError> {
        let Self {
            repositories,
            beforehand,
            hold_commits,
        } = self;
        let configured = installation.config.get(&keys::RUNNER_ADDRESS);
        if !configured.is_empty() {
            // Its rules are its own: what is asked of it cannot tighten them.
            if hold_commits {
                return Err(HostError::CommitsNotHeld(configured));
            }
            let address = configured
                .parse::<RunnerAddress>()
                .map_err(|error| HostError::RunnerAddress(error.to_string()))?;
            let key = std::env::var(RUNNER_KEY).ok().filter(|key| !key.is_empty());
            let client = RunnerClient::new(address, key.map(Into::into));
            client.capabilities().await?;
            return Ok(ConnectedRunner {
                runner: RunnerPortClient::new(client.clone()),
                client,
                repositories,
                own: None,
            });
        }
        let state = installation.state_directory()?;
        std::fs::create_dir_all(&state).map_err(|error| HostError::NoDirectory {
            path: state.clone(),
            error,
        })?;
        let network = network::variables(installation)?;
        let mut spawn = RunnerCommand::new(own_program())
            .state(state)
            .pass_on(HostToolchains::variables())
            .pass_on(network.iter().map(String::as_str))
            .argument("--supervised");
        for repository in &repositories {
            spawn = spawn.root(repository);
        }
        if hold_commits {
            spawn = spawn.argument("--hold-commits");
        }
        if beforehand {
            spawn = spawn.argument("--approve").argument("auto");
        }
        // What this process was told holds for the runner too; keys of models do not travel.
        for (name, value) in settings(installation) {
            spawn = spawn.argument(format!("--{name}")).argument(value);
        }
        if let Some(file) = diagnosis::runner_log(installation)? {
            spawn = spawn.log(file);
        }
        for (name, value) in diagnosis::variables() {
            spawn = spawn.variable(name, value);
        }
        let own = spawn.start().await?;
        Ok(ConnectedRunner {
            client: own.client().clone(),
            runner: RunnerPortClient::new(own.client().clone()),
            repositories,
            own: Some(own),
        })
    }
}

impl ConnectedRunner {
    /// How to ask it. The runner ends with this value, where it is our own.
    pub fn client(&self) -> &RunnerClient {
        &self.client
    }

    /// Locks this process out of the repositories and of everything but what it needs to think, for
    /// good. Refused where there is a second thread: it would not hold for that one.
    pub fn lock_in(
        self,
        keys: DriverKeys,
        installation: &Installation,
    ) -> Result<FencedDriver, HostError> {
        let (fence, shortfall) = fence::lock(&self.repositories, installation)?;
        Ok(FencedDriver {
            runner: self.runner,
            keys,
            fence,
            shortfall,
            own: self.own,
        })
    }
}

fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// The settings that decide what the runner may do, as flags.
fn settings(installation: &Installation) -> Vec<(String, String)> {
    let config = &installation.config;
    [
        (
            keys::ENVIRONMENT_USE.spec(),
            config.get(&keys::ENVIRONMENT_USE),
        ),
        (keys::GIT_PROGRAM.spec(), config.get(&keys::GIT_PROGRAM)),
        (
            keys::NETWORK_ALLOW.spec(),
            config.get(&keys::NETWORK_ALLOW).join(","),
        ),
        (
            keys::NETWORK_PUBLISH.spec(),
            config.get(&keys::NETWORK_PUBLISH).join(","),
        ),
        (keys::NETWORK_RULES.spec(), config.get(&keys::NETWORK_RULES)),
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
