//! The stage: things outside that an attack tries to reach. It goes away when dropped.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::StatVfsMountFlags;

use super::probe::{AttackFamily, AttackObservation, AttackProbe, KILLED_BY_FILTER};
use super::scene::AttackScene;
use super::{act, honesty};

pub(super) struct AttackStage {
    root: PathBuf,
    shared_file: PathBuf,
    victim: Child,
    shared_memory: u64,
    scene: AttackScene,
    /// Held open for as long as the stage stands.
    _listeners: Vec<TcpListener>,
    _datagrams: UdpSocket,
    _sockets: Vec<UnixListener>,
    _terminal: std::os::fd::OwnedFd,
    pub(super) token: String,
    /// Whether something around this process, a filter or lost privileges, refuses things already.
    pub(super) is_confined: bool,
    /// Whether there is no network outside.
    is_offline: bool,
}

/// An address of a network that is kept for documentation: where there is no network, this one is not
/// reached either.
const UNREACHABLE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// What a target holds before and after.
const UNTOUCHED: &str = "untouched";

/// `IPC_CREAT`, for this user only.
const CREATE_PRIVATE: u64 = 0o1600;

/// What `writes` tries to create beside the workspace.
pub(super) const BESIDE: &str = "beside";

static STAGES: AtomicU32 = AtomicU32::new(0);

impl AttackStage {
    pub(super) fn set(program: &Path) -> std::io::Result<Self> {
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let own = format!("lula-attack-{}-{number}", std::process::id());
        let root = std::env::temp_dir().canonicalize()?.join(&own);
        std::fs::DirBuilder::new().mode(0o755).create(&root)?;
        for folder in [
            "secrets",
            "targets",
            "workspace",
            "control",
            "control/workspace",
        ] {
            std::fs::create_dir(root.join(folder))?;
        }
        let token = format!("lula-secret-{}-{number}", own.len() * 7919);
        std::fs::write(root.join("secrets/credential"), &token)?;
        let shared_file = Path::new("/dev/shm").join(&own);
        std::fs::write(&shared_file, &token)?;

        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = first.local_addr()?.port();
        let mut listeners = vec![first];
        listeners.extend(TcpListener::bind((Ipv4Addr::new(127, 1, 2, 3), port)));
        let sixth = TcpListener::bind("[::1]:0");
        let port6 = sixth
            .as_ref()
            .ok()
            .and_then(|one| one.local_addr().ok())
            .map_or(0, |a| a.port());
        listeners.extend(sixth);
        let host = host_address();
        if let Some(host) = host {
            listeners.extend(TcpListener::bind((host, port)));
        }
        let datagrams = UdpSocket::bind((host.unwrap_or(Ipv4Addr::LOCALHOST), 0))?;
        let (terminal, terminal_name) = terminal()?;
        let victim = Command::new(program)
            .args([super::ARGUMENT, "help", "victim", &token])
            .env_clear()
            .env("LULA_ATTACK_SECRET", &token)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let shared_memory = act::call("shmget", &[0, 4096, CREATE_PRIVATE]).unwrap_or(u64::MAX);
        let abstract_name = format!("{own}-abstract");
        let sockets = vec![
            UnixListener::bind(root.join("agent"))?,
            UnixListener::bind_addr(&{
                use std::os::linux::net::SocketAddrExt;
                std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name)?
            })?,
        ];
        let mut scene = AttackScene::default()
            .with("secret", root.join("secrets/credential").display())
            .with("nekot", token.chars().rev().collect::<String>())
            .with("victim", victim.id())
            .with("tcp", port)
            .with("tcp6", port6)
            .with("udp", datagrams.local_addr()?.port())
            .with("host", host.unwrap_or(UNREACHABLE))
            .with("socket", root.join("agent").display())
            .with("abstract", abstract_name)
            .with("terminal", terminal_name.display())
            .with("device", device().display())
            .with("kernel", kernel_file().display())
            .with("shm", shared_memory)
            .with("filters", honesty::filters().unwrap_or(0))
            .with("layers", free_landlock_layers(program));
        for kind in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
            let link = std::fs::read_link(format!("/proc/self/ns/{kind}"))?;
            scene = scene.with(&format!("ns-{kind}"), link.display());
        }
        Ok(Self {
            root,
            shared_file,
            victim,
            shared_memory,
            scene,
            _listeners: listeners,
            _datagrams: datagrams,
            _sockets: sockets,
            _terminal: terminal,
            token,
            is_confined: is_confined(),
            is_offline: host.is_none(),
        })
    }

    /// Whether what stands around this process refuses a probe's act outside already, so that the same act
    /// proves nothing about the sandbox.
    pub(super) fn refuses(&self, probe: &AttackProbe, control: &AttackObservation) -> bool {
        let AttackObservation::Errno(errno) = *control else {
            return false;
        };
        let network = probe.family == AttackFamily::Network;
        match errno {
            libc::EPERM | libc::EACCES | libc::EROFS | libc::ENOSYS => self.is_confined,
            // Devices that a container has not, and users that its user namespace does not know.
            libc::ENOENT if probe.not_everywhere => true,
            libc::ENOENT | libc::ENXIO | libc::EINVAL => self.is_confined && probe.privileged,
            libc::ENETUNREACH => network && self.is_offline,
            _ => false,
        }
    }

    /// Whether what stands further out refused the attempt before the sandbox could.
    pub(super) fn refused_first(&self, seen: &AttackObservation) -> bool {
        let further_out = match seen {
            AttackObservation::Errno(errno) => *errno == libc::EROFS,
            AttackObservation::Ended(how) => how == KILLED_BY_FILTER,
            AttackObservation::Done(_) => false,
        };
        self.is_confined && further_out
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// What bodies inside are told.
    pub(super) fn inside(&self) -> AttackScene {
        let scene = self
            .scene
            .clone()
            .with("workspace", self.workspace().display());
        scene.with("target", self.target("inside").display())
    }

    /// What controls are told: the same world, with a workspace and a target of their own.
    pub(super) fn outside(&self) -> AttackScene {
        let scene = self
            .scene
            .clone()
            .with("workspace", self.root.join("control/workspace").display());
        scene.with("target", self.target("control").display())
    }

    fn target(&self, side: &str) -> PathBuf {
        self.root.join("targets").join(side)
    }

    /// Makes both targets new, and undoes what an earlier attempt did beside the workspace.
    pub(super) fn renew_targets(&self) -> std::io::Result<()> {
        let _ = std::fs::remove_file(self.root.join(BESIDE));
        for side in ["inside", "control"] {
            std::fs::write(self.target(side), UNTOUCHED)?;
        }
        Ok(())
    }

    /// Whether everything outside is as the attempt inside found it.
    pub(super) fn is_untouched(&self) -> bool {
        let target = std::fs::read_to_string(self.target("inside"));
        target.is_ok_and(|text| text == UNTOUCHED) && !self.root.join(BESIDE).exists()
    }
}

impl Drop for AttackStage {
    fn drop(&mut self) {
        const REMOVE: u64 = 0;
        let _ = act::call("shmctl", &[self.shared_memory, REMOVE, 0]);
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = std::fs::remove_file(&self.shared_file);
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// How many Landlock layers a process of this program may take: counting uses them up, so another one does
/// that.
fn free_landlock_layers(program: &Path) -> u64 {
    let counted = Command::new(program)
        .args([super::ARGUMENT, "help", "landlock-layers"])
        .output();
    let seen = counted
        .ok()
        .and_then(|output| super::parse(&String::from_utf8_lossy(&output.stdout)));
    match seen {
        Some(super::AttackObservation::Done(count)) => count.parse().unwrap_or(0),
        _ => 0,
    }
}

/// Whether this is not the machine itself, but what a container engine or another sandbox left of it.
fn is_confined() -> bool {
    let says = |field: &str, value: &str| act::status(field).is_ok_and(|said| said == value);
    let users = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let every_user = users.split_whitespace().eq(["0", "0", "4294967295"]);
    let root = rustix::fs::statvfs("/");
    let read_only = root.is_ok_and(|root| root.f_flag.contains(StatVfsMountFlags::RDONLY));
    !says("Seccomp", "0") || says("NoNewPrivs", "1") || !every_user || read_only
}

/// The host's address on the network it would use to reach another one. Nothing is sent.
fn host_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address kept for documentation.
    socket.connect((UNREACHABLE, 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        std::net::IpAddr::V4(address) if !address.is_loopback() => Some(address),
        _ => None,
    }
}

/// A terminal that belongs to no process in a sandbox.
fn terminal() -> std::io::Result<(std::os::fd::OwnedFd, PathBuf)> {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&control)?;
    unlockpt(&control)?;
    let name = ptsname(&control, Vec::new())?;
    let name = name.into_string().map_err(std::io::Error::other)?;
    Ok((control, name.into()))
}

/// A device of this machine that no command needs.
fn device() -> PathBuf {
    let candidates = [
        "/dev/kmsg",
        "/dev/mem",
        "/dev/fuse",
        "/dev/vda",
        "/dev/sda",
        "/dev/loop0",
        "/dev/rtc0",
    ];
    let found = candidates.into_iter().find(|name| Path::new(name).exists());
    found.unwrap_or("/dev/kmsg").into()
}

/// A file of `/proc` that tells about the kernel's insides.
fn kernel_file() -> PathBuf {
    let candidates = [
        "/proc/kallsyms",
        "/proc/keys",
        "/proc/timer_list",
        "/proc/kcore",
    ];
    let found = candidates
        .into_iter()
        .find(|name| std::fs::File::open(name).is_ok());
    found.unwrap_or("/proc/kcore").into()
}
