//! The brain locks itself out of repositories and workspaces: it holds models' keys and reads what
//! models say, and everything else is the runner's.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lula_agents::world::{Fence, Fenced, Probe};
use lula_config::keys;
use lula_protocol::{Code, Exit, WorkspaceId};
use lula_sandbox::{Kept, lock_out};

use super::store::RUNS;
use crate::failure::Failure;
use crate::session::Session;

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

/// Locks this process out of everything but what it needs to think, and tells what came of it.
/// Comes before anything starts a thread, and after everything that needs more was started.
pub(crate) fn lock(repositories: &[&Path], session: &Session) -> Result<Fence, Failure> {
    let state = session.state_directory()?;
    let own = state.join(RUNS);
    std::fs::create_dir_all(&own)?;
    let mut kept: Vec<Kept> = READ.iter().map(|path| Kept::Read(path.into())).collect();
    kept.extend(USE.iter().map(|path| Kept::Use(path.into())));
    kept.push(Kept::Write(own));
    kept.extend(certificates(session).into_iter().map(Kept::Read));
    kept.extend(store_directory(&session.config.get(&keys::STORE_URL)).map(Kept::Write));
    let holds = |kept: &Kept| {
        let path = kept.path().canonicalize();
        path.is_ok_and(|path| repositories.iter().any(|one| one.starts_with(&path)))
    };
    // What holds a repository is not kept, whatever it is good for.
    kept.retain(|kept| !holds(kept));
    let locked = lock_out(&kept);
    match &locked {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let text = "this kernel has no Landlock: this process can reach the repository";
            session.screen.detail(text);
        }
        Err(error) => {
            let message = format!("this process cannot lock itself out of the repository: {error}");
            return Err(Failure::new(
                Code::EnvironmentUnfit,
                Exit::Environment,
                message,
            ));
        }
    }
    let how = match &locked {
        Ok(locked) => format!("Landlock ABI {}, {} paths kept", locked.abi, locked.rules),
        Err(error) => error.to_string(),
    };
    let (is_locked, state) = (locked.is_ok(), state.clone());
    let probe = move |repository: &str, workspace: &WorkspaceId| Fenced {
        locked: is_locked,
        how: how.clone(),
        probes: probes(Path::new(repository), workspace, &state),
    };
    Ok(Arc::new(probe))
}

/// Files that say whom to believe, where they lie in a place of their own.
fn certificates(session: &Session) -> Vec<PathBuf> {
    let of_store = session.config.get(&keys::STORE_CA);
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
fn probes(repository: &Path, workspace: &WorkspaceId, state: &Path) -> Vec<Probe> {
    let checkout = state.join("checkouts").join(workspace.as_str());
    let layer = state.join("workspaces").join(workspace.as_str());
    let told = |what: &str, done: io::Result<()>| Probe {
        what: what.to_owned(),
        refused: matches!(&done, Err(error) if error.kind() == io::ErrorKind::PermissionDenied),
        said: done.map_or_else(|error| error.to_string(), |()| "it worked".to_owned()),
    };
    let open = |path: PathBuf| File::open(path).map(drop);
    let list = |path: &Path| std::fs::read_dir(path).map(drop);
    let write = |path: PathBuf| File::options().append(true).open(path).map(drop);
    vec![
        told("list the repository", list(repository)),
        told("read its HEAD", open(repository.join(".git/HEAD"))),
        told("write its HEAD", write(repository.join(".git/HEAD"))),
        told("list the run's checkout", list(&checkout)),
        told(
            "read where it came from",
            open(checkout.join("origin.json")),
        ),
        told("list the run's layer", list(&layer)),
    ]
}
