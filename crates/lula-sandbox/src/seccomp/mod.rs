//! Which system calls a sandboxed command may make, as a seccomp program.
//!
//! `decide` is the declarative policy: a pure function from a call to a [`Verdict`]. `compile`
//! emits a classic BPF program that gives the same verdict for every call, as a balanced tree over
//! ranges of numbers so that the common call costs few instructions. `interpret` runs a program
//! in user space; tests hold the two against each other for all numbers and both ABIs.
//!
//! A number nobody knows answers `ENOSYS`, so that libraries fall back as on an older kernel. No
//! call is ever answered by killing: a program that asks for too much is told no.

mod rules;

pub use rules::{Abi, Call, Refusals, Rules, UnixSockets, Verdict};
