//! What a probe is.

use lula_protocol::Tier;
use serde::{Deserialize, Serialize};

use super::scene::Scene;

/// A kind of attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Typing into terminals that belong to somebody else.
    Terminal,
    /// Reading what was not granted.
    Reads,
    /// Writing where nothing was granted.
    Writes,
    /// Becoming more than one is, or reaching other processes.
    Privilege,
    /// Parts of the kernel a build does not need.
    Syscalls,
    /// Getting packets out or in.
    Network,
    /// Finding what the caller must not leak.
    Secrets,
    /// Taking more of the machine than was granted.
    Resources,
    /// The sandbox's own word about itself.
    Honesty,
}

/// What an attempt led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// It worked, and this came of it.
    Done(String),
    /// The kernel refused.
    Errno(i32),
    /// The attempt itself was ended from outside.
    Ended(String),
}

impl From<std::io::Error> for Seen {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self::Errno(errno),
            None => Self::Ended(error.to_string()),
        }
    }
}

impl From<rustix::io::Errno> for Seen {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Errno(errno.raw_os_error())
    }
}

/// How most bodies are written: success with a text, or the error.
pub(super) type Try = Result<String, Seen>;

/// What must be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// It works.
    Works,
    /// It works, in a place that only the sandbox sees.
    WorksInPrivate,
    /// It works and yields exactly this.
    Yields(&'static str),
    /// The kernel refuses with one of these errors.
    Fails(&'static [i32]),
    /// The attempt is killed.
    Killed,
}

impl Expect {
    pub(super) fn met_by(self, seen: &Seen) -> bool {
        match (self, seen) {
            (Self::Works | Self::WorksInPrivate, Seen::Done(_)) => true,
            (Self::Yields(expected), Seen::Done(text)) => text == expected,
            (Self::Fails(expected), Seen::Errno(errno)) => expected.contains(errno),
            (Self::Killed, Seen::Ended(how)) => how == KILLED,
            _ => false,
        }
    }
}

/// How a body that was killed is reported.
pub(super) const KILLED: &str = "killed";

impl std::fmt::Display for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Works => f.write_str("works"),
            Self::WorksInPrivate => f.write_str("works without a trace outside"),
            Self::Yields(text) => write!(f, "yields {text:?}"),
            Self::Killed => f.write_str(KILLED),
            Self::Fails(errors) => {
                for (index, errno) in errors.iter().enumerate() {
                    let or = if index == 0 { "" } else { " or " };
                    write!(f, "{or}{}", errno_name(*errno))?;
                }
                Ok(())
            }
        }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done(text) if text.is_empty() => f.write_str("works"),
            Self::Done(text) => write!(f, "yields {text:?}"),
            Self::Errno(errno) => f.write_str(&errno_name(*errno)),
            Self::Ended(how) => f.write_str(how),
        }
    }
}

fn errno_name(errno: i32) -> String {
    let name = match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::ESRCH => "ESRCH",
        libc::EAGAIN => "EAGAIN",
        libc::EACCES => "EACCES",
        libc::EBUSY => "EBUSY",
        libc::EXDEV => "EXDEV",
        libc::EINVAL => "EINVAL",
        libc::EMFILE => "EMFILE",
        libc::ENOTTY => "ENOTTY",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::ENOSYS => "ENOSYS",
        libc::EFAULT => "EFAULT",
        libc::ENXIO => "ENXIO",
        libc::EAFNOSUPPORT => "EAFNOSUPPORT",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::EADDRNOTAVAIL => "EADDRNOTAVAIL",
        _ => return std::io::Error::from_raw_os_error(errno).to_string(),
    };
    name.to_owned()
}

/// One attack.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pub(super) name: &'static str,
    pub(super) family: Family,
    /// What is attempted, for people.
    pub(super) attempts: &'static str,
    /// The attempt, run inside and, as the positive control, outside.
    pub(super) body: fn(&Scene) -> Try,
    /// Another act for the control, where the same one would harm the machine or needs company.
    pub(super) control: Option<fn(&Scene) -> Try>,
    /// What the control must show: that the act works here.
    pub(super) outside: Expect,
    /// What must be seen in the `namespace` tier.
    pub(super) namespace: Option<Expect>,
    /// What must be seen in the `landlock` tier.
    pub(super) landlock: Option<Expect>,
    /// Not everybody may do this outside either; then the refusal there is the control.
    pub(super) privileged: bool,
    /// Runs in a sandbox of its own, because it does not survive.
    pub(super) destructive: bool,
}

impl Probe {
    /// A probe that works outside and is refused with `EPERM` inside.
    pub(super) const fn new(
        family: Family,
        name: &'static str,
        attempts: &'static str,
        body: fn(&Scene) -> Try,
    ) -> Self {
        const REFUSED: Expect = Expect::Fails(&[libc::EPERM]);
        Self {
            name,
            family,
            attempts,
            body,
            control: None,
            outside: Expect::Works,
            namespace: Some(REFUSED),
            landlock: Some(REFUSED),
            privileged: false,
            destructive: false,
        }
    }

    /// What must be seen inside, in either tier.
    pub(super) const fn inside(mut self, expect: Expect) -> Self {
        self.namespace = Some(expect);
        self.landlock = Some(expect);
        self
    }

    /// What must be seen inside, by tier. `None`: not a question there.
    pub(super) const fn by_tier(
        mut self,
        namespace: Option<Expect>,
        landlock: Option<Expect>,
    ) -> Self {
        self.namespace = namespace;
        self.landlock = landlock;
        self
    }

    /// What the control must show.
    pub(super) const fn outside(mut self, expect: Expect) -> Self {
        self.outside = expect;
        self
    }

    pub(super) const fn controlled_by(mut self, control: fn(&Scene) -> Try) -> Self {
        self.control = Some(control);
        self
    }

    pub(super) const fn privileged(mut self) -> Self {
        self.privileged = true;
        self
    }

    pub(super) const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    pub(super) fn expected(&self, tier: Tier) -> Option<Expect> {
        match tier {
            Tier::Namespace => self.namespace,
            Tier::Landlock => self.landlock,
            _ => None,
        }
    }
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The attack failed as it must.
    Held,
    /// The attack led to something else.
    Broken,
    /// The probe proves nothing: it did not run, or its control failed.
    Error,
}

/// One probe's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// Name of the probe.
    pub name: String,
    /// Its kind.
    pub family: Family,
    /// How it ended.
    pub outcome: Outcome,
    /// What must be seen.
    pub expected: String,
    /// What was seen.
    pub observed: String,
}

/// All probes of one tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The tier attacked.
    pub tier: Tier,
    /// Every probe that applies to it.
    pub probes: Vec<Verdict>,
}

impl Report {
    /// Whether every probe held.
    pub fn held(&self) -> bool {
        self.probes
            .iter()
            .all(|probe| probe.outcome == Outcome::Held)
    }
}
