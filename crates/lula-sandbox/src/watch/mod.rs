//! Seeing what a sandbox says no to where the kernel does not report it: paths that are hidden, masked or
//! read-only, and connections that lead nowhere.
//!
//! A watched call waits while it is looked at and then goes ahead, whatever was found: this is for
//! knowing. What it names is read from the caller's memory, which may change meanwhile, so a hostile
//! command can make the record say something else than what it did; it gains nothing else by that.
//! Whether a path is there, and whether it can be written, is asked of the kernel, in the caller's
//! own tree.

mod signals;
mod subject;

use std::collections::BTreeSet;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use lula_protocol::denial::{DeniedAttempt, SandboxDenial};
use rustix::fs::{Mode, OFlags, ResolveFlags, StatVfsMountFlags};

use crate::landlock::{PathAccess, PathGrant};
use crate::mounts::is_below;
use crate::policy::Network;
use crate::seccomp::{SeccompCall, SignalTarget, SyscallAbi};
use subject::{CallerPath, HERE, WantedAccess};

/// The kernel takes no longer path.
const LONGEST_PATH: usize = 4096;
/// The kernel takes no longer address.
const LONGEST_ADDRESS: usize = 128;
/// What the kernel makes up itself, in which names mean something else for everybody who looks.
const NOT_FILES: [&str; 2] = ["/proc", "/dev"];

/// What is needed to tell whether a sandbox says no.
#[derive(Debug)]
pub(crate) struct DenialWatcher {
    pub(crate) abi: SyscallAbi,
    /// The sandbox's first process, whose calls are our own.
    pub(crate) first: u32,
    /// The directory it is about: what is missing there was removed, not hidden.
    pub(crate) workspace: String,
    pub(crate) masks: Vec<String>,
    pub(crate) network: Network,
    /// The ports on which something answers for its network.
    pub(crate) ports: BTreeSet<u16>,
    /// Where the tree is the host's own: the rules that say what of it may be used.
    pub(crate) shared: Option<Vec<PathGrant>>,
}

impl DenialWatcher {
    /// Whether a signal that a command is about to send stays in the sandbox.
    pub(crate) fn signal_target(&self, pid: u32, call: &SeccompCall) -> SignalTarget {
        signals::target(self.abi, self.first, pid, call)
    }

    /// What this call is refused, if anything.
    pub(crate) fn look(&self, pid: u32, call: &SeccompCall) -> Option<SandboxDenial> {
        if pid == self.first {
            return None;
        }
        let name = self.abi.name_of(call.number)?;
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        if name == "connect" {
            let length = usize::try_from(call.args[2]).unwrap_or(LONGEST_ADDRESS);
            let mut bytes = [0; LONGEST_ADDRESS];
            let bytes = &mut bytes[..length.min(LONGEST_ADDRESS)];
            memory.read_exact_at(bytes, call.args[1]).ok()?;
            return self.blocked_connection(bytes);
        }
        subject::paths(name, &call.args)
            .into_iter()
            .find_map(|named| self.look_at(pid, &memory, named))
    }

    /// A connection to anywhere but this very sandbox, which the kernel is going to refuse.
    fn blocked_connection(&self, address: &[u8]) -> Option<SandboxDenial> {
        if self.network == Network::Host {
            return None;
        }
        let (host, port) = destination(address)?;
        if self.ports.contains(&port) {
            return None;
        }
        Some(SandboxDenial {
            attempt: DeniedAttempt::Connect {
                host: host.to_string(),
                port,
            },
            rule: format!("network = \"{}\"", self.network),
            grant: None,
            count: 1,
        })
    }

    fn look_at(&self, pid: u32, memory: &File, named: CallerPath) -> Option<SandboxDenial> {
        let text = text_at(memory, named.address)?;
        // An empty path is about a descriptor that is open already.
        if text.is_empty() {
            return None;
        }
        let path = if text.starts_with('/') {
            text
        } else {
            let from = match named.from {
                HERE => format!("/proc/{pid}/cwd"),
                descriptor => format!("/proc/{pid}/fd/{descriptor}"),
            };
            let from = std::fs::read_link(from).ok()?;
            format!("{}/{text}", from.to_str()?)
        };
        let path = subject::plain(&path);
        if NOT_FILES.iter().any(|special| is_below(&path, special)) {
            return None;
        }
        if let Some(grants) = &self.shared {
            return refused_by(grants, &path, named.wish);
        }
        if let Some(mask) = self.masks.iter().find(|mask| is_below(&path, mask)) {
            let grant = format!("paths.mask without {mask:?}");
            return Some(denial(named.wish, &path, "paths.mask", grant));
        }
        self.kept_out(pid, &path, named.wish)
    }

    /// Asks the kernel about a path in the caller's own tree, and about the host's where it is not in
    /// there.
    fn kept_out(&self, pid: u32, path: &str, wish: WantedAccess) -> Option<SandboxDenial> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty()).ok()?;
        let parent = Path::new(path).parent()?.to_str()?;
        match inside(&root, path) {
            Ok(found) if wish == WantedAccess::Write && is_read_only(&found) => {
                Some(denial(wish, path, "read-only", write_grant(path)))
            }
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {
                if is_below(path, &self.workspace) {
                    return None;
                }
                // What is granted is where a link leads to.
                if let Ok(real) = Path::new(path).canonicalize() {
                    let real = real.to_str()?;
                    let grant = match wish {
                        WantedAccess::Write => write_grant(real),
                        WantedAccess::Read | WantedAccess::Execute => {
                            format!("paths.read = [{real:?}]")
                        }
                    };
                    return Some(denial(wish, path, "not in the sandbox", grant));
                }
                // Something new: it depends on the directory it would be in.
                let read_only = inside(&root, parent).is_ok_and(|found| is_read_only(&found));
                (wish == WantedAccess::Write && read_only)
                    .then(|| denial(wish, path, "read-only", write_grant(parent)))
            }
            Ok(_) | Err(_) => None,
        }
    }
}

/// A place in another process's tree, the way that process would get there.
fn inside(root: &OwnedFd, path: &str) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(
        root,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
    )
}

fn is_read_only(found: &OwnedFd) -> bool {
    rustix::fs::fstatvfs(found).is_ok_and(|on| on.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// What Landlock's rules refuse of the host's own tree. A path that is not there is refused nothing.
fn refused_by(grants: &[PathGrant], path: &str, wish: WantedAccess) -> Option<SandboxDenial> {
    let real = Path::new(path).canonicalize().ok();
    let there = real.is_some();
    let place = real.or_else(|| Path::new(path).parent()?.canonicalize().ok())?;
    let place = place.to_str()?;
    if !there && wish != WantedAccess::Write {
        return None;
    }
    let granted = grants.iter().any(|grant| {
        let enough = match wish {
            WantedAccess::Write => matches!(grant.access, PathAccess::Write | PathAccess::Use),
            WantedAccess::Read | WantedAccess::Execute => grant.access != PathAccess::List,
        };
        enough && is_below(place, &grant.path)
    });
    let grant = match wish {
        WantedAccess::Write => write_grant(place),
        WantedAccess::Read | WantedAccess::Execute => format!("paths.read = [{place:?}]"),
    };
    (!granted).then(|| denial(wish, path, "landlock", grant))
}

fn write_grant(path: &str) -> String {
    format!("paths.write = [{path:?}]")
}

fn denial(wish: WantedAccess, path: &str, rule: &str, grant: String) -> SandboxDenial {
    // It may be written to a terminal.
    let path: String = path
        .chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = (!c.is_control()).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect();
    SandboxDenial {
        attempt: match wish {
            WantedAccess::Read => DeniedAttempt::Read { path },
            WantedAccess::Write => DeniedAttempt::Write { path },
            WantedAccess::Execute => DeniedAttempt::Execute { program: path },
        },
        rule: rule.to_owned(),
        grant: Some(grant),
        count: 1,
    }
}

/// The text at an address, up to its end.
fn text_at(memory: &File, address: u64) -> Option<String> {
    let mut text = Vec::new();
    let mut piece = [0; 256];
    while text.len() < LONGEST_PATH {
        let at = address.checked_add(u64::try_from(text.len()).ok()?)?;
        // Never across the end of a page: the next one may not be there.
        let room = usize::try_from(4096 - at % 4096).ok()?.min(piece.len());
        memory.read_exact_at(&mut piece[..room], at).ok()?;
        let end = piece[..room].iter().position(|byte| *byte == 0);
        text.extend_from_slice(&piece[..end.unwrap_or(room)]);
        if end.is_some() {
            return String::from_utf8(text).ok();
        }
    }
    None
}

/// Where a connection is to go to, if that is anywhere but this very sandbox.
fn destination(address: &[u8]) -> Option<(IpAddr, u16)> {
    const INTERNET: u16 = 2;
    const INTERNET_6: u16 = 10;
    let family = u16::from_ne_bytes(address.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(address.get(2..4)?.try_into().ok()?);
    let host = match family {
        INTERNET => IpAddr::from(Ipv4Addr::from(
            <[u8; 4]>::try_from(address.get(4..8)?).ok()?,
        )),
        INTERNET_6 => {
            let address = <[u8; 16]>::try_from(address.get(8..24)?).ok()?;
            Ipv6Addr::from(address).to_canonical()
        }
        _ => return None,
    };
    (!host.is_loopback() && !host.is_unspecified()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(family: u16, port: u16, rest: &[u8]) -> Vec<u8> {
        let mut bytes = family.to_ne_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn a_connection_to_oneself_is_not_blocked() {
        let at = destination;
        assert_eq!(at(&address(2, 80, &[127, 0, 0, 1])), None);
        let mut mapped = [0; 20];
        mapped[14..16].fill(0xff);
        mapped[16..].copy_from_slice(&[127, 0, 0, 1]);
        assert_eq!(at(&address(10, 80, &mapped)), None);
        assert_eq!(
            at(&address(2, 443, &[192, 0, 2, 1])),
            Some((IpAddr::from([192, 0, 2, 1]), 443))
        );
        // A socket of the file system, and nonsense.
        assert_eq!(at(&address(1, 0, b"/run/x")), None);
        assert_eq!(at(&[2]), None);
        assert_eq!(at(&address(2, 443, &[192])), None);
    }

    #[test]
    fn a_path_cannot_draw_on_a_terminal() {
        let denial = denial(WantedAccess::Read, "/a\u{1b}[2Jb", "r", String::new());
        assert_eq!(
            denial.attempt,
            DeniedAttempt::Read {
                path: "/a\\u{1b}[2Jb".to_owned()
            }
        );
    }
}
