//! What a probe is.

use lula_protocol::IsolationTier;
use serde::{Deserialize, Serialize};

use super::scene::AttackScene;

/// A kind of attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttackFamily {
    /// Typing into terminals that belong to another process.
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
pub(super) enum AttackObservation {
    /// It worked, and this came of it.
    Done(String),
    /// The kernel refused with this error number.
    Errno(i32),
    /// The attempt itself was ended from outside.
    Ended(String),
}

impl From<std::io::Error> for AttackObservation {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self::Errno(errno),
            None => Self::Ended(error.to_string()),
        }
    }
}

impl From<rustix::io::Errno> for AttackObservation {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Errno(errno.raw_os_error())
    }
}

/// How most bodies are written: success with a text, or the error.
pub(super) type AttackBodyResult = Result<String, AttackObservation>;

/// What must be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttackExpectation {
    Works,
    /// The attempt works, in a place that only the sandbox sees.
    WorksInPrivate,
    /// The attempt works and yields exactly this.
    Yields(&'static str),
    /// The kernel refuses with one of these errors.
    Fails(&'static [i32]),
    /// The attempt is killed.
    Killed,
}

impl AttackExpectation {
    pub(super) fn met_by(self, seen: &AttackObservation) -> bool {
        match (self, seen) {
            (Self::Works | Self::WorksInPrivate, AttackObservation::Done(_)) => true,
            (Self::Yields(expected), AttackObservation::Done(text)) => text == expected,
            (Self::Fails(expected), AttackObservation::Errno(errno)) => expected.contains(errno),
            (Self::Killed, AttackObservation::Ended(how)) => how == KILLED,
            _ => false,
        }
    }
}

/// How a body that was killed is reported.
pub(super) const KILLED: &str = "killed";

/// How one is reported that a seccomp filter killed. No filter of ours does that.
pub(super) const KILLED_BY_FILTER: &str = "killed by a seccomp filter further out";

impl std::fmt::Display for AttackExpectation {
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

impl std::fmt::Display for AttackObservation {
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

/// An attack on the sandbox, with what must come of it.
#[derive(Clone, Copy)]
pub(super) struct AttackProbe {
    pub(super) name: &'static str,
    pub(super) family: AttackFamily,
    /// What is attempted, for people.
    pub(super) attempts: &'static str,
    /// The attempt, run inside and, as the positive control, outside.
    pub(super) body: fn(&AttackScene) -> AttackBodyResult,
    /// Another act for the control, where the same one would harm the machine or needs company.
    pub(super) control: Option<fn(&AttackScene) -> AttackBodyResult>,
    /// What the control must show: that the act works here.
    pub(super) outside: AttackExpectation,
    /// What must be seen in the `namespace` tier.
    pub(super) namespace: Option<AttackExpectation>,
    /// What must be seen in the `landlock` tier.
    pub(super) landlock: Option<AttackExpectation>,
    /// The same where `/proc` is the one around the sandbox.
    pub(super) shared_proc: Option<AttackExpectation>,
    /// The limit, by its name in receipts, without which the attempt is not made.
    pub(super) limit: Option<&'static str>,
    /// Not every user may do this outside either; then the refusal there is the control.
    pub(super) privileged: bool,
    /// Not every machine has what is reached for; then there is nothing to reach.
    pub(super) not_everywhere: bool,
    /// Runs in a sandbox of its own, because it does not survive.
    pub(super) destructive: bool,
}

impl AttackProbe {
    /// A probe that works outside and is refused with `EPERM` inside.
    pub(super) const fn new(
        family: AttackFamily,
        name: &'static str,
        attempts: &'static str,
        body: fn(&AttackScene) -> AttackBodyResult,
    ) -> Self {
        const REFUSED: AttackExpectation = AttackExpectation::Fails(&[libc::EPERM]);
        Self {
            name,
            family,
            attempts,
            body,
            control: None,
            outside: AttackExpectation::Works,
            namespace: Some(REFUSED),
            landlock: Some(REFUSED),
            shared_proc: Some(REFUSED),
            limit: None,
            privileged: false,
            not_everywhere: false,
            destructive: false,
        }
    }

    /// What must be seen inside, in either tier.
    pub(super) const fn inside(mut self, expect: AttackExpectation) -> Self {
        self.namespace = Some(expect);
        self.shared_proc = self.namespace;
        self.landlock = Some(expect);
        self
    }

    /// What must be seen inside, by tier. `None`: not a question there.
    pub(super) const fn by_tier(
        mut self,
        namespace: Option<AttackExpectation>,
        landlock: Option<AttackExpectation>,
    ) -> Self {
        self.namespace = namespace;
        self.shared_proc = namespace;
        self.landlock = landlock;
        self
    }

    /// What must be seen in the `namespace` tier where the `/proc` around the sandbox is shown. After what
    /// must be seen inside.
    pub(super) const fn where_proc_is_shared(mut self, expect: Option<AttackExpectation>) -> Self {
        self.shared_proc = expect;
        self
    }

    /// The attempt is only made where this limit is in force.
    pub(super) const fn limited_by(mut self, limit: &'static str) -> Self {
        self.limit = Some(limit);
        self
    }

    /// What the control must show.
    pub(super) const fn outside(mut self, expect: AttackExpectation) -> Self {
        self.outside = expect;
        self
    }

    pub(super) const fn controlled_by(
        mut self,
        control: fn(&AttackScene) -> AttackBodyResult,
    ) -> Self {
        self.control = Some(control);
        self
    }

    pub(super) const fn privileged(mut self) -> Self {
        self.privileged = true;
        self
    }

    pub(super) const fn not_everywhere(mut self) -> Self {
        self.not_everywhere = true;
        self
    }

    pub(super) const fn destructive(mut self) -> Self {
        self.destructive = true;
        self
    }

    pub(super) fn expected(
        &self,
        tier: IsolationTier,
        own_proc: bool,
    ) -> Option<AttackExpectation> {
        match tier {
            IsolationTier::Namespace if !own_proc => self.shared_proc,
            IsolationTier::Namespace => self.namespace,
            IsolationTier::Landlock => self.landlock,
            _ => None,
        }
    }
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttackOutcome {
    /// The attack failed as it must.
    Held,
    /// The attack led to something else.
    Broken,
    /// The receipt says that the limit is not in force here: there was nothing to attack.
    Unlimited,
    /// The same act came to the same end outside: nothing is known of the sandbox.
    Untried,
    /// The probe proves nothing: it did not run, or its control failed.
    Error,
}

/// What one attack came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackResult {
    /// Name of the probe.
    pub name: String,
    pub family: AttackFamily,
    pub outcome: AttackOutcome,
    /// What must be seen.
    pub expected: String,
    pub observed: String,
}

/// All probes of one tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttackReport {
    pub tier: IsolationTier,
    /// Every probe that applies to it.
    pub probes: Vec<AttackResult>,
}

impl AttackReport {
    /// Whether some attack was made, and every one that was made was held off.
    pub fn held(&self) -> bool {
        self.count(AttackOutcome::Held) > 0
            && self.count(AttackOutcome::Broken) + self.count(AttackOutcome::Error) == 0
    }

    /// How many of them came to that.
    pub fn count(&self, outcome: AttackOutcome) -> usize {
        let probes = self.probes.iter();
        probes.filter(|probe| probe.outcome == outcome).count()
    }
}
