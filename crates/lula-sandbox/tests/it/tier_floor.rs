//! A tier is what it says, or it is refused.

use lula_protocol::Tier;
use lula_sandbox::SandboxError;

use crate::support::{build_policy, engine, sandbox, workspace};

#[test]
fn a_tier_that_cannot_be_built_is_refused_and_never_claimed() {
    let workspace = workspace();
    for tier in [Tier::Gvisor, Tier::Microvm] {
        let sandbox = sandbox(build_policy(), &workspace).tier(tier);
        let refused = engine().open(&sandbox).unwrap_err();
        assert!(
            matches!(refused, SandboxError::FloorNotMet { floor, .. } if floor == tier),
            "{refused}"
        );
    }
}
