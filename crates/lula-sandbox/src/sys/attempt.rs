//! Any system call, by number: what an attacker would do, and what the probes do in his place.

use std::io;

/// Makes a system call and returns its result or its error.
///
/// # Safety of callers
/// Callers pass calls that are refused, or that touch nothing but what they name: never a call
/// that unmaps, remaps or writes memory this program did not hand to it.
pub(crate) fn attempt(number: u32, args: [u64; 6]) -> io::Result<u64> {
    let [a, b, c, d, e, f] = args;
    // SAFETY: see above; pointers among the arguments are null or to live memory of the caller.
    let returned = unsafe { libc::syscall(libc::c_long::from(number), a, b, c, d, e, f) };
    if returned == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(returned.cast_unsigned().into())
}
