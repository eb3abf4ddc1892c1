//! Proving an environment: the tests of the clean project, twice.

use std::path::Path;
use std::time::Duration;

use lula_repair::TestSelection;
use lula_runner::environments::{EnvironmentCheck, StoredEnvironment};
use lula_runner::ground::SandboxedForkSource;
use lula_sandbox::policy::Profile;
use lula_workspace::ForkableProject;

use super::source;
use crate::error::HostError;
use crate::installation::Installation;
use crate::{folder, record, sandbox};

/// Runs the tests of a repository twice in the environment that it gets, and remembers what they said by the
/// environment's digest. The environment is none where the developer's own set-up is used.
pub fn check(
    top: &Path,
    tests: Option<String>,
    say: &dyn Fn(&str),
    installation: &Installation,
) -> Result<(EnvironmentCheck, Option<StoredEnvironment>), HostError> {
    let source = source(installation)?;
    let found = source.find(top, top)?;
    let forks = installation.state_directory()?.join("forks");
    lula_workspace::fork::sweep(&forks);
    let project = ForkableProject::at(top)?.in_layers(forks);
    let policy = sandbox::policy(installation, Profile::Build);
    let wall = Duration::from_millis(policy.limits.wall.millis());
    let ground = SandboxedForkSource::new(project, policy, &source)?;
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let selection = TestSelection {
        command: tests,
        folder: here.map_or_else(|_| String::new(), |here| folder::meant(top, &here, false)),
    };
    let mut check = EnvironmentCheck::of(&ground, &selection, wall, say)?;
    check.checked_ms = record::now_ms();
    if let Some(found) = &found {
        found.remember(&check)?;
    }
    Ok((check, found))
}
