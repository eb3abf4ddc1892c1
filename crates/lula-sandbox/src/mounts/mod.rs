//! What a sandbox's file tree looks like: a pure plan from a policy and a look at the host.
//!
//! A few system directories read-only, a handful of files of `/etc`, the workspace at its own path,
//! one private filesystem behind every temporary directory. Not the host's root with holes in it.

mod caches;
mod environment;
mod host;
mod shared;
mod toolchains;

use std::collections::BTreeMap;
use std::path::Path;

use crate::blueprint::{BindMount, INSIDE_ID, PlacedPath, RootPlan, SMALL, WorkspacePlan};
use crate::error::SandboxError;
use crate::frames::UnavailableProtection;
use crate::landlock::{PathAccess, PathGrant};
use crate::policy::{AbsolutePath, Network, SandboxPolicy};

pub use environment::ProjectEnvironment;
pub(crate) use shared::shared_grants;
pub use toolchains::{HostToolchains, Virtualenv};

use caches::CacheMount;
use host::HostPathKind;

/// The home of the sandbox's user.
pub(crate) const HOME: &str = "/home/user";

/// Where the certificates lie inside that programs are to trust, where these are not the system's.
pub(crate) const CERTIFICATES: &str = "/etc/lula/certificates.pem";

/// Where systems keep all of theirs in one file.
pub(crate) const SYSTEM_CERTIFICATES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// Where systems keep what Java trusts, to which their Javas link.
pub(crate) const JAVA_CERTIFICATES: [&str; 2] = [
    "/etc/ssl/certs/java/cacerts",
    "/etc/pki/ca-trust/extracted/java/cacerts",
];

/// Directories of the private filesystem, and where each is seen.
pub(crate) const SCRATCH: &[(&str, &str)] = &[("tmp", "/tmp"), ("shm", "/dev/shm"), ("home", HOME)];

/// Directories every program may need.
const SYSTEM: [&str; 8] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
];

/// What of `/etc` programs read and no secrets are kept in.
const ETC: [&str; 24] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "lsb-release",
    "magic",
    "mime.types",
    "os-release",
    "pki",
    "protocols",
    "redhat-release",
    "services",
    "ssl",
    "terminfo",
    "timezone",
    "xdg",
    "xml",
];

/// Configuration of language runtimes, by how the name begins.
const ETC_BEGINS: [&str; 4] = ["java", "openjdk", "python", "perl"];

/// The plan for one policy and workspace.
#[derive(Debug, Clone)]
pub(crate) struct MountPlan {
    pub(crate) root: RootPlan,
    pub(crate) placed: Vec<PlacedPath>,
    /// Directories of the sandbox's own, empty but for what is placed in them.
    pub(crate) private: Vec<String>,
    pub(crate) caches: Vec<BindMount>,
    /// Variables that tell tools where their caches are.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) masks: Vec<String>,
    pub(crate) grants: Vec<PathGrant>,
    pub(crate) held_back: Vec<UnavailableProtection>,
    /// How names are found.
    network: Network,
    /// A workspace in layers: where it is seen, and whether it is writable.
    overlaid: Option<(String, bool)>,
}

impl MountPlan {
    /// Paths shown read-only, for the receipt.
    pub(crate) fn read_only(&self) -> Vec<String> {
        let placed = self.places().filter(|(_, _, writable)| !writable);
        let binds = self.root.binds.iter().map(|bind| &*bind.target);
        binds
            .chain(placed.map(|(target, ..)| target))
            .map(str::to_owned)
            .collect()
    }

    /// Paths of the host that are writable, for the receipt.
    pub(crate) fn writable(&self) -> Vec<String> {
        let placed = self.places().filter(|(_, _, writable)| *writable);
        placed.map(|(target, ..)| target.to_owned()).collect()
    }

    /// Everything put into each sandbox by itself: where, whether it is a file, whether it is
    /// writable.
    fn places(&self) -> impl Iterator<Item = (&str, bool, bool)> {
        let placed = self
            .placed
            .iter()
            .map(|placed| (&*placed.bind.target, placed.bind.file, placed.writable));
        let overlaid = self.overlaid.iter();
        placed.chain(overlaid.map(|(target, writable)| (&**target, false, *writable)))
    }
}

/// The directory a sandbox is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MountedWorkspace<'a> {
    pub(crate) path: &'a Path,
    pub(crate) writable: bool,
    /// Whether it is laid over the real tree instead of being it.
    pub(crate) overlaid: bool,
}

impl<'a> MountedWorkspace<'a> {
    pub(crate) fn of(plan: &'a WorkspacePlan) -> Self {
        Self {
            path: Path::new(&plan.path),
            writable: plan.writable,
            overlaid: plan.overlay.is_some(),
        }
    }
}

/// The system's own directories, looked at once: they do not change while an engine runs.
#[derive(Debug, Clone)]
pub(crate) struct SystemDirectories(RootPlan);

impl SystemDirectories {
    pub(crate) fn look() -> Result<Self, SandboxError> {
        let mut plan = MountPlan::of(RootPlan::default());
        for path in SYSTEM.iter().map(|path| (*path).to_owned()) {
            plan.show_system(&path)?;
        }
        for path in etc_entries() {
            plan.show_system(&path)?;
        }
        Ok(Self(plan.root))
    }
}

/// What a policy shows around a workspace, whichever that is.
#[derive(Debug, Clone)]
pub(crate) struct PolicySurroundings {
    plan: MountPlan,
    toolchains: Vec<HostDirectory>,
    /// Paths of credentials in the toolchains, which are masked.
    hidden: Vec<String>,
    caches: Vec<CacheMount>,
    /// Where tools and caches of a project's environment are, and whether they are writable.
    environment: Option<(String, bool)>,
}

/// A directory of the host by its name and its real path.
#[derive(Debug, Clone)]
struct HostDirectory {
    named: String,
    real: String,
}

impl PolicySurroundings {
    pub(crate) fn look(
        policy: &SandboxPolicy,
        toolchains: &HostToolchains,
        system: &SystemDirectories,
    ) -> Result<Self, SandboxError> {
        let mut plan = MountPlan::of(system.0.clone());
        plan.network = policy.network;
        plan.look(policy)?;
        let mut shown = Vec::new();
        for path in toolchains.directories() {
            // What went away since is not missed: no policy asked for it by name.
            if let Ok(real) = path.canonicalize() {
                let (named, real) = (text(path)?, text(&real)?);
                shown.push(HostDirectory { named, real });
            }
        }
        let hidden = toolchains.hidden().iter().map(|path| text(path));
        let caches = caches::look(&policy.caches, toolchains)?;
        let made = toolchains.project_environment();
        let environment = made.and_then(|made| Some((made.home.as_ref()?, made.being_made)));
        let environment = environment
            .map(|(home, writable)| Ok::<_, SandboxError>((text(home)?, writable)))
            .transpose()?;
        Ok(Self {
            environment,
            plan,
            toolchains: shown,
            hidden: hidden.collect::<Result<_, _>>()?,
            caches,
        })
    }

    /// Plans the tree of a sandbox with a private root.
    pub(crate) fn plan(self, workspace: MountedWorkspace<'_>) -> Result<MountPlan, SandboxError> {
        let mut plan = self.plan;
        let shown = text(workspace.path)?;
        // What lies in the workspace, such as its own virtual environment, is seen with it.
        let apart = |path: &str| !is_below(path, &shown);
        for directory in self.toolchains.iter().filter(|one| apart(&one.real)) {
            plan.show(directory)?;
        }
        let hidden = self.hidden.into_iter().filter(|path| apart(path));
        plan.masks.extend(hidden);
        for cache in self.caches {
            plan.add_cache(cache, &workspace)?;
        }
        if let Some((source, writable)) = self.environment {
            plan.add_environment(&source, writable)?;
        }
        if workspace.overlaid {
            plan.overlaid = Some((shown, workspace.writable));
        } else {
            // What it may do is the caller's to say, whatever the policy shows of the same place.
            plan.placed.retain(|placed| placed.bind.target != shown);
            plan.place(workspace.path, workspace.writable)?;
        }
        plan.finish();
        Ok(plan)
    }
}

impl MountPlan {
    fn look(&mut self, policy: &SandboxPolicy) -> Result<(), SandboxError> {
        self.masks = policy
            .paths
            .mask
            .iter()
            .map(|path| path.as_str().to_owned())
            .collect();
        for path in policy.paths.read.iter().map(AbsolutePath::as_path) {
            self.show_granted(path)?;
        }
        for path in &policy.paths.write {
            self.place(path.as_path(), true)?;
        }
        Ok(())
    }
}

fn etc_entries() -> Vec<String> {
    let mut names: Vec<String> = ETC.iter().map(|name| format!("/etc/{name}")).collect();
    if let Ok(entries) = std::fs::read_dir("/etc") {
        let found = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            ETC_BEGINS
                .iter()
                .any(|begin| name.starts_with(begin))
                .then(|| format!("/etc/{name}"))
        });
        names.extend(found);
    }
    names.sort();
    names
}

/// Whether `path` is `above` or lies below it.
pub(crate) fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || above == "/")
}

fn is_private(path: &str) -> bool {
    SCRATCH.iter().any(|(_, target)| is_below(path, target))
}

/// A file of the host, shown read-only at another place where a file is.
pub(crate) fn placed_file(source: &Path, target: &Path) -> Result<PlacedPath, SandboxError> {
    let HostPathKind::File(found) = host::look(source)? else {
        return Err(SandboxError::Path {
            path: source.to_owned(),
            source: std::io::ErrorKind::NotFound.into(),
        });
    };
    Ok(PlacedPath {
        bind: BindMount {
            source: text(source)?,
            target: text(target)?,
            file: true,
        },
        writable: false,
        device: found.device,
        inode: found.inode,
        owner: found.owner,
    })
}

fn text(path: &Path) -> Result<String, SandboxError> {
    path.to_str()
        .filter(|text| !text.chars().any(char::is_control))
        .map(str::to_owned)
        .ok_or_else(|| SandboxError::PathText(path.to_owned()))
}

impl MountPlan {
    fn of(root: RootPlan) -> Self {
        Self {
            root,
            placed: Vec::new(),
            private: Vec::new(),
            caches: Vec::new(),
            environment: BTreeMap::new(),
            masks: Vec::new(),
            grants: Vec::new(),
            held_back: Vec::new(),
            network: Network::None,
            overlaid: None,
        }
    }

    fn bind(&mut self, source: &str, file: bool) {
        if self
            .root
            .binds
            .iter()
            .any(|bind| is_below(source, &bind.target))
        {
            return;
        }
        self.root
            .binds
            .retain(|bind| !is_below(&bind.target, source));
        self.root.binds.push(BindMount {
            source: source.to_owned(),
            target: source.to_owned(),
            file,
        });
    }

    fn show_system(&mut self, path: &str) -> Result<(), SandboxError> {
        match host::look(Path::new(path))? {
            HostPathKind::Nothing => {}
            HostPathKind::Link(to) => self.root.links.push((path.to_owned(), text(&to)?)),
            HostPathKind::Directory(_) => self.bind(path, false),
            HostPathKind::File(found) if found.size <= SMALL as u64 => {
                self.root.copies.push(path.to_owned());
            }
            HostPathKind::File(_) => self.bind(path, true),
        }
        Ok(())
    }

    /// A path the policy grants for reading, also where it is reached through a link.
    fn show_granted(&mut self, path: &Path) -> Result<(), SandboxError> {
        let Ok(real) = path.canonicalize() else {
            self.held_back.push(UnavailableProtection {
                asked: format!("read {}", path.display()),
                reason: "there is nothing at that path".to_owned(),
            });
            return Ok(());
        };
        self.show(&HostDirectory {
            named: text(path)?,
            real: text(&real)?,
        })
    }

    fn show(&mut self, shown: &HostDirectory) -> Result<(), SandboxError> {
        let HostDirectory { named, real } = shown;
        if is_private(real) {
            self.place(Path::new(real), false)?;
        } else {
            self.bind(real, !Path::new(real).is_dir());
        }
        if named != real && !is_private(named) && !self.is_shown(named) {
            self.root.links.push((named.clone(), real.clone()));
        }
        Ok(())
    }

    fn is_shown(&self, path: &str) -> bool {
        let links = self.root.links.iter().map(|(link, _)| link.as_str());
        let binds = self.root.binds.iter().map(|bind| bind.target.as_str());
        links.chain(binds).any(|shown| is_below(path, shown))
    }

    fn place(&mut self, path: &Path, writable: bool) -> Result<(), SandboxError> {
        let unusable = |source| SandboxError::Path {
            path: path.to_owned(),
            source,
        };
        let real = path.canonicalize().map_err(unusable)?;
        let target = text(&real)?;
        let identity = match host::look(&real)? {
            HostPathKind::Directory(identity) => (identity, false),
            HostPathKind::File(identity) => (identity, true),
            HostPathKind::Link(_) | HostPathKind::Nothing => {
                return Err(unusable(std::io::ErrorKind::NotFound.into()));
            }
        };
        let (found, file) = identity;
        if self
            .placed
            .iter()
            .any(|placed| placed.bind.target == target)
        {
            return Ok(());
        }
        self.placed.push(PlacedPath {
            bind: BindMount {
                source: target.clone(),
                target,
                file,
            },
            writable,
            device: found.device,
            inode: found.inode,
            owner: found.owner,
        });
        Ok(())
    }

    /// Everything that follows from the choices made: places to mount on, own files, rules.
    fn finish(&mut self) {
        self.root.binds.sort_by(|a, b| a.target.cmp(&b.target));
        self.placed
            .sort_by(|a, b| a.bind.target.cmp(&b.bind.target));
        let mut directories: Vec<String> = ["/etc", "/proc", "/run", "/tmp", "/var/empty", HOME]
            .map(str::to_owned)
            .to_vec();
        let shown: Vec<&str> = self.root.binds.iter().map(|bind| &*bind.target).collect();
        let mut files = Vec::new();
        let private = self.private.iter().map(String::as_str);
        let caches = self.caches.iter().map(|bind| &*bind.target);
        let private = private.chain(caches).map(|target| (target, false));
        let places = self.places().map(|(target, file, _)| (target, file));
        for (target, file) in places.chain(private) {
            if self.is_own(target) || shown.iter().any(|bind| is_below(target, bind)) {
                continue;
            }
            if file {
                files.push((target.to_owned(), String::new()));
            } else {
                directories.push(target.to_owned());
            }
        }
        self.root.files.extend(files);
        let binds = self.root.binds.iter().map(|bind| &bind.target);
        if !directories
            .iter()
            .chain(binds)
            .any(|path| is_below(path, "/var/tmp"))
        {
            let link = ("/var/tmp".to_owned(), "/tmp".to_owned());
            self.root.links.push(link);
        }
        self.tidy_links(&directories);
        // The same root for the same places, in whichever way they are going to be filled.
        directories.sort();
        directories.dedup();
        self.root.directories = directories;
        self.root.files.extend(own_files(self.network));
        if self.network == Network::Allowlist {
            self.root
                .files
                .push((CERTIFICATES.to_owned(), String::new()));
        }

        let mut grants = Vec::new();
        let mut grant = |path: &str, access| {
            grants.push(PathGrant {
                path: path.to_owned(),
                access,
            });
        };
        grant("/", PathAccess::List);
        grant("/proc", PathAccess::Read);
        grant("/etc", PathAccess::Read);
        grant("/dev", PathAccess::Use);
        for (_, target) in SCRATCH {
            grant(target, PathAccess::Write);
        }
        for bind in &self.root.binds {
            if !is_below(&bind.target, "/etc") {
                grant(&bind.target, PathAccess::Read);
            }
        }
        let private = self.private.iter().map(String::as_str);
        for target in private.chain(self.caches.iter().map(|bind| &*bind.target)) {
            grant(target, PathAccess::Write);
        }
        for (target, _, writable) in self.places() {
            let access = if writable {
                PathAccess::Write
            } else {
                PathAccess::Read
            };
            grant(target, access);
        }
        self.grants = grants;
    }

    /// Whether a place to mount on is made in each sandbox, and not in what they share.
    fn is_own(&self, target: &str) -> bool {
        let mut private = self.private.iter();
        let in_private = private.any(|own| target != own && is_below(target, own));
        is_private(target) || in_private
    }

    /// A link that another one leads past, or in whose place a directory is needed, is none.
    fn tidy_links(&mut self, directories: &[String]) {
        let links = &mut self.root.links;
        links.sort();
        links.dedup_by(|a, b| a.0 == b.0);
        let names: Vec<String> = links.iter().map(|(name, _)| name.clone()).collect();
        let binds = self.root.binds.iter().map(|bind| &bind.target);
        let needed: Vec<&String> = directories.iter().chain(binds).collect();
        links.retain(|(name, _)| {
            let past = |other: &String| other != name && is_below(name, other);
            !names.iter().any(past) && !needed.iter().any(|path| is_below(path, name))
        });
    }
}

/// Where names are found: the files `hosts` and `resolv.conf`. On the host's own network they are the
/// host's.
fn names(network: Network) -> (String, String) {
    let own = "127.0.0.1 localhost lula\n::1 localhost\n".to_owned();
    let of_host = |path| std::fs::read_to_string(path).unwrap_or_default();
    match network {
        Network::None => (own, String::new()),
        // Every address leads to the same listener.
        Network::Allowlist => (own, "nameserver 127.0.0.1\n".to_owned()),
        Network::Host => (own + &of_host("/etc/hosts"), of_host("/etc/resolv.conf")),
    }
}

/// Files that would tell about the host, written anew.
fn own_files(network: Network) -> Vec<(String, String)> {
    let (hosts, resolver) = names(network);
    [
        (
            "/etc/passwd",
            format!(
                "user:x:{INSIDE_ID}:{INSIDE_ID}:user:{HOME}:/bin/sh\n\
                 nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            ),
        ),
        (
            "/etc/group",
            format!("user:x:{INSIDE_ID}:\nnogroup:x:65534:\n"),
        ),
        ("/etc/hosts", hosts),
        ("/etc/hostname", "lula\n".to_owned()),
        ("/etc/resolv.conf", resolver),
        (
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n".to_owned(),
        ),
        ("/etc/host.conf", "multi on\n".to_owned()),
        // A workspace may be shown under another owner's name, and is of one who works in it.
        ("/etc/gitconfig", "[safe]\n\tdirectory = *\n".to_owned()),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text))
    .collect()
}

#[cfg(test)]
mod tests;
