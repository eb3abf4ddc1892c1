//! Receipts: what the kernel said, compared with what was asked, and nothing else.

use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use lula_protocol::receipt::{
    CommandEnding, CommandUsage, ProtectionLayer, ReceiptLimits, SandboxReceipt,
    UnappliedProtection, WorkspaceMode,
};
use lula_protocol::{Digest, IsolationTier};

use crate::cgroup::{self, CgroupLimitEvents};
use crate::frames::{ExitCause, KernelPosture};
use crate::policy::{ByteSize, LayerName, ResolvedLimits};
use crate::seccomp::WatchedCalls;
use crate::session::DoorFacts;

const SIGKILL: u8 = 9;
const SIGXFSZ: u8 = 25;

/// What is known about a sandbox before its first command.
#[derive(Debug, Clone)]
pub(crate) struct ReceiptContext {
    pub(crate) tier: IsolationTier,
    pub(crate) policy: Digest,
    pub(crate) granted: ResolvedLimits,
    pub(crate) read_only: Vec<String>,
    pub(crate) writable: Vec<String>,
    pub(crate) program: Digest,
    pub(crate) instructions: u32,
    /// Whether the seccomp program refuses internet sockets.
    pub(crate) no_sockets: bool,
    /// Which calls are looked at before they go ahead.
    pub(crate) watched: WatchedCalls,
    /// Whether refused calls are seen.
    pub(crate) heard: bool,
    /// Nothing was inherited into the commands' environment.
    pub(crate) clean_environment: bool,
    pub(crate) cgroup: Option<(&'static str, cgroup::CgroupLimits)>,
    pub(crate) host: HostPosture,
    /// What listens in its network, where anything does.
    pub(crate) door: Option<DoorFacts>,
    /// The environment of the project that is shown.
    pub(crate) environment: Option<Digest>,
    pub(crate) not_applied: Vec<UnappliedProtection>,
}

/// What the sandbox is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPosture {
    pub(crate) namespaces: Vec<(String, u64)>,
    pub(crate) root_device: u64,
    /// Seccomp programs that were put over it from outside: a sandbox has to have more.
    pub(crate) filters: u32,
}

impl HostPosture {
    /// The runner's own namespaces and root.
    pub(crate) fn of_this_process() -> std::io::Result<Self> {
        let names = [
            ("user", "user"),
            ("mount", "mnt"),
            ("pid", "pid"),
            ("net", "net"),
            ("ipc", "ipc"),
            ("uts", "uts"),
            ("cgroup", "cgroup"),
        ];
        let mut namespaces = Vec::new();
        for (name, file) in names {
            let link = match std::fs::read_link(format!("/proc/self/ns/{file}")) {
                // A kernel without them. What is not known of the host is claimed of no sandbox.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                link => link?,
            };
            let inode = link
                .to_str()
                .and_then(|text| text.split_once('[')?.1.strip_suffix(']')?.parse().ok())
                .ok_or_else(|| std::io::Error::other("a namespace without a number"))?;
            namespaces.push((name.to_owned(), inode));
        }
        Ok(Self {
            namespaces,
            root_device: rustix::fs::stat("/")?.st_dev,
            filters: filters()?,
        })
    }
}

/// How many seccomp programs this process is under. More than any number, where the kernel does not tell.
fn filters() -> std::io::Result<u32> {
    if !crate::sys::lockdown::is_filtered() {
        return Ok(0);
    }
    let status = crate::page::read("/proc/self/status")?;
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok());
    Ok(count.unwrap_or(u32::MAX))
}

impl ReceiptContext {
    /// The layers in force, from what was read back of the sandbox and of the command.
    pub(crate) fn layers(
        &self,
        sandbox: &KernelPosture,
        command: &KernelPosture,
        environment: &[String],
    ) -> Vec<ProtectionLayer> {
        let mut layers = Vec::new();
        let separate: Vec<String> = sandbox
            .namespaces
            .iter()
            // Without any of its own there is none, whatever the numbers say: gVisor's say nothing.
            .filter(|_| self.tier == IsolationTier::Namespace)
            .filter(|(name, inode)| {
                let host = self.host.namespaces.iter().find(|(host, _)| host == name);
                *inode != 0 && host.is_some_and(|(_, host)| host != inode)
            })
            .map(|(name, _)| name.clone())
            .collect();
        let own_network = separate.iter().any(|name| name == "net") && sandbox.interfaces == ["lo"];
        if !separate.is_empty() {
            layers.push(ProtectionLayer::Namespaces { separate });
        }
        if sandbox.root_device != self.host.root_device && self.tier == IsolationTier::Namespace {
            layers.push(ProtectionLayer::PrivateRoot {
                read_only: self.read_only.clone(),
                writable: self.writable.clone(),
            });
        }
        if command.landlock_abi > 0 {
            layers.push(ProtectionLayer::Landlock {
                abi: command.landlock_abi,
                rules: command.landlock_rules,
            });
        }
        let outer = self.host.filters;
        let seccomp = command.seccomp_mode == 2 && command.seccomp_filters > outer;
        if seccomp {
            layers.push(ProtectionLayer::Seccomp {
                program: self.program,
                instructions: self.instructions,
            });
        }
        if command.no_new_privileges {
            layers.push(ProtectionLayer::NoNewPrivileges);
        }
        if command.capabilities == 0 && (command.bounding == 0 || command.no_new_privileges) {
            layers.push(ProtectionLayer::NoCapabilities);
        }
        if let Some((backend, limits)) = self.cgroup
            && limits != cgroup::CgroupLimits::default()
        {
            layers.push(ProtectionLayer::Cgroup {
                backend: backend.to_owned(),
                limits: ReceiptLimits {
                    memory_bytes: limits.memory_bytes,
                    cpu_millicores: limits.cpu_millicores,
                    pids: limits.pids,
                    ..ReceiptLimits::default()
                },
            });
        }
        if command.open_files <= self.granted.open_files {
            layers.push(ProtectionLayer::Rlimits {
                open_files: command.open_files,
                file_size: command.file_size,
            });
        }
        match &self.door {
            Some(door) if own_network => layers.push(ProtectionLayer::Egress {
                policy: door.policy,
                interfaces: sandbox.interfaces.clone(),
                routes: door.routes.clone(),
                listening: door.listening.clone(),
                published: door.published.clone(),
            }),
            None if own_network || (seccomp && self.no_sockets) => {
                layers.push(ProtectionLayer::NoNetwork);
            }
            // With another interface beside the loopback, neither is claimed.
            _ => {}
        }
        if self.clean_environment {
            layers.push(ProtectionLayer::CleanEnvironment {
                names: environment.to_vec(),
            });
        }
        layers
    }

    /// The first required layer that is not among those in force.
    pub(crate) fn missing(
        required: impl IntoIterator<Item = LayerName>,
        layers: &[ProtectionLayer],
    ) -> Option<LayerName> {
        required
            .into_iter()
            .find(|required| !layers.iter().any(|layer| layer.name() == required.name()))
    }
}

/// What happened to one command.
#[derive(Debug, Clone)]
pub(crate) struct CommandOutcome {
    /// `None` where the sandbox ended under it.
    pub(crate) how: Option<ExitCause>,
    pub(crate) timed_out: bool,
    pub(crate) timeout_ms: u64,
    pub(crate) wall_us: u64,
    pub(crate) cpu_us: Option<u64>,
    pub(crate) peak_memory_bytes: Option<u64>,
    /// Limits met while it ran.
    pub(crate) events: CgroupLimitEvents,
    pub(crate) stdout: (u64, u64),
    pub(crate) stderr: (u64, u64),
    pub(crate) scratch_full: bool,
    /// Whether it was ended because the workspace grew too large.
    pub(crate) disk_full: bool,
}

/// How it ended, in the words of the receipt. `None` where that is not known.
pub(crate) fn ended(outcome: &CommandOutcome) -> Option<CommandEnding> {
    if outcome.timed_out {
        return Some(CommandEnding::TimedOut);
    }
    let limit = |limit: &str| {
        Some(CommandEnding::LimitReached {
            limit: limit.to_owned(),
        })
    };
    if outcome.disk_full {
        return limit("disk");
    }
    match outcome.how {
        Some(ExitCause::Signal(SIGKILL)) | None if outcome.events.oom_kills > 0 => limit("memory"),
        Some(ExitCause::Signal(SIGXFSZ)) => limit("disk"),
        Some(ExitCause::Signal(signal)) => Some(CommandEnding::Signalled { signal }),
        Some(ExitCause::Status(status)) => Some(CommandEnding::Exited { status }),
        None => None,
    }
}

/// A size as a policy would say it.
pub(crate) fn human(bytes: u64) -> String {
    ByteSize::new(bytes).map_or_else(|| "0".to_owned(), |size| size.to_string())
}

/// What limits refused, each with the smallest grant that would have allowed it.
pub(crate) fn denials(context: &ReceiptContext, outcome: &CommandOutcome) -> Vec<SandboxDenial> {
    let granted = &context.granted;
    let output_dropped = outcome.stdout.1 + outcome.stderr.1;
    let most_output = outcome.stdout.0.max(outcome.stderr.0);
    let disk = outcome.disk_full
        || outcome.scratch_full
        || outcome.how == Some(ExitCause::Signal(SIGXFSZ));
    let seen = [
        (
            u64::from(outcome.timed_out),
            "wall",
            outcome.timeout_ms,
            format!("limits.wall above {} ms", outcome.timeout_ms),
        ),
        (
            outcome.events.oom_kills,
            "memory",
            granted.memory_bytes,
            format!("limits.memory above {}", human(granted.memory_bytes)),
        ),
        (
            outcome.events.pids_refused,
            "pids",
            granted.pids,
            format!("limits.pids above {}", granted.pids),
        ),
        (
            u64::from(disk),
            "disk",
            granted.disk_bytes,
            format!("limits.disk above {}", human(granted.disk_bytes)),
        ),
        (
            u64::from(output_dropped > 0),
            "output",
            granted.output_bytes,
            format!("limits.output of {most_output} bytes"),
        ),
    ];
    seen.into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, limit, granted, grant)| SandboxDenial {
            attempt: DeniedAttempt::Exceed {
                limit: limit.to_owned(),
                granted,
            },
            rule: format!("limits.{limit}"),
            grant: Some(grant),
            count,
        })
        .collect()
}

/// The receipt of one command.
pub(crate) fn receipt(
    context: &ReceiptContext,
    sandbox: &KernelPosture,
    layers: Vec<ProtectionLayer>,
    outcome: &CommandOutcome,
    ended: CommandEnding,
) -> SandboxReceipt {
    SandboxReceipt {
        tier: context.tier,
        layers,
        not_applied: context.not_applied.clone(),
        // What was not read back is not claimed: the worst is that it was written.
        workspace: sandbox.workspace.unwrap_or(WorkspaceMode::Direct),
        policy: context.policy,
        environment: context.environment,
        ended,
        usage: CommandUsage {
            setup_us: 0,
            wall_us: outcome.wall_us,
            cpu_us: outcome.cpu_us,
            peak_memory_bytes: outcome.peak_memory_bytes,
            stdout_bytes: outcome.stdout.0,
            stderr_bytes: outcome.stderr.0,
        },
        denials: denials(context, outcome),
        not_observed: not_observed(context)
            .iter()
            .map(|what| (*what).to_owned())
            .collect(),
    }
}

/// What is refused without a denial in the receipt.
fn not_observed(context: &ReceiptContext) -> Vec<&'static str> {
    let seen: &[&'static str] = match (context.tier, context.watched) {
        (IsolationTier::Namespace, WatchedCalls::ConnectionsAndPaths) => &[
            "questions whether a hidden path is there",
            "where messages without a connection were to go to",
            "IPv6 messages of commands that succeeded",
        ],
        (IsolationTier::Namespace, _) => &[
            "paths that are hidden, masked or read-only",
            "where messages without a connection were to go to",
            "IPv6 messages of commands that succeeded",
        ],
        (IsolationTier::Landlock, WatchedCalls::ConnectionsAndPaths) => &[],
        (IsolationTier::Landlock, _) => &["paths that Landlock refused"],
        _ => &[],
    };
    let unheard = !context.heard && context.tier != IsolationTier::Process;
    let calls = unheard.then_some(["system calls that seccomp refused", "connections"]);
    seen.iter()
        .copied()
        .chain(calls.into_iter().flatten())
        .collect()
}

#[cfg(test)]
mod tests;
