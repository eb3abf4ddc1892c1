//! The execution engine: one policy over several isolation tiers.
//!
//! This crate turns a [`policy::Policy`] into a running, fenced command and reports exactly what it
//! applied. It must never claim a layer that was not read back, never run below the floor a policy
//! states, and never build a path from a name it did not check. It depends on `lula-protocol` only;
//! system calls that need `unsafe` live in `sys`.

pub mod cgroup;
pub mod policy;
pub mod seccomp;
mod sys;
