//! What can go wrong, to what, and what to do about it.

use std::path::PathBuf;

use lula_protocol::IsolationTier;

use crate::cgroup::CgroupError;
use crate::frames::{ExecFrameError, SetupStage, StreamCreditError};
use crate::policy::LayerName;
use crate::tiers::TierRefusal;

/// Why there is no sandbox, or no command in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The helper process could not be started.
    #[error("cannot start the sandbox helper {program}: {source}")]
    Helper {
        /// The program that was to be the helper.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The helper process is gone, and with it every sandbox.
    #[error("the sandbox helper is gone; start the engine again")]
    HelperGone,
    /// A path the sandbox is to see cannot be used.
    #[error("cannot show {path} in the sandbox: {source}")]
    Path {
        /// The path that cannot be shown.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A path the sandbox is to see is not UTF-8 or has control characters.
    #[error("cannot show {0:?} in the sandbox: use a path of plain text")]
    PathText(PathBuf),
    /// A step of building failed. Nothing ran.
    #[error("sandbox refused while {stage} ({detail}): {source}{}", after("; ", .remedy.as_deref()))]
    Setup {
        stage: SetupStage,
        /// What it was about.
        detail: String,
        /// What the kernel said.
        source: std::io::Error,
        /// What a person can do, where we know.
        remedy: Option<String>,
    },
    /// No tier at or above the floor works here.
    #[error("no tier at or above `{floor}` works here:{}", list(.refusals))]
    FloorNotMet {
        /// The least tier that the policy asks for.
        floor: IsolationTier,
        /// Why each was refused.
        refusals: Vec<TierRefusal>,
    },
    /// A layer the policy requires is not in force. Nothing ran.
    #[error(
        "the policy requires the layer `{layer}`, which is not in force: {reason}; remove it from \
         required_layers or run where it works"
    )]
    LayerMissing {
        layer: LayerName,
        /// Why it is not there.
        reason: String,
    },
    /// The program could not be started inside.
    #[error("cannot start {program} in the sandbox ({step}): {source}")]
    NotStarted {
        /// The program that was to run.
        program: String,
        /// The step of starting it that failed.
        step: String,
        /// What the kernel said.
        source: std::io::Error,
        /// The refusal as a record.
        denial: Box<lula_protocol::SandboxDenial>,
    },
    /// The helper has no such program of its own, or it cannot take these arguments.
    #[error(
        "cannot start the built-in program {name}: {source}; use one that the helper brings along, \
         with arguments in UTF-8"
    )]
    BuiltIn {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// A workspace in layers was asked for in a tier that cannot have one. Nothing ran.
    #[error(
        "the tier `{tier}` cannot lay a workspace over the real tree; use the tier `namespace`, or a \
         copy of the tree"
    )]
    OverlayNeedsNamespaces { tier: IsolationTier },
    /// Network by name was asked for, and nothing answers for it. Nothing ran.
    #[error(
        "the policy says `network = \"allowlist\"`, but nothing here answers for a network by name; \
         start the command with `lula exec --net NAME`, or set `network = \"none\"`"
    )]
    NoDoorKeeper,
    /// Network by name was asked for in a tier without a network of its own. Nothing ran.
    #[error(
        "the tier `{tier}` has no network of its own, so it cannot be held to an allowlist; use the tier \
         `namespace`, or run without network"
    )]
    AllowlistNeedsNamespaces { tier: IsolationTier },
    /// The ports of an allowlist cannot be had.
    #[error("a sandbox cannot listen on those ports: {problem}; narrow the allowlist")]
    DoorPorts {
        /// What is wrong with them.
        problem: String,
    },
    /// The sandbox ended while something was asked of it.
    #[error("the sandbox has ended{}", after(": ", .reason.as_deref()))]
    Ended {
        /// Why, where it is known.
        reason: Option<String>,
    },
    /// A control group could not be used.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The exec server spoke nonsense; the sandbox was ended.
    #[error("the sandbox broke the exec protocol and was ended: {0}")]
    Protocol(#[from] ExecFrameError),
    /// The exec server sent more than it was granted; the sandbox was ended.
    #[error("the sandbox broke flow control and was ended: {0}")]
    Credit(#[from] StreamCreditError),
    /// Talking to the helper or the sandbox failed.
    #[error("{act}: {source}")]
    Io {
        /// What was being done.
        act: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// The policy has no digest.
    #[error("the policy cannot be written in canonical form: {0}")]
    Policy(#[from] lula_protocol::canonical::CanonicalError),
    /// This processor has no seccomp program.
    #[error("no system-call rules exist for this processor; run on x86_64 or aarch64")]
    Processor,
}

impl SandboxError {
    pub(crate) fn io(act: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { act, source }
    }
}

fn after(mark: &str, text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("{mark}{text}"))
}

fn list(refusals: &[TierRefusal]) -> String {
    refusals.iter().fold(String::new(), |mut text, refusal| {
        text.push_str("\n  ");
        text.push_str(&refusal.to_string());
        text
    })
}
