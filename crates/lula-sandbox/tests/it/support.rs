//! What every test needs: an engine, a workspace, a session.

use std::sync::OnceLock;

use lula_protocol::IsolationTier;
use lula_sandbox::policy::{Profile, SandboxPolicy};
use lula_sandbox::{
    FinishedCommand, HelperProgram, HostToolchains, Sandbox, SandboxCommand, SandboxEngine,
    SandboxSession,
};
use tempfile::TempDir;

/// One engine for all tests of this process.
pub(crate) fn engine() -> SandboxEngine {
    static ENGINE: OnceLock<SandboxEngine> = OnceLock::new();
    ENGINE.get_or_init(new_engine).clone()
}

/// An engine of one's own.
pub(crate) fn new_engine() -> SandboxEngine {
    SandboxEngine::start_with(HelperProgram::program(env!(
        "CARGO_BIN_EXE_lula-sandbox-helper"
    )))
    .unwrap()
}

/// A directory to work in.
pub(crate) fn workspace() -> TempDir {
    tempfile::Builder::new()
        .prefix("lula-it")
        .tempdir()
        .unwrap()
}

/// A policy of the profile `build` with the limits most tests want.
pub(crate) fn build_policy() -> SandboxPolicy {
    Profile::Build.policy()
}

/// A namespace sandbox with the system's programs.
pub(crate) fn sandbox(policy: SandboxPolicy, workspace: &TempDir) -> Sandbox {
    Sandbox::new(policy, workspace.path())
        .tier(IsolationTier::Namespace)
        .toolchains(HostToolchains::none())
}

/// A session in a workspace of its own.
pub(crate) fn session() -> (SandboxSession, TempDir) {
    let workspace = workspace();
    let session = engine().open(&sandbox(build_policy(), &workspace)).unwrap();
    (session, workspace)
}

/// Runs a shell line in a new sandbox.
pub(crate) fn shell(line: &str) -> FinishedCommand {
    let (session, _workspace) = session();
    session.run(&SandboxCommand::shell(line)).unwrap()
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
