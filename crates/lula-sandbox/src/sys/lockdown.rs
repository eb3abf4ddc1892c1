//! Giving up: privileges, capabilities, descriptors, system calls.

use std::io;

use super::check;
use crate::frames::KernelPosture;
use crate::seccomp::BpfInstruction;

const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// `NOROOT`, `NO_SETUID_FIXUP` and `NO_CAP_AMBIENT_RAISE` with their locks, and `KEEP_CAPS` locked
/// off.
const SECURE_BITS: u64 = 0b1110_1111;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn prctl(option: libc::c_int, second: u64, third: u64) -> io::Result<libc::c_long> {
    // SAFETY: every option used here takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_prctl, option, second, third, 0, 0) })
}

/// Makes every permitted capability effective again, after a change of ids took that away.
pub(crate) fn raise_permitted() -> io::Result<()> {
    let header = CapabilityHeader {
        version: LINUX_CAPABILITY_VERSION_3,
        pid: 0,
    };
    let mut data = [CapabilityData::default(); 2];
    // SAFETY: version 3 uses exactly two data structs; both pointers are live.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, data.as_mut_ptr()) })?;
    for half in &mut data {
        half.effective = half.permitted;
    }
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) }).map(drop)
}

/// Drops every capability: bounding, ambient, inheritable, permitted, effective, and the special
/// meaning of user id 0 with them.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    for capability in 0..64 {
        match prctl(libc::PR_CAPBSET_DROP, capability, 0) {
            Ok(_) => {}
            // The first number the kernel does not know.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    prctl(
        libc::PR_CAP_AMBIENT,
        libc::PR_CAP_AMBIENT_CLEAR_ALL as u64,
        0,
    )?;
    prctl(libc::PR_SET_SECUREBITS, SECURE_BITS, 0)?;
    clear_capability_sets()
}

/// Drops the capabilities held now; the bounding set stays where it cannot be changed.
pub(crate) fn clear_capability_sets() -> io::Result<()> {
    let header = CapabilityHeader {
        version: LINUX_CAPABILITY_VERSION_3,
        pid: 0,
    };
    let none = [CapabilityData::default(); 2];
    // SAFETY: version 3 uses exactly two data structs; both pointers are live.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) }).map(drop)
}

/// No program started from here on gains privileges.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map(drop)
}

/// Whether others of the same id may look into this process.
pub(crate) fn set_dumpable(yes: bool) -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, u64::from(yes), 0).map(drop)
}

/// This process dies with its parent.
pub(crate) fn die_with_parent() -> io::Result<()> {
    #[allow(clippy::cast_sign_loss)]
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64, 0).map(drop)
}

/// Orphans below this process become its children.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0).map(drop)
}

/// Installs a seccomp program. Needs [`no_new_privileges`].
pub(crate) fn install_seccomp(program: &[BpfInstruction]) -> io::Result<()> {
    let length = u16::try_from(program.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "seccomp program too long"))?;
    let filter = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: `BpfInstruction` has the layout of `sock_filter`; the kernel copies the program and
    // checks it.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const filter,
        )
    })
    .map(drop)
}

/// Whether a seccomp program was put over this process, as container engines do.
pub(crate) fn is_filtered() -> bool {
    prctl(libc::PR_GET_SECCOMP, 0, 0).is_ok_and(|mode| mode != 0)
}

/// What the kernel says about this process: privileges, capabilities, seccomp. An ambient capability
/// is always a permitted one too, so that set needs no look of its own.
pub(crate) fn standing() -> io::Result<KernelPosture> {
    let header = CapabilityHeader {
        version: LINUX_CAPABILITY_VERSION_3,
        pid: 0,
    };
    let mut data = [CapabilityData::default(); 2];
    // SAFETY: version 3 uses exactly two data structs; both pointers are live.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, data.as_mut_ptr()) })?;
    let held = data.map(|half| half.effective | half.permitted | half.inheritable);
    let mut posture = KernelPosture {
        no_new_privileges: prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0)? == 1,
        seccomp_mode: u32::try_from(prctl(libc::PR_GET_SECCOMP, 0, 0)?).unwrap_or(0),
        capabilities: u64::from(held[0]) | u64::from(held[1]) << 32,
        ..KernelPosture::default()
    };
    posture.seccomp_filters = u32::from(posture.seccomp_mode == 2);
    for capability in 0..64 {
        match prctl(libc::PR_CAPBSET_READ, capability, 0) {
            Ok(0) => {}
            Ok(_) => posture.bounding |= 1 << capability,
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(posture)
}
