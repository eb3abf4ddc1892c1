//! The declarative policy: what each system call may do.

use super::families::{KERNEL_IPC, MISSING, NAMESPACES, PATHS, REFUSED};

/// An instruction set with its own numbering of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyscallAbi {
    /// 64-bit x86. Its second numbering (x32) is refused.
    X86_64,
    /// The instruction set of 64-bit ARM.
    Aarch64,
}

impl SyscallAbi {
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// The ABI this program was built for, where it is one of the known.
    pub const fn native() -> Option<Self> {
        if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
            Some(Self::X86_64)
        } else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// The `AUDIT_ARCH` value the kernel reports.
    pub const fn audit_arch(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }
}

/// What differs between sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeccompRules {
    /// Whether the command may make namespaces of its own and mount inside them.
    pub nested_userns: bool,
    /// Whether it may open IPv4, IPv6 and routing sockets. Harmless in a network namespace of its
    /// own; off where the network is the host's.
    pub internet_sockets: bool,
    /// Which Unix sockets it may make.
    pub unix_sockets: UnixSocketRule,
    /// Whether every process, message queue, semaphore and shared memory it can name by number is
    /// its own. Off where the host's could be named: then no such IPC is allowed, and limits and
    /// priorities can be changed for the caller only.
    pub private_ids: bool,
    /// Which processes it may send signals to.
    pub signals: SignalRule,
    /// How it may cut files short.
    pub truncation: TruncationRule,
    /// How a refusal is answered.
    pub refusals: RefusedCallReply,
    /// Which calls are looked at before they go ahead, where there is a listener.
    pub watched: WatchedCalls,
}

impl SeccompRules {
    /// For a sandbox with namespaces of its own.
    pub const NAMESPACE: Self = Self {
        nested_userns: false,
        internet_sockets: true,
        unix_sockets: UnixSocketRule::All,
        private_ids: true,
        signals: SignalRule::Any,
        truncation: TruncationRule::Any,
        refusals: RefusedCallReply::Errno,
        watched: WatchedCalls::Nothing,
    };

    /// For a sandbox that shares the host's network, processes and file tree.
    pub const SHARED: Self = Self {
        nested_userns: false,
        internet_sockets: false,
        unix_sockets: UnixSocketRule::ConnectedPairs,
        private_ids: false,
        signals: SignalRule::Any,
        truncation: TruncationRule::Any,
        refusals: RefusedCallReply::Errno,
        watched: WatchedCalls::Nothing,
    };
}

/// Which Unix sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixSocketRule {
    /// Any: the sockets it could reach are its own.
    All,
    /// Only stream and packet pairs, which can never be connected to anything else. A datagram
    /// pair can: each message may name another receiver.
    ConnectedPairs,
}

/// How a command may cut files short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruncationRule {
    Any,
    /// Only those that it has opened for writing: where Landlock guards the files, and takes cutting one by its
    /// path, or while it is opened for reading, for no writing at all.
    Written,
}

/// Which processes a command may send signals to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRule {
    /// All that the kernel lets it: every one that it can name is its own, or Landlock tells them apart.
    Any,
    /// Those of its own sandbox, as the holder of the listener finds them. Signals that no filter can follow,
    /// by descriptor or through a file's owner, are not to be had.
    Inside {
        /// What the first process of the sandbox puts behind the arguments of `kill`. No command knows it:
        /// that process has to kill even when no holder is left to ask.
        key: [u32; 3],
    },
}

/// How a refused call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedCallReply {
    /// By the kernel, at once, unseen.
    Errno,
    /// By the holder of the listener, which records the call and answers with the error the policy
    /// names. Allowed calls, and calls that libraries merely try (`ENOSYS`), cost the same as
    /// without.
    Notify,
}

/// Which allowed calls the listener is shown before they go ahead. What becomes of them is the same
/// either way: this is for knowing, not for deciding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchedCalls {
    /// No call is shown.
    #[default]
    Nothing,
    /// Calls that open a connection.
    Connections,
    /// Those that connect and those that name a path.
    ConnectionsAndPaths,
}

impl WatchedCalls {
    fn includes(self, name: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Connections => name == "connect",
            Self::ConnectionsAndPaths => name == "connect" || PATHS.contains(&name),
        }
    }
}

/// One system call as seccomp sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeccompCall {
    /// The instruction set, as an `AUDIT_ARCH` value.
    pub arch: u32,
    /// Number of the call in that instruction set.
    pub number: u32,
    pub args: [u64; 6],
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeccompVerdict {
    /// The call goes ahead.
    Allow,
    /// The call goes ahead once the listener has seen it.
    Watch,
    /// The call goes ahead if the listener finds that what its numbers name is the sandbox's own.
    Judge,
    /// The call fails with this error and does nothing.
    Errno(u16),
}

impl SeccompVerdict {
    /// The caller is not permitted.
    pub const EPERM: Self = Self::Errno(1);
    /// The path is not open to the caller.
    pub const EACCES: Self = Self::Errno(13);
    /// There is no such call here.
    pub const ENOSYS: Self = Self::Errno(38);
    /// There is no such kind of socket here.
    pub const EAFNOSUPPORT: Self = Self::Errno(97);

    /// Whether a listener is told: `ENOSYS` answers calls that libraries merely try.
    pub const fn is_reported(self) -> bool {
        !matches!(self, Self::Allow | Self::ENOSYS)
    }
}

/// What holds for one call number: the first case whose conditions are all met, else `otherwise`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterRule {
    /// Special cases, in order.
    pub cases: Vec<(Vec<FilterCondition>, SeccompVerdict)>,
    /// The verdict when no case fits.
    pub otherwise: SeccompVerdict,
}

/// A condition on the low 32 bits of an argument. The kernel itself takes no more of the arguments
/// compared here, so that a value with high bits set cannot pass as another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterCondition {
    /// The masked argument equals the value.
    Is {
        /// Index of the argument.
        arg: u8,
        /// Bits of the argument that are compared.
        mask: u32,
        /// What they must be.
        value: u32,
    },
    /// The argument has at least one of the bits.
    Has {
        /// Index of the argument.
        arg: u8,
        bits: u32,
    },
}

impl FilterCondition {
    /// Whether the arguments meet it.
    pub fn holds(self, args: &[u64; 6]) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "only the low word counts")]
        let low = |arg: u8| args.get(usize::from(arg)).map_or(0, |value| *value as u32);
        match self {
            Self::Is { arg, mask, value } => low(arg) & mask == value,
            Self::Has { arg, bits } => low(arg) & bits != 0,
        }
    }
}

const fn is(arg: u8, value: u32) -> FilterCondition {
    FilterCondition::Is {
        arg,
        mask: u32::MAX,
        value,
    }
}

const fn has(arg: u8, bits: u32) -> FilterCondition {
    FilterCondition::Has { arg, bits }
}

/// Flags of `clone` that make a namespace. `CLONE_NEWTIME` is not among them: there its bit is part
/// of the exit signal.
const CLONE_NAMESPACES: u32 = 0x7e02_0000;
/// Flags of `unshare` that make a namespace.
const UNSHARE_NAMESPACES: u32 = CLONE_NAMESPACES | 0x80;
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const TIOCCONS: u32 = 0x541d;
const TIOCSETD: u32 = 0x5423;
const TERMINALS: [u32; 4] = [TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD];
const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const NETLINK_ROUTE: u32 = 0;
const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const SOCK_SEQPACKET: u32 = 5;
/// Orders of `fcntl` and `ioctl` by which the kernel sends a signal of the caller's choice to a process of
/// the caller's choice, later.
const F_SETOWN: u32 = 8;
const F_SETOWN_EX: u32 = 15;
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
/// `O_ACCMODE` and `O_TRUNC` together.
const CUTS: u32 = 0o1003;
const CUTS_WHILE_READING: u32 = 0o1000;
const SET_USER_ID: u32 = 0o4000;
/// `O_CREAT` and `__O_TMPFILE`: without one of them the mode argument means nothing.
const CREATES: u32 = 0o20_000_100;
const FILE_TYPE: u32 = 0o170_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const BLOCK_DEVICE: u32 = 0o060_000;

const fn socket_type(value: u32) -> FilterCondition {
    FilterCondition::Is {
        arg: 1,
        mask: 0xf,
        value,
    }
}

impl SeccompRules {
    /// The answer to a call under these rules.
    pub fn decide(&self, abi: SyscallAbi, call: &SeccompCall) -> SeccompVerdict {
        if call.arch != abi.audit_arch() {
            return SeccompVerdict::ENOSYS;
        }
        abi.name_of(call.number)
            .map_or(SeccompVerdict::ENOSYS, |name| {
                self.rule(name).apply(&call.args)
            })
    }

    /// What holds for the call of that name.
    pub fn rule(&self, name: &str) -> FilterRule {
        let rule = self.unwatched_rule(name);
        if self.refusals == RefusedCallReply::Notify && self.watched.includes(name) {
            rule.watched()
        } else {
            rule
        }
    }

    fn unwatched_rule(self, name: &str) -> FilterRule {
        if MISSING.contains(&name) {
            return FilterRule::always(SeccompVerdict::ENOSYS);
        }
        if REFUSED.contains(&name)
            || (!self.nested_userns && NAMESPACES.contains(&name))
            || (!self.private_ids && KERNEL_IPC.contains(&name))
        {
            return FilterRule::always(SeccompVerdict::EPERM);
        }
        match name {
            // Its flags are behind a pointer; libraries fall back to `clone`.
            "clone3" if !self.nested_userns => FilterRule::always(SeccompVerdict::ENOSYS),
            "clone" if !self.nested_userns => FilterRule::refuse([vec![has(0, CLONE_NAMESPACES)]]),
            "unshare" if !self.nested_userns => {
                FilterRule::refuse([vec![has(0, UNSHARE_NAMESPACES)]])
            }

            "personality" => {
                FilterRule::only([vec![is(0, 0)], vec![is(0, 8)], vec![is(0, u32::MAX)]])
            }
            "ioctl" if self.signals == SignalRule::Any => {
                FilterRule::refuse(TERMINALS.map(|cmd| vec![is(1, cmd)]))
            }
            "ioctl" => {
                let mut rule = FilterRule::refuse(TERMINALS.map(|cmd| vec![is(1, cmd)]));
                rule.refuse_also([FIOSETOWN, SIOCSPGRP].map(|cmd| vec![is(1, cmd)]));
                rule
            }
            "kill" | "tkill" | "tgkill" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo"
            | "pidfd_send_signal" | "fcntl" => self.signal(name),

            "socket" => self.socket(),
            "socketpair" => self.socket_pair(),

            "prlimit64" if !self.private_ids => FilterRule::only([vec![is(0, 0)]]),
            "setpriority" | "ioprio_set" if !self.private_ids => FilterRule::only([vec![is(1, 0)]]),

            // No program that becomes its owner, and no device, is left behind in a workspace.
            "chmod" | "fchmod" | "creat" => FilterRule::refuse([vec![has(1, SET_USER_ID)]]),
            "fchmodat" | "fchmodat2" => FilterRule::refuse([vec![has(2, SET_USER_ID)]]),
            "open" => self.open(1),
            "openat" => self.open(2),
            "truncate" if self.truncation == TruncationRule::Written => {
                FilterRule::always(SeccompVerdict::EACCES)
            }
            "mknod" => FilterRule::make_node(1),
            "mknodat" => FilterRule::make_node(2),

            _ => FilterRule::always(SeccompVerdict::Allow),
        }
    }

    /// The call that opens, with its flags in that argument and the mode in the next.
    fn open(self, flags: u8) -> FilterRule {
        let mut rule = FilterRule::refuse([vec![has(flags + 1, SET_USER_ID), has(flags, CREATES)]]);
        if self.truncation == TruncationRule::Written {
            let while_reading = FilterCondition::Is {
                arg: flags,
                mask: CUTS,
                value: CUTS_WHILE_READING,
            };
            let refusal = (vec![while_reading], SeccompVerdict::EACCES);
            rule.cases.push(refusal);
        }
        rule
    }

    fn signal(self, name: &str) -> FilterRule {
        let SignalRule::Inside { key } = self.signals else {
            return FilterRule::always(SeccompVerdict::Allow);
        };
        match name {
            // The kernel looks at two arguments.
            "kill" => FilterRule {
                cases: vec![(
                    vec![is(3, key[0]), is(4, key[1]), is(5, key[2])],
                    SeccompVerdict::Allow,
                )],
                otherwise: SeccompVerdict::Judge,
            },
            "fcntl" => FilterRule::refuse([F_SETOWN, F_SETOWN_EX].map(|order| vec![is(1, order)])),
            // Who it is for, a filter cannot see; callers fall back to `kill`.
            "pidfd_send_signal" => FilterRule::always(SeccompVerdict::ENOSYS),
            _ => FilterRule::always(SeccompVerdict::Judge),
        }
    }

    fn socket(self) -> FilterRule {
        let all_unix = self.unix_sockets == UnixSocketRule::All;
        let unix = if all_unix {
            SeccompVerdict::Allow
        } else {
            SeccompVerdict::EPERM
        };
        let mut cases = vec![(vec![is(0, AF_UNIX)], unix)];
        for family in [AF_INET, AF_INET6] {
            for kind in [SOCK_STREAM, SOCK_DGRAM] {
                if self.internet_sockets {
                    cases.push((
                        vec![is(0, family), socket_type(kind)],
                        SeccompVerdict::Allow,
                    ));
                }
            }
            cases.push((vec![is(0, family)], SeccompVerdict::EPERM));
        }
        if self.internet_sockets {
            // Needed to list interfaces; the namespace it shows is the sandbox's own.
            cases.push((
                vec![is(0, AF_NETLINK), is(2, NETLINK_ROUTE)],
                SeccompVerdict::Allow,
            ));
        }
        cases.push((vec![is(0, AF_NETLINK)], SeccompVerdict::EPERM));
        FilterRule {
            cases,
            otherwise: SeccompVerdict::EAFNOSUPPORT,
        }
    }

    fn socket_pair(self) -> FilterRule {
        let cases = match self.unix_sockets {
            UnixSocketRule::All => vec![(vec![is(0, AF_UNIX)], SeccompVerdict::Allow)],
            UnixSocketRule::ConnectedPairs => vec![
                (
                    vec![is(0, AF_UNIX), socket_type(SOCK_STREAM)],
                    SeccompVerdict::Allow,
                ),
                (
                    vec![is(0, AF_UNIX), socket_type(SOCK_SEQPACKET)],
                    SeccompVerdict::Allow,
                ),
                (vec![is(0, AF_UNIX)], SeccompVerdict::EPERM),
            ],
        };
        FilterRule {
            cases,
            otherwise: SeccompVerdict::EAFNOSUPPORT,
        }
    }
}

impl FilterRule {
    const fn always(verdict: SeccompVerdict) -> Self {
        Self {
            cases: Vec::new(),
            otherwise: verdict,
        }
    }

    fn refuse<const N: usize>(cases: [Vec<FilterCondition>; N]) -> Self {
        let cases = cases
            .map(|conditions| (conditions, SeccompVerdict::EPERM))
            .into();
        Self {
            cases,
            otherwise: SeccompVerdict::Allow,
        }
    }

    fn refuse_also<const N: usize>(&mut self, cases: [Vec<FilterCondition>; N]) {
        let cases = cases.map(|conditions| (conditions, SeccompVerdict::EPERM));
        self.cases.extend(cases);
    }

    fn only<const N: usize>(cases: [Vec<FilterCondition>; N]) -> Self {
        let cases = cases
            .map(|conditions| (conditions, SeccompVerdict::Allow))
            .into();
        Self {
            cases,
            otherwise: SeccompVerdict::EPERM,
        }
    }

    /// The same with everything that is allowed seen before.
    fn watched(mut self) -> Self {
        let verdicts = self.cases.iter_mut().map(|(_, verdict)| verdict);
        for verdict in verdicts.chain([&mut self.otherwise]) {
            if *verdict == SeccompVerdict::Allow {
                *verdict = SeccompVerdict::Watch;
            }
        }
        self
    }

    fn make_node(mode: u8) -> Self {
        let device = |value| {
            vec![FilterCondition::Is {
                arg: mode,
                mask: FILE_TYPE,
                value,
            }]
        };
        Self::refuse([
            device(CHARACTER_DEVICE),
            device(BLOCK_DEVICE),
            vec![has(mode, SET_USER_ID)],
        ])
    }

    fn apply(&self, args: &[u64; 6]) -> SeccompVerdict {
        let fits = |(conditions, _): &&(Vec<FilterCondition>, SeccompVerdict)| {
            conditions.iter().all(|condition| condition.holds(args))
        };
        self.cases
            .iter()
            .find(fits)
            .map_or(self.otherwise, |(_, verdict)| *verdict)
    }
}
