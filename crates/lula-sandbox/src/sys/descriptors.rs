//! Descriptors by number: placed where a new process expects them, and closed where it must not have them.

use std::io;
use std::os::fd::OwnedFd;

use super::check;
use super::ways::FirstWay;

/// Closes every descriptor from `first` on. Makes system calls only, for a process that may do no more.
pub(crate) fn close_from(first: i32) -> io::Result<()> {
    /// Kernels before 5.9 have no such call.
    static CLOSE_RANGE: FirstWay = FirstWay::new();
    // No number is greater; gVisor takes the greatest that the call could be given for -1.
    let last = libc::c_int::MAX;
    // SAFETY: takes numbers only. Callers own no descriptor at or above `first` afterwards: this is
    // used right before the process serves or ends.
    let all = || check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop);
    CLOSE_RANGE.or_else(all, || close_each(first))
}

/// Closes them one by one, as the kernel lists them. An error where it does not: then none may be left
/// unseen.
fn close_each(first: i32) -> io::Result<()> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path is a constant; the rest takes numbers, and a live buffer of the length given.
    unsafe {
        let list = libc::openat(libc::AT_FDCWD, c"/proc/self/fd".as_ptr(), flags);
        check(libc::c_long::from(list))?;
        let mut entries = Listing([0; 2048]);
        loop {
            let length = check(libc::syscall(
                libc::SYS_getdents64,
                list,
                entries.0.as_mut_ptr(),
                entries.0.len(),
            ))?;
            if length == 0 {
                break;
            }
            for number in entries.numbers(usize::try_from(length).unwrap_or(0)) {
                if number >= first && number != list {
                    libc::close(number);
                }
            }
        }
        libc::close(list);
    }
    Ok(())
}

/// Directory entries as the kernel writes them.
#[repr(align(8))]
struct Listing([u8; 2048]);

impl Listing {
    /// The names that are numbers.
    fn numbers(&self, length: usize) -> impl Iterator<Item = i32> {
        /// Where an entry's own length and its name stand: after inode and offset, and after the type.
        const LENGTH: usize = 16;
        const NAME: usize = 19;
        let mut rest = self.0.get(..length).unwrap_or_default();
        std::iter::from_fn(move || {
            let size = rest.get(LENGTH..LENGTH + 2)?;
            let size = usize::from(u16::from_ne_bytes([size[0], size[1]])).max(1);
            let name = rest.get(NAME..size)?;
            rest = rest.get(size..).unwrap_or_default();
            Some(number(name))
        })
        .flatten()
    }
}

/// The number before the byte that ends a name.
fn number(name: &[u8]) -> Option<i32> {
    let digits = name.split(|byte| *byte == 0).next()?;
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i32, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i32::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// `/dev/null`, at a number from `above` on.
pub(crate) fn nothing(above: i32) -> io::Result<OwnedFd> {
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    Ok(rustix::io::fcntl_dupfd_cloexec(&null, above)?)
}

/// Makes descriptor `from` also known as `to`, surviving `exec` only where asked.
pub(crate) fn place_descriptor(from: i32, to: i32, keep_on_exec: bool) -> io::Result<()> {
    let flags = if keep_on_exec { 0 } else { libc::O_CLOEXEC };
    if from == to {
        let flag = if keep_on_exec { 0 } else { libc::FD_CLOEXEC };
        // SAFETY: F_SETFD takes a number.
        return check(libc::c_long::from(unsafe {
            libc::fcntl(from, libc::F_SETFD, flag)
        }))
        .map(drop);
    }
    // SAFETY: takes numbers only; what `to` named before is closed, which callers intend.
    check(unsafe { libc::syscall(libc::SYS_dup3, from, to, flags) }).map(drop)
}

/// Closes this process's copy of a descriptor by number.
pub(crate) fn close_one(number: i32) -> io::Result<()> {
    // SAFETY: callers close a copy that a cloned process inherited and never uses.
    check(libc::c_long::from(unsafe { libc::close(number) })).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_numbers() {
        assert_eq!(number(b"17\0rest"), Some(17));
        for name in [&b".\0"[..], b"..\0", b"\0", b"", b"1a\0", b"99999999999\0"] {
            assert_eq!(number(name), None, "{name:?}");
        }
    }
}
