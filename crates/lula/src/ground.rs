//! Where the repairer works in commands that a person watches: in this very process.

pub(crate) use lula_runner::ground::SandboxedGround;
