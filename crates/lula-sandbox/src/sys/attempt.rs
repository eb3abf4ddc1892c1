//! Any system call, by number: what an attacker would do, and what the probes do in his place.

use std::io;

/// Makes a system call and returns its result or its error.
///
/// # Safety of callers
/// Callers pass calls that are refused, or that touch nothing but what they name: never a call
/// that unmaps, remaps or writes memory this program did not hand to it.
pub(crate) fn attempt(number: u32, args: [u64; 6]) -> io::Result<u64> {
    // SAFETY: see above; pointers among the arguments are null or to live memory of the caller.
    let returned = unsafe {
        libc::syscall(
            libc::c_long::from(number),
            args[0],
            args[1],
            args[2],
            args[3],
            args[4],
            args[5],
        )
    };
    if returned == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(returned.cast_unsigned())
}

/// Makes a system call without arguments through the 32-bit entry of a 64-bit x86 kernel.
#[cfg(target_arch = "x86_64")]
pub(crate) fn attempt_32_bit(number: u32) -> io::Result<u32> {
    let mut result = number;
    // SAFETY: the kernel saves every register but eax, which is declared; callers pass numbers of
    // calls without arguments. rbx is not touched.
    unsafe {
        std::arch::asm!("int 0x80", inout("eax") result, options(nostack));
    }
    match result.cast_signed() {
        errno @ -4095..=-1 => Err(io::Error::from_raw_os_error(-errno)),
        _ => Ok(result),
    }
}
