//! Landlock, straight from the kernel's interface.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::check;

#[repr(C)]
struct RulesetAttributes {
    handled_fs: u64,
    handled_net: u64,
    scoped: u64,
}

// The kernel's struct is packed: 12 bytes.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// The version of Landlock this kernel speaks, or `None` where it is absent or switched off.
pub(crate) fn abi() -> Option<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with the version flag the attribute pointer must be null and the size zero.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttributes>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// A ruleset that denies everything in `handled_fs` and isolates everything in `scoped`.
pub(crate) fn create_ruleset(handled_fs: u64, scoped: u64, abi: u32) -> io::Result<OwnedFd> {
    let attributes = RulesetAttributes {
        handled_fs,
        handled_net: 0,
        scoped,
    };
    // Older kernels know a shorter struct and refuse a longer one only where the rest is not zero.
    let size = match abi {
        0..=3 => 8,
        4 | 5 => 16,
        _ => size_of::<RulesetAttributes>(),
    };
    // SAFETY: `attributes` is live and at least `size` bytes long.
    let descriptor = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            size,
            0_u32,
        )
    })?;
    // SAFETY: the call returned a new descriptor.
    #[allow(clippy::cast_possible_truncation)]
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Allows `access` to everything beneath a held path.
pub(crate) fn allow_beneath(
    ruleset: BorrowedFd<'_>,
    path: BorrowedFd<'_>,
    access: u64,
) -> io::Result<()> {
    const PATH_BENEATH: u32 = 1;
    let rule = PathBeneath {
        allowed: access,
        parent: path.as_raw_fd(),
    };
    // SAFETY: `rule` is live and has the layout the kernel reads.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            &raw const rule,
            0_u32,
        )
    })
    .map(drop)
}

/// Puts this process under the ruleset, for ever.
pub(crate) fn restrict_self(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a live descriptor and a number.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) })
        .map(drop)
}
