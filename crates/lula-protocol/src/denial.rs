//! Denials that explain themselves: what was tried, which rule said no, and the smallest grant
//! that would allow it. They are made where the decision is made, never guessed from output.

use serde::{Deserialize, Serialize};

/// What a command tried in the sandbox and was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "tried", rename_all = "snake_case", deny_unknown_fields)]
pub enum DeniedAttempt {
    /// Reading or listing a path.
    Read {
        /// The path as the sandbox saw it.
        path: String,
    },
    /// Writing, creating, renaming or removing a path.
    Write {
        /// The path as the sandbox saw it.
        path: String,
    },
    /// Starting a program in the sandbox.
    Execute { program: String },
    /// Opening a connection to a host.
    Connect {
        /// Host name or address.
        host: String,
        port: u16,
    },
    /// Asking for the address of a name.
    Resolve {
        /// The name that was asked for.
        host: String,
    },
    /// Reaching something on a network. Where it was to go to was not seen.
    Network,
    /// A system call that the filter refuses.
    Syscall {
        /// Its name, or number where it has none.
        name: String,
    },
    /// Using more of a resource than was granted.
    Exceed {
        /// `memory`, `pids`, `disk`, `wall`, `output`, …
        limit: String,
        /// The amount that was granted, in the limit's own unit.
        granted: u64,
    },
    /// A tool call that a rule forbids.
    Call {
        /// Name of the tool.
        tool: String,
    },
}

/// One refusal, with the grant that would lift it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SandboxDenial {
    pub attempt: DeniedAttempt,
    /// The rule or layer that said no.
    pub rule: String,
    /// The smallest policy change that would allow it, where one exists.
    pub grant: Option<String>,
    /// How often it was seen.
    pub count: u64,
}
