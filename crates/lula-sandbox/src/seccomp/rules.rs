//! The declarative policy.

/// An instruction set with its own numbering of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Abi {
    /// 64-bit x86. The x32 numbering is refused.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Abi {
    /// The ABI this program was built for.
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }
}

/// What differs between sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether the command may make user namespaces and mount inside them.
    pub nested_userns: bool,
    /// Whether it may open IPv4 and IPv6 sockets. Harmless in a network namespace of its own; off
    /// where the network is the host's.
    pub internet_sockets: bool,
    /// Which Unix sockets it may make.
    pub unix_sockets: UnixSockets,
    /// How a refusal is answered.
    pub refusals: Refusals,
}

impl Rules {
    /// For a sandbox with namespaces of its own.
    pub const NAMESPACE: Self = Self {
        nested_userns: false,
        internet_sockets: true,
        unix_sockets: UnixSockets::All,
        refusals: Refusals::Errno,
    };

    /// For a sandbox that shares the host's network and file tree.
    pub const SHARED: Self = Self {
        nested_userns: false,
        internet_sockets: false,
        unix_sockets: UnixSockets::ConnectedPairs,
        refusals: Refusals::Errno,
    };
}

/// Which Unix sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixSockets {
    /// Any: the sockets it could reach are its own.
    All,
    /// Only stream and packet pairs, which can never be connected to anything else. A datagram
    /// pair can: each message may name another receiver.
    ConnectedPairs,
}

/// How a refused call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusals {
    /// By the kernel, at once, unseen.
    Errno,
    /// By whoever holds the listener, who records the call and answers with the error the policy
    /// names. Allowed calls cost the same as without.
    Notify,
}

/// One system call as seccomp sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Call {
    /// The `AUDIT_ARCH` value.
    pub arch: u32,
    /// The number.
    pub number: u32,
    /// The six arguments.
    pub args: [u64; 6],
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The call goes ahead.
    Allow,
    /// The call fails with this error and does nothing.
    Errno(u16),
}
