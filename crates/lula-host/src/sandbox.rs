//! Running things in the sandbox under the configuration in force.

use std::path::{Path, PathBuf};

use lula_config::{files, keys};
use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use lula_protocol::receipt::{ReceiptLimits, WorkspaceMode};
use lula_protocol::units::rough_size;
use lula_protocol::{IsolationTier, ProtectionLayer, SandboxReceipt};
use lula_sandbox::policy::{Profile, SandboxPolicy, WallTime};

use crate::error::HostError;
use crate::installation::Installation;

/// The policy of a profile under the configured floor and deadline: the stricter of each.
pub fn policy(installation: &Installation, profile: Profile) -> SandboxPolicy {
    within_configuration(installation, profile.policy())
}

/// The policy in a file that the person names, under the same floor and deadline. A file in the
/// workspace is refused: what runs there could have written it.
pub fn policy_file(
    installation: &Installation,
    file: &Path,
    workspace: &Path,
) -> Result<SandboxPolicy, HostError> {
    let unreadable = |error: std::io::Error| HostError::PolicyFile {
        path: file.to_owned(),
        error,
    };
    let real = file.canonicalize().map_err(unreadable)?;
    if real.starts_with(workspace) {
        return Err(HostError::PolicyInWorkspace(file.to_owned()));
    }
    let text = std::fs::read_to_string(&real).map_err(unreadable)?;
    let policy = SandboxPolicy::from_toml(&text).map_err(|mistakes| HostError::BadPolicy {
        path: file.to_owned(),
        mistakes: mistakes.to_string(),
    })?;
    Ok(within_configuration(installation, policy))
}

fn within_configuration(installation: &Installation, mut policy: SandboxPolicy) -> SandboxPolicy {
    let floor = installation.config.get(&keys::SANDBOX_MIN_TIER);
    policy.min_tier = policy
        .min_tier
        .max(IsolationTier::from_name(&floor).unwrap_or(IsolationTier::Microvm));
    let timeout = installation.config.get(&keys::SANDBOX_TIMEOUT);
    let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    if let Some(wall) = WallTime::from_millis(policy.limits.wall.millis().min(timeout)) {
        policy.limits.wall = wall;
    }
    policy
}

/// The workspace of a directory: the repository it belongs to, or itself. Never one that holds the
/// person's home, where the credentials are.
pub fn workspace(named: Option<&Path>, home: Option<&Path>) -> Result<PathBuf, HostError> {
    let unusable = |path: &Path, error: std::io::Error| HostError::Workspace {
        path: path.to_owned(),
        error,
    };
    let here = named.unwrap_or(Path::new("."));
    let here = here.canonicalize().map_err(|error| unusable(here, error))?;
    if !here.is_dir() {
        return Err(unusable(&here, std::io::ErrorKind::NotADirectory.into()));
    }
    let home = home.and_then(|home| home.canonicalize().ok());
    let holds_home = |path: &Path| home.as_ref().is_some_and(|home| home.starts_with(path));
    let top = named
        .is_none()
        .then(|| files::repository_top(&here))
        .flatten();
    let top = top.filter(|top| !holds_home(top)).unwrap_or(&here);
    if holds_home(top) || top == Path::new("/") {
        return Err(HostError::WorkspaceTooWide(top.to_owned()));
    }
    Ok(top.to_owned())
}

/// A line of a receipt: its name and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// What is in force.
    Fact(String, String),
    /// What is not as it was asked for, or was denied.
    Warning(&'static str, String),
    /// What only the curious want to know.
    Aside(&'static str, String),
}

/// A receipt for people.
pub fn posture(receipt: &SandboxReceipt) -> Vec<Line> {
    let fact = |name: &str, text: String| Line::Fact(name.to_owned(), text);
    let workspace = match receipt.workspace {
        WorkspaceMode::Direct => "what is written changes the real tree",
        WorkspaceMode::Overlay => "what is written goes to a layer of its own",
        WorkspaceMode::ReadOnly => "read-only",
    };
    let mut lines = vec![
        fact("tier", receipt.tier.to_string()),
        fact("workspace", workspace.to_owned()),
    ];
    for layer in &receipt.layers {
        lines.push(fact(&layer.name().replace('_', " "), describe(layer)));
    }
    for missing in &receipt.not_applied {
        let text = format!("{}: {}", missing.asked, missing.reason);
        lines.push(Line::Warning("not applied", text));
    }
    for denial in &receipt.denials {
        lines.push(Line::Warning("denied", spoken(denial)));
    }
    for what in &receipt.not_observed {
        lines.push(Line::Aside("not observed", what.clone()));
    }
    let usage = &receipt.usage;
    let times = format!(
        "built in {} µs, ran {} ms",
        usage.setup_us,
        usage.wall_us / 1000
    );
    lines.push(Line::Aside("time", times));
    lines
}

/// What was denied, a line each; one that says so where nothing was.
pub fn denials(receipt: &SandboxReceipt) -> Vec<String> {
    if receipt.denials.is_empty() {
        return vec!["no denial was seen".to_owned()];
    }
    receipt.denials.iter().map(denied).collect()
}

/// A denial in a line of its own.
pub fn denied(denial: &SandboxDenial) -> String {
    format!("denied: {}", spoken(denial))
}

/// A denial for people: what was tried, what said no, what would allow it.
fn spoken(denial: &SandboxDenial) -> String {
    let tried = match &denial.attempt {
        DeniedAttempt::Read { path } => format!("read {path}"),
        DeniedAttempt::Write { path } => format!("write {path}"),
        DeniedAttempt::Execute { program } => format!("start {program}"),
        DeniedAttempt::Connect { host, port } if host.contains(':') => {
            format!("connect to [{host}]:{port}")
        }
        DeniedAttempt::Connect { host, port } => format!("connect to {host}:{port}"),
        DeniedAttempt::Resolve { host } => format!("find the address of {host}"),
        DeniedAttempt::Network => "reach a network".to_owned(),
        DeniedAttempt::Syscall { name } => format!("call {name}"),
        DeniedAttempt::Exceed { limit, granted } => format!("more {limit} than {granted}"),
        DeniedAttempt::Call { tool } => format!("use {tool}"),
    };
    let often = match denial.count {
        0 | 1 => String::new(),
        count => format!(", {count} times"),
    };
    let grant = match &denial.grant {
        Some(grant) => format!("; {grant} would allow it"),
        None => String::new(),
    };
    format!("{tried}{often} ({}){grant}", denial.rule)
}

fn describe(layer: &ProtectionLayer) -> String {
    match layer {
        ProtectionLayer::Namespaces { separate } => separate.join(", "),
        ProtectionLayer::PrivateRoot {
            read_only,
            writable,
        } => {
            format!(
                "{} paths read-only; writable: {}",
                read_only.len(),
                writable.join(", ")
            )
        }
        ProtectionLayer::Landlock { abi, rules } => format!("ABI {abi}, {rules} rules"),
        ProtectionLayer::Seccomp {
            program,
            instructions,
        } => {
            format!("{instructions} instructions, program {}", program.short())
        }
        ProtectionLayer::NoNewPrivileges => "no program can gain privileges".to_owned(),
        ProtectionLayer::NoCapabilities => "none held, none to be gained".to_owned(),
        ProtectionLayer::Cgroup { backend, limits } => {
            format!("{backend}: {}", describe_limits(limits))
        }
        ProtectionLayer::Rlimits { open_files, .. } => format!("{open_files} open files"),
        ProtectionLayer::NoNetwork => "only its own loopback".to_owned(),
        ProtectionLayer::Egress {
            policy,
            listening,
            published,
            ..
        } => {
            let text = format!(
                "by name only, policy {}; answered: {}",
                policy.short(),
                listening.join(", ")
            );
            if published.is_empty() {
                text
            } else {
                format!("{text}; published: {}", published.join(", "))
            }
        }
        ProtectionLayer::CleanEnvironment { names } => {
            format!("{} variables, none inherited", names.len())
        }
    }
}

fn describe_limits(limits: &ReceiptLimits) -> String {
    let mut parts = Vec::new();
    if let Some(bytes) = limits.memory_bytes {
        parts.push(format!("{} of memory", rough_size(bytes)));
    }
    if let Some(millicores) = limits.cpu_millicores {
        parts.push(format!(
            "{}.{} cores",
            millicores / 1000,
            millicores % 1000 / 100
        ));
    }
    if let Some(pids) = limits.pids {
        parts.push(format!("{pids} processes"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_never_holds_the_home_directory() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("project/src");
        std::fs::create_dir_all(&project).unwrap();
        let refused = |path: &Path| workspace(Some(path), Some(home.path())).is_err();
        assert!(refused(home.path()));
        assert!(refused(home.path().parent().unwrap()));
        assert!(refused(Path::new("/")));
        assert!(!refused(&project));
    }
}
