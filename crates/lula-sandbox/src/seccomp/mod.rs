//! Which system calls a sandboxed command may make, as a seccomp program.
//!
//! [`SeccompRules::decide`] is the declarative policy: a pure function from a call to a [`SeccompVerdict`].
//! [`SeccompProgram::compile`] emits a classic BPF program that gives the same verdict for every call, as
//! a balanced tree over ranges of numbers, so that no call costs more than a few instructions.
//! [`SeccompProgram::run`] interprets a program in user space; tests hold the two against each other for
//! all numbers and both ABIs.
//!
//! An unknown number answers `ENOSYS`, so that libraries fall back as on an older kernel. No
//! call is ever answered by killing: a program that asks for too much is told no.

mod bpf;
mod calls;
mod denials;
mod emit;
mod families;
mod listener;
mod rules;

#[cfg(test)]
pub(crate) use families::PATHS;

pub use bpf::{BpfInstruction, BpfProgramError, BpfReturn};
pub use denials::refused;
pub use emit::SeccompProgram;
pub use listener::{SeccompListener, SeccompNotification, SignalTarget};
pub use rules::{
    FilterCondition, FilterRule, RefusedCallReply, SeccompCall, SeccompRules, SeccompVerdict,
    SignalRule, SyscallAbi, TruncationRule, UnixSocketRule, WatchedCalls,
};

#[cfg(test)]
mod headers;
#[cfg(test)]
mod live;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod tests;
