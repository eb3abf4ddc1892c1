//! Running things in the sandbox under the configuration in force.

use std::path::{Path, PathBuf};

use lula_config::{files, keys};
use lula_protocol::denial::{Attempt, Denial};
use lula_protocol::receipt::{Limits, WorkspaceMode};
use lula_protocol::{Code, Exit, Layer, Receipt, Tier};
use lula_sandbox::policy::{Policy, Profile, Wall};

use crate::failure::Failure;
use crate::session::Session;
use crate::term::{DIM, Table, WARN, paint};

/// The policy of a profile under the configured floor and deadline: the stricter of each.
pub(crate) fn policy(session: &Session, profile: Profile) -> Policy {
    within_configuration(session, profile.policy())
}

/// The policy in a file that the person names, under the same floor and deadline. A file in the
/// workspace is refused: what runs there could have written it.
pub(crate) fn policy_file(
    session: &Session,
    file: &Path,
    workspace: &Path,
) -> Result<Policy, Failure> {
    let failure = |code, exit, problem: &dyn std::fmt::Display| {
        let message = format!("cannot use {} as a policy: {problem}", file.display());
        Failure::new(code, exit, message)
    };
    let unreadable = |error: std::io::Error| {
        failure(Code::FileAccess, Exit::Usage, &error).remedy("name a file that you can read")
    };
    let real = file.canonicalize().map_err(unreadable)?;
    if real.starts_with(workspace) {
        let problem = "it lies in the workspace it is for";
        return Err(failure(Code::RepositoryOverreach, Exit::Usage, &problem)
            .remedy("keep policies where commands in the sandbox cannot write"));
    }
    let text = std::fs::read_to_string(&real).map_err(unreadable)?;
    let policy = Policy::from_toml(&text).map_err(|mistakes| {
        failure(Code::BadValue, Exit::Usage, &mistakes).remedy("correct the lines named")
    })?;
    Ok(within_configuration(session, policy))
}

fn within_configuration(session: &Session, mut policy: Policy) -> Policy {
    let floor = session.config.get(&keys::SANDBOX_MIN_TIER);
    policy.min_tier = policy
        .min_tier
        .max(Tier::from_name(&floor).unwrap_or(Tier::Microvm));
    let timeout = session.config.get(&keys::SANDBOX_TIMEOUT);
    let timeout = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    if let Some(wall) = Wall::from_millis(policy.limits.wall.millis().min(timeout)) {
        policy.limits.wall = wall;
    }
    policy
}

/// The workspace of a directory: the repository it belongs to, or itself. Never one that holds the
/// person's home, where the credentials are.
pub(crate) fn workspace(named: Option<&Path>, home: Option<&Path>) -> Result<PathBuf, Failure> {
    let unusable = |path: &Path, error: &std::io::Error| {
        let message = format!("cannot use {} as a workspace: {error}", path.display());
        Failure::new(Code::FileAccess, Exit::Usage, message).remedy("name an existing directory")
    };
    let here = named.unwrap_or(Path::new("."));
    let here = here
        .canonicalize()
        .map_err(|error| unusable(here, &error))?;
    if !here.is_dir() {
        return Err(unusable(&here, &std::io::ErrorKind::NotADirectory.into()));
    }
    let home = home.and_then(|home| home.canonicalize().ok());
    let holds_home = |path: &Path| home.as_ref().is_some_and(|home| home.starts_with(path));
    let top = named
        .is_none()
        .then(|| files::repository_top(&here))
        .flatten();
    let top = top.filter(|top| !holds_home(top)).unwrap_or(&here);
    if holds_home(top) || top == Path::new("/") {
        let message = format!("{} is or holds your home directory", top.display());
        return Err(Failure::new(Code::WorkspaceTooWide, Exit::Usage, message)
            .remedy("change to the project's own directory, or name it with --workspace"));
    }
    Ok(top.to_owned())
}

/// A receipt for people.
pub(crate) fn posture(receipt: &Receipt) -> Table {
    let mut table = Table::default();
    table.row(["tier".to_owned(), receipt.tier.to_string()]);
    let workspace = match receipt.workspace {
        WorkspaceMode::Direct => "what is written changes the real tree",
        WorkspaceMode::Overlay => "what is written goes to a layer of its own",
        WorkspaceMode::ReadOnly => "read-only",
    };
    table.row(["workspace".to_owned(), workspace.to_owned()]);
    for layer in &receipt.layers {
        table.row([layer.name().replace('_', " "), describe(layer)]);
    }
    for missing in &receipt.not_applied {
        table.row([
            paint(WARN, "not applied"),
            format!("{}: {}", missing.asked, missing.reason),
        ]);
    }
    for denial in &receipt.denials {
        table.row([paint(WARN, "denied"), spoken(denial)]);
    }
    for what in &receipt.not_observed {
        table.row([paint(DIM, "not observed"), paint(DIM, what)]);
    }
    let usage = &receipt.usage;
    let times = format!(
        "built in {} µs, ran {} ms",
        usage.setup_us,
        usage.wall_us / 1000
    );
    table.row([paint(DIM, "time"), paint(DIM, times)]);
    table
}

/// What was denied, a line each; one that says so where nothing was.
pub(crate) fn denials(receipt: &Receipt) -> Vec<String> {
    if receipt.denials.is_empty() {
        return vec!["no denial was seen".to_owned()];
    }
    let denials = receipt.denials.iter();
    denials
        .map(|denial| format!("denied: {}", spoken(denial)))
        .collect()
}

/// A denial for people: what was tried, what said no, what would allow it.
fn spoken(denial: &Denial) -> String {
    let tried = match &denial.attempt {
        Attempt::Read { path } => format!("read {path}"),
        Attempt::Write { path } => format!("write {path}"),
        Attempt::Execute { program } => format!("start {program}"),
        Attempt::Connect { host, port } if host.contains(':') => {
            format!("connect to [{host}]:{port}")
        }
        Attempt::Connect { host, port } => format!("connect to {host}:{port}"),
        Attempt::Network => "reach a network".to_owned(),
        Attempt::Syscall { name } => format!("call {name}"),
        Attempt::Exceed { limit, granted } => format!("more {limit} than {granted}"),
        Attempt::Call { tool } => format!("use {tool}"),
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

fn describe(layer: &Layer) -> String {
    match layer {
        Layer::Namespaces { separate } => separate.join(", "),
        Layer::PrivateRoot {
            read_only,
            writable,
        } => {
            format!(
                "{} paths read-only; writable: {}",
                read_only.len(),
                writable.join(", ")
            )
        }
        Layer::Landlock { abi, rules } => format!("ABI {abi}, {rules} rules"),
        Layer::Seccomp {
            program,
            instructions,
        } => {
            format!("{instructions} instructions, program {}", program.short())
        }
        Layer::NoNewPrivileges => "no program can gain privileges".to_owned(),
        Layer::NoCapabilities => "none held, none to be gained".to_owned(),
        Layer::Cgroup { backend, limits } => format!("{backend}: {}", describe_limits(limits)),
        Layer::Rlimits { open_files, .. } => format!("{open_files} open files"),
        Layer::NoNetwork => "only its own loopback".to_owned(),
        Layer::CleanEnvironment { names } => format!("{} variables, none inherited", names.len()),
    }
}

fn describe_limits(limits: &Limits) -> String {
    let mut parts = Vec::new();
    if let Some(bytes) = limits.memory_bytes {
        parts.push(format!("{} MiB of memory", bytes >> 20));
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
