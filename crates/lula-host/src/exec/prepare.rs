//! Before a command: its policy, its toolchains, its sandbox.

use std::path::{Path, PathBuf};

use lula_protocol::IsolationTier;
use lula_runner::environments::EnvironmentChoice;
use lula_sandbox::{EarlyHelper, HostToolchains, Sandbox, SandboxCommand, SandboxEngine};

use super::{ExecAttendant, ExecError, ExecInvocation, ExecNetwork, ExecWriteMode};
use crate::error::HostError;
use crate::installation::Installation;
use crate::{environment, network, sandbox};

/// The directory that a command is about.
pub(super) fn base(request: &ExecInvocation<'_>) -> Result<PathBuf, HostError> {
    let home = std::env::var_os("HOME");
    let home = home.as_deref().map(Path::new);
    let base = sandbox::workspace(request.workspace.as_deref(), home)?;
    if request.on.is_some() && request.write != ExecWriteMode::Review {
        return Err(HostError::TaskRefused {
            why: "--on goes on in a workspace, which only --write review has".to_owned(),
            remedy: "leave one of the two out",
        });
    }
    Ok(base)
}

/// A command with everything it needs to be run.
pub(super) struct PreparedExec<'a> {
    pub(super) request: &'a ExecInvocation<'a>,
    pub(super) base: PathBuf,
    pub(super) engine: SandboxEngine,
    pub(super) sandbox: Sandbox,
    pub(super) installation: &'a Installation,
}

impl<'a> PreparedExec<'a> {
    pub(super) fn new(
        request: &'a ExecInvocation<'a>,
        base: PathBuf,
        attendant: &dyn ExecAttendant,
        helper: Option<EarlyHelper>,
        installation: &'a Installation,
    ) -> Result<Self, ExecError> {
        let policy = match &request.policy {
            Some(file) => sandbox::policy_file(installation, file, &base)?,
            None => sandbox::policy(installation, request.profile),
        };
        let policy = match request.network {
            ExecNetwork::Learned => network::learn(policy),
            ExecNetwork::Granted | ExecNetwork::Host => policy,
        };
        let on_host = request.network == ExecNetwork::Host;
        let (mut policy, keeper) = network::grant(policy, on_host, &base, installation)?;
        if on_host {
            let text = "the command has the host's network: it reaches every host you reach, and this \
                        machine";
            attendant.warning(text);
        }
        if let Some(tier) = request.tier {
            // A tier below the floor of the profile is the operator's explicit choice.
            policy.min_tier = policy.min_tier.min(tier);
            if tier == IsolationTier::Process {
                policy.required_layers.clear();
                let text = "the process tier is no boundary: the command can do what you can";
                attendant.warning(text);
            }
        }
        let mut engine = SandboxEngine::start_early(helper)?;
        if let Some(keeper) = keeper {
            engine = engine.with_door_keeper(keeper);
        }
        let mut sandbox = Sandbox::new(policy, &base).toolchains(toolchains(
            request,
            attendant,
            &base,
            installation,
        )?);
        if let Some(tier) = request.tier {
            sandbox = sandbox.tier(tier);
        }
        if request.explain {
            sandbox = sandbox.watch_paths();
        }
        engine.expect(&mut sandbox);
        Ok(Self {
            request,
            base,
            engine,
            sandbox,
            installation,
        })
    }

    /// `base` is the directory of the operator, `shown` the one that the command has in its place.
    pub(super) fn command(&self, base: &Path, shown: &Path) -> SandboxCommand {
        let mut words = self.request.command.iter();
        let program = words.next().cloned().unwrap_or_default();
        let mut command = SandboxCommand::new(program).arguments(words);
        // Start where the operator is, if that is inside the workspace.
        if let Ok(here) = std::env::current_dir().and_then(|here| here.canonicalize())
            && let Ok(below) = here.strip_prefix(base)
        {
            command = command.directory(shown.join(below));
        }
        if let Some(timeout) = self.request.timeout {
            command = command.timeout(timeout);
        }
        command
    }
}

/// What the project's commands need, wherever in it the operator is.
pub(super) fn toolchains(
    request: &ExecInvocation<'_>,
    attendant: &dyn ExecAttendant,
    top: &Path,
    installation: &Installation,
) -> Result<HostToolchains, HostError> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let folder = here.ok().filter(|here| here.starts_with(top));
    let folder = folder.as_deref().unwrap_or(top);
    // An environment is seen through layers, which only a workspace for review has.
    let in_layers = request.write == ExecWriteMode::Review
        && matches!(request.tier, None | Some(IsolationTier::Namespace));
    let found = if in_layers {
        environment::source(installation)?.toolchains(top, top, folder)?
    } else {
        if let EnvironmentChoice::Named(name) = environment::choice(installation) {
            let text = format!(
                "{name} is not shown: only --write review in the namespace tier has environments"
            );
            attendant.warning(&text);
        }
        HostToolchains::for_project(top, folder)
    };
    let broken = found.virtualenv().and_then(|one| one.broken.as_ref());
    if let Some(why) = broken {
        let text = format!("the project's virtual environment is broken: {why}");
        attendant.warning(&text);
    }
    Ok(found)
}
