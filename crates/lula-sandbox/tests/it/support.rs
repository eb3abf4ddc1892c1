//! What every test needs: an engine, a workspace, a session.

use std::sync::OnceLock;

use lula_protocol::Tier;
use lula_sandbox::policy::{Policy, Profile};
use lula_sandbox::{Command, Engine, Finished, Helper, Sandbox, Session, Toolchains};
use tempfile::TempDir;

/// One engine for all tests of this process.
pub(crate) fn engine() -> Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(new_engine).clone()
}

/// An engine of one's own.
pub(crate) fn new_engine() -> Engine {
    Engine::start_with(Helper::program(env!("CARGO_BIN_EXE_lula-sandbox-helper"))).unwrap()
}

/// A directory to work in.
pub(crate) fn workspace() -> TempDir {
    tempfile::Builder::new()
        .prefix("lula-it")
        .tempdir()
        .unwrap()
}

/// A policy of the profile `build` with the limits most tests want.
pub(crate) fn build_policy() -> Policy {
    Profile::Build.policy()
}

/// A namespace sandbox with the system's programs.
pub(crate) fn sandbox(policy: Policy, workspace: &TempDir) -> Sandbox {
    Sandbox::new(policy, workspace.path())
        .tier(Tier::Namespace)
        .toolchains(Toolchains::none())
}

/// A session in a workspace of its own.
pub(crate) fn session() -> (Session, TempDir) {
    let workspace = workspace();
    let session = engine().open(&sandbox(build_policy(), &workspace)).unwrap();
    (session, workspace)
}

/// Runs a shell line in a new sandbox.
pub(crate) fn shell(line: &str) -> Finished {
    let (session, _workspace) = session();
    session.run(&Command::shell(line)).unwrap()
}

/// What a shell line printed in a new sandbox, which must succeed.
pub(crate) fn printed(line: &str) -> String {
    let finished = shell(line);
    assert!(
        finished.succeeded(),
        "{:?}: {}",
        finished.receipt.ended,
        finished.stderr.text()
    );
    finished.stdout.text()
}
