//! Which system calls a sandboxed command may make, as a seccomp program.
//!
//! [`Rules::decide`] is the declarative policy: a pure function from a call to a [`Verdict`].
//! [`Program::compile`] emits a classic BPF program that gives the same verdict for every call, as
//! a balanced tree over ranges of numbers, so that no call costs more than a few instructions.
//! [`Program::run`] interprets a program in user space; tests hold the two against each other for
//! all numbers and both ABIs.
//!
//! A number nobody knows answers `ENOSYS`, so that libraries fall back as on an older kernel. No
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

pub use bpf::{Instruction, Returned, RunError};
pub use denials::refused;
pub use emit::Program;
pub use listener::{Heard, Listener};
pub use rules::{Abi, Call, Condition, Refusals, Rule, Rules, UnixSockets, Verdict, Watched};

#[cfg(test)]
mod live;
#[cfg(test)]
mod tests;
