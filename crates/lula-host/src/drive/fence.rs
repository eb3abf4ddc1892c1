//! The driver locks itself out of repositories and workspaces: it holds models' keys and reads what
//! models say, and everything else is the runner's.
//!
//! It does so with Landlock, before the first thread, and keeps `runs/` of the state directory, the
//! socket and the network. A process that it starts is locked too, so its own runner is started
//! anew by a keeper (`--supervised`) when it dies. Each run tries in its first node what must not
//! work, and its log says what came of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lula_agents::world::{DriverFence, DriverFenceProbe, DriverFenceReport};
use lula_config::keys;
use lula_protocol::WorkspaceId;
use lula_sandbox::{RetainedAccess, lock_out};

use crate::error::HostError;
use crate::installation::Installation;
use crate::store::RUNS;

/// What programs and name resolution need to read.
const READ: [&str; 11] = [
    "/etc",
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/opt",
    "/nix/store",
    "/proc",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/run/systemd/resolve",
];
/// Devices that are used.
const USE: [&str; 4] = ["/dev/null", "/dev/tty", "/dev/urandom", "/dev/random"];
/// What is missing on an old kernel.
const NO_LANDLOCK: &str = "this kernel has no Landlock: this process can reach the repository";

/// Locks this process out of everything but what it needs to think, and tells what came of it, and
/// what is missing where it did not lock.
pub(crate) fn lock(
    repositories: &[PathBuf],
    installation: &Installation,
) -> Result<(DriverFence, Option<&'static str>), HostError> {
    let state = installation.state_directory()?;
    let own = state.join(RUNS);
    std::fs::create_dir_all(&own).map_err(|error| HostError::NoDirectory {
        path: own.clone(),
        error,
    })?;
    let mut kept: Vec<RetainedAccess> = READ
        .iter()
        .map(|path| RetainedAccess::Read(path.into()))
        .collect();
    kept.extend(USE.iter().map(|path| RetainedAccess::Use(path.into())));
    kept.push(RetainedAccess::Write(own));
    kept.extend(
        certificates(installation)
            .into_iter()
            .map(RetainedAccess::Read),
    );
    kept.extend(
        store_directory(&installation.config.get(&keys::STORE_URL)).map(RetainedAccess::Write),
    );
    let holds = |kept: &RetainedAccess| {
        let path = kept.path().canonicalize();
        path.is_ok_and(|path| repositories.iter().any(|one| one.starts_with(&path)))
    };
    // What holds a repository is not kept, whatever it is good for.
    kept.retain(|kept| !holds(kept));
    let locked = lock_out(&kept);
    let (how, shortfall) = match locked {
        Ok(locked) => (
            format!("Landlock ABI {}, {} paths kept", locked.abi, locked.rules),
            None,
        ),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            (error.to_string(), Some(NO_LANDLOCK))
        }
        Err(error) => return Err(HostError::Fence(error)),
    };
    let (is_locked, state) = (shortfall.is_none(), state.clone());
    let probe = move |repository: &str, workspace: &WorkspaceId| DriverFenceReport {
        locked: is_locked,
        how: how.clone(),
        probes: probes(Path::new(repository), workspace, &state),
    };
    Ok((Arc::new(probe), shortfall))
}

/// Files that say whom to believe, where they lie in a place of their own.
fn certificates(installation: &Installation) -> Vec<PathBuf> {
    let of_store = installation.config.get(&keys::STORE_CA);
    let variables = ["SSL_CERT_FILE", "SSL_CERT_DIR"].map(std::env::var_os);
    let named = variables.into_iter().flatten().map(PathBuf::from);
    let of_store = (!of_store.is_empty()).then(|| PathBuf::from(of_store));
    named.chain(of_store).collect()
}

/// The directory of a store that is a file.
fn store_directory(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    if path.is_empty() || path.contains("://") || !Path::new(path).is_absolute() {
        return None;
    }
    Path::new(path).parent().map(Path::to_owned)
}

/// Tries what must not work, and says what came of it.
fn probes(repository: &Path, workspace: &WorkspaceId, state: &Path) -> Vec<DriverFenceProbe> {
    let checkout = state.join("checkouts").join(workspace.as_str());
    let layer = state.join("workspaces").join(workspace.as_str());
    let probe = |what: &str, done: io::Result<()>| DriverFenceProbe {
        what: what.to_owned(),
        refused: matches!(&done, Err(error) if error.kind() == io::ErrorKind::PermissionDenied),
        said: done.map_or_else(|error| error.to_string(), |()| "it worked".to_owned()),
    };
    let open = |path: PathBuf| File::open(path).map(drop);
    let list = |path: &Path| std::fs::read_dir(path).map(drop);
    let write = |path: PathBuf| File::options().append(true).open(path).map(drop);
    vec![
        probe("list the repository", list(repository)),
        probe("read its HEAD", open(repository.join(".git/HEAD"))),
        probe("write its HEAD", write(repository.join(".git/HEAD"))),
        probe("list the run's checkout", list(&checkout)),
        probe(
            "read where it came from",
            open(checkout.join("origin.json")),
        ),
        probe("list the run's layer", list(&layer)),
    ]
}
