//! The only room with `unsafe`: system calls that rustix does not wrap, each behind a safe function
//! that says what it does in our words. Nothing here decides anything.
#![allow(unsafe_code)]

pub(crate) mod attempt;
pub(crate) mod clone;
pub(crate) mod descriptors;
pub(crate) mod exec;
pub(crate) mod landlock;
pub(crate) mod lockdown;
pub(crate) mod mount;
pub(crate) mod network;
pub(crate) mod origin;
pub(crate) mod process;
pub(crate) mod refusals;
pub(crate) mod scheduling;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod ways;

use std::io;

/// A system call's `-1` as the error it stands for.
fn check(returned: libc::c_long) -> io::Result<libc::c_long> {
    if returned < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(returned)
    }
}
