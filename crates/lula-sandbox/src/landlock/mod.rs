//! Landlock rules: which accesses each kind of grant means on each kernel, and putting them in force.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::sys::landlock as kernel;

/// What is granted beneath a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PathAccess {
    /// Read files, list directories and run programs.
    Read,
    /// Everything but making devices.
    Write,
    /// Read and write what is there, make nothing.
    Use,
    /// See names, nothing in them.
    List,
}

impl PathAccess {
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Use => 2,
            Self::List => 3,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Read, Self::Write, Self::Use, Self::List]
            .into_iter()
            .find(|access| access.number() == number)
    }

    /// The kernel's bits for this access, among those it handles.
    const fn bits(self, abi: u32, directory: bool) -> u64 {
        let wanted = match self {
            Self::Read => READ,
            Self::Write => ALL & !(MAKE_CHAR | MAKE_BLOCK),
            Self::Use => READ | WRITE_FILE | TRUNCATE | IOCTL_DEV,
            Self::List => READ_DIR,
        };
        let possible = if directory { ALL } else { ON_FILES };
        wanted & possible & handled(abi)
    }
}

/// A grant beneath a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathGrant {
    pub(crate) path: String,
    pub(crate) access: PathAccess,
}

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
const ALL: u64 = (1 << 16) - 1;
const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
const ON_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

const SCOPE_ABSTRACT_SOCKETS: u64 = 1;
const SCOPE_SIGNALS: u64 = 2;

/// Every access this version of Landlock can control.
const fn handled(abi: u32) -> u64 {
    match abi {
        0 => 0,
        1 => ALL & !(REFER | TRUNCATE | IOCTL_DEV),
        2 => ALL & !(TRUNCATE | IOCTL_DEV),
        3 | 4 => ALL & !IOCTL_DEV,
        _ => ALL,
    }
}

/// Abstract sockets and signals stay inside from version 6 on.
const fn scoped(abi: u32) -> u64 {
    if abi >= 6 {
        SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS
    } else {
        0
    }
}

/// Whether this version tells cutting a file short from reading it.
pub(crate) const fn guards_truncation(abi: u32) -> bool {
    handled(abi) & TRUNCATE != 0
}

/// Whether this version keeps signals inside.
pub(crate) const fn guards_signals(abi: u32) -> bool {
    scoped(abi) & SCOPE_SIGNALS != 0
}

/// The version that this kernel speaks; 0 where there is none.
pub(crate) fn version() -> u32 {
    kernel::abi().unwrap_or(0)
}

/// What was put in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EnforcedLandlock {
    pub(crate) abi: u32,
    pub(crate) rules: u32,
}

/// Puts this process and everything it starts under the grants. A grant for a path that does not
/// exist grants nothing and is left out. Nothing of a later version than `most` is used: what else guards the
/// sandbox was chosen for that one.
pub(crate) fn enforce(grants: &[PathGrant], most: u32) -> io::Result<EnforcedLandlock> {
    let abi = kernel::abi().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
    let abi = abi.min(most);
    let ruleset = kernel::create_ruleset(handled(abi), scoped(abi), abi)?;
    let mut rules = 0;
    for grant in grants {
        let held = match crate::sys::mount::hold_host(Path::new(&grant.path)) {
            Ok(held) => held,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode);
        let bits = grant
            .access
            .bits(abi, kind == rustix::fs::FileType::Directory);
        kernel::allow_beneath(ruleset.as_fd(), held.as_fd(), bits)?;
        rules += 1;
    }
    kernel::restrict_self(ruleset.as_fd())?;
    Ok(EnforcedLandlock { abi, rules })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_grant_ever_lets_a_device_be_made() {
        for access in [
            PathAccess::Read,
            PathAccess::Write,
            PathAccess::Use,
            PathAccess::List,
        ] {
            for abi in 1..=8 {
                assert_eq!(access.bits(abi, true) & (MAKE_CHAR | MAKE_BLOCK), 0);
            }
        }
    }

    #[test]
    fn a_grant_asks_a_kernel_only_for_what_it_knows() {
        for abi in 1..=8 {
            for access in [
                PathAccess::Read,
                PathAccess::Write,
                PathAccess::Use,
                PathAccess::List,
            ] {
                assert_eq!(access.bits(abi, true) & !handled(abi), 0);
                assert_eq!(access.bits(abi, false) & !ON_FILES, 0);
            }
        }
    }

    #[test]
    fn reading_never_writes() {
        let writes = ALL & !READ;
        assert_eq!(PathAccess::Read.bits(7, true) & writes, 0);
        assert_eq!(PathAccess::List.bits(7, true), READ_DIR);
    }
}
