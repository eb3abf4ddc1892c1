//! What is mounted at a path, asked of the kernel about that mount alone. The list of all mounts takes
//! longer to write than a process takes to start, and nothing can be mounted meanwhile.

use std::ffi::CStr;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};

use super::check;

/// A filesystem and the part of it that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// The number that tells its kind.
    pub(crate) magic: u64,
    /// The directory of the filesystem that is seen.
    pub(crate) root: String,
}

/// `statmount`, under its number on every architecture.
const STATMOUNT: libc::c_long = 457;
/// A mount's number that is never given to another.
const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
/// The kind of a filesystem is told.
const FILESYSTEM: u64 = 0x1;
/// The directory that is seen is told.
const ROOT: u64 = 0x8;

/// Which mount is asked about: the first form of the kernel's `mnt_id_req`.
#[repr(C)]
struct Asked {
    size: u32,
    spare: u32,
    mount: u64,
    what: u64,
}

/// The kernel's `statmount`, of which the fields used here are named, with its texts behind it.
#[repr(C)]
struct Told {
    size: u32,
    _options: u32,
    what: u64,
    _device: [u32; 2],
    magic: u64,
    _basic: [u64; 9],
    root: u32,
    _point: u32,
    _rest: [u64; 50],
    texts: [u8; 4096],
}

const _: () = assert!(std::mem::offset_of!(Told, magic) == 24);
const _: () = assert!(std::mem::offset_of!(Told, root) == 104);
const _: () = assert!(std::mem::offset_of!(Told, texts) == 512);

/// What is mounted at exactly that path. `None` where nothing is, and where the kernel does not tell.
pub(crate) fn at(path: &str) -> Option<Mounted> {
    let found = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, UNIQUE).ok()?;
    let is_root = found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    if !is_root || found.stx_mask & UNIQUE.bits() == 0 {
        return None;
    }
    let asked = Asked {
        size: u32::try_from(size_of::<Asked>()).ok()?,
        spare: 0,
        mount: found.stx_mnt_id,
        what: FILESYSTEM | ROOT,
    };
    let mut told = Told {
        size: 0,
        _options: 0,
        what: 0,
        _device: [0; 2],
        magic: 0,
        _basic: [0; 9],
        root: 0,
        _point: 0,
        _rest: [0; 50],
        texts: [0; 4096],
    };
    // SAFETY: `asked` has the size it names, `told` is plain numbers and as long as is said; both
    // outlive the call.
    check(unsafe {
        libc::syscall(
            STATMOUNT,
            &raw const asked,
            &raw mut told,
            size_of::<Told>(),
            0,
        )
    })
    .ok()?;
    if told.what & asked.what != asked.what {
        return None;
    }
    let text = told.texts.get(usize::try_from(told.root).ok()?..)?;
    let root = CStr::from_bytes_until_nul(text).ok()?.to_str().ok()?;
    Some(Mounted {
        magic: told.magic,
        root: root.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_is_told_and_what_is_not_is_not() {
        const PROC: u64 = 0x9fa0;
        // A kernel that cannot tell says so of everything.
        let release = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            panic!("no version in {release}");
        };
        let expected = ((major, minor) >= (6, 8)).then(|| Mounted {
            magic: PROC,
            root: "/".to_owned(),
        });
        assert_eq!(at("/proc"), expected);
        assert_eq!(at("/proc/self/fd"), None);
        assert_eq!(at("/not/there"), None);
    }
}
