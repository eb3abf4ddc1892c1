//! A tier is what it says, or it is refused.

use lula_protocol::IsolationTier;
use lula_sandbox::{SandboxCommand, SandboxError};

use crate::support::{build_policy, engine, sandbox, workspace};

#[test]
fn a_tier_that_cannot_be_built_is_refused_and_never_claimed() {
    let workspace = workspace();
    for tier in [IsolationTier::Gvisor, IsolationTier::Microvm] {
        let sandbox = sandbox(build_policy(), &workspace).tier(tier);
        let touch = SandboxCommand::shell("touch ran");
        for refused in [
            engine().open(&sandbox).map(drop),
            engine().run(&sandbox, &touch).map(drop),
            engine().start_alone(&sandbox, &touch).map(drop),
        ] {
            assert!(
                matches!(&refused, Err(SandboxError::FloorNotMet { floor, .. }) if *floor == tier),
                "{refused:?}"
            );
        }
        assert!(!workspace.path().join("ran").exists());
    }
}
